/** Owns: that a run whose log cannot be read hides no other one over A2A and MCP, and what an idempotency key keeps of failures. */
import { expect, it } from "vitest";
import { startServedOpenWop, type RunningServer } from "../../src/plugins/serve-openwop.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { chain, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { waitFor } from "../support/wait-for.ts";
import { callA2a, readShownQuestion, sendMessage, type ShownTask } from "./a2a-call.ts";
import { createServing } from "./create-serving.ts";
import { callTool, connectMcp, openMcpWorld, TOKEN, type McpWorld } from "./mcp-world.ts";

const KEY = { "idempotency-key": "k1" };

/** Begins a run that waits for somebody, and returns its id. */
async function begin(world: McpWorld, messageId: string): Promise<string> {
  const message = { messageId, parts: [{ text: "go" }], metadata: { skillId: "gated" } };
  return (await sendMessage(world, message)).result!.task.id;
}

/** Serves the ledger a second time: this host has read no run of it yet. */
async function serveAgain(
  { ledger }: McpWorld,
  lines: string[] = [],
): Promise<AsyncDisposable & RunningServer> {
  const served = await startServedOpenWop(
    createServing(ledger, {
      tokens: [{ tenant: "miners", token: TOKEN, principal: "ann" }],
      a2a: true,
      mcp: { toolScopes: {} },
      log: (line) => lines.push(line),
    }),
  );
  return { ...served, [Symbol.asyncDispose]: () => served.stop() };
}

/** Returns the condition of the second event of a run. */
function selectEvent(runId: string): string {
  return `sequence = 1 and run_key = (select run_key from run where run_id = '${runId}')`;
}

function damage({ ledger }: McpWorld, runId: string): void {
  forge(ledger, `update event set payload = payload || 'x' where ${selectEvent(runId)}`);
}

function repair({ ledger }: McpWorld, runId: string): void {
  forge(
    ledger,
    `update event set payload = substr(payload, 1, length(payload) - 1) where ${selectEvent(runId)}`,
  );
}

it("a run that cannot be read is left out of the listing, and the log says so", async () => {
  await using world = await openMcpWorld({ a2a: true });
  const [damaged, whole] = [await begin(world, "begin-1"), await begin(world, "begin-2")];
  damage(world, damaged);
  const lines: string[] = [];
  await using host = await serveAgain(world, lines);
  const listed = await callA2a<{ readonly tasks: readonly ShownTask[] }>(host, {
    method: "ListTasks",
    params: {},
  });
  expect(listed.result?.tasks.map(({ id }) => id)).toEqual([whole]);
  expect(
    lines.filter((line) => line.includes(damaged) && line.includes("left out of a listing")),
  ).toHaveLength(1);
});

it("the questions of a run that cannot be read hide no others over MCP", async () => {
  await using world = await openMcpWorld({ a2a: true });
  const [damaged, whole] = [await begin(world, "begin-1"), await begin(world, "begin-2")];
  damage(world, damaged);
  await using host = await serveAgain(world);
  const connected = await connectMcp(host);
  const { data } = await callTool(connected, "questions");
  expect(data["questions"]).toMatchObject([{ runId: whole }]);
  await connected.client.close();
});

it("a task shows how it is where the run below it cannot be read", async () => {
  const sub = createNode("sub", "core.subWorkflow", { workflowId: "gated" });
  const gated = createWorkflow("gated", {
    nodes: [createNode("gate", "core.approvalGate", { title: "Dig?" })],
  });
  const definitions = [gated, createWorkflow("outer", { nodes: [sub] })];
  await using world = await openMcpWorld({ a2a: true, definitions });
  const message = { messageId: "begin-1", parts: [{ text: "go" }], metadata: { skillId: "outer" } };
  const { task } = (await sendMessage(world, message)).result!;
  damage(world, String(readShownQuestion(task)?.["runId"]));
  await using host = await serveAgain(world);
  const read = await callA2a<ShownTask>(host, { method: "GetTask", params: { id: task.id } });
  expect(read.result).toMatchObject({ id: task.id, status: { state: "TASK_STATE_INPUT_REQUIRED" } });
});

const MISMATCH = "The key was used before, to ask for something else.";

it("a failure is not kept as the answer to an idempotency key, and the key stays with what was asked", async () => {
  await using world = await openMcpWorld({ a2a: true });
  const id = await begin(world, "begin-1");
  damage(world, id);
  await using host = await serveAgain(world);
  const ask = (params: object) => callA2a<ShownTask>(host, { method: "GetTask", params, headers: KEY });
  expect((await ask({ id })).error?.code).toBe(-32_603);
  expect(await ask({ id: "another" })).toMatchObject({ error: { code: -32_000, message: MISMATCH } });
  repair(world, id);
  expect((await ask({ id })).result).toMatchObject({ id, status: { state: "TASK_STATE_INPUT_REQUIRED" } });
});

it("a refusal frees the idempotency key of its request", async () => {
  const nodes = [
    createNode("pause", "core.delay", { delayMs: 1_000 }),
    createNode("gate", "core.approvalGate", { title: "Dig?" }),
  ];
  const definitions = [createWorkflow("late", { nodes, edges: chain("pause>gate") })];
  await using world = await openMcpWorld({ a2a: true, definitions });
  const message = { messageId: "begin-1", parts: [{ text: "go" }], metadata: { skillId: "late" } };
  const begun = await sendMessage(world, message, { configuration: { returnImmediately: true } });
  const { id: taskId } = begun.result!.task;
  const answer = { messageId: "answer-1", taskId, parts: [{ text: "accept" }] };
  const early = await sendMessage(world, answer, { headers: KEY });
  expect(early.error?.message).toBe("The task is running and waits for no answer.");
  await waitFor(async () => (await world.ask(`/v1/runs/${taskId}`))["status"] === "waiting-approval", {
    what: "the question",
  });
  const again = await sendMessage(world, answer, { headers: KEY });
  expect(again.result?.task.status.state).toBe("TASK_STATE_COMPLETED");
});
