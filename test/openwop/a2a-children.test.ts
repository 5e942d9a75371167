/** Owns: that a task whose child run asks a person shows the child's question to clients of the A2A server, and takes its answer. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { waitFor } from "../support/wait-for.ts";
import { callA2a, readShownQuestion, sendMessage, type ShownTask } from "./a2a-call.ts";
import { openMcpWorld, type McpWorld } from "./mcp-world.ts";

const ASKING = "TASK_STATE_INPUT_REQUIRED";

let world: McpWorld;
beforeAll(async () => {
  world = await openMcpWorld({
    a2a: true,
    definitions: [
      createWorkflow("inner", { nodes: [createNode("gate", "core.approvalGate", { title: "Dig?" })] }),
      createCaller("outer", "inner"),
      createCaller("outermost", "outer"),
      createWorkflow("pair", {
        nodes: ["one", "other"].map((id) => createNode(id, "core.subWorkflow", { workflowId: "outer" })),
      }),
      createWorkflow("two-gates", {
        nodes: ["one", "other"].map((id) => createNode(id, "core.approvalGate", { title: `Dig ${id}?` })),
      }),
    ],
  });
});
afterAll(() => world[Symbol.asyncDispose]());

function createCaller(id: string, workflowId: string) {
  return createWorkflow(id, { nodes: [createNode("sub", "core.subWorkflow", { workflowId })] });
}

async function begin(skillId: string, name = skillId): Promise<ShownTask> {
  const message = { messageId: `begin-${name}`, parts: [{ text: "go" }], metadata: { skillId } };
  return (await sendMessage(world, message)).result!.task;
}

it.each(["outer", "outermost"])(
  "a task of %s shows the question of its child, and takes the answer",
  async (skill) => {
    const task = await begin(skill);
    expect(task.status.state).toBe(ASKING);
    const question = readShownQuestion(task);
    expect(question).toMatchObject({ nodeId: "gate", kind: "approval", asked: { title: "Dig?" } });
    expect(question?.["runId"]).not.toBe(task.id);
    expect(JSON.stringify(task)).not.toContain("interruptToken");
    expect(task.status.message?.parts[0]?.text).toBe(
      `The run waits for run ${String(question?.["runId"])} below it, which waits at gate for an answer (approval).`,
    );
    const read = await callA2a<ShownTask>(world, { method: "GetTask", params: { id: task.id } });
    expect(read.result).toEqual(task);
    const listed = await callA2a<{ readonly tasks: readonly ShownTask[] }>(world, {
      method: "ListTasks",
      params: {},
    });
    expect(listed.result?.tasks.find(({ id }) => id === task.id)?.status).toEqual(task.status);
    const answer = { messageId: `answer-${skill}`, taskId: task.id, parts: [{ text: "accept" }] };
    const ended = await sendMessage(world, answer);
    expect(ended.result?.task.status.state).toBe("TASK_STATE_COMPLETED");
  },
);

describe("a message that names a question", () => {
  const accept = (messageId: string, taskId: string, metadata: object) =>
    sendMessage(world, { messageId, taskId, parts: [{ text: "accept" }], metadata });

  interface Child {
    readonly runId: string;
    readonly childRuns?: readonly Child[];
  }

  /** Returns the runs that ask, below the children of the task's run. */
  async function listAskingRuns(taskId: string): Promise<string[]> {
    const { childRuns } = (await world.ask(`/v1/runs/${taskId}`)) as {
      readonly childRuns?: readonly Child[];
    };
    return (childRuns ?? []).flatMap((child) => child.childRuns ?? []).map(({ runId }) => runId);
  }

  it("answers that of any run below the task's, also where another one is shown", async () => {
    const task = await begin("pair");
    const runIds = await waitFor(
      async () => {
        const found = await listAskingRuns(task.id);
        return found.length === 2 && found;
      },
      { what: "both questions" },
    );
    const shown = readShownQuestion(task)?.["runId"];
    const hidden = runIds.find((runId) => runId !== shown)!;
    const name = { nodeId: "gate", interruptId: "gate~1" };
    const answered = await accept("hidden", task.id, { runId: hidden, ...name });
    expect(readShownQuestion(answered.result?.task)?.["runId"]).toBe(shown);
    const ended = await accept("shown", task.id, { runId: String(shown) });
    expect(ended.result?.task.status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("answers that of any node of the task's run", async () => {
    const task = await begin("two-gates");
    expect(readShownQuestion(task)).toMatchObject({ nodeId: "one" });
    const answered = await accept("other-gate", task.id, { nodeId: "other" });
    expect(readShownQuestion(answered.result?.task)).toMatchObject({ nodeId: "one" });
    const ended = await accept("one-gate", task.id, { nodeId: "one" });
    expect(ended.result?.task.status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("answers the question whose id it gives, without the node", async () => {
    const task = await begin("two-gates", "by-id");
    expect(readShownQuestion(task)).toMatchObject({ nodeId: "one" });
    const answered = await accept("other-id", task.id, { interruptId: "other~1" });
    expect(readShownQuestion(answered.result?.task)).toMatchObject({ nodeId: "one" });
    const late = await accept("late-id", task.id, { interruptId: "other~1" });
    expect(late.error?.message).toContain("the task does not ask the question that it names");
    const ended = await accept("one-id", task.id, { interruptId: "one~1" });
    expect(ended.result?.task.status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("is refused where the run that it names is none of the task's", async () => {
    const [task, other] = [await begin("two-gates", "mine"), await begin("two-gates", "others")];
    for (const name of [{ runId: other.id }, { runId: other.id, nodeId: "one" }, { nodeId: "none" }]) {
      const refused = await accept(`astray-${JSON.stringify(name)}`, task.id, name);
      expect(refused.error?.message).toContain("the task does not ask the question that it names");
    }
    const read = await callA2a<ShownTask>(world, { method: "GetTask", params: { id: other.id } });
    expect(read.result?.status).toEqual(other.status);
  });
});
