/** Owns: that a run whose child asks a person shows the child's question to clients of the MCP server, and takes its answer. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chain, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { waitFor } from "../support/wait-for.ts";
import { callTool, openMcpWorld, OTHER_TOKEN, type McpClient, type McpWorld } from "./mcp-world.ts";

const ACCEPT = { action: "accept" };
/** Far less than a call waits at most. */
const SOON_MS = 20_000;

let world: McpWorld;
beforeAll(async () => {
  world = await openMcpWorld({
    definitions: [
      createWorkflow("inner", {
        nodes: [
          createNode("pause", "core.delay", { delayMs: 1_000 }),
          createNode("gate", "core.approvalGate", { title: "Dig?" }),
        ],
        edges: chain("pause>gate"),
      }),
      createCaller("outer", "inner"),
      createCaller("outermost", "outer"),
    ],
  });
});
afterAll(() => world[Symbol.asyncDispose]());

function createCaller(id: string, workflowId: string) {
  return createWorkflow(id, { nodes: [createNode("sub", "core.subWorkflow", { workflowId })] });
}

interface Question {
  readonly runId: string;
  readonly nodeId: string;
}

function readQuestion({ data }: Awaited<ReturnType<typeof callTool>>): Question | undefined {
  return data["question"] as Question | undefined;
}

/** Calls the workflow, and returns its run and the question that it waits for. */
async function begin(client: McpClient, workflowId = "outer") {
  const called = await callTool(client, workflowId, {}, { timeout: SOON_MS });
  return { called, runId: String(called.data["runId"]), question: readQuestion(called) };
}

describe("a run whose child asks a person", () => {
  it("answers its call at once, with the question of the child", async () => {
    const client = await world.connect();
    const { called, runId, question } = await begin(client);
    expect(called.data).toMatchObject({ status: "waiting-approval" });
    expect(question).toMatchObject({ nodeId: "gate", kind: "approval", asked: { title: "Dig?" } });
    expect(question?.runId).not.toBe(runId);
    expect(called.text).toContain(
      `Run ${runId} of outer waits for run ${String(question?.runId)} below it, which waits at gate`,
    );
    expect(JSON.stringify(called)).not.toContain("interruptToken");
    const status = await callTool(client, "status", { runId, waitSeconds: 50 }, { timeout: SOON_MS });
    expect(readQuestion(status)).toEqual(question);
    const { contents } = await client.client.readResource({ uri: `openwop://runs/${runId}` });
    const [read] = contents as { readonly text: string }[];
    expect(JSON.parse(read?.text ?? "null")).toMatchObject({ question });
  });

  it("takes the answer to the question of the child", async () => {
    const client = await world.connect();
    const { runId, question } = await begin(client);
    const answered = await callTool(client, "answer", { runId, value: ACCEPT });
    expect(answered).toMatchObject({ isError: false, data: { runId: question?.runId, nodeId: "gate" } });
    await waitFor(async () => (await callTool(client, "status", { runId })).data["status"] === "completed", {
      what: "the end of the run",
    });
  });

  it("shows the question of a child of its child, too, and takes the answer", async () => {
    const client = await world.connect();
    const { called, runId, question } = await begin(client, "outermost");
    expect(question).toMatchObject({ nodeId: "gate", kind: "approval", asked: { title: "Dig?" } });
    expect(called.data).toMatchObject({
      status: "waiting-approval",
      childRuns: [
        {
          status: "waiting-approval",
          childRuns: [{ runId: question?.runId, status: "waiting-approval" }],
        },
      ],
    });
    const answered = await callTool(client, "answer", { runId, value: ACCEPT });
    expect(answered).toMatchObject({ isError: false, data: { runId: question?.runId, nodeId: "gate" } });
    const ended = await callTool(client, "status", { runId, waitSeconds: 50 }, { timeout: SOON_MS });
    expect(ended.data["status"]).toBe("completed");
  });

  it("shows the question to nobody else", async () => {
    const { runId } = await begin(await world.connect());
    const refused = await callTool(await world.connect(OTHER_TOKEN), "answer", { runId, value: ACCEPT });
    expect(refused).toMatchObject({ isError: true, data: { error: "not_found" } });
  });
});
