/**
 * Owns: the turns in which the agent of a planned step is told of those that work for it: what they ask, and what became of their
 * results. Such a turn is stopped with the attempt, and does not begin after it.
 */
import { describe, expect, it } from "vitest";
import type { SessionKey, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { endDone } from "../support/scripted-runner.ts";
import { spawnChild } from "./gates-world.ts";
import { AGENT, createRetries, plan, PLAN_ID, step, submitTo, type Fields } from "./planned-world.ts";
import { logOver } from "./run-log-scene.ts";
import { createToldWorld } from "./told-turns.ts";

const QUESTION = "question:escalation-1";
/** The id of the step that the agent of step `a` spawns. */
const SPAWNED = "@step-2";
const CANCEL_A = { coordinationId: PLAN_ID, stepId: "a" as StepId, by: "operator" } as const;
const LOW = 'A mumble.\n{"confidence":0.2}';

/** A plan whose step `a` works until the test ends it, as do all turns in which its agent is told something. */
async function runAtWork(fields: Fields = {}) {
  const scene = createToldWorld({
    a: ["work"],
    n: ["work"],
    [QUESTION]: ["work"],
    [SPAWNED]: ["work"],
  });
  const run = await submitTo(scene.world, plan([step("a", fields)]));
  const session = run.ordersOf("a")[0]!.childSessionKey;
  const askParent = (askedBy: SessionKey) =>
    run.coordinator.ask({
      askedBy,
      to: "parent",
      agentId: "main",
      kind: "clarification",
      question: "Which of the two mills?",
    });
  const spawn = () => spawnChild(scene.world, run.coordinator, "t", session);
  return { ...scene, run, session, askParent, spawn };
}

type Scene = Awaited<ReturnType<typeof runAtWork>>;

async function submitInner({ run, session }: Scene): Promise<void> {
  const inner = plan([step("n")], { coordinationId: "plan-2", ownerSession: session });
  await run.coordinator.submitPlan({ plan: inner, submittedBy: session, ownerAgent: AGENT });
  await run.advance(1_000);
}

async function askInPlanInside(scene: Scene): Promise<string> {
  await submitInner(scene);
  await scene.askParent(scene.run.ordersOf("n")[0]!.childSessionKey);
  return `plan-2:${QUESTION}:told`;
}

async function askInSpawn({ askParent, spawn }: Scene): Promise<string> {
  await askParent((await spawn()).session);
  return `${PLAN_ID}:${QUESTION}:told`;
}

/** Has people asked about a result, which its parent does not hear before they have answered. */
async function holdResult({ run, spawn }: Scene): Promise<void> {
  const child = await spawn();
  await child.says(LOW);
  await child.ends();
  await run.advance(1_000);
}

const approve = ({ run }: Scene) =>
  run.coordinator.answer({
    questionId: `${PLAN_ID}:escalation-1`,
    answer: "approve",
    by: { kind: "person", id: "ada" },
    through: "chat",
  });

async function releaseResult(scene: Scene): Promise<string> {
  await holdResult(scene);
  await approve(scene);
  return `${PLAN_ID}:result:${SPAWNED}:1:told`;
}

describe.each([
  ["what an agent of its plan asks it", askInPlanInside],
  ["what an agent that it spawned asks it", askInSpawn],
  ["what became of a result that was kept from it", releaseResult],
])("a turn in which an agent is told %s", (_, tell) => {
  it.each(["is cancelled", "runs out of time"])("is stopped where its attempt %s", async (end) => {
    const scene = await runAtWork({ timeoutMs: 60_000 });
    const { run, scripted } = scene;
    const key = await tell(scene);
    await run.advance(5_000);
    expect([...scripted.runs.keys()]).toContain(key);
    expect(run.events("session.told")).toMatchObject([{ payload: { delivery: "delivered" } }]);
    expect(scripted.cancelled).not.toContain(key);
    if (end === "is cancelled") await run.coordinator.cancel(CANCEL_A);
    await run.advance(60_000);
    expect(scripted.cancelled).toContain(key);
    await run.close();
  });
});

it("a turn that a process began before it was killed is stopped with its attempt by the next process", async () => {
  const scene = await runAtWork();
  const { run, scripted, queue } = scene;
  queue.isWaiting = true;
  const key = await askInSpawn(scene);
  await run.advance(5_000);
  expect([...scripted.runs.keys()]).toContain(key);
  await logOver(run.world).submit(PLAN_ID, [
    { type: "cancelCoordination", by: "operator", stepId: "a" as StepId },
  ]);
  await run.restart();
  await run.advance(60_000);
  expect(run.events("session.told")).toMatchObject([{ payload: { delivery: "unknown" } }]);
  expect(scripted.cancelled).toContain(key);
  await run.close();
});

describe("an agent whose attempt is over", () => {
  it("is not woken to hear what became of a result that was kept from it", async () => {
    const scene = await runAtWork({ timeoutMs: 10_000, ...createRetries(1) });
    const { run } = scene;
    await holdResult(scene);
    await run.advance(15_000);
    expect(run.ordersOf("a")).toHaveLength(2);
    expect(await approve(scene)).toMatchObject({ kind: "accepted" });
    await run.advance(5_000);
    expect(run.ordersOf(SPAWNED)).toEqual([]);
    expect(run.events("session.told")).toMatchObject([{ payload: { delivery: "not_delivered" } }]);
    await run.close();
  });

  it("is not woken by a question of its plan's agent, which is still being stopped", async () => {
    const scene = await runAtWork();
    const { run, reach } = scene;
    await submitInner(scene);
    reach.isSilent = (key) => key === "plan-2:n:1";
    await run.coordinator.cancel(CANCEL_A);
    await run.advance(2_000);
    await scene.askParent(run.ordersOf("n")[0]!.childSessionKey);
    await run.advance(60_000);
    expect(run.ordersOf(QUESTION)).toEqual([]);
    await run.close();
  });
});

it("an agent whose attempt completed is told what became of a result also when the time of the attempt is over", async () => {
  const scene = await runAtWork({ timeoutMs: 10_000 });
  const { run, scripted } = scene;
  await holdResult(scene);
  scripted.end("a", endDone());
  await run.advance(15_000);
  expect(await run.fates()).toMatchObject({ a: "completed" });
  expect(await approve(scene)).toMatchObject({ kind: "accepted" });
  await run.advance(1_000);
  expect(run.ordersOf(SPAWNED)).toHaveLength(1);
  await run.close();
});

describe("an agent that is stopped with its plan before it was told what became of a result", () => {
  const CANCEL_PLAN = { coordinationId: PLAN_ID, by: "operator" } as const;

  it("is not called out of reach", async () => {
    const scene = await runAtWork();
    const { run } = scene;
    await holdResult(scene);
    await run.coordinator.cancel(CANCEL_PLAN);
    await run.advance(5_000);
    expect(run.events("session.told")).toMatchObject([{ payload: { delivery: "not_delivered" } }]);
    const failed = run.events("step.failed").filter(({ nodeId }) => nodeId === "a");
    const message = "cancelled before it was done";
    expect(failed.map(({ payload }) => payload.error)).toEqual([{ code: "child_cancelled", message }]);
    await run.close();
  });

  it("has completed where it was done before it could be stopped", async () => {
    const scene = await runAtWork();
    const { run, reach, scripted } = scene;
    await holdResult(scene);
    reach.isLost = () => {
      scripted.end("a", endDone());
      return false;
    };
    await run.coordinator.cancel(CANCEL_PLAN);
    await run.advance(5_000);
    expect(await run.fates()).toMatchObject({ a: "completed" });
    await run.close();
  });
});

it("an attempt times out six seconds after its deadline at the latest, also where the host answers nothing", async () => {
  const scene = await runAtWork({ timeoutMs: 60_000 });
  const { run, reach } = scene;
  await askInPlanInside(scene);
  await run.advance(55_000);
  reach.isMute = () => true;
  reach.isSilent = () => true;
  const [order] = run.ordersOf("a");
  await run.advance(order!.deadlineAtMs + 6_000 - scene.world.clock.now());
  expect(run.events("step.timed_out")).toMatchObject([{ payload: { stepId: "a" } }]);
  reach.isMute = () => false;
  reach.isSilent = () => false;
  await run.advance(60_000);
  await run.close();
});
