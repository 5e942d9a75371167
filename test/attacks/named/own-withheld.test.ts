/** Owns: results that are held at a gate, and secrets, on their way out by every other face of the product (OWN). */
import { afterAll, beforeAll, expect, it } from "vitest";
import { createPageClient, readLive, servePage, signIn } from "../../openwop/page-scene.ts";
import { waitFor } from "../../support/wait-for.ts";
import { openAttackedHost, type Answer, type AttackedHost } from "./serve-scene.ts";
import { openWatchedGateway, type WatchedGateway } from "./watched-scene.ts";

const RESULT = "the vein is under the old mill";

let gateway: WatchedGateway;
let serve: AttackedHost;
let runId: string;

beforeAll(async () => {
  gateway = await openWatchedGateway();
  const report = { outcome: "completed", outputs: { found: RESULT }, confidence: 0.1 };
  expect(await gateway.callTool("coordination_report", report)).toMatchObject({ status: "recorded" });
  await gateway.endChild();
  runId = await gateway.coordinationId();
  await waitFor(() => gateway.receiver.requests.length > 0, { what: "people to be told" });
  expect(await gateway.plugin.readEvents("step.completed")).toEqual([]);
  const { ledgerPath } = gateway.plugin;
  serve = await openAttackedHost({ ledgerPath, mcp: { toolScopes: {} }, a2a: true });
});
afterAll(async () => {
  await serve[Symbol.asyncDispose]();
  await gateway[Symbol.asyncDispose]();
});

const readResources = (id: string) => [
  { method: "resources/list", params: {} },
  ...[`openwop://runs/${id}`, `openwop://runs/${id}/events`].map((uri) => ({
    method: "resources/read",
    params: { uri },
  })),
];
const callTools = (id: string) =>
  [
    { name: "status", arguments: { runId: id } },
    { name: "status", arguments: {} },
    { name: "questions", arguments: {} },
    { name: "verify", arguments: {} },
  ].map((params) => ({ method: "tools/call", params }));

it("OWN-12 a result that is withheld, by the tools and resources of the operator's MCP server", async () => {
  const answers = await gateway.askMcp([...callTools(runId), ...readResources(runId)]);
  expect(answers[0]).toContain(runId);
  expect(answers[2]).toContain(`${runId}:escalation-1`);
  for (const answer of answers) expect(answer).not.toContain("old mill");
});

const postA2a = (method: string, params: object): Promise<Answer> =>
  serve.send("/v1/a2a", {
    method: "POST",
    headers: { "a2a-version": "1.0" },
    body: { jsonrpc: "2.0", id: 1, method, params },
  });

it("OWN-13 a result that is withheld, as a task, its status or an artifact of an A2A client", async () => {
  const message = { messageId: "m-1", role: "ROLE_USER", taskId: runId, parts: [{ text: "continue" }] };
  for (const { text } of await Promise.all([
    postA2a("GetTask", { id: runId, historyLength: 100 }),
    postA2a("ListTasks", { includeArtifacts: true, historyLength: 100 }),
    postA2a("SubscribeToTask", { id: runId }),
    postA2a("SendMessage", { message }),
    serve.send(`/v1/runs/${runId}`),
    serve.send(`/v1/runs/${runId}/events`),
  ])) {
    expect(text).not.toBe("");
    expect(text).not.toContain("old mill");
  }
});

it("OWN-14 a result that is withheld, in what a webhook tells people", () => {
  const bodies = gateway.receiver.requests.map(({ body }) => body);
  expect(bodies[0]).toContain(`${runId}:escalation-1`);
  for (const body of bodies) expect(body).not.toContain("old mill");
});

it("OWN-15 a result that is withheld, in the events and the live stream of the operator's page", async () => {
  await using served = await servePage(gateway.plugin.ledgerPath);
  const client = createPageClient(served.baseUrl, await signIn(served.baseUrl, served.link));
  for (const path of [`runs/${runId}`, `runs/${runId}/events?limit=1000`, "questions", "runs"]) {
    const text = JSON.stringify((await client.ask(path)).body);
    expect([path, text.includes(runId), text.includes("old mill")]).toEqual([path, true, false]);
  }
  const leaving = new AbortController();
  const live = readLive(served.baseUrl, client, { signal: leaving.signal, lastEventId: "0" });
  expect(JSON.stringify((await live.next()).value)).not.toContain("old mill");
  leaving.abort();
});

it("OWN-16 a result that is withheld for good, in spans, in metrics and in what the host logs", async () => {
  const questionId = `${runId}:escalation-1`;
  const denied = await gateway.methods("coordination.answer", { questionId, answer: "deny" });
  expect(denied).toMatchObject({ ok: true });
  const hasRoot = () =>
    gateway.collector.spans.some(({ attributes }) => attributes["coordination.id"] === runId);
  await waitFor(hasRoot, { what: "the spans of the coordination", timeoutMs: 15_000 });
  expect(JSON.stringify(gateway.collector.spans)).not.toContain("old mill");
  const metrics = await gateway.scrapeMetrics();
  expect(metrics).toContain("# TYPE");
  expect(metrics).not.toContain("old mill");
  expect(JSON.stringify(gateway.plugin.host.lines)).not.toContain("old mill");
});
