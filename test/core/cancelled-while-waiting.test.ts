/** Owns: cancelling a step whose agent ended its turn to wait, for a plan of its own or for people: such a step is not done. */
import { describe, expect, it } from "vitest";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { createWorld } from "../support/fake-clock-host.ts";
import { createScriptedRunner, endDone, endFailing } from "../support/scripted-runner.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { createEscalationsWith, createGatesWith } from "./gates-world.ts";
import {
  AGENT,
  plan,
  PLAN_ID,
  scriptOf,
  step,
  submitTo,
  type Fields,
  type PlanRun,
} from "./planned-world.ts";

const WAITING = { outcome: "completed", reply: "Submitted, waiting", usage: { tokens: 2 } } as const;
const GATES = { gates: createGatesWith([]), escalations: createEscalationsWith({}) };

/** Runs a plan whose step `a` waits for its own plan, whose step `n` used 7 tokens and whose step `m` works on. */
async function runNested(planFields: Fields): Promise<PlanRun> {
  const used = { ...endDone(), usage: { tokens: 7 } };
  const runner = createScriptedRunner(scriptOf({ a: ["work"], b: ["work"], n: [used], m: ["work"] }));
  const run = await submitTo(createWorld({}, runner), planFields);
  const session = run.ordersOf("a")[0]!.childSessionKey;
  const nested = plan([step("n"), step("m")], { coordinationId: "plan-2", ownerSession: session });
  await run.coordinator.submitPlan({ plan: nested, submittedBy: session, ownerAgent: AGENT });
  await run.advance(1_000);
  runner.end("a", WAITING);
  await run.advance(5_000);
  expect((await run.fates())["a"]).toBe("running");
  return run;
}

const cancel = (run: PlanRun, stepId?: string) =>
  run.coordinator.cancel({
    coordinationId: PLAN_ID,
    by: "operator",
    ...(stepId !== undefined && { stepId: stepId as StepId }),
  });

const listCancelled = (run: PlanRun): unknown[] =>
  run
    .events("step.failed")
    .filter(({ runId }) => runId === PLAN_ID)
    .map(({ payload: { stepId, cancelled, usage } }) => ({ stepId, cancelled, usage }));

/** Its agent used 2 tokens, and the plan of that 7. */
const CANCELLED = { stepId: "a", cancelled: true, usage: { spawns: 2, tokens: 9, costMicroUsd: 0 } };

describe("a step that waits for the plan of its agent", () => {
  it("is cancelled with its plan, which is no success, and what its agent's plan used counts", async () => {
    const run = await runNested(plan([step("a")]));
    await cancel(run);
    await run.advance(10_000);
    expect(listCancelled(run)).toEqual([CANCELLED]);
    expect(run.events("step.completed").filter(({ nodeId }) => nodeId === "a")).toEqual([]);
    expect((await run.view()).status).toBe("cancelled");
    await run.close();
  });

  it("is cancelled alone, and nothing goes on with the words of its agent", async () => {
    const run = await runNested(plan([step("a"), step("c", { dependsOn: ["a"] })]));
    await cancel(run, "a");
    await run.advance(10_000);
    expect(listCancelled(run)).toEqual([CANCELLED]);
    expect(run.ordersOf("c")).toEqual([]);
    await run.close();
  });

  it("is cancelled where another step fails and the plan stops", async () => {
    const failurePolicy = { retryBudget: 5, timeoutPolicy: "fail_fast", escalationPolicy: "none" };
    const run = await runNested(plan([step("a"), step("b")], { failurePolicy }));
    run.world.plans.end("b", endFailing());
    await run.advance(10_000);
    expect(await run.fates()).toMatchObject({ a: "cancelled", b: "failed" });
    await run.close();
  });

  it("is cancelled also where the process ends between the end of that plan and its own", async () => {
    const run = await runNested(plan([step("a")]));
    let isBroken = true;
    await run.coordinator.stop();
    const breakOutcomes = (store: MemoryStore): MemoryStore => ({
      ...store,
      append: (request) =>
        isBroken &&
        request.events.some(({ type, nodeId }) => nodeId === "a" && /failed|completed/u.test(type))
          ? Promise.reject(new Error("the disk is full"))
          : store.append(request),
    });
    const broken = run.world.start(breakOutcomes);
    await broken.start();
    await broken.cancel({ coordinationId: PLAN_ID, by: "operator" });
    await run.advance(10_000);
    expect(run.world.ledger.events()[1]?.some(({ type }) => type === "coordination.terminal")).toBe(true);
    expect((await run.fates())["a"]).toBe("running");
    await broken.stop();
    isBroken = false;
    const next = run.world.start();
    await next.start();
    await run.advance(10_000);
    expect(listCancelled(run)).toEqual([CANCELLED]);
    await next.stop();
  });
});

