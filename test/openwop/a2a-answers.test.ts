/** Owns: that a message over A2A which answers a task answers one question, however often and however late it is sent. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { chain, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import {
  callA2a,
  forgetKeptAnswers,
  forgetQuestions,
  readShownQuestion,
  sendMessage,
  type A2aReply,
  type ShownTask,
} from "./a2a-call.ts";
import { openMcpWorld, TOKEN, type McpWorld } from "./mcp-world.ts";

const ASKING = "TASK_STATE_INPUT_REQUIRED";
const BOB = "t-bob";
const ACCEPT = [{ text: "accept" }];

let world: McpWorld;
beforeAll(async () => {
  const build = createNode("first", "core.approvalGate", { title: "Build?" });
  const second = createNode("second", "core.approvalGate", { title: "Deploy to production?" });
  const vote = createNode("first", "core.approvalGate", { title: "Build?", requiredApprovals: 2 });
  const edges = chain("first>second");
  world = await openMcpWorld({
    a2a: true,
    tokens: [
      { tenant: "miners", token: TOKEN, principal: "ann" },
      { tenant: "miners", token: BOB, principal: "bob" },
    ],
    definitions: [
      createWorkflow("two-gates", { nodes: [build, second], edges }),
      createWorkflow("vote-first", { nodes: [vote, second], edges }),
    ],
  });
});
afterAll(() => world[Symbol.asyncDispose]());

type Reply = A2aReply<{ readonly task: ShownTask }>;

const send = (message: object): Promise<Reply> => sendMessage(world, message);

async function begin(messageId: string, skillId = "two-gates"): Promise<string> {
  const begun = await send({ messageId, parts: [{ text: "go" }], metadata: { skillId } });
  return begun.result?.task.id ?? "";
}

/** Returns the node whose question the task shows. */
function readAskingNode({ result }: Reply): unknown {
  return readShownQuestion(result?.task)?.["nodeId"];
}

async function findAskingNode(id: string): Promise<unknown> {
  const { result } = await callA2a<ShownTask>(world, { method: "GetTask", params: { id } });
  return readShownQuestion(result)?.["nodeId"] ?? result?.status.state;
}

async function answerByRest(taskId: string, nodeId: string, token: string): Promise<void> {
  const answered = await world.ask(`/v1/runs/${taskId}/interrupts/${nodeId}`, {
    method: "POST",
    body: { resumeValue: { action: "accept" } },
    token,
  });
  expect(answered).toMatchObject({ nodeId });
}

it("a message that is sent again does not answer the next question", async () => {
  const taskId = await begin("begin-1");
  const answer = { messageId: "answer-1", taskId, parts: ACCEPT };
  expect((await send(answer)).result?.task.status.state).toBe(ASKING);
  expect((await send(answer)).result?.task.status.state).toBe(ASKING);
  const next = await send({ ...answer, messageId: "answer-2" });
  expect(next.result?.task.status.state).toBe("TASK_STATE_COMPLETED");
  expect((await send(answer)).result?.task.status.state).toBe("TASK_STATE_COMPLETED");
});

it("another message with the id of one that was taken is refused", async () => {
  const taskId = await begin("begin-2");
  await send({ messageId: "answer-3", taskId, parts: ACCEPT });
  const other = await send({ messageId: "answer-3", taskId, parts: [{ text: "reject" }] });
  expect(other.error?.message).toBe("message.messageId: another message had this id before");
});

it("a message that was refused may be sent again, put right", async () => {
  const taskId = await begin("begin-3");
  const wrong = await send({ messageId: "answer-4", taskId, parts: [{ data: { action: "fly" } }] });
  expect(wrong.error).toBeDefined();
  const right = await send({ messageId: "answer-4", taskId, parts: ACCEPT });
  expect(right.result?.task.status.state).toBe(ASKING);
});

it("a message that is sent again after a crash is taken for the answer that it gave, and for no other", async () => {
  const taskId = await begin("begin-4");
  const answer = { messageId: "answer-5", taskId, parts: ACCEPT };
  await send(answer);
  forgetKeptAnswers(world.ledger);
  const other = await send({ ...answer, parts: [{ text: "reject" }] });
  expect(other.error?.message).toBe("message.messageId: another message had this id before");
  expect(readAskingNode(await send(answer))).toBe("second");
  expect(await findAskingNode(taskId)).toBe("second");
});

it("a message that is sent again after a crash is told that its task has ended by then", async () => {
  const taskId = await begin("begin-5");
  await send({ messageId: "answer-6", taskId, parts: ACCEPT });
  const last = { messageId: "answer-7", taskId, parts: ACCEPT };
  await send(last);
  forgetKeptAnswers(world.ledger);
  expect((await send(last)).result?.task.status.state).toBe("TASK_STATE_COMPLETED");
});

it("a message that an older version left open is for the question that is open now", async () => {
  const taskId = await begin("begin-8");
  const answer = { messageId: "answer-9", taskId, parts: ACCEPT };
  expect(readAskingNode(await send(answer))).toBe("second");
  forgetQuestions(world.ledger);
  expect((await send(answer)).result?.task.status.state).toBe("TASK_STATE_COMPLETED");
  forgetQuestions(world.ledger);
  expect((await send(answer)).error?.message).toBe("The task is completed and waits for no answer.");
});

it("a message that is sent again is refused where somebody else settled its question, however often", async () => {
  const taskId = await begin("begin-6", "vote-first");
  const vote = { messageId: "answer-8", taskId, parts: ACCEPT };
  expect(readAskingNode(await send(vote))).toBe("first");
  forgetKeptAnswers(world.ledger);
  await answerByRest(taskId, "first", BOB);
  for (let turn = 0; turn < 2; turn += 1)
    expect((await send(vote)).error?.message).toContain(
      "the question of node first has already been settled",
    );
  expect(await findAskingNode(taskId)).toBe("second");
});

it("a message that names its question answers no other one", async () => {
  const begun = await send({
    messageId: "begin-7",
    parts: [{ text: "go" }],
    metadata: { skillId: "two-gates" },
  });
  const { id: taskId } = begun.result!.task;
  const { interruptId } = readShownQuestion(begun.result?.task)!;
  await answerByRest(taskId, "first", BOB);
  for (const [at, metadata] of [{ interruptId }, { nodeId: "first" }].entries()) {
    const late = await send({ messageId: `late-${at}`, taskId, parts: ACCEPT, metadata });
    expect(late.error?.message).toBe(
      "message.metadata: the task does not ask the question that it names: read the task for what it asks",
    );
  }
  expect(await findAskingNode(taskId)).toBe("second");
  const metadata = { nodeId: "second" };
  const right = await send({ messageId: "in-time", taskId, parts: ACCEPT, metadata });
  expect(right.result?.task.status.state).toBe("TASK_STATE_COMPLETED");
});
