/** Owns: that a call of the MCP tool `answer` that has an id answers one question, however often it is made. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { chain, createEdge, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { forgetKeptAnswers, forgetQuestions } from "./a2a-call.ts";
import { waitFor } from "../support/wait-for.ts";
import { callTool, openMcpWorld, type McpClient, type McpWorld } from "./mcp-world.ts";

let world: McpWorld;
beforeAll(async () => {
  const nodes = [
    createNode("first", "core.approvalGate", { title: "Build?" }),
    createNode("second", "core.approvalGate", { title: "Deploy to production?" }),
  ];
  const retried = [
    createNode("gate", "core.interrupt", { kind: "approval" }),
    createNode("revise"),
    createNode("beside", "core.approvalGate", { title: "Announce?" }),
  ];
  world = await openMcpWorld({
    definitions: [
      createWorkflow("two-gates", { nodes, edges: chain("first>second") }),
      createWorkflow("asks-again", {
        nodes: retried,
        edges: [createEdge("gate>revise", { triggerRule: "any_failed" }), createEdge("revise>gate")],
      }),
    ],
  });
});
afterAll(() => world[Symbol.asyncDispose]());

const ACCEPT = { action: "accept" };

async function begin(client: McpClient): Promise<string> {
  return String((await callTool(client, "two-gates")).data["runId"]);
}

/** Answers whatever the run asks now. */
function answer({ client }: McpClient, callId: string, args: Record<string, unknown>) {
  return client.callTool({ name: "answer", arguments: args, _meta: { "openclaw/callId": callId } });
}

async function findAsking(client: McpClient, runId: string): Promise<unknown> {
  const { data } = await callTool(client, "status", { runId, waitSeconds: 20 });
  return (data["question"] as { readonly nodeId: string } | undefined)?.nodeId ?? data["status"];
}

/** Returns the ids of the questions that the run has asked. */
async function listQuestions(runId: string): Promise<unknown[]> {
  const { events } = await world.ask(`/v1/runs/${runId}/events/poll?lastSequence=0`);
  return (events as { readonly type: string; readonly payload: Record<string, unknown> }[]).flatMap(
    ({ type, payload }) => (type === "node.suspended" ? [payload["interruptId"]] : []),
  );
}

it("a call that is made again does not answer the next question", async () => {
  const client = await world.connect();
  const runId = await begin(client);
  const first = await answer(client, "answer-1", { runId, value: ACCEPT });
  expect(first.structuredContent).toMatchObject({ nodeId: "first" });
  expect(await findAsking(client, runId)).toBe("second");
  expect(await answer(await world.connect(), "answer-1", { runId, value: ACCEPT })).toEqual(first);
  expect(await findAsking(client, runId)).toBe("second");
  const next = await answer(client, "answer-2", { runId, value: ACCEPT });
  expect(next.structuredContent).toMatchObject({ nodeId: "second" });
  expect(await findAsking(client, runId)).toBe("completed");
  expect(await answer(client, "answer-1", { runId, value: ACCEPT })).toEqual(first);
});

it("a call that is made again after a crash is told what it came to, and answers no other question", async () => {
  const client = await world.connect();
  const runId = await begin(client);
  const first = await answer(client, "answer-8", { runId, value: ACCEPT });
  forgetKeptAnswers(world.ledger);
  const again = await answer(client, "answer-8", { runId, value: ACCEPT });
  expect(again.structuredContent).toMatchObject({ nodeId: "first" });
  expect(again.isError).toBe(first.isError);
  expect(await findAsking(client, runId)).toBe("second");
});

it("a call that names the node is not taken for the answer to the next question of that node", async () => {
  const client = await world.connect();
  const runId = String((await callTool(client, "asks-again")).data["runId"]);
  const args = { runId, nodeId: "gate", value: { action: "reject" } };
  expect((await answer(client, "answer-9", args)).structuredContent).toMatchObject({ interruptId: "gate~1" });
  await waitFor(async () => (await listQuestions(runId)).includes("gate~2"), { what: "the next question" });
  forgetKeptAnswers(world.ledger);
  const again = await answer(client, "answer-9", args);
  expect(again).not.toHaveProperty("isError", true);
  expect(again.structuredContent).toMatchObject({ interruptId: "gate~1" });
  expect(await listQuestions(runId)).not.toContain("gate~3");
});

it("a call that an older version left open is for the question that is open now", async () => {
  const client = await world.connect();
  const runId = await begin(client);
  await answer(client, "answer-10", { runId, value: ACCEPT });
  expect(await findAsking(client, runId)).toBe("second");
  forgetQuestions(world.ledger);
  const again = await answer(client, "answer-10", { runId, value: ACCEPT });
  expect(again.structuredContent).toMatchObject({ nodeId: "second" });
});

it("two calls of one id at the same time answer one question", async () => {
  const client = await world.connect();
  const runId = await begin(client);
  await Promise.all([1, 2].map(() => answer(client, "answer-3", { runId, value: ACCEPT })));
  expect(await findAsking(client, runId)).toBe("second");
});

it("a call with other arguments is another one, whatever its id", async () => {
  const client = await world.connect();
  const runId = await begin(client);
  await answer(client, "answer-4", { runId, nodeId: "first", value: ACCEPT });
  await answer(client, "answer-4", { runId, nodeId: "second", value: ACCEPT });
  expect(await findAsking(client, runId)).toBe("completed");
});

it("a call about a run that is not there is refused", async () => {
  const refused = await answer(await world.connect(), "answer-7", { runId: "no\0run", value: ACCEPT });
  expect(refused).toMatchObject({ isError: true, structuredContent: { error: "not_found" } });
});

it("a call that was refused may be made again", async () => {
  const client = await world.connect();
  const runId = await begin(client);
  const early = await answer(client, "answer-5", { runId, nodeId: "second", value: ACCEPT });
  expect(early.isError).toBe(true);
  await answer(client, "answer-6", { runId, value: ACCEPT });
  expect(await findAsking(client, runId)).toBe("second");
  const again = await answer(client, "answer-5", { runId, nodeId: "second", value: ACCEPT });
  expect(again.isError).not.toBe(true);
  expect(await findAsking(client, runId)).toBe("completed");
});
