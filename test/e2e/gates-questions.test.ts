/** Questions to people: about results of planned steps, about steps that their planner doubts, and of agents. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { renderScript, textOf, type RecordedRequest, type Turn } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { hasEnded, stepNamed, type OpenedCoordination } from "./stage.ts";
import {
  answer,
  findChildOfStep,
  expectKept,
  expectSound,
  factsOf,
  openGateStage,
  ownerOf,
  planOf,
  waitForQuestion,
  askToReadAfterwards,
  requestsOf,
  runPlan,
  spawnFrom,
  stepOf,
  countTimesRead,
  WAIT_MS_MAX,
  type GateStage,
} from "./gates-stage.ts";

let stage: GateStage;

beforeAll(async () => {
  // The host's trajectory, which no model reads, has the arguments of every tool call: what is reported, too.
  stage = await openGateStage({}, { env: { OPENCLAW_TRAJECTORY: "0" } });
});

afterAll(() => stage.close());

const endedOf = (label: string): Promise<OpenedCoordination> =>
  stage.until(ownerOf(label), hasEnded, WAIT_MS_MAX);
const statusOf = (state: OpenedCoordination, stepId: string) =>
  state.steps.get(stepId as StepId)?.phase.status;

const secretOf = (label: string): string => `planned-result-of-${label}-51be`;

const report = (args: object): Turn => ({
  call: [{ name: "coordination_report", args: { outcome: "completed", ...args } }],
});

const nameTaskAfter = (label: string): string => `Task after ${label}.`;
const listRequestsFor = (task: string): RecordedRequest[] =>
  stage.model.requests.filter(({ matched, text }) => matched !== "script" && text.includes(task));

/** A plan of two steps; the first one reports a result of which it is not sure, the other one needs it. */
async function runDoubted(label: string): Promise<void> {
  const task = `Task of ${label}.`;
  stage.teach(task, report({ confidence: 0.4, outputs: { found: secretOf(label) } }), { say: "Reported." });
  const input = { found: "{{steps.first.outputs.found}}" };
  const steps = [
    stepOf("first", task),
    stepOf("second", nameTaskAfter(label), { dependsOn: ["first"], input }),
  ];
  await runPlan(stage, planOf(label, steps));
}

describe("a step of a plan that doubts its result", () => {
  it("is held while what depends on it waits, and an approval lets both go on", async () => {
    const label = "approved-step";
    await runDoubted(label);
    const { state, questionId, confidence } = await waitForQuestion(stage, label);
    expect(confidence).toEqual({ measured: 4_000, floor: 7_000, of: "result" });
    expect([statusOf(state, "first"), statusOf(state, "second")]).toEqual(["held", "waiting"]);
    expectKept(stage, secretOf(label), findChildOfStep(state, "first"));
    await answer(stage, questionId, "approve");
    const ended = await endedOf(label);
    expect(ended).toMatchObject({ kind: "ended", status: "success" });
    expect(listRequestsFor(nameTaskAfter(label))[0]?.text).toContain(secretOf(label));
    await expectSound(stage, ended);
  });

  it("counts as what people put in its place, and nobody reads the first one", async () => {
    const label = "replaced-step";
    await runDoubted(label);
    const { state, questionId } = await waitForQuestion(stage, label);
    await answer(stage, questionId, "answer", '{"found":"what people found"}');
    const ended = await endedOf(label);
    expect(ended).toMatchObject({ status: "success" });
    expect(stepNamed(ended, "first").phase).toMatchObject({ released: "replaced" });
    expect(listRequestsFor(nameTaskAfter(label))[0]?.text).toContain("what people found");
    await askToReadAfterwards(stage, label);
    expectKept(stage, secretOf(label), findChildOfStep(state, "first"));
    await expectSound(stage, ended);
  });
});

describe("a step that its planner doubts", () => {
  const planDoubted = (label: string) => {
    stage.teach(`Task of ${label}.`, { say: "Done." });
    const only = stepOf("only", `Task of ${label}.`, { confidence: 0.3 });
    return runPlan(stage, planOf(label, [only]));
  };

  it("does not begin before people approve it, and then begins once", async () => {
    const label = "begun";
    await planDoubted(label);
    const { state, questionId, confidence } = await waitForQuestion(stage, label);
    expect(confidence).toMatchObject({ measured: 3_000, floor: 5_000 });
    expect(statusOf(state, "only")).toBe("waiting");
    expect(listRequestsFor(`Task of ${label}.`)).toEqual([]);
    await answer(stage, questionId, "approve");
    const ended = await endedOf(label);
    expect(ended).toMatchObject({ status: "success" });
    const events = await stage.events(ended);
    const findIndexes = (type: string): number[] =>
      events.flatMap((event, index) => (event.type === type ? [index] : []));
    const dispatched = (await factsOf(stage, ended, "step.dispatched")).filter(
      ({ stepId }) => stepId === ("only" as StepId),
    );
    expect(dispatched).toHaveLength(1);
    const order = ["coordination.escalated", "interrupt.requested", "interrupt.resolved", "step.dispatched"];
    const places = order.map((type) => findIndexes(type)[0] ?? Infinity);
    expect(places).toEqual(places.toSorted((left, right) => left - right));
    expect(listRequestsFor(`Task of ${label}.`)).toHaveLength(1);
    await expectSound(stage, ended);
  });

  it("never begins when they deny it", async () => {
    const label = "never-begun";
    await planDoubted(label);
    const { questionId } = await waitForQuestion(stage, label);
    await answer(stage, questionId, "deny");
    const ended = await endedOf(label);
    expect(ended.steps.get("only" as StepId)?.phase).toMatchObject({ status: "skipped", because: "denied" });
    expect(listRequestsFor(`Task of ${label}.`)).toEqual([]);
    await expectSound(stage, ended);
  });
});

