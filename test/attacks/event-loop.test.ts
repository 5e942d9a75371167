import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServedOpenWop } from "../../src/plugins/serve-openwop.ts";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import { BEARER, createFakeFace } from "../openwop/http-fake-host.ts";
import { createNoop, createWorkflow } from "../openwop/levels-workflows.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { shortestOf } from "./longest-turn.ts";
import { startThreadClient, type ThreadClient } from "./thread-client.ts";

const TURN_MS_MAX = 50;
const TRIES = 5;

/** Values of which each costs time: many names, each another one. */
function createManyNames(salt: number): Record<string, unknown> {
  const group = (): Record<string, number> =>
    Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`name${at}`, salt + at]));
  return Object.fromEntries(Array.from({ length: 45 }, (_, at) => [`group${at}`, group()]));
}

describe("an answer that is as large as a run", () => {
  /** 12 events of half a megabyte. */
  function createLargeRuns(): ReturnType<typeof createFakeFace> {
    const face = createFakeFace();
    for (const [salt, runId] of ["run-a", "run-b"].entries()) {
      const run = face.host.put(runId);
      for (let made = 0; made < 12; made += 1)
        face.host.append(runId, "variable.changed", { name: `v${made}`, next: createManyNames(salt) });
      run.status = "completed";
    }
    return face;
  }

  it.each([
    ["the difference of two runs that differ everywhere", "/v1/runs/run-a:diff?against=run-b"],
    ["the difference of a run and itself", "/v1/runs/run-a:diff?against=run-a"],
    ["the events as JSON", "/v1/runs/run-a/events"],
    ["the events of a poll", "/v1/runs/run-a/events/poll?timeout=0"],
  ])("is made in turns between which others have theirs: %s", async (_what, path) => {
    const { app } = createLargeRuns();
    const headers = { ...BEARER, accept: "application/json" };
    const ask = async (): Promise<void> => {
      expect((await app.request(path, { headers })).status).toBe(200);
    };
    expect(await shortestOf(TRIES, ask)).toBeLessThan(TURN_MS_MAX);
  });

  it("is the same text that is made in one go", async () => {
    const { app, host } = createLargeRuns();
    const headers = { ...BEARER, accept: "application/json" };
    const text = await (await app.request("/v1/runs/run-a/events", { headers })).text();
    expect(text === JSON.stringify({ events: host.runs.get("run-a")!.events, isComplete: true })).toBe(true);
  });
});

describe("a request to a host with a ledger", () => {
  const TOKEN = "token-of-the-first-tenant";
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
  const definition = createWorkflow("w", { nodes: [createNoop("n")], edges: [] });
  const closing: (() => unknown)[] = [];
  let client: ThreadClient;
  let runs: readonly string[] = [];

  const createJsonRequest = (body: unknown): RequestInit => ({
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  const create = async (salt: number): Promise<string> => {
    const inputs = { large: createManyNames(salt), text: "x".repeat(300_000) };
    const { status, text } = await client.ask("/v1/runs", createJsonRequest({ workflowId: "w", inputs }));
    expect(status).toBe(201);
    return (JSON.parse(text) as { runId: string }).runId;
  };

  beforeAll(async () => {
    const folder = createTempFolder();
    const served = await serve(`${folder.path}/runs.sqlite`, definition, TOKEN);
    client = startThreadClient(served.baseUrl);
    closing.push(
      () => client.close(),
      () => served.stop(),
      () => folder[Symbol.dispose](),
    );
    runs = [await create(1), await create(2)];
    for (const run of runs)
      await waitFor(
        async () => (await client.ask(`/v1/runs/${run}`, { headers })).text.includes('"completed"'),
        { what: "the end of the run" },
      );
  });
  afterAll(async () => {
    for (const close of closing) await close();
  });

  it.each<[string, (runs: readonly string[]) => readonly [path: string, init: RequestInit]]>([
    ["the difference of two runs", ([a, b]) => [`/v1/runs/${a}:diff?against=${b}`, { headers }]],
    ["a snapshot", ([a]) => [`/v1/runs/${a}`, { headers }]],
    [
      "the events",
      ([a]) => [`/v1/runs/${a}/events`, { headers: { ...headers, accept: "application/json" } }],
    ],
    ["a stream", ([a]) => [`/v1/runs/${a}/events`, { headers }]],
    ["a stream of snapshots", ([a]) => [`/v1/runs/${a}/events?streamMode=values`, { headers }]],
    ["brackets to an interrupt", () => ["/v1/interrupts/x", { method: "POST", body: "[".repeat(999_999) }]],
    ["brackets to a run", () => ["/v1/runs", { method: "POST", headers, body: "[".repeat(999_999) }]],
    ["empty arrays", () => ["/v1/runs", { method: "POST", headers, body: `[${"[],".repeat(333_000)}[]]` }]],
    [
      "names that are all different",
      () => {
        const names = Array.from({ length: 90_000 }, (_, at) => `"${at}z":1`).join(",");
        return ["/v1/runs", { method: "POST", headers, body: `{"workflowId":"w","inputs":{${names}}}` }];
      },
    ],
  ])(`holds the event loop less than ${TURN_MS_MAX} ms: %s`, async (_what, ask) => {
    const [path, init] = ask(runs);
    expect(await shortestOf(TRIES, () => client.ask(path, init))).toBeLessThan(TURN_MS_MAX);
  });
});

function serve(
  ledgerPath: string,
  definition: WorkflowDefinition,
  token: string,
): ReturnType<typeof startServedOpenWop> {
  return startServedOpenWop({
    ledgerPath,
    definitions: [definition],
    version: "0.0.0",
    port: 0,
    hostname: "127.0.0.1",
    tokens: [{ tenant: "first", token }],
    allowRemote: false,
    testSeams: false,
    verbose: false,
    privateOrigins: [],
    peerTokens: {},
    confidenceFloor: 0.5,
    escalationThreshold: 0.7,
    log: () => undefined,
  });
}