describe("a step whose agent had been told the result of its plan", () => {
  it("is done where its agent had answered before it was cancelled, with that answer and all that was used", async () => {
    const runner = createScriptedRunner(
      scriptOf({ a: ["work"], "@delivery": [endDone({ text: "let me see" })] }),
    );
    // The end of the agent's turn is seen by nobody but who asks for it.
    const unfollowed = {
      ...runner,
      follow: (attempt: Parameters<typeof runner.follow>[0], signal: AbortSignal) =>
        attempt.idempotencyKey === "plan-1:a:1"
          ? new Promise<{ kind: "unknown" }>((resolve) => {
              signal.addEventListener("abort", () => resolve({ kind: "unknown" }));
            })
          : runner.follow(attempt, signal),
    };
    const run = await submitTo(createWorld({}, unfollowed), plan([step("a")]));
    const session = run.ordersOf("a")[0]!.childSessionKey;
    const nested = plan([step("n")], { coordinationId: "plan-2", ownerSession: session });
    await run.coordinator.submitPlan({ plan: nested, submittedBy: session, ownerAgent: AGENT });
    await run.advance(5_000);
    // The host has the last words of the session for the turn before, too.
    runner.end("a", { ...WAITING, reply: "all is well" });
    await cancel(run);
    await run.advance(5_000);
    const [completed] = run.events("step.completed").filter(({ nodeId }) => nodeId === "a");
    expect(completed?.payload.usage).toEqual({ spawns: 1, tokens: 2, costMicroUsd: 0 });
    const { sha256 } = completed?.payload.output ?? expect.fail("it has no output");
    expect(run.world.ledger.contents.get(sha256)?.text).toBe('{"text":"all is well"}');
    await run.close();
  });
});

describe("a step that waits for the answer of people", () => {
  it.each(["before", "after"])(
    "is cancelled %s the answer, and not done with the words before it",
    async (when) => {
      // The turn with the answer goes on until the test ends it.
      const runner = createScriptedRunner(scriptOf({ a: ["work"], "answer:escalation-1": ["work"] }));
      const run = await submitTo(createWorld({}, runner, GATES), plan([step("a")]));
      const outcome = await run.coordinator.ask({
        askedBy: run.ordersOf("a")[0]!.childSessionKey,
        agentId: "main",
        kind: "approval",
        question: "May I delete it?",
      });
      if (outcome.kind !== "asked") throw new Error("refused");
      runner.end("a", WAITING);
      await run.advance(5_000);
      if (when === "after")
        await run.coordinator.answer({
          questionId: outcome.questionId,
          answer: "approve",
          by: { kind: "person", id: "ada" },
          through: "chat",
        });
      await run.advance(5_000);
      expect((await run.fates())["a"]).toBe("running");
      await cancel(run);
      await run.advance(5_000);
      expect(listCancelled(run)).toMatchObject([{ stepId: "a", cancelled: true }]);
      expect(run.events("step.completed").filter(({ nodeId }) => nodeId === "a")).toEqual([]);
      await run.coordinator.stop();
    },
  );
});
