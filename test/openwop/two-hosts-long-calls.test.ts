/** Owns: a node of one host that calls a workflow of another one over A2A, which takes long, or longer than the node's run. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { createA2aCaller } from "../../src/infra/a2a/a2a-caller.ts";
import { createSafeFetch, type SafeFetch } from "../../src/infra/http/safe-fetch.ts";
import { withTokens } from "../../src/infra/http/tokens.ts";
import { startHeldModel, type HeldModel } from "../support/held-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { clientOf, openWorld, type World } from "./levels-world.ts";

const B_TOKEN = "the-token-that-only-b-knows";
const ON_A = [
  createWorkflow("calls-b", { nodes: [createNode("call", "core.a2a.invoke", { skill: "asks-a-model" })] }),
];
const ON_B = [
  createWorkflow("asks-a-model", { nodes: [createNode("ask", "core.ai.callPrompt", { prompt: '"Dig?"' })] }),
];
/** The time of one exchange: much less than the host holds a message that waits for its task. */
const EXCHANGE_MS = 2_000;

let model: HeldModel;
let a: World;
let b: World;
beforeAll(async () => {
  model = await startHeldModel();
  b = await openWorld(ON_B, {
    tokens: [{ tenant: "miners", token: B_TOKEN }],
    a2a: true,
    testSeams: false,
    model: { baseUrl: model.baseUrl, model: "held" },
    privateOrigins: [model.origin],
  });
  a = await openWorld(ON_A, {
    privateOrigins: [b.baseUrl],
    peers: [b.baseUrl],
    peerTokens: { [b.baseUrl]: B_TOKEN },
  });
});
afterAll(async () => {
  await a.close();
  await b.close();
  await model[Symbol.asyncDispose]();
});

const onB = () => clientOf(b.baseUrl, B_TOKEN);

async function listTaskIds(): Promise<readonly string[]> {
  const request = { jsonrpc: "2.0", id: 1, method: "ListTasks", params: {} };
  const { body } = await onB().post("/v1/a2a", request, { "a2a-version": "1.0" });
  const { tasks } = body["result"] as { readonly tasks: readonly { readonly id: string }[] };
  return tasks.map(({ id }) => id);
}

/** Starts a run on A, and resolves when its task on B waits for the model. */
async function startCall(): Promise<{ readonly runId: string; readonly taskId: string }> {
  const before = model.bodies.length;
  const tasksBefore = await listTaskIds();
  const runId = await a.client.start("calls-b", { inputs: { peerUrl: b.baseUrl } });
  await model.asked(before + 1);
  const [taskId = "", ...others] = (await listTaskIds()).filter((id) => !tasksBefore.includes(id));
  expect(others).toEqual([]);
  return { runId, taskId };
}

describe("a task that takes longer than one exchange may", () => {
  it("is answered when it has ended", async () => {
    const clock = systemClock;
    const bounds = { clock, allowPrivate: true, timeoutMs: EXCHANGE_MS, bytesMax: 1_000_000 };
    const signed = withTokens(createSafeFetch(bounds), { [b.baseUrl]: B_TOKEN });
    const methods: string[] = [];
    const fetch: SafeFetch = (input, init) => {
      if (typeof init?.body === "string")
        methods.push((JSON.parse(init.body) as { readonly method: string }).method);
      return signed(input, init);
    };
    const answering = createA2aCaller({ fetch, clock, timeoutMs: 60_000 })({
      url: b.baseUrl,
      skill: "asks-a-model",
      message: "gold",
      messageId: "message-1",
      signal: new AbortController().signal,
      isLeftToOthers: () => false,
    });
    const answerModel = async (): Promise<void> => {
      await waitFor(() => methods.includes("GetTask"), { what: "a look at the task" });
      await model.say("yes");
    };
    const [answer] = await Promise.all([answering, answerModel()]);
    expect(answer).toMatchObject({ kind: "answered", ok: true, state: "completed" });
  });
});

describe("the task of a node", () => {
  it("goes on while the host of the node is stopped, and is the same task after that", async () => {
    const { runId } = await startCall();
    const tasks = await listTaskIds();
    await a.restart();
    await model.say("yes");
    await a.client.until(runId, "completed");
    expect(await listTaskIds()).toEqual(tasks);
  });

  it("is cancelled with the run of the node", async () => {
    const { runId, taskId } = await startCall();
    await a.client.post(`/v1/runs/${runId}/cancel`);
    await onB().until(taskId, "cancelled");
  });
});
