/** Owns: that a client of the MCP server is told of what a run asks people while other nodes of the run work. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { chain, createEdge, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { callTool, openMcpWorld, type McpToolResult, type McpWorld } from "./mcp-world.ts";

let world: McpWorld;
beforeAll(async () => {
  const gates = ["one", "two"].map((id) => createNode(id, "core.approvalGate", { title: `${id}?` }));
  world = await openMcpWorld({
    definitions: [
      createWorkflow("beside", {
        nodes: [...gates, createNode("wait", "core.delay", { delayMs: 600_000 }), createNode("end")],
        edges: [...chain("one>end"), createEdge("two>end"), createEdge("wait>end")],
      }),
      createWorkflow("parent", {
        nodes: [createNode("sub", "core.subWorkflow", { workflowId: "beside" })],
      }),
      createWorkflow("grandparent", {
        nodes: [createNode("sub", "core.subWorkflow", { workflowId: "parent" })],
      }),
    ],
  });
});
afterAll(() => world[Symbol.asyncDispose]());

function readQuestion({ data }: McpToolResult): unknown {
  return data["question"];
}

it("the call of a workflow and `status` answer as soon as the run asks", async () => {
  const client = await world.connect();
  const called = await callTool(client, "beside");
  expect(called.data).toMatchObject({ status: "running", question: { nodeId: "one", kind: "approval" } });
  expect(called.text).toContain("waits at one for an answer");
  const args = { runId: called.data["runId"], waitSeconds: 40 };
  expect(readQuestion(await callTool(client, "status", args))).toEqual(readQuestion(called));
  const answered = { runId: args.runId, nodeId: "one", value: { action: "accept" } };
  expect(await callTool(client, "answer", answered)).toMatchObject({ isError: false });
  expect(readQuestion(await callTool(client, "status", args))).toMatchObject({ nodeId: "two" });
  expect(await callTool(client, "verify", { runId: args.runId })).toMatchObject({ data: { ok: true } });
});

it("`questions` lists everything that the run asks", async () => {
  const client = await world.connect();
  const { data } = await callTool(client, "beside");
  const listed = await callTool(client, "questions", { limit: 100 });
  const questions = listed.data["questions"] as readonly { readonly runId: string }[];
  const ofRun = questions.filter(({ runId }) => runId === data["runId"]);
  expect(ofRun).toMatchObject([
    { nodeId: "one", asked: { title: "one?" } },
    { nodeId: "two", asked: { title: "two?" } },
  ]);
  const one = await callTool(client, "questions", { limit: 1 });
  expect(one.data).toMatchObject({ questions: [{ runId: data["runId"] }], isMore: true });
});

it("`questions` and `status` show what a paused run asks, which still takes answers", async () => {
  const client = await world.connect();
  const { data } = await callTool(client, "beside");
  const runId = String(data["runId"]);
  await world.ask(`/v1/runs/${runId}:pause`, { method: "POST", body: { drainPolicy: "immediate" } });
  const followed = await callTool(client, "status", { runId, waitSeconds: 40 });
  expect(followed.data).toMatchObject({ status: "paused", question: { nodeId: "one" } });
  const isListed = async (): Promise<boolean> =>
    (await callTool(client, "questions", { limit: 100 })).text.includes(runId);
  expect(await isListed()).toBe(true);
  const verified = { data: { ok: true } };
  expect(await callTool(client, "verify", { runId })).toMatchObject(verified);
  for (const nodeId of ["one", "two"])
    expect(await callTool(client, "answer", { runId, nodeId, value: { action: "accept" } })).toMatchObject({
      isError: false,
    });
  expect(await isListed()).toBe(false);
  expect(await callTool(client, "verify", { runId })).toMatchObject(verified);
});

it("a run that began one that asks shows the question of that run", async () => {
  const client = await world.connect();
  const { data } = await callTool(client, "parent");
  expect(data).toMatchObject({ status: "running", childRuns: [{ status: "running", isAsking: true }] });
  const [child] = data["childRuns"] as readonly { readonly runId: string }[];
  expect(data["question"]).toMatchObject({ runId: child?.runId, nodeId: "one" });
});

it("a run shows what a run below a paused one asks, and takes the answer", async () => {
  const client = await world.connect();
  const { data } = await callTool(client, "grandparent");
  const [middle] = data["childRuns"] as readonly { readonly runId: string }[];
  const path = `/v1/runs/${String(middle?.runId)}:pause`;
  await world.ask(path, { method: "POST", body: { drainPolicy: "immediate" } });
  const args = { runId: String(data["runId"]), waitSeconds: 40 };
  const followed = await callTool(client, "status", args, { timeout: 20_000 });
  expect(followed.data).toMatchObject({
    status: "running",
    question: { nodeId: "one" },
    childRuns: [
      { runId: middle?.runId, status: "paused", childRuns: [{ status: "running", isAsking: true }] },
    ],
  });
  const answer = { runId: args.runId, value: { action: "accept" } };
  expect(await callTool(client, "answer", answer)).toMatchObject({ isError: false, data: { nodeId: "one" } });
  expect(readQuestion(await callTool(client, "status", args))).toMatchObject({ nodeId: "two" });
});

it("a run that an earlier version stored, which did not keep that it asks, is sound; a false mark is found", async () => {
  const client = await world.connect();
  const { data } = await callTool(client, "beside");
  const args = { runId: String(data["runId"]) };
  const verify = async (): Promise<unknown> => (await callTool(client, "verify", args)).data["ok"];
  const replaceInSummary = (text: string, by: string): void => {
    forge(
      world.ledger,
      `update run set summary = replace(summary, '${text}', '${by}') where run_id = '${args.runId}'`,
    );
  };
  expect(await verify()).toBe(true);
  replaceInSummary(',"isAsking":true', "");
  expect((await callTool(client, "questions", { limit: 100 })).text).not.toContain(args.runId);
  expect(await verify()).toBe(true);
  await world.ask(`/v1/runs/${args.runId}/cancel`, { method: "POST", body: {} });
  await callTool(client, "status", { ...args, waitSeconds: 20 });
  expect(await verify()).toBe(true);
  replaceInSummary('"driver"', '"isAsking":true,"driver"');
  expect(await verify()).toBe(false);
});
