/** The part of a plan's budget that is set aside for plans inside: what they get, how long it counts, and who waits for it. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { Usage } from "../../src/agents/coordination/contracts/fact-fields.ts";
import type { CoordinationId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  computeUseSinceAllowed,
  listLoans,
  sumLoans,
} from "../../src/agents/coordination/dispatch/plan-rules.ts";
import { findNextDeadline } from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import {
  admit,
  answer,
  beginSteps,
  cancel,
  dispatch,
  failStep,
  finish,
  giveBack,
  HITL,
  lend,
  nameSessionOfAttempt,
  openPlan,
  planScene,
  planStep,
  retry,
  runOut,
  TRIP,
  type PlanSetup,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";
import { spawn, timeAt } from "./scene.ts";

const NAMES = ["a", "b", "c", "d"];
const LATER = { to: "later" as CoordinationId };
const SPENT = { kind: "refused", code: "BUDGET_SPENT" };

/** The steps wait for nothing, and `a` and `b` are at work. */
function createScene(
  budget: NonNullable<NonNullable<PlanSetup["plan"]>["budget"]>,
  opened: Partial<PlanSetup> = {},
  fields: StepFields = {},
): PlanScene {
  const { plan, ...rest } = opened;
  return planScene(
    openPlan({ steps: 4, ...rest, plan: { budget, ...plan } }),
    admit(...NAMES.map((name) => planStep(name, fields))),
    ...beginSteps("a", "b"),
  );
}
const listBudgets = (scene: PlanScene): Usage[] => listLoans(scene.open).map(({ budget }) => budget);
const listBegins = (scene: PlanScene): string[] =>
  scene.plans().filter((effect) => effect.startsWith("runStep"));

describe("what is lent to a plan inside", () => {
  it("is what it asks for, of the kinds that the plan limits", () => {
    const scene = createScene({ spawns: 10, tokens: 100 });
    scene.then(lend("a", 1, { budget: { spawns: 3, tokens: 40, costMicroUsd: 7 } }));
    expect(scene.last("budget.lent").payload).toEqual({
      stepId: "a",
      attempt: 1,
      to: "inside",
      budget: { spawns: 3, tokens: 40 },
    });
    expect(scene.last("budget.lent")).toMatchObject({ nodeId: "a" });
  });

  it("is all that is left where it asks for nothing, or for more", () => {
    const scene = createScene({ spawns: 10, tokens: 100 });
    scene.then(lend("a", 1, { budget: { tokens: 300 } }));
    expect(listBudgets(scene)).toEqual([{ spawns: 8, tokens: 100 }]);
  });

  it("is never more than the loans of other steps leave", () => {
    const scene = createScene({ spawns: 10 }).then(lend("a", 1, { budget: { spawns: 5 } }), lend("b"));
    expect(listBudgets(scene)).toEqual([{ spawns: 5 }, { spawns: 3 }]);
    expect(scene.when(lend("b", 1, { ...LATER, usedBefore: { spawns: 3 } }))).toMatchObject(SPENT);
  });

  it("is refused where nothing is left of a kind", () => {
    const scene = createScene({ spawns: 10, tokens: 100 }).then(lend("a", 1, { budget: { spawns: 1 } }));
    expect(scene.when(lend("b"))).toMatchObject(SPENT);
    expect(createScene({ spawns: 2 }).when(lend("a"))).toMatchObject(SPENT);
  });

  it("is no more than the budget of the step leaves", () => {
    const scene = createScene({ spawns: 10 }, {}, { budget: { spawns: 4 } }).then(lend("a"));
    expect(listBudgets(scene)).toEqual([{ spawns: 3 }]);
  });

  it("counts for the step where the plan around has no such budget", () => {
    const scene = createScene({ tokens: 100 }, {}, { budget: { spawns: 4 } });
    scene.then(lend("a", 1, { budget: { spawns: 2, costMicroUsd: 7 } }));
    expect(listBudgets(scene)).toEqual([{ spawns: 2, tokens: 100 }]);
    // A request of an earlier release names what the plan around counts and no more.
    const earlier = createScene({ tokens: 100 }, {}, { budget: { spawns: 4 } });
    expect(listBudgets(earlier.then(lend("a", 1, { budget: { tokens: 40 } })))).toEqual([{ tokens: 40 }]);
  });

  it("has what earlier plans of the attempt used, and replaces what was lent to them", () => {
    const scene = createScene({ spawns: 10 }).then(lend("a", 1, { budget: { spawns: 5 } }));
    scene.then(lend("a", 1, { ...LATER, usedBefore: { spawns: 2 }, budget: { spawns: 3 } }));
    expect(listLoans(scene.open)).toEqual([{ stepId: "a", attempt: 1, to: "later", budget: { spawns: 5 } }]);
    scene.then(lend("a", 1, { ...LATER, usedBefore: { spawns: 2 } }));
    expect(listBudgets(scene)).toEqual([{ spawns: 8 }]);
  });

  it("counts from when people last let the plan go on", () => {
    const scene = createScene({ spawns: 2 }, HITL).then(TRIP, answer(1, "approve"), lend("a"));
    expect(listBudgets(scene)).toEqual([{ spawns: 2 }]);
  });

  it("is recorded once, and not at all where the plan counts nothing", () => {
    const scene = createScene({ spawns: 10 }).then(lend("a"));
    expect(scene.says(lend("a"))).toBe("replay");
    expect(scene.says(lend("a", 1, LATER))).toBe("budget.lent");
    expect(createScene({ wallMs: 60_000 }).says(lend("a"))).toBe("replay");
  });

  it.each<readonly [string, Command]>([
    ["UNKNOWN_STEP", lend("x")],
    ["STALE_ATTEMPT", lend("a", 2)],
    ["STALE_ATTEMPT", lend("c", 0)],
  ])("is refused with %s for an attempt that is not at work", (code, command) => {
    expect(createScene({ spawns: 10 }).says(command)).toBe(code);
  });
});

