/** Owns: the attacks of the MCP specification's list: tokens, sessions, origins, bodies and methods (MCP). */
import { afterAll, beforeAll, expect, it } from "vitest";
import { readFileSync } from "node:fs";
import { createNode, createWorkflow } from "../../openwop/levels-workflows.ts";
import {
  MINER,
  openAttackedHost,
  readJson,
  SECOND_MINER,
  STRANGER,
  WORKFLOWS,
  type Answer,
  type AttackedHost,
  type SentRequest,
} from "./serve-scene.ts";
import { startTrap, type Trap } from "./trap.ts";

const PEER_TOKEN = "token-for-the-named-peer-1";

let host: AttackedHost;
let peer: Trap;
let elsewhere: Trap;

beforeAll(async () => {
  elsewhere = await startTrap();
  peer = await startTrap({ redirectTo: elsewhere.url });
  const callsPeer = createWorkflow("calls-peer", {
    nodes: [createNode("call", "core.ai.callPrompt", { config: { mcp: { tool: "dig", arguments: {} } } })],
  });
  host = await openAttackedHost({
    definitions: [...WORKFLOWS, callsPeer],
    mcp: { toolScopes: { answer: ["approver"] } },
    privateOrigins: [peer.url],
    peers: [peer.url],
    peerTokens: { [peer.url]: PEER_TOKEN },
  });
});

afterAll(async () => {
  await host[Symbol.asyncDispose]();
  await peer[Symbol.asyncDispose]();
  await elsewhere[Symbol.asyncDispose]();
});

const ACCEPT = "application/json, text/event-stream";

function postMcp(
  message: unknown,
  { session, ...sent }: SentRequest & { session?: string } = {},
): Promise<Answer> {
  const headers = {
    accept: ACCEPT,
    ...(session !== undefined && { "mcp-session-id": session }),
    ...sent.headers,
  };
  return host.send("/v1/mcp", { method: "POST", body: message, ...sent, headers });
}

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "x", version: "1" } },
};
const LIST = { jsonrpc: "2.0", id: 2, method: "tools/list", params: {} };

async function openSession(token?: string): Promise<string> {
  const { headers } = await postMcp(INITIALIZE, token === undefined ? {} : { token });
  return String(headers["mcp-session-id"] ?? expect.fail("there is no session"));
}

it("MCP-1 a token that somebody else issued for another audience", async () => {
  const claims = { aud: "https://other.example", sub: "ann", tenant: "miners" };
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  for (const foreign of [
    `${encode({ alg: "none" })}.${encode(claims)}.`,
    `${encode({ alg: "HS256" })}.${encode(claims)}.${encode({})}`,
    `${MINER} `.repeat(2).trim(),
    MINER.toUpperCase(),
    MINER.slice(0, -1),
    `${MINER}\u00e9`,
  ])
    expect((await postMcp(INITIALIZE, { token: foreign })).status).toBe(401);
});

it("MCP-2 a token in the address, in a cookie, in the body, or under another scheme", async () => {
  const message = { ...INITIALIZE, token: MINER, access_token: MINER };
  const tries = [
    host.send(`/v1/mcp?access_token=${MINER}&token=${MINER}`, { method: "POST", token: "", body: message }),
    postMcp(message, { token: "", headers: { cookie: `token=${MINER}; authorization=Bearer ${MINER}` } }),
    postMcp(message, { token: "", headers: { authorization: `Basic ${btoa(`ann:${MINER}`)}` } }),
    postMcp(message, { token: "", headers: { authorization: MINER, "x-api-key": MINER } }),
  ];
  for (const answer of await Promise.all(tries)) expect(answer.status).toBe(401);
});

it("MCP-3 a session of somebody else's token, of another tenant and of the own", async () => {
  const session = await openSession();
  expect((await postMcp(LIST, { session })).status).toBe(200);
  for (const token of [STRANGER, SECOND_MINER]) {
    expect((await postMcp(LIST, { session, token })).status).toBe(404);
    const ended = await host.send("/v1/mcp", {
      method: "DELETE",
      token,
      headers: { "mcp-session-id": session },
    });
    expect(ended.status).toBe(404);
  }
  expect((await postMcp(LIST, { session })).status).toBe(200);
});