describe("an agent that asks people", () => {
  const askPeople = (text: string, waitMs: number): Turn => ({
    call: [{ name: "coordination_escalate", args: { question: text, waitMs } }],
  });

  /** The result of its newest call, as the model read it. */
  function readResultBefore(words: string): string {
    const request = stage.model.requests.findLast(({ turn }) => turn.say === words);
    const results = request?.body.messages.filter(({ role }) => role === "tool") ?? [];
    return textOf(results.at(-1) ?? { role: "tool" });
  }

  const CLOSED = "is closed.";

  it("has the answer as the result of its call where it comes in time, and no other turn", async () => {
    const label = "waiting";
    const turn = stage.gateway.agent({
      sessionKey: ownerOf(label),
      message: renderScript(askPeople("Which database?", 60_000), { say: "asked and answered" }),
    });
    const { questionId, cause } = await waitForQuestion(stage, label);
    expect(cause).toBe("agent");
    await answer(stage, questionId, "answer", "The staging database.");
    await turn;
    expect(readResultBefore("asked and answered")).toContain("The staging database.");
    const ended = await endedOf(label);
    expect(countTimesRead(await askToReadAfterwards(stage, label), CLOSED)).toBe(0);
    await expectSound(stage, ended);
  });

  it("is told later, once, where it does not wait", async () => {
    const label = "told-later";
    await stage.gateway.agent({
      sessionKey: ownerOf(label),
      message: renderScript(askPeople("Which colour?", 0), { say: "asked and gone on" }),
    });
    expect(readResultBefore("asked and gone on")).toContain('"status":"open"');
    const { questionId } = await waitForQuestion(stage, label);
    await answer(stage, questionId, "answer", "Green, please.");
    const ended = await endedOf(label);
    const reading = await askToReadAfterwards(stage, label);
    expect(countTimesRead(reading, CLOSED)).toBe(1);
    expect(countTimesRead(reading, "Green, please.")).toBe(1);
    await expectSound(stage, ended);
  });

  it("may be a subagent: it has the answer, and its parent the result", async () => {
    const label = "child-waits";
    await spawnFrom(stage, label, [askPeople("Which town?", 60_000), { say: "Then it is that town." }]);
    const { questionId, askedBy, state } = await waitForQuestion(stage, label);
    expect(askedBy).toBe(findChildOfStep(state, label));
    await answer(stage, questionId, "answer", "Uppsala.");
    const ended = await endedOf(label);
    expect(stepNamed(ended, label).phase).toMatchObject({ status: "completed" });
    expect(readResultBefore("Then it is that town.")).toContain("Uppsala.");
    expect(countTimesRead(await askToReadAfterwards(stage, label), "Uppsala.")).toBe(0);
    await expectSound(stage, ended);
  });

  it("may be a subagent that has ended: it is told in its session, once", async () => {
    const label = "child-gone";
    await spawnFrom(stage, label, [askPeople("Which river?", 0), { say: "I asked." }]);
    const { questionId, state } = await waitForQuestion(stage, label);
    const child = findChildOfStep(state, label);
    await stage.until(
      ownerOf(label),
      (coordination) => stepNamed(coordination, label).phase.status === "completed",
    );
    await answer(stage, questionId, "answer", "The Fyris.");
    const ended = await endedOf(label);
    const listTold = (): RecordedRequest[] =>
      requestsOf(stage, child).filter(({ text }) => text.includes(CLOSED));
    await waitFor(() => listTold().length > 0, { what: "the turn of the child", timeoutMs: WAIT_MS_MAX });
    expect(listTold().map((request) => countTimesRead(request, "The Fyris."))).toEqual([1]);
    await expectSound(stage, ended);
  });

  it("may be a subagent that works on when the answer comes: it is told once, and its result counts", async () => {
    const label = "child-works-on";
    const list = { name: "sessions_list", args: {} };
    await spawnFrom(stage, label, [
      askPeople("Which lake?", 0),
      { call: [list], delayMs: 3_000 },
      { say: "I worked on." },
    ]);
    const { questionId, state } = await waitForQuestion(stage, label);
    const child = findChildOfStep(state, label);
    expect(stepNamed(state, label).phase.status).toBe("running");
    await answer(stage, questionId, "answer", "Lake Ekoln.");
    const ended = await endedOf(label);
    expect(stepNamed(ended, label).phase).toMatchObject({ status: "completed", attempt: 1 });
    const requests = requestsOf(stage, child).filter(({ text }) => text.includes(CLOSED));
    expect(requests.map((request) => countTimesRead(request, "Lake Ekoln."))).toEqual([1]);
    await expectSound(stage, ended);
  });
});