describe("what a plan inside did not use", () => {
  it("is given back when it has ended", () => {
    const scene = createScene({ spawns: 10, tokens: 100 }).then(lend("a"));
    scene.then(giveBack("a", 1, { budget: { spawns: 2, tokens: 5, costMicroUsd: 9 } }));
    expect(listBudgets(scene)).toEqual([{ spawns: 2, tokens: 5 }]);
    expect(scene.says(lend("b"))).toBe("budget.lent");
    expect(listBudgets(scene).at(-1)).toEqual({ spawns: 6, tokens: 95 });
  });

  it("is nothing where people let it use more than was lent: then all that it used is set aside", () => {
    const scene = createScene({ spawns: 10 }).then(lend("a", 1, { budget: { spawns: 2 } }));
    expect(scene.says(giveBack("a", 1, { budget: { spawns: 7 } }))).toBe("budget.lent");
    expect(listBudgets(scene)).toEqual([{ spawns: 7 }]);
    expect(listBudgets(scene.then(lend("b"))).at(-1)).toEqual({ spawns: 1 });
  });

  it.each<readonly [string, Command]>([
    ["the attempt has another plan by then", giveBack("a")],
    ["the attempt is over", giveBack("b", 1, LATER)],
    ["the step is none of the plan", giveBack("x")],
    ["it was of another attempt", giveBack("a", 2, LATER)],
  ])("changes nothing where %s", (_, command) => {
    const scene = createScene({ spawns: 10 }).then(lend("a"), lend("a", 1, LATER), finish("b"));
    expect(scene.says(command)).toBe("replay");
  });
});

describe("a loan", () => {
  it.each<readonly [string, Command]>([
    ["completes", finish("a")],
    ["fails", failStep("a")],
    ["is cancelled", failStep("a", 1, "child_cancelled")],
    ["runs out of time", runOut("a")],
  ])("ends when its attempt %s", (_, end) => {
    const scene = createScene({ spawns: 10 }, {}, { retryBudget: 1 }).then(lend("a"), end);
    expect(listLoans(scene.open)).toEqual([]);
  });

  it("ends when the result of its attempt is held, which books what was used", () => {
    const gate = { threshold: 0, checks: ["lint"] };
    const scene = createScene({ spawns: 10 }, {}, { gate }).then(lend("a"), finish("a"));
    expect([scene.status("a"), listLoans(scene.open)]).toEqual(["held", []]);
  });

  it("of an attempt is none of the next one", () => {
    const scene = createScene({ spawns: 10 }, {}, { retryBudget: 1 }).then(lend("a"), failStep("a"));
    scene.passes(60_000);
    scene.then(dispatch("a", 2));
    expect(listLoans(scene.open)).toEqual([]);
  });
});