it("MCP-4 a session id that is guessed, doubled, or no id at all", async () => {
  const session = await openSession();
  const counted = session.replace(/[0-9a-f]$/u, (digit) => (digit === "0" ? "1" : "0"));
  for (const guess of [counted, `${session}, ${session}`, session.toUpperCase(), "__proto__", "../x", "0"])
    expect((await postMcp(LIST, { session: guess })).status).toBe(404);
  expect(session.length).toBeGreaterThan(30);
  expect(await openSession()).not.toBe(session);
});

it("MCP-5 a session as proof of who one is, without a token", async () => {
  const session = await openSession();
  expect((await postMcp(LIST, { session, token: "" })).status).toBe(401);
});

it("MCP-6 a web page that speaks to the server in a browser: origins and names that lead here", async () => {
  for (const headers of [
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: "http://localhost:1" },
    { origin: `${host.baseUrl}.evil.example` },
  ])
    expect((await postMcp(INITIALIZE, { headers })).status).toBe(403);
  const rebound = await postMcp(INITIALIZE, { token: "", headers: { host: "rebound.evil.example" } });
  expect(rebound.status).toBe(401);
  expect(rebound.headers["access-control-allow-origin"]).toBeUndefined();
});

it("MCP-7 bodies that are too large, too deep, or batches without end", async () => {
  const session = await openSession();
  const call = { ...LIST, params: { x: "x".repeat(1_100_000) } };
  expect((await postMcp(call, { session })).status).toBe(413);
  const deep = await postMcp(undefined, { session, text: `${"[".repeat(10_000)}${"]".repeat(10_000)}` });
  expect(deep.status).toBe(400);
  const batch = await postMcp(Array(60_000).fill(1), { session });
  expect(batch.status).toBe(400);
  expect((await postMcp(LIST, { session })).status).toBe(200);
});

it("MCP-8 methods that are not allowed, and a body of another type", async () => {
  for (const method of ["GET", "PUT", "PATCH", "TRACE"])
    expect((await host.send("/v1/mcp", { method })).status).toBe(405);
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
    expect((await postMcp(INITIALIZE, { headers: { "content-type": type } })).status).toBe(415);
});

async function callTool(name: string, args: unknown, token?: string): Promise<Answer> {
  const options = token === undefined ? {} : { token };
  const session = await openSession(token);
  const params = { name, arguments: args };
  return postMcp({ jsonrpc: "2.0", id: 3, method: "tools/call", params }, { session, ...options });
}

it("MCP-9 a tool that the token has no scope for, by its name and by its look-alikes", async () => {
  const runId = await host.miner.start("gated");
  await host.miner.until(runId, "waiting-approval");
  for (const name of [
    "answer",
    "Answer",
    "answer ",
    "\u0430nswer",
    "answer\u200b",
    "__proto__",
    "constructor",
  ]) {
    const { text } = await callTool(name, { runId, value: { action: "accept" } });
    expect(text).toMatch(/there is no tool/u);
  }
  expect((await host.miner.snapshot(runId)).status).toBe("waiting-approval");
});

it("MCP-10 a run of another tenant through every tool and resource", async () => {
  const runId = await host.miner.start("gated");
  await host.miner.until(runId, "waiting-approval");
  for (const name of ["status", "verify"])
    expect((await callTool(name, { runId }, STRANGER)).text).toContain("not_found");
  for (const name of ["status", "questions"])
    expect((await callTool(name, {}, STRANGER)).text).not.toContain(runId);
  const session = await openSession(STRANGER);
  for (const uri of [`openwop://runs/${runId}`, `openwop://runs/${runId}/events`]) {
    const message = { jsonrpc: "2.0", id: 4, method: "resources/read", params: { uri } };
    const { text } = await postMcp(message, { session, token: STRANGER });
    expect(text).toContain("-32002");
    expect(text).not.toContain("Dig?");
  }
});

