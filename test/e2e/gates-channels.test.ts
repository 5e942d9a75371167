/** The ways by which a parent hears of its children: none of them has a result that is held. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChildOfPhase } from "../../src/agents/coordination/ledger/state.ts";
import {
  renderScript,
  scriptOf,
  textOf,
  type RecordedRequest,
  type Turn,
} from "../support/scripted-model.ts";
import { hasEnded, type OpenedCoordination } from "./stage.ts";
import {
  answer,
  findChildOfStep,
  expectKept,
  expectSound,
  HELD_BACK,
  openGateStage,
  ownerOf,
  waitForQuestion,
  askToReadAfterwards,
  spawnFrom,
  countTimesRead,
  waitUntilAnnounced,
  WAIT_MS_MAX,
  type GateStage,
  type HeldResult,
} from "./gates-stage.ts";

let stage: GateStage;

beforeAll(async () => {
  stage = await openGateStage();
});

afterAll(() => stage.close());

const secretOf = (label: string): string => `doubted-result-of-${label}-77aa`;
const endedOf = (label: string): Promise<OpenedCoordination> =>
  stage.until(ownerOf(label), hasEnded, WAIT_MS_MAX);
const sayDoubtfully = (label: string): Turn => ({ say: `It is ${secretOf(label)}.\n{"confidence": 0.4}` });

async function holdResult(label: string): Promise<HeldResult> {
  const question = await waitForQuestion(stage, label);
  return { ...question, child: findChildOfStep(question.state, label) };
}

/** The request in which the model was told to say something, as the session had it then. */
function requestThatSays(say: string): RecordedRequest {
  const request = stage.model.requests.findLast(({ turn }) => turn.say === say);
  if (!request) throw new Error(`nobody said ${say}`);
  return request;
}

const listResults = (request: RecordedRequest): string[] =>
  request.body.messages.filter(({ role }) => role === "tool").map(textOf);

async function release(label: string, { questionId }: HeldResult): Promise<void> {
  await answer(stage, questionId, "approve");
  const state = await endedOf(label);
  expect(countTimesRead(await askToReadAfterwards(stage, label), secretOf(label))).toBe(1);
  await expectSound(stage, state);
}

describe("a held result", () => {
  it("is not steered into the run of a parent that is still at work", async () => {
    const label = "held-steered";
    const task = `Task of ${label}.`;
    stage.teach(task, sayDoubtfully(label));
    const list = { name: "sessions_list", args: { messageLimit: 5, limit: 10 } };
    const turn = stage.gateway.agent({
      sessionKey: ownerOf(label),
      message: renderScript(
        { spawn: [{ label, task }] },
        { call: [list], delayMs: 4_000 },
        { call: [list], delayMs: 2_000 },
        { say: "worked on" },
      ),
    });
    const heldResult = await holdResult(label);
    await turn;
    await waitUntilAnnounced(stage, heldResult.child);
    expectKept(stage, secretOf(label), heldResult.child);
    await release(label, heldResult);
  });

  it("is not in what a collector collects", async () => {
    const label = "collected";
    await spawnFrom(stage, label, [sayDoubtfully(label)], { collect: true });
    const heldResult = await holdResult(label);
    const { child, state } = heldResult;
    const ids = [...state.steps.values()].map(({ phase }) => findChildOfPhase(phase)?.childRunId);
    const waits = renderScript({ call: [{ name: "agents_wait", args: { ids } }] }, { say: "collected it" });
    await stage.gateway.agent({ sessionKey: ownerOf(label), message: waits });
    expect(listResults(requestThatSays("collected it")).at(-1)).toContain(HELD_BACK);
    expectKept(stage, secretOf(label), child);
    await release(label, heldResult);
  });

  it("is not said again by its agent when the parent asks it", async () => {
    const label = "asked-again";
    await spawnFrom(stage, label, [sayDoubtfully(label)]);
    const heldResult = await holdResult(label);
    await waitUntilAnnounced(stage, heldResult.child);
    stage.teach("What was it that you found?", { say: `I found ${secretOf(label)}.` });
    const send = {
      name: "sessions_send",
      args: { sessionKey: heldResult.child, message: "What was it that you found?", timeoutSeconds: 20 },
    };
    await stage.gateway.agent({
      sessionKey: ownerOf(label),
      message: renderScript({ call: [send] }, { say: "asked the child" }),
    });
    expect(listResults(requestThatSays("asked the child")).at(-1)).not.toContain("error");
    expectKept(stage, secretOf(label), heldResult.child);
    await release(label, heldResult);
  });

  it("holds back nothing of a sibling that is sure", async () => {
    const label = "siblings";
    stage.teach(`Task of ${label}.`, sayDoubtfully(label));
    stage.teach("Task of the sure one.", { say: "Surely so." });
    const spawn = [
      { label, task: `Task of ${label}.` },
      { label: "sure", task: "Task of the sure one." },
    ];
    await stage.gateway.agent({
      sessionKey: ownerOf(label),
      message: renderScript({ spawn }, { say: "spawned" }),
    });
    const heldResult = await holdResult(label);
    const sureRequest = await waitUntilAnnounced(stage, findChildOfStep(heldResult.state, "sure"));
    expect(JSON.stringify(sureRequest.body)).toContain("Surely so.");
    await waitUntilAnnounced(stage, heldResult.child);
    expectKept(stage, secretOf(label), heldResult.child);
    await release(label, heldResult);
  });

  it("of a grandchild is kept from the child and from the owner, and the child is told of its release", async () => {
    const label = "grandchild";
    const task = `Task of ${label}.`;
    stage.teach(task, sayDoubtfully(label));
    const middle = scriptOf({
      turns: [{ spawn: [{ label, task }] }, { say: "waiting for the grandchild" }],
      onAnnounce: "what the child made of it",
    });
    await stage.gateway.agent({
      sessionKey: ownerOf(label),
      message: renderScript({ spawn: [{ label: "middle", task: middle }] }, { say: "spawned" }),
    });
    const heldResult = await holdResult(label);
    await waitUntilAnnounced(stage, heldResult.child);
    expectKept(stage, secretOf(label), heldResult.child);
    await answer(stage, heldResult.questionId, "approve");
    const state = await endedOf(label);
    const telling = stage.model.requests.filter(({ text }) => text.includes(secretOf(label)));
    expect(telling.map((request) => countTimesRead(request, secretOf(label)))).toEqual([1]);
    await expectSound(stage, state);
  });
});
