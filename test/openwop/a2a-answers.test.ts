/** Owns: that a message over A2A which answers a task answers one question, however often it is sent. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Message } from "@a2a-js/sdk";
import { RequestMalformedError } from "@a2a-js/sdk/errors";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { A2aParts } from "../../src/plugins/a2a/a2a-parts.ts";
import { answerOnce } from "../../src/plugins/a2a/answer-once.ts";
import { ALICE } from "../support/workflow-scene.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { chain, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { openMcpWorld, TOKEN, type McpWorld } from "./mcp-world.ts";

const ASKING = "TASK_STATE_INPUT_REQUIRED";

let world: McpWorld;
beforeAll(async () => {
  const nodes = [
    createNode("first", "core.approvalGate", { title: "Build?" }),
    createNode("second", "core.approvalGate", { title: "Deploy to production?" }),
  ];
  world = await openMcpWorld({
    a2a: true,
    definitions: [createWorkflow("two-gates", { nodes, edges: chain("first>second") })],
  });
});
afterAll(() => world[Symbol.asyncDispose]());

interface Reply {
  readonly result?: { readonly task: { readonly id: string; readonly status: { readonly state: string } } };
  readonly error?: { readonly message: string };
}

async function send(message: object): Promise<Reply> {
  const headers = {
    authorization: `Bearer ${TOKEN}`,
    "content-type": "application/json",
    "a2a-version": "1.0",
  };
  const params = { message: { role: "ROLE_USER", ...message } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params });
  const response = await fetch(`${world.baseUrl}/v1/a2a`, { method: "POST", headers, body });
  return (await response.json()) as Reply;
}

async function begin(messageId: string): Promise<string> {
  const begun = await send({ messageId, parts: [{ text: "go" }], metadata: { skillId: "two-gates" } });
  return begun.result?.task.id ?? "";
}

it("a message that is sent again does not answer the next question", async () => {
  const taskId = await begin("begin-1");
  const answer = { messageId: "answer-1", taskId, parts: [{ text: "accept" }] };
  expect((await send(answer)).result?.task.status.state).toBe(ASKING);
  expect((await send(answer)).result?.task.status.state).toBe(ASKING);
  const next = await send({ ...answer, messageId: "answer-2" });
  expect(next.result?.task.status.state).toBe("TASK_STATE_COMPLETED");
  expect((await send(answer)).result?.task.status.state).toBe("TASK_STATE_COMPLETED");
});

it("another message with the id of one that was taken is refused", async () => {
  const taskId = await begin("begin-2");
  await send({ messageId: "answer-3", taskId, parts: [{ text: "accept" }] });
  const other = await send({ messageId: "answer-3", taskId, parts: [{ text: "reject" }] });
  expect(other.error?.message).toBe("message.messageId: another message had this id before");
});

it("a message that was refused may be sent again, put right", async () => {
  const taskId = await begin("begin-3");
  const wrong = await send({ messageId: "answer-4", taskId, parts: [{ data: { action: "fly" } }] });
  expect(wrong.error).toBeDefined();
  const right = await send({ messageId: "answer-4", taskId, parts: [{ text: "accept" }] });
  expect(right.result?.task.status.state).toBe(ASKING);
});

it("a message whose answer is not known to be given keeps its id for what it says", async () => {
  const { requests } = createMemoryWorkflowLedger().open();
  const face = { host: { requests }, clock: createFakeClock() } as unknown as A2aParts;
  const message = { messageId: "answer-5", taskId: "run-1" } as unknown as Message;
  const sendOnce = (content: string, answer: () => Promise<void>): Promise<void> =>
    answerOnce(face, { caller: ALICE, message, content }, answer);
  const failure = new CoordinationError("LEDGER_UNAVAILABLE", "the answer was lost");
  await expect(sendOnce("accept", () => Promise.reject(failure))).rejects.toBe(failure);
  const problem = "message.messageId: another message had this id before";
  await expect(sendOnce("reject", () => Promise.resolve())).rejects.toThrow(problem);
  const refusal = new RequestMalformedError("no such answer");
  await expect(sendOnce("accept", () => Promise.reject(refusal))).rejects.toBe(refusal);
  await sendOnce("reject", () => Promise.resolve());
});
