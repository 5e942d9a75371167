/** Owns: that a client which follows a task over A2A hears of every question, of the answers and of the end. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { chain, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { waitFor } from "../support/wait-for.ts";
import { sendMessage, type ShownTask } from "./a2a-call.ts";
import { openMcpWorld, TOKEN, type McpWorld } from "./mcp-world.ts";

const ASKING = "TASK_STATE_INPUT_REQUIRED";
const COMPLETED = "TASK_STATE_COMPLETED";

let world: McpWorld;
beforeAll(async () => {
  const nodes = ["first", "second"].map((id) => createNode(id, "core.approvalGate", { title: `${id}?` }));
  world = await openMcpWorld({
    a2a: true,
    definitions: [
      createWorkflow("in-turn", { nodes, edges: chain("first>second") }),
      createWorkflow("at-once", { nodes }),
      createWorkflow("outer", { nodes: [createNode("sub", "core.subWorkflow", { workflowId: "in-turn" })] }),
    ],
  });
});
afterAll(() => world[Symbol.asyncDispose]());

interface StreamEvent {
  readonly task?: ShownTask;
  readonly statusUpdate?: Pick<ShownTask, "status">;
  readonly artifactUpdate?: object;
}

interface TaskSubscription {
  /** States, and the nodes whose questions are asked. */
  readonly events: string[];
  readonly ended: Promise<void>;
}

async function follow(method: string, params: object): Promise<TaskSubscription> {
  const response = await fetch(`${world.baseUrl}/v1/a2a`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${TOKEN}`,
      "content-type": "application/json",
      accept: "text/event-stream",
      "a2a-version": "1.0",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const events: string[] = [];
  return { events, ended: readEvents(response, events) };
}

async function readEvents({ body }: Response, events: string[]): Promise<void> {
  let rest = "";
  for await (const chunk of body!.pipeThrough(new TextDecoderStream())) {
    const lines = `${rest}${chunk}`.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines.filter((each) => each.startsWith("data:")))
      events.push(describeEvent((JSON.parse(line.slice(5)) as { readonly result: StreamEvent }).result));
  }
}

function describeEvent({ task, statusUpdate }: StreamEvent): string {
  const { status } = task ?? statusUpdate ?? {};
  if (!status) return "outputs";
  const node = status.message?.parts.find(({ data }) => data)?.data?.["nodeId"];
  return typeof node === "string" ? `${status.state} ${node}` : status.state;
}

async function begin(skillId: string): Promise<string> {
  const message = { messageId: `begin-${skillId}`, parts: [{ text: "go" }], metadata: { skillId } };
  return (await sendMessage(world, message)).result!.task.id;
}

async function accept(taskId: string, nodeId: string): Promise<void> {
  const message = {
    messageId: `${taskId}-${nodeId}`,
    taskId,
    parts: [{ text: "accept" }],
    metadata: { nodeId },
  };
  expect((await sendMessage(world, message)).error).toBeUndefined();
}

const waitUntilAsked = ({ events }: TaskSubscription, nodeId: string): Promise<unknown> =>
  waitFor(() => events.at(-1) === `${ASKING} ${nodeId}`, { what: `the question of ${nodeId}` });

it.each(["in-turn", "at-once", "outer"])(
  "a task of %s that waits is followed over its questions to its outputs and its end",
  async (skill) => {
    const taskId = await begin(skill);
    const following = await follow("SubscribeToTask", { id: taskId });
    for (const nodeId of ["first", "second"]) {
      await waitUntilAsked(following, nodeId);
      await accept(taskId, nodeId);
    }
    await following.ended;
    expect(following.events.slice(-2)).toEqual(["outputs", COMPLETED]);
  },
);

it("a message that is streamed is followed until its task waits", async () => {
  const message = {
    role: "ROLE_USER",
    messageId: "streamed",
    parts: [{ text: "go" }],
    metadata: { skillId: "in-turn" },
  };
  const following = await follow("SendStreamingMessage", { message });
  await following.ended;
  expect(following.events.at(-1)).toBe(`${ASKING} first`);
});
