/** Owns: that the times and message ids of tasks over A2A are those of what they tell, and what a listing by time has. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chain, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { waitFor } from "../support/wait-for.ts";
import { callA2a, sendMessage, type A2aReply, type ShownTask } from "./a2a-call.ts";
import { openMcpWorld, type McpWorld } from "./mcp-world.ts";

let world: McpWorld;
beforeAll(async () => {
  const nodes = [
    createNode("pause", "core.delay", { delayMs: 50 }),
    createNode("first", "core.approvalGate", { title: "Build?" }),
    createNode("second", "core.approvalGate", { title: "Deploy?" }),
  ];
  world = await openMcpWorld({
    a2a: true,
    definitions: [
      createWorkflow("gates", { nodes, edges: chain("pause>first>second") }),
      createWorkflow("gate-beside", {
        nodes: [
          createNode("gate", "core.approvalGate", { title: "Build?" }),
          createNode("beside", "core.delay", { delayMs: 100 }),
        ],
      }),
      createWorkflow("gate-beside-slow", {
        nodes: [
          createNode("gate", "core.approvalGate", { title: "Build?" }),
          createNode("beside", "core.delay", { delayMs: 600_000 }),
        ],
      }),
      createWorkflow("brief", { nodes: [createNode("pause", "core.delay", { delayMs: 20 })] }),
      createWorkflow("slow", { nodes: [createNode("wait", "core.delay", { delayMs: 600_000 })] }),
    ],
  });
});
afterAll(() => world[Symbol.asyncDispose]());

async function begin(messageId: string, skillId: string, configuration?: object): Promise<ShownTask> {
  const message = { messageId, parts: [{ text: "go" }], metadata: { skillId } };
  return (await sendMessage(world, message, { ...(configuration && { configuration }) })).result!.task;
}

interface LoggedEvent {
  readonly type: string;
  readonly nodeId?: string;
  readonly timestamp: string;
}

async function readTime(runId: string, type: string, nodeId?: string): Promise<string | undefined> {
  const { events } = await world.ask(`/v1/runs/${runId}/events/poll?lastSequence=0`);
  const found = (events as LoggedEvent[]).find((event) => event.type === type && event.nodeId === nodeId);
  return found?.timestamp;
}

describe("the status of a task", () => {
  it("has the time of its question, and another message for another question", async () => {
    const first = await begin("begin-1", "gates");
    expect(first.status.timestamp).toBe(await readTime(first.id, "node.suspended", "first"));
    const answer = { messageId: "answer-1", taskId: first.id, parts: [{ text: "accept" }] };
    const second = (await sendMessage(world, answer)).result!.task;
    expect(second.status.timestamp).toBe(await readTime(first.id, "node.suspended", "second"));
    expect(second.status.message?.messageId).not.toBe(first.status.message?.messageId);
    const read = await callA2a<ShownTask>(world, { method: "GetTask", params: { id: first.id } });
    expect(read.result?.status).toEqual(second.status);
    const ended = (await sendMessage(world, { ...answer, messageId: "answer-2" })).result!.task;
    expect(ended.status.timestamp).toBe(await readTime(first.id, "run.completed"));
  });

  it("has no time while the task works, also where a question is open", async () => {
    const { id } = await begin("begin-6", "gate-beside-slow", { returnImmediately: true });
    const readStatus = async () =>
      (await callA2a<ShownTask>(world, { method: "GetTask", params: { id } })).result?.status;
    const { state, timestamp } = await waitFor(
      async () => {
        const status = await readStatus();
        return status?.message && status;
      },
      { what: "the question" },
    );
    expect([state, timestamp]).toEqual(["TASK_STATE_WORKING", undefined]);
    await world.ask(`/v1/runs/${id}/cancel`, { method: "POST", body: {} });
  });

  it("has no time while the task works, and that of the pause while it is paused", async () => {
    const { id, status } = await begin("begin-2", "slow", { returnImmediately: true });
    expect(status).toEqual({ state: "TASK_STATE_WORKING" });
    await world.ask(`/v1/runs/${id}:pause`, { method: "POST", body: { drainPolicy: "immediate" } });
    const { pausedAt } = await world.ask(`/v1/runs/${id}`);
    const paused = await callA2a<ShownTask>(world, { method: "GetTask", params: { id } });
    expect(paused.result?.status.timestamp).toBe(pausedAt);
    expect(pausedAt).toBeDefined();
    await world.ask(`/v1/runs/${id}/cancel`, { method: "POST", body: {} });
  });
});

describe("a listing of tasks since a time", () => {
  interface TaskListing {
    readonly tasks: readonly ShownTask[];
  }

  function list(statusTimestampAfter: string): Promise<A2aReply<TaskListing>> {
    return callA2a<TaskListing>(world, { method: "ListTasks", params: { statusTimestampAfter } });
  }

  const listIds = ({ result }: A2aReply<TaskListing>): string[] => result!.tasks.map(({ id }) => id);

  it("has those that ended then or later, and all that have not ended", async () => {
    const early = await begin("begin-3", "brief");
    const late = await begin("begin-4", "brief");
    const asking = await begin("begin-7", "gates");
    const working = await begin("begin-5", "slow", { returnImmediately: true });
    const ids = listIds(await list(late.status.timestamp!));
    expect(ids).toEqual(expect.arrayContaining([late.id, asking.id, working.id]));
    expect(ids).not.toContain(early.id);
    expect(listIds(await list(early.status.timestamp!))).toContain(early.id);
    await world.ask(`/v1/runs/${working.id}/cancel`, { method: "POST", body: {} });
  });

  it("has a task that begins to wait after that time for the answer to a question from before", async () => {
    const task = await begin("begin-8", "gate-beside");
    expect(task.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    const since = (await readTime(task.id, "node.completed", "beside"))!;
    expect(Date.parse(task.status.timestamp!)).toBeLessThan(Date.parse(since));
    expect(listIds(await list(since))).toContain(task.id);
  });

  it("is refused for what is no time", async () => {
    expect((await list("yesterday")).error).toMatchObject({
      code: -32_602,
      message: "statusTimestampAfter: expected a time in ISO 8601",
    });
  });
});
