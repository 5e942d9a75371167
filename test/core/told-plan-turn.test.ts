/**
 * Owns: the turn in which the agent of a planned step is told how its own plan went. The step is done with what the agent says then,
 * and nothing of the turn goes on once the attempt is over.
 */
import { describe, expect, it } from "vitest";
import type { CoordinationId, SessionKey, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { waitForDuration } from "../../src/agents/coordination/std/wait-for.ts";
import { endDone, endFailing, type ScriptedAttempt } from "../support/scripted-runner.ts";
import { AGENT, createRetries, plan, PLAN_ID, step, submitTo, type Fields } from "./planned-world.ts";
import { createToldWorld, listOutputsOfA } from "./told-turns.ts";

const NESTED_ID = "plan-2" as CoordinationId;
const TOLD_KEY = "plan-2:@delivery:1";
const HOUR_MS = 3_600_000;

/** A plan whose step `a` works in its first turn, and has submitted a plan with the step `n`, which is done at once. */
async function runNested(
  fields: Fields = {},
  scripts: Readonly<Record<string, readonly ScriptedAttempt[]>> = {},
) {
  const scene = createToldWorld({ a: ["work"], "@delivery": ["work", endDone()], ...scripts });
  const { world, scripted, words } = scene;
  const run = await submitTo(world, plan([step("a", fields)]));
  const session = run.ordersOf("a")[0]!.childSessionKey;
  const submit = (coordinationId: string, steps: readonly Fields[] = [step("n")]) =>
    run.coordinator.submitPlan({
      plan: plan(steps, { coordinationId, ownerSession: session }),
      submittedBy: session,
      ownerAgent: AGENT,
    });
  expect(await submit(NESTED_ID)).toMatchObject({ kind: "accepted" });
  await run.advance(1_000);
  const endTold = (newest: string, first = newest): void => {
    words.newest = newest;
    scripted.end("@delivery", { outcome: "completed", reply: first });
  };
  const listEnds = () =>
    run
      .events("coordination.terminal")
      .map(({ runId, payload: { status, delivery } }) => `${runId} ${status} ${delivery}`);
  return { ...scene, run, session, submit, endTold, listEnds, listOutputs: () => listOutputsOfA(world) };
}

/** The same, once the step's agent has ended its first turn and the turn in which it is told goes on. */
async function runTold(...settings: Parameters<typeof runNested>) {
  const scene = await runNested(...settings);
  scene.scripted.end("a", endDone());
  await scene.run.advance(5_000);
  expect(listTold(scene)).toEqual([scene.session]);
  expect((await scene.run.fates())["a"]).toBe("running");
  return scene;
}

/** Returns the sessions that were told how the plan inside ended, each time that a turn began. */
function listTold({ scripted }: Pick<Awaited<ReturnType<typeof runNested>>, "scripted">): SessionKey[] {
  return [...scripted.runs.values()]
    .filter(({ order }) => order.idempotencyKey.startsWith("plan-2:@delivery:"))
    .map(({ order }) => order.childSessionKey);
}

const CANCEL_A = { coordinationId: PLAN_ID, stepId: "a" as StepId, by: "operator" } as const;

describe("the turn in which an agent is told how its plan went", () => {
  it("is stopped when its attempt runs out of time, so that it does not go on beside the next one", async () => {
    const fields = { timeoutMs: 60_000, ...createRetries(1, 5_000) };
    const { run, scripted, listEnds } = await runTold(fields, { a: ["work", "work"] });
    await run.advance(53_500);
    expect(scripted.cancelled).toEqual([]);
    await run.advance(2_000);
    expect(scripted.cancelled).toContain(TOLD_KEY);
    expect(run.ordersOf("a")).toHaveLength(1);
    await run.advance(10_000);
    expect(run.ordersOf("a")).toHaveLength(2);
    expect(listEnds()).toEqual(["plan-2 success unknown"]);
    await run.close();
  });

  it("is stopped when its step is cancelled, also where the plan inside had been cancelled before", async () => {
    const scene = await runNested({}, { n: ["work"] });
    const { run, scripted, listEnds } = scene;
    await run.coordinator.cancel({ coordinationId: NESTED_ID, by: "operator" });
    scripted.end("a", endDone());
    await run.advance(5_000);
    expect(listTold(scene)).toEqual([scene.session]);
    await run.coordinator.cancel(CANCEL_A);
    await run.advance(5_000);
    expect(scripted.cancelled).toContain(TOLD_KEY);
    expect(await run.fates()).toMatchObject({ a: "cancelled" });
    expect(listEnds()).toContain("plan-2 cancelled unknown");
    await run.close();
  });

  it("is stopped also where it still waits for the turn before, which fails", async () => {
    const scene = await runNested(createRetries(1), { a: ["work", "work"] });
    scene.queue.isWaiting = true;
    await scene.run.advance(5_000);
    expect(listTold(scene)).toEqual([scene.session]);
    scene.scripted.end("a", endFailing());
    await scene.run.advance(10_000);
    expect(scene.scripted.cancelled).toContain(TOLD_KEY);
    expect(scene.run.ordersOf("a")).toHaveLength(2);
    await scene.run.close();
  });

  it("is stopped before the time-out of its attempt is recorded, with the turns before it", async () => {
    const scripts = { "@delivery": ["work", "work", endDone()], m: ["work"] } as const;
    const { run, reach, submit } = await runTold({ timeoutMs: 60_000 }, scripts);
    expect(await submit("plan-3", [step("m")])).toMatchObject({ kind: "accepted" });
    const timeOutsBefore: number[] = [];
    reach.isLost = (key) => {
      if (key === TOLD_KEY) timeOutsBefore.push(run.events("step.timed_out").length);
      return false;
    };
    await run.advance(60_000);
    expect(timeOutsBefore[0]).toBe(0);
    expect(await run.fates()).toMatchObject({ a: "timed_out" });
    await run.close();
  });

  it("is told to stop once more where it is out of reach when its attempt runs out of time", async () => {
    const { run, scripted, reach } = await runTold({ timeoutMs: 60_000 });
    reach.isLost = (key) => key === TOLD_KEY && run.events("step.timed_out").length === 0;
    await run.advance(60_000);
    expect(run.appends.find((types) => types.includes("step.timed_out"))).not.toContain("step.child_stopped");
    expect(run.events("step.child_stopped")).toMatchObject([
      { payload: { stepId: "a", outcome: "stopped" } },
    ]);
    expect(scripted.cancelled).toContain(TOLD_KEY);
    await run.close();
  });

  it("does not begin once its attempt is over, where the host had refused it before", async () => {
    const scene = await runNested({}, { "@delivery": [{ refuse: "busy" }, endDone()] });
    await scene.run.coordinator.cancel(CANCEL_A);
    await scene.run.advance(60_000);
    expect(listTold(scene)).toEqual([]);
    expect(scene.listEnds()).toContain("plan-2 success not_delivered");
    await scene.run.close();
  });

  it("is stopped after a crash, too", async () => {
    const { run, scripted } = await runTold({ timeoutMs: 60_000 });
    await run.restart();
    await run.advance(60_000);
    expect(scripted.cancelled).toContain(TOLD_KEY);
    await run.close();
  });

  it("has all the time of its attempt, also where it had to wait long for the turn before", async () => {
    const { run, scripted, queue, endTold, listOutputs } = await runNested({ timeoutMs: 3 * HOUR_MS });
    queue.isWaiting = true;
    await run.advance(HOUR_MS);
    scripted.end("a", endDone());
    queue.isWaiting = false;
    await run.advance(HOUR_MS);
    expect(listOutputs()).toEqual([]);
    endTold("All is well.");
    await run.advance(5_000);
    expect(listOutputs()).toEqual(['{"text":"All is well."}']);
    await run.close();
  });

  it("has it also where the host says nothing when the time of any other delivery is over", async () => {
    const { run, queue, endTold, listOutputs } = await runTold({ timeoutMs: 3 * HOUR_MS });
    queue.isSilent = true;
    await run.advance(HOUR_MS);
    expect(listOutputs()).toEqual([]);
    queue.isSilent = false;
    endTold("All is well.");
    await run.advance(5_000);
    expect(listOutputs()).toEqual(['{"text":"All is well."}']);
    await run.close();
  });

  it("is waited for over a crash, also when the time of any other delivery is over", async () => {
    const { run, endTold, listOutputs, listEnds } = await runTold({ timeoutMs: 2 * HOUR_MS });
    await run.advance(HOUR_MS);
    await run.restart();
    await run.advance(1_000);
    expect([...listOutputs(), ...listEnds()]).toEqual([]);
    endTold("All is well.");
    await run.advance(5_000);
    expect(listOutputs()).toEqual(['{"text":"All is well."}']);
    expect(listEnds()).toContain("plan-2 success delivered");
    await run.close();
  });
});

describe("the turn in which an agent is told, after a crash of the host", () => {
  it("is waited for as long as the host has it at work, though its owner counts as told", async () => {
    const { run, queue, endTold, listOutputs, listEnds } = await runTold();
    queue.isEarlier = true;
    await run.restart();
    await run.advance(10_000);
    expect(listEnds()).toEqual(["plan-2 success delivered"]);
    expect(listOutputs()).toEqual([]);
    endTold("All is well.");
    await run.advance(5_000);
    expect(listOutputs()).toEqual(['{"text":"All is well."}']);
    await run.close();
  });

  it("is that of the run which told it, where the crash took the first one", async () => {
    const { run, queue, endTold, listOutputs } = await runTold();
    queue.isEarlier = true;
    queue.isSecond = true;
    await run.restart();
    await run.advance(10_000);
    endTold("All is well.");
    await run.advance(5_000);
    expect(listOutputs()).toEqual(['{"text":"All is well."}']);
    await run.close();
  });

  it("is stopped when its attempt runs out of time", async () => {
    const { run, queue, scripted } = await runTold({ timeoutMs: 60_000 });
    queue.isEarlier = true;
    await run.restart();
    await run.advance(60_000);
    expect(scripted.cancelled).toContain(TOLD_KEY);
    expect(await run.fates()).toMatchObject({ a: "timed_out" });
    await run.close();
  });
});

describe("the turn in which an agent was told, at the deadline of its attempt", () => {
  it("is stopped though the host is slow to say how it goes, and takes its time to stop it", async () => {
    const { run, world, queue, scripted, reach } = await runTold({ timeoutMs: 60_000 });
    queue.isEarlier = true;
    await run.restart();
    const { deadlineAtMs } = run.ordersOf("a")[0]!;
    let isSlow = true;
    reach.isMute = (key) => {
      if (key !== TOLD_KEY || world.clock.now() < deadlineAtMs || !isSlow) return false;
      isSlow = false;
      return true;
    };
    const cancel = scripted.cancel.bind(scripted);
    scripted.cancel = async (attempt) => {
      await waitForDuration(world.clock, 4_000, new AbortController().signal);
      return cancel(attempt);
    };
    await run.advance(deadlineAtMs - world.clock.now() + 7_000);
    expect(isSlow).toBe(false);
    expect(run.appends.find((types) => types.includes("step.timed_out"))).toContain("step.child_stopped");
    expect(scripted.cancelled).toContain(TOLD_KEY);
    await run.close();
  });
});

describe("an attempt whose agent does not finish with the result of its plan", () => {
  const listErrors = (run: Awaited<ReturnType<typeof runNested>>["run"]): unknown[] =>
    run.events("step.failed").flatMap(({ nodeId, payload }) => (nodeId === "a" ? [payload.error] : []));

  it("fails as the turn failed in which it was told, and is tried again", async () => {
    const scripts = { a: ["work", "work"] } as const;
    const { run, scripted, listOutputs } = await runTold(createRetries(1), scripts);
    scripted.end("@delivery", endFailing("the model failed"));
    await run.advance(10_000);
    expect(listOutputs()).toEqual([]);
    expect(listErrors(run)).toEqual([{ code: "child_failed", message: "the model failed" }]);
    expect(run.events("step.failed")[0]?.payload.usage).toMatchObject({ spawns: 1 });
    expect(run.ordersOf("a")).toHaveLength(2);
    await run.close();
  });

  it("fails where the host refuses to tell it, and is tried again", async () => {
    const scripts = { a: ["work", "work"], "@delivery": [{ refuse: "busy" }] } as const;
    const { run, scripted, listOutputs, listEnds } = await runNested(createRetries(1), scripts);
    scripted.end("a", endDone());
    await run.advance(300_000);
    expect(listEnds()).toEqual(["plan-2 success not_delivered"]);
    expect(listOutputs()).toEqual([]);
    const message = "the agent could not be told how its plan ended";
    expect(listErrors(run)).toEqual([{ code: "child_failed", message }]);
    expect(run.ordersOf("a")).toHaveLength(2);
    await run.close();
  });
});

describe("the result of a step whose agent was told how its plan went", () => {
  it("is what the agent says last, and not its first answer", async () => {
    const { run, endTold, listOutputs } = await runTold();
    endTold("All is well.", "I ask a colleague.");
    await run.advance(5_000);
    expect(listOutputs()).toEqual(['{"text":"All is well."}']);
    await run.close();
  });

  it("is what it says after people have answered it", async () => {
    const ANSWERED = "answer:escalation-1";
    const { run, session, scripted, words, endTold, listOutputs } = await runTold(
      {},
      { [ANSWERED]: ["work"] },
    );
    const outcome = await run.coordinator.ask({
      askedBy: session,
      agentId: "main",
      kind: "approval",
      question: "May I delete it?",
    });
    if (outcome.kind !== "asked") throw new Error("refused");
    endTold("I wait for a person.");
    await run.advance(5_000);
    const by = { kind: "person", id: "ada" } as const;
    await run.coordinator.answer({ questionId: outcome.questionId, answer: "approve", by, through: "chat" });
    await run.advance(5_000);
    expect(listOutputs()).toEqual([]);
    words.newest = "It is deleted.";
    scripted.end(ANSWERED, endDone());
    await run.advance(5_000);
    expect(listOutputs()).toEqual(['{"text":"It is deleted."}']);
    await run.close();
  });
});

describe("a plan that ends with the attempt whose agent submitted it", () => {
  it("does not wait for the turn with the answer to an agent of its own that is out of reach", async () => {
    const ANSWERED = "answer:escalation-1";
    const { run, scripted, reach, listEnds } = await runNested({}, { n: ["work"], [ANSWERED]: ["work"] });
    const outcome = await run.coordinator.ask({
      askedBy: run.ordersOf("n")[0]!.childSessionKey,
      agentId: "main",
      kind: "approval",
      question: "May I delete it?",
    });
    if (outcome.kind !== "asked") throw new Error("refused");
    scripted.end("n", endDone());
    const by = { kind: "person", id: "ada" } as const;
    await run.coordinator.answer({ questionId: outcome.questionId, answer: "approve", by, through: "chat" });
    await run.advance(1_000);
    expect(run.ordersOf(ANSWERED)).toHaveLength(1);
    reach.isLost = (key) => key === `plan-2:${ANSWERED}:told`;
    await run.coordinator.cancel(CANCEL_A);
    await run.advance(5_000);
    expect(listEnds()).toContain("plan-2 cancelled not_delivered");
    expect(await run.fates()).toMatchObject({ a: "cancelled" });
    await run.close();
  });
});

describe("an agent that is told how its plan went", () => {
  const THREE_TOLD = { "@delivery": ["work", "work", endDone()], m: ["work"] } as const;

  it("may submit the next plan in that turn, and its step waits for that one, too", async () => {
    const { run, submit, scripted, endTold, listOutputs } = await runTold({}, THREE_TOLD);
    expect(await submit("plan-3", [step("m")])).toMatchObject({ kind: "accepted" });
    endTold("I have planned more.");
    await run.advance(5_000);
    expect(listOutputs()).toEqual([]);
    scripted.end("m", endDone());
    await run.advance(5_000);
    endTold("All is well.");
    await run.advance(5_000);
    expect(listOutputs()).toEqual(['{"text":"All is well."}']);
    const [completed] = run.events("step.completed").filter(({ nodeId }) => nodeId === "a");
    expect(completed?.payload.usage).toMatchObject({ spawns: 2 });
    await run.close();
  });

  it("is stopped in that turn when its attempt is over while the next plan runs", async () => {
    const { run, submit, scripted } = await runTold({ timeoutMs: 60_000 }, THREE_TOLD);
    expect(await submit("plan-3", [step("m")])).toMatchObject({ kind: "accepted" });
    await run.advance(60_000);
    expect(scripted.cancelled).toEqual(expect.arrayContaining([TOLD_KEY, "plan-3:m:1"]));
    await run.close();
  });

  it("may submit none before it is told", async () => {
    const { submit } = await runNested({}, { n: ["work"] });
    expect(await submit("plan-3")).toMatchObject({ kind: "refused", problems: [{ code: "NESTED_OPEN" }] });
  });
});