describe("while plans inside may use the rest of the budget", () => {
  const createLent = (opened: Partial<PlanSetup> = {}, fields: StepFields = {}): PlanScene =>
    createScene({ spawns: 4, wallMs: 600_000 }, opened, fields).then(lend("a"));

  it("no step begins, nobody is asked and the plan is not stopped", () => {
    const scene = createLent(HITL);
    expect(scene.plans()).toEqual([]);
    expect(scene.when(dispatch("c"))).toMatchObject({ kind: "refused", code: "NOT_READY" });
    expect(scene.says(TRIP)).toBe("NOT_READY");
    expect(scene.open.plan.stop).toBeUndefined();
  });

  it("steps begin again with what is left when the attempt has ended", () => {
    const scene = createLent().then(finish("a", 1, { usage: { spawns: 1 } }));
    expect(listBegins(scene)).toEqual(["runStep c 1", "runStep d 1"]);
    expect(scene.says(dispatch("c"))).toBe("step.dispatched");
    expect(scene.when(dispatch("d"))).toMatchObject(SPENT);
  });

  it("steps begin again when the plan inside has given back what it did not use", () => {
    const scene = createLent().then(giveBack("a", 1, { budget: { spawns: 1 } }));
    expect(scene.says(dispatch("c"))).toBe("step.dispatched");
    expect(scene.when(dispatch("d"))).toMatchObject({ code: "NOT_READY" });
  });

  it("the breaker trips only when the attempt has ended and all was used", () => {
    const scene = createLent().then(finish("a", 1, { usage: { spawns: 2 } }));
    expect(scene.plans()).toEqual(["tripBreaker"]);
  });

  it("the time of the plan still counts, and that of retries does not wake anybody", () => {
    const scene = createScene({ spawns: 4, wallMs: 600_000 }, {}, { retryBudget: 1 });
    scene.then(failStep("b"), lend("a"));
    expect(scene.status("b")).toBe("backoff");
    const { allowedFromMs } = scene.open.plan;
    expect(findNextDeadline(scene.state)).toBe(allowedFromMs + 600_000);
    expect(scene.plans(601_000)).toContain("tripBreaker");
  });

  it("the deadline of the plan ends the steps that wait", () => {
    const scene = createLent({ plan: { deadlineAtMs: timeAt(300_000) } });
    expect(scene.plans(300_000)).toContain("skipSteps c,d");
  });

  it("a grant of people begins no step", () => {
    const scene = createScene({ spawns: 4 }, HITL).then(failStep("b"), lend("a"), retry("b"));
    expect(scene.status("b")).toBe("backoff");
    expect(listBegins(scene)).toEqual([]);
    expect(listBegins(scene.then(finish("a")))).toContain("runStep b 2");
  });

  it.each<readonly [string, Usage]>([
    ["spawns", { spawns: 2, tokens: 10 }],
    ["tokens", { spawns: 1, tokens: 100 }],
  ])("of %s, an agent spawns nothing more, but a child that is there is recorded", (_, budget) => {
    const scene = createScene({ spawns: 4, tokens: 100 }).then(lend("a", 1, { budget }));
    const spawned = spawn("x", { parentStepId: "b" as StepId, sourceSession: nameSessionOfAttempt("b") });
    expect(scene.when(spawned)).toMatchObject({
      ...SPENT,
      reason: "plans of steps may use the rest of the plan's budget; finish without another subagent",
    });
    const childSessionKey = nameSessionOfAttempt("spawned");
    const found = { ...spawned, child: { childSessionKey, childRunId: "run" } } as Command;
    expect(scene.when(found)).toMatchObject({ kind: "accepted" });
  });

  it("the plan can be cancelled", () => {
    const scene = createLent().then(cancel());
    expect(scene.plans()).toEqual(["stopStep a 1", "stopStep b 1", "skipSteps c,d"]);
  });
});

const SPAWNS = 7;
const moves = fc.record({
  kind: fc.constantFrom("begin", "begin", "lend", "lend", "give back", "complete", "fail" as const),
  name: fc.constantFrom(...NAMES),
  amount: fc.nat({ max: 4 }),
  to: fc.constantFrom("inside", "later"),
});
type Move = typeof moves extends fc.Arbitrary<infer M> ? M : never;

/** Plans inside use no more than was lent to them. */
function createMove(scene: PlanScene, { kind, name, amount, to }: Move): Command {
  const { attempt } = scene.step(name).phase;
  const loan = listLoans(scene.open).find(({ stepId }) => stepId === name);
  const spawns = Math.min(amount, loan?.budget.spawns ?? 0);
  const about = { to: to as CoordinationId };
  switch (kind) {
    case "begin":
      return dispatch(name, attempt + 1);
    case "lend":
      return lend(name, attempt, { ...about, ...(amount > 0 && { budget: { spawns: amount } }) });
    case "give back":
      return giveBack(name, attempt, { ...about, budget: { spawns } });
    case "complete":
      return finish(name, attempt, { usage: { spawns } });
    default:
      return failStep(name, attempt, "child_failed", { spawns });
  }
}

it("in any history, no more is begun and lent together than the budget allows, and nothing waits for ever", () => {
  const met = new Set<string>();
  fc.assert(
    fc.property(fc.array(moves, { maxLength: 40, size: "max" }), (history) => {
      const steps = NAMES.map((name) => planStep(name, { retryBudget: 2, backoffMs: 1 }));
      const scene = planScene(openPlan({ steps: 4, plan: { budget: { spawns: SPAWNS } } }), admit(...steps));
      for (const move of history) {
        met.add(scene.says(createMove(scene, move)).split(" ")[0] ?? "");
        const lent = sumLoans(scene.open).spawns;
        expect(computeUseSinceAllowed(scene.open.plan).spawns + lent).toBeLessThanOrEqual(SPAWNS);
        const isWaiting = NAMES.some((name) => ["waiting", "backoff"].includes(scene.status(name)));
        if (lent === 0 && isWaiting)
          expect(scene.plans(scene.nowMs + 60_000).join()).toMatch(/runStep|tripBreaker/u);
      }
    }),
  );
  for (const each of [
    "budget.lent",
    "NOT_READY",
    "BUDGET_SPENT",
    "step.dispatched",
    "step.completed",
    "replay",
  ])
    expect(met).toContain(each);
});
