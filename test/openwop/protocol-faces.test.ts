/** Owns: the servers of other protocols over a host that fails, waits and holds sessions, on a clock that a test moves. */
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { createA2aFace } from "../../src/plugins/a2a/a2a-routes.ts";
import { MCP_BOUNDS } from "../../src/plugins/mcp/mcp-bounds.ts";
import { createMcpFace } from "../../src/plugins/mcp/mcp-routes.ts";
import {
  createOpenWopApp,
  type OpenWopApp,
  type OpenWopDependencies,
} from "../../src/plugins/openwop/app.ts";
import { createFakeClock, waitUntilSettled, type FakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import {
  ADVERTISED,
  createFakeHost,
  createPost,
  createRecordingLogger,
  TOKENS,
  type FakeHost,
  type LoggedLine,
} from "./http-fake-host.ts";
import { findSchemaProblems } from "./levels-schemas.ts";

interface Faces {
  readonly app: OpenWopApp;
  readonly host: FakeHost;
  readonly clock: FakeClock;
  readonly logged: LoggedLine[];
}

function openFaces(
  names: readonly ("mcp" | "a2a")[] = ["mcp", "a2a"],
  options: Pick<OpenWopDependencies, "quotas"> = {},
): Faces {
  const host = createFakeHost();
  const clock = createFakeClock();
  const { logger, logged } = createRecordingLogger();
  const loadContract = () => Promise.resolve({ check: () => [] });
  const access = {
    host,
    clock,
    logger,
    contract: loadContract,
    version: "0.0.0",
    runs: createMemoryWorkflowLedger().open(),
  };
  const faces = {
    mcp: createMcpFace({ ...access, toolScopes: {}, mayAnswer: true, allowedOrigins: [] }),
    a2a: createA2aFace({ ...access, baseUrl: () => "http://host.test" }),
  };
  const app = createOpenWopApp({
    host,
    clock,
    logger,
    advertised: ADVERTISED,
    tokens: TOKENS,
    faces: names.map((name) => faces[name]),
    ...options,
  });
  return { app, host, clock, logged };
}

const ACCEPT = { accept: "application/json, text/event-stream" };
const INITIALIZE = {
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
};

async function beginSession({ app }: Faces): Promise<string> {
  const answer = await app.request("/v1/mcp", createPost(INITIALIZE, ACCEPT));
  await answer.text();
  return answer.headers.get("mcp-session-id") ?? "";
}

async function callMcp(
  { app }: Faces,
  session: string,
  method: string,
  params: object = {},
): Promise<Response> {
  const headers = { ...ACCEPT, "mcp-session-id": session };
  return await app.request("/v1/mcp", createPost({ jsonrpc: "2.0", id: 1, method, params }, headers));
}

/** The data of the last event of a stream. */
async function readLast(answer: Response): Promise<unknown> {
  const data = (await answer.text()).split("\n").filter((line) => line.startsWith("data: "));
  return JSON.parse(data.at(-1)?.slice("data: ".length) ?? "null");
}

async function callA2a(
  { app }: Faces,
  method: string,
  params: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const message = { jsonrpc: "2.0", id: 1, method, params };
  return await app.request("/v1/a2a", createPost(message, { "a2a-version": "1.0", ...headers }));
}

const MESSAGE = { message: { messageId: "m-1", role: "ROLE_USER", parts: [{ text: "go" }] } };

describe("the discovery document", () => {
  it.each([
    ["no server of another protocol", [], ["rest"]],
    ["that of MCP", ["mcp"], ["rest", "mcp"]],
    ["those of MCP and A2A", ["mcp", "a2a"], ["rest", "mcp", "a2a"]],
  ] as const)("names the transports of %s", async (_case, names, supportedTransports) => {
    const { app } = openFaces(names);
    const document: unknown = await (await app.request("/.well-known/openwop")).json();
    expect(document).toMatchObject({ supportedTransports });
    expect(findSchemaProblems("capabilities", document)).toEqual([]);
  });
});

describe("the MCP server", () => {
  it("answers after 50 s that the run goes on, and watches it no more", async () => {
    const faces = openFaces();
    const session = await beginSession(faces);
    const answer = await callMcp(faces, session, "tools/call", { name: "conformance-noop", arguments: {} });
    const last = readLast(answer);
    await waitUntilSettled();
    expect(faces.host.watching()).toBe(1);
    await faces.clock.advance(50_000);
    expect(await last).toMatchObject({ result: { structuredContent: { status: "running" } } });
    expect(faces.host.watching()).toBe(0);
  });

  it("tells a fault of its own by an id, and nothing of the inside", async () => {
    const faces = openFaces();
    const session = await beginSession(faces);
    faces.host.fail(new Error("a secret of the inside"));
    const answer = await callMcp(faces, session, "tools/call", { name: "conformance-noop", arguments: {} });
    const failure = await readLast(answer);
    expect(failure).toMatchObject({
      error: { code: -32_603, data: { correlationId: expect.any(String) as string } },
    });
    expect(JSON.stringify(failure)).not.toContain("inside");
    const { correlationId } = (
      failure as { readonly error: { readonly data: { readonly correlationId: string } } }
    ).error.data;
    expect(faces.logged).toContainEqual(
      expect.objectContaining({
        level: "error",
        fields: expect.objectContaining({ correlationId }) as unknown,
      }),
    );
  });

  it("cancels a run once, however often its client cancels, and answers nothing then", async () => {
    const faces = openFaces();
    const session = await beginSession(faces);
    const answer = await callMcp(faces, session, "tools/call", { name: "conformance-noop", arguments: {} });
    await waitUntilSettled();
    const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
    for (let times = 0; times < 2; times += 1) {
      const headers = { ...ACCEPT, "mcp-session-id": session };
      expect((await faces.app.request("/v1/mcp", createPost(cancel, headers))).status).toBe(202);
    }
    await waitUntilSettled();
    const [run] = faces.host.runs.values();
    expect(run?.events.map(({ type }) => type)).toEqual(["run.started", "run.cancelled"]);
    await answer.body?.cancel();
  });

  it("ends the session of a caller that was idle longest for a new one, and all after an hour", async () => {
    const faces = openFaces();
    const first = await beginSession(faces);
    const second = await beginSession(faces);
    for (let more = 2; more < MCP_BOUNDS.sessionsOfCallerMax; more += 1) await beginSession(faces);
    expect((await callMcp(faces, first, "ping")).status).toBe(200);
    await beginSession(faces);
    expect((await callMcp(faces, second, "ping")).status).toBe(404);
    expect((await callMcp(faces, first, "ping")).status).toBe(200);
    await faces.clock.advance(MCP_BOUNDS.sessionIdleMs);
    await beginSession(faces);
    expect((await callMcp(faces, first, "ping")).status).toBe(404);
  });

  it("ends no session of a caller in the middle of a call, and refuses a new one where all are", async () => {
    const faces = openFaces();
    const sessions: string[] = [];
    for (let begun = 0; begun < MCP_BOUNDS.sessionsOfCallerMax; begun += 1)
      sessions.push(await beginSession(faces));
    const call = (session: string): Promise<Response> =>
      callMcp(faces, session, "tools/call", { name: "conformance-noop", arguments: {} });
    const answers = await Promise.all(sessions.slice(0, -1).map(call));
    const idle = sessions.at(-1) ?? "";
    sessions.splice(-1, 1, await beginSession(faces));
    expect((await callMcp(faces, idle, "ping")).status).toBe(404);
    answers.push(await call(sessions.at(-1) ?? ""));
    const refused = await faces.app.request("/v1/mcp", createPost(INITIALIZE, ACCEPT));
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    expect(await refused.json()).toMatchObject({ error: "rate_limited" });
    await waitUntilSettled();
    await faces.clock.advance(50_000);
    for (const answer of answers)
      expect(await readLast(answer)).toMatchObject({ result: { structuredContent: { status: "running" } } });
    expect(await beginSession(faces)).not.toBe("");
  });

  it("keeps no session that did not begin", async () => {
    const faces = openFaces();
    const session = await beginSession(faces);
    for (let times = 0; times < MCP_BOUNDS.sessionsOfCallerMax; times += 1) {
      const refused = await faces.app.request(
        "/v1/mcp",
        createPost(INITIALIZE, { accept: "application/json" }),
      );
      expect([refused.status, refused.headers.get("mcp-session-id")]).toEqual([406, null]);
    }
    expect((await callMcp(faces, session, "ping")).status).toBe(200);
  });
});

describe("the quota of streams", () => {
  it("refuses a call over MCP before its run is begun, and no cancellation of one", async () => {
    const faces = openFaces(["mcp"], { quotas: { streams: 2 } });
    const session = await beginSession(faces);
    const send = (message: object): Promise<Response> => {
      const headers = { ...ACCEPT, "mcp-session-id": session };
      return Promise.resolve(
        faces.app.request("/v1/mcp", createPost({ jsonrpc: "2.0", ...message }, headers)),
      );
    };
    const call = (id: number): Promise<Response> =>
      send({ id, method: "tools/call", params: { name: "conformance-noop", arguments: {} } });
    const [first, , third] = [await call(1), await call(2), await call(3)];
    expect([first.status, third.status]).toEqual([200, 429]);
    expect(await third.json()).toMatchObject({ details: { quota: "streams", limit: 2 } });
    await waitUntilSettled();
    expect(faces.host.created).toHaveLength(2);
    expect((await send({ method: "notifications/cancelled", params: { requestId: 1 } })).status).toBe(202);
    expect(await first.text()).toBe("");
    expect((await call(3)).status).toBe(200);
  });

  it("refuses a streamed message over A2A before its run is begun, and counts no other message", async () => {
    const faces = openFaces(["a2a"], { quotas: { streams: 1 } });
    const send = (method: string, messageId: string): Promise<Response> => {
      const configuration = { returnImmediately: true };
      return callA2a(faces, method, { message: { ...MESSAGE.message, messageId }, configuration });
    };
    const streaming = await send("SendStreamingMessage", "m-1");
    expect((await send("SendStreamingMessage", "m-2")).status).toBe(429);
    await waitUntilSettled();
    expect(faces.host.created).toHaveLength(1);
    const answering = send("SendMessage", "m-3");
    await faces.clock.advance(0);
    expect((await answering).status).toBe(200);
    await streaming.body?.cancel();
    const again = await send("SendStreamingMessage", "m-2");
    expect(again.status).toBe(200);
    await again.body?.cancel();
  });

  it("counts no stream that nobody is given because its key could not be freed", async () => {
    const faces = openFaces(["a2a"], { quotas: { streams: 1 } });
    const { requests } = faces.host;
    const release = requests.release.bind(requests);
    requests.release = () => Promise.reject(new CoordinationError("LEDGER_BUSY", "locked"));
    const send = async (): Promise<number> => {
      const answer = await callA2a(faces, "SendStreamingMessage", MESSAGE, { "idempotency-key": "k1" });
      await answer.body?.cancel();
      return answer.status;
    };
    expect(await send()).toBe(503);
    await waitUntilSettled();
    expect(faces.host.watching()).toBe(0);
    requests.release = release;
    expect(await send()).toBe(200);
  });
});

describe("the A2A server", () => {
  it("answers after 50 s that the task is at work, at once where that is wanted", async () => {
    const faces = openFaces();
    const waiting = callA2a(faces, "SendMessage", MESSAGE);
    await waitUntilSettled();
    await faces.clock.advance(50_000);
    const working = { result: { task: { status: { state: "TASK_STATE_WORKING" } } } };
    expect(await (await waiting).json()).toMatchObject(working);
    const atOnce = {
      message: { ...MESSAGE.message, messageId: "m-2" },
      configuration: { returnImmediately: true },
    };
    const answering = callA2a(faces, "SendMessage", atOnce);
    await faces.clock.advance(0);
    expect(await (await answering).json()).toMatchObject(working);
    expect(faces.host.watching()).toBe(0);
  });

  it("keeps a stream alive that has no news, and watches no more when its client leaves", async () => {
    const faces = openFaces();
    const answer = await callA2a(faces, "SendStreamingMessage", MESSAGE);
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    const read = async (): Promise<string> => new TextDecoder().decode((await reader.read()).value);
    expect(await read()).toContain("TASK_STATE_WORKING");
    const next = read();
    await faces.clock.advance(15_000);
    expect(await next).toBe(": keep-alive\n\n");
    await reader.cancel();
    await waitUntilSettled();
    expect([faces.host.watching(), faces.clock.pending]).toEqual([0, 0]);
  });

  it("ends its streams when the server stops", async () => {
    const faces = openFaces();
    const answer = await callA2a(faces, "SendStreamingMessage", MESSAGE);
    const text = answer.text();
    await waitUntilSettled();
    faces.app.closeStreams();
    expect(await text).toContain("TASK_STATE_WORKING");
    expect([faces.host.watching(), faces.clock.pending]).toEqual([0, 0]);
  });

  it("tells a fault of its own by an id, and nothing of the inside", async () => {
    const faces = openFaces();
    faces.host.fail(new Error("a secret of the inside"));
    for (const method of ["SendMessage", "SendStreamingMessage"]) {
      const text = await (await callA2a(faces, method, MESSAGE)).text();
      expect(text).toContain("An unexpected error occurred.");
      expect(text).not.toContain("inside");
    }
    expect(faces.logged.filter(({ level }) => level === "error")).toHaveLength(2);
  });
});