it("MCP-11 the caller's token passed on to the server behind", async () => {
  const { error } = await runWithPeer(peer.url);
  expect(error).toBeDefined();
  expect(peer.requests.length).toBeGreaterThan(0);
  for (const { headers } of peer.requests) expect(headers["authorization"]).toBe(`Bearer ${PEER_TOKEN}`);
  expect(JSON.stringify(peer.requests)).not.toContain(MINER);
});

it("MCP-12 a named peer that redirects elsewhere, with the token", async () => {
  const { error } = await runWithPeer(peer.url);
  expect(error?.code).toMatch(/redirected|malformed|unreachable/u);
  expect(elsewhere.connections()).toBe(0);
});

async function runWithPeer(peerUrl: string) {
  const runId = await host.miner.start("calls-peer", { inputs: { peerUrl } });
  return host.miner.until(runId, "failed");
}

it("MCP-13 the peer's token in what the run tells of it", async () => {
  const { runId } = await runWithPeer(peer.url);
  const shown = JSON.stringify([await host.miner.snapshot(runId), await host.miner.events(runId)]);
  expect(shown).not.toContain(PEER_TOKEN);
  expect(host.logged.join("\n")).not.toContain(PEER_TOKEN);
  expect(readFileSync(host.ledgerPath).includes(PEER_TOKEN)).toBe(false);
});

it("MCP-14 a caller that has a peer of its own called: private addresses in every spelling", async () => {
  const port = new URL(elsewhere.url).port;
  const spellings = [
    `http://127.0.0.1:${port}`,
    `http://localhost:${port}`,
    `http://2130706433:${port}`,
    `http://0x7f000001:${port}`,
    `http://0177.0.0.1:${port}`,
    `http://127.1:${port}`,
    `http://0.0.0.0:${port}`,
    `http://[::1]:${port}`,
    `http://[::ffff:127.0.0.1]:${port}`,
    `https://127.0.0.1:${port}`,
    `http://user:pass@127.0.0.1:${port}`,
    `${peer.url}@127.0.0.1:${port}`,
    `${peer.url}/../..//127.0.0.1:${port}`,
    "file:///etc/passwd",
    "http://169.254.169.254/latest/meta-data",
  ];
  for (const peerUrl of spellings) {
    const { error } = await runWithPeer(peerUrl);
    expect([peerUrl, error?.code]).toEqual([
      peerUrl,
      expect.stringMatching(/not_allowed|malformed|invalid/u),
    ]);
  }
  expect(elsewhere.connections()).toBe(0);
});

it("MCP-15 a run's log as a resource whose address climbs or asks for more than it may", async () => {
  const runId = await host.miner.start("echo");
  const session = await openSession();
  for (const uri of [
    `openwop://runs/../../etc/passwd`,
    `openwop://runs/${runId}/../../x`,
    `openwop://runs/${runId}%2F..%2F..`,
    `openwop://runs/${runId}/events?from=-1`,
    `openwop://runs/${runId}/events?limit=1e9`,
    `file://${host.ledgerPath}`,
  ]) {
    const message = { jsonrpc: "2.0", id: 4, method: "resources/read", params: { uri } };
    expect(readJson(await toJson(postMcp(message, { session })))["error"]).toMatchObject({ code: -32_002 });
  }
});

it("MCP-16 an address with a name that leads to this machine", async () => {
  await using naming = await openAttackedHost({
    definitions: [
      ...["https", "http"].map((scheme) =>
        createWorkflow(`calls-${scheme}`, {
          nodes: [
            createNode("call", "core.a2a.invoke", {
              config: {
                skill: "dig",
                message: "x",
                url: elsewhere.url.replace("http://127.0.0.1", `${scheme}://localhost`),
              },
            }),
          ],
        }),
      ),
    ],
  });
  for (const workflowId of ["calls-https", "calls-http"]) {
    const { error } = await naming.miner.until(await naming.miner.start(workflowId), "failed");
    expect(error?.code).toBe("address_not_allowed");
  }
  expect(elsewhere.connections()).toBe(0);
});

/** Takes the message out of the stream that an MCP answer may be. */
async function toJson(answer: Promise<Answer>): Promise<Answer> {
  const { text, ...rest } = await answer;
  return { ...rest, text: text.startsWith("{") ? text : (/^data: (.+)$/mu.exec(text)?.[1] ?? "{}") };
}
