/** Plans inside of plans, and what comes from outside and cannot be: none of it loses or forges a result. */
import { describe, expect, it } from "vitest";
import type { SessionKey, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import { endDone, endFailing } from "../support/scripted-runner.ts";
import {
  AGENT,
  plan,
  PLAN_ID,
  createRetries,
  runPlan,
  step,
  type Fields,
  type PlanRun,
} from "./planned-world.ts";

/** The child of the newest attempt of `a` submits a plan with the step `n`, which works on. */
async function submitNested(run: PlanRun): Promise<SessionKey> {
  const session = run.ordersOf("a").at(-1)!.childSessionKey;
  const planFields = plan([step("n")], { coordinationId: "plan-2", ownerSession: session });
  await run.coordinator.submitPlan({ plan: planFields, submittedBy: session, ownerAgent: AGENT });
  await run.advance(100);
  return session;
}
const listNested = (run: PlanRun): string[] =>
  (run.world.ledger.events()[1] ?? []).map(({ type, nodeId }) => (nodeId ? `${type} ${nodeId}` : type));
const outputOf = (run: PlanRun, stepId: string): string | undefined => {
  const completed = run.events("step.completed").find(({ nodeId }) => nodeId === stepId);
  return run.world.ledger.contents.get(completed?.payload.output?.sha256 ?? "")?.text;
};

describe("a plan that a child submitted", () => {
  const createPlan = (fields: Fields = {}): Fields => plan([step("a", fields)]);
  const working = { a: ["work", "work"], n: ["work"] } as const;

  it("is cancelled with the step of its child", async () => {
    const run = await runPlan(working, createPlan());
    await submitNested(run);
    await run.coordinator.cancel({ coordinationId: PLAN_ID, by: "operator" });
    await run.advance(5_000);
    expect(run.world.plans.cancelled).toContain("plan-2:n:1");
    expect(listNested(run)).toContain("coordination.terminal");
  });

  it("is cancelled when the attempt of its child runs out of time", async () => {
    const run = await runPlan(working, createPlan({ timeoutMs: 5_000 }));
    await submitNested(run);
    await run.advance(10_000);
    expect(run.world.plans.cancelled).toContain("plan-2:n:1");
  });

  it("D3: says nothing about the next attempt at the step", async () => {
    const run = await runPlan(
      { ...working, "@delivery": [endDone({ text: "late" })] },
      createPlan(createRetries(1)),
    );
    await submitNested(run);
    run.world.plans.end("a", endFailing());
    await run.advance(5_000);
    expect(run.ordersOf("a")).toHaveLength(2);
    run.world.plans.end("a", endDone({ second: true }));
    await run.advance(5_000);
    expect((await run.fates())["a"]).toBe("completed");
    run.world.plans.end("n", endDone());
    await run.advance(5_000);
    expect(outputOf(run, "a")).toBe('{"second":true}');
  });
});

describe("a runner", () => {
  it.each([{ tokens: 1.5 }, { tokens: -1 }, { costMicroUsd: Number.NaN }])(
    "that tells a use that cannot be, %j, is heard all the same",
    async (usage) => {
      const run = await runPlan({ a: [{ outcome: "completed", reply: "x", usage }] }, plan([step("a")]));
      await run.advance(1_000);
      expect((await run.fates())["a"]).toBe("completed");
    },
  );
});

describe("H3: the envelope of a spawn that names a step of a plan", () => {
  it("is not the ledger's, and cannot fail the step", async () => {
    const run = await runPlan({ a: ["hang"] }, plan([step("a")]));
    const claim = { coordinationId: PLAN_ID, stepId: "a" as StepId, sourceSession: OWNER };
    await run.coordinator.refuseSpawn(claim, "no");
    expect(await run.fates()).toEqual({ a: "dispatched" });
  });
});

describe("the plan of an agent", () => {
  it("is refused where it names agents that the submitter may not use, with the place of each", async () => {
    const run = await runPlan({}, plan([step("a")]));
    const submitted = await run.coordinator.submitPlan({
      plan: plan([step("x"), step("y", { agent: "admin" })], { coordinationId: "plan-2" }),
      ownerAgent: AGENT,
      mayRun: (agent) => agent === AGENT,
    });
    expect(submitted).toMatchObject({
      kind: "refused",
      problems: [{ path: "steps[1].agent", code: "AGENT_NOT_ALLOWED" }],
    });
  });
});

describe("a child that submits plans", () => {
  it("has one running at a time, and may submit that one again", async () => {
    const run = await runPlan({ a: ["work"], n: ["work"] }, plan([step("a")]));
    const session = await submitNested(run);
    const submit = (coordinationId: string) =>
      run.coordinator.submitPlan({
        plan: plan([step("n")], { coordinationId, ownerSession: session }),
        submittedBy: session,
        ownerAgent: AGENT,
      });
    expect(await submit("plan-2")).toMatchObject({ kind: "replay" });
    expect(await submit("plan-3")).toMatchObject({ kind: "refused", problems: [{ code: "NESTED_OPEN" }] });
  });

  it("does not go deeper than five plans", async () => {
    const run = await runPlan(
      { a: ["work"], n: ["work", "work", "work", "work", "work"] },
      plan([step("a")]),
    );
    let session = run.ordersOf("a").at(-1)!.childSessionKey;
    const kinds: string[] = [];
    for (let depth = 2; depth <= 6; depth += 1) {
      const planFields = plan([step("n")], { coordinationId: `plan-${depth}`, ownerSession: session });
      const submitted = await run.coordinator.submitPlan({
        plan: planFields,
        submittedBy: session,
        ownerAgent: AGENT,
      });
      kinds.push(
        submitted.kind === "refused" ? submitted.problems.map(({ code }) => code).join() : submitted.kind,
      );
      await run.advance(100);
      session = run.ordersOf("n").at(-1)?.childSessionKey ?? session;
    }
    expect(kinds).toEqual(["accepted", "accepted", "accepted", "accepted", "NESTED_TOO_DEEP"]);
  });
});

describe("what must not go on for ever", () => {
  it("a start that a host neither takes nor knows of is asked for with pauses", async () => {
    const run = await runPlan({ a: ["silent", "silent"] }, plan([step("a")]));
    run.world.plans.forget("a");
    const before = run.ordersOf("a").length;
    for (let seconds = 0; seconds < 60; seconds += 1) {
      await run.advance(1_000);
      if (run.world.plans.runs.size > 0) run.world.plans.forget("a");
    }
    expect(run.ordersOf("a").length - before).toBeLessThan(60);
  });

  it("a child that reports again and again is refused after sixteen", async () => {
    const run = await runPlan({ a: ["work"] }, plan([step("a")]));
    const session = run.ordersOf("a").at(-1)!.childSessionKey;
    const kinds: string[] = [];
    for (let n = 0; n < 20; n += 1)
      kinds.push((await run.coordinator.report(session, { outcome: "completed", outputs: { n } })).kind);
    expect(kinds.filter((kind) => kind === "recorded")).toHaveLength(16);
    expect(kinds.at(-1)).toBe("refused");
  });
});

describe("the session of an attempt that is over", () => {
  it("can submit no plan, and is not woken by one that it submitted", async () => {
    const run = await runPlan({ a: ["work"], n: ["work"] }, plan([step("a", { timeoutMs: 5_000 })]));
    const session = await submitNested(run);
    await run.advance(20_000);
    const late = await run.coordinator.submitPlan({
      plan: plan([step("n")], { coordinationId: "plan-3", ownerSession: session }),
      submittedBy: session,
      ownerAgent: AGENT,
    });
    expect(late).toMatchObject({ kind: "refused", problems: [{ code: "NESTED_LATE" }] });
    const orders = run.world.plans.orders.filter(({ envelope }) => envelope.intent === "report");
    expect(orders.map(({ childSessionKey }) => childSessionKey)).not.toContain(session);
  });
});
