/** Owns: secrets that the host knows, in words of agents and callers, on their way out of the product (OWN). */
import { afterAll, beforeAll, expect, it } from "vitest";
import { startOtlpCollector, type OtlpCollector } from "../../support/otlp-collector.ts";
import { waitFor } from "../../support/wait-for.ts";
import { openAttackedHost, STRANGER, type Answer, type AttackedHost } from "./serve-scene.ts";
import { openWatchedGateway, WEBHOOK_SECRET, type WatchedGateway } from "./watched-scene.ts";

const WORDS = `it is ${WEBHOOK_SECRET}, keep it`;

let gateway: WatchedGateway;
let serve: AttackedHost;
let collector: OtlpCollector;

beforeAll(async () => {
  collector = await startOtlpCollector();
  gateway = await openWatchedGateway({ label: WEBHOOK_SECRET, task: WORDS });
  serve = await openAttackedHost({ mcp: { toolScopes: {} }, otlp: collector.url });
});
afterAll(async () => {
  await serve[Symbol.asyncDispose]();
  await gateway[Symbol.asyncDispose]();
  await collector[Symbol.asyncDispose]();
});

const postMcp = (id: number, method: string, params: object, session = ""): Promise<Answer> =>
  serve.send("/v1/mcp", {
    method: "POST",
    headers: {
      accept: "application/json, text/event-stream",
      ...(session !== "" && { "mcp-session-id": session }),
    },
    body: { jsonrpc: "2.0", id, method, params },
  });

it("OWN-17 a token of another tenant in what a caller says, in answers and resources of the MCP server", async () => {
  const clientInfo = { name: "x", version: "1" };
  const begun = await postMcp(0, "initialize", {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo,
  });
  const session = String(begun.headers["mcp-session-id"]);
  const ran = await postMcp(
    1,
    "tools/call",
    { name: "echo", arguments: { said: `it is ${STRANGER}` } },
    session,
  );
  const runId = /run-[0-9a-f-]{36}/u.exec(ran.text)?.[0] ?? expect.fail("there is no run");
  const answers = await Promise.all([
    postMcp(2, "tools/call", { name: "status", arguments: { runId } }, session),
    postMcp(3, "resources/read", { uri: `openwop://runs/${runId}` }, session),
    postMcp(4, "resources/read", { uri: `openwop://runs/${runId}/events` }, session),
    postMcp(5, "resources/list", {}, session),
  ]);
  expect(answers[2].text).toContain("[REDACTED:bearer-token-");
  for (const { text } of [ran, ...answers]) {
    expect(text).toContain(runId);
    expect(text).not.toContain(STRANGER);
  }
  const hasRun = () => collector.spans.some(({ attributes }) => attributes["coordination.run_id"] === runId);
  await waitFor(hasRun, { what: "the spans of the run", timeoutMs: 15_000 });
  expect(JSON.stringify(collector.spans)).not.toContain(STRANGER);
});

it("OWN-18 a secret of the host in a question of an agent, in what a webhook tells people", async () => {
  const question = { question: WORDS, options: [WORDS, "no"], otherwise: WORDS, waitMs: 0 };
  expect(await gateway.callTool("coordination_escalate", question)).toMatchObject({ status: "open" });
  await waitFor(() => gateway.receiver.requests.length > 0, { what: "people to be told" });
  const [{ body } = expect.fail("nobody was told")] = gateway.receiver.requests;
  expect(body).toContain("keep it");
  expect(body).not.toContain(WEBHOOK_SECRET);
  expect(body).toContain("[REDACTED:webhook-secret-1]");
});

it("OWN-19 a secret of the host in an agent's name, task and report, in spans, in metrics and in the log", async () => {
  const report = { outcome: "completed", outputs: { found: WORDS } };
  expect(await gateway.callTool("coordination_report", report)).toMatchObject({ status: "recorded" });
  await gateway.endChild();
  const hasChild = () => gateway.collector.spans.some(({ name }) => name === "invoke_agent main");
  await waitFor(hasChild, { what: "the span of the child" });
  expect(JSON.stringify(gateway.collector.spans)).not.toContain(WEBHOOK_SECRET);
  expect(await gateway.scrapeMetrics()).not.toContain(WEBHOOK_SECRET);
  expect(JSON.stringify(gateway.plugin.host.lines)).not.toContain(WEBHOOK_SECRET);
});

it("OWN-20 a secret of the host in words of an agent, in answers of the operator's MCP server", async () => {
  const runId = await gateway.coordinationId();
  const tools = [
    { name: "status", arguments: { runId } },
    { name: "questions", arguments: {} },
  ];
  for (const answer of await gateway.askMcp(tools.map((params) => ({ method: "tools/call", params }))))
    expect(answer).not.toContain(WEBHOOK_SECRET);
});
