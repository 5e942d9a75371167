import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { chooseNextAttempt } from "../../src/agents/coordination/dispatch/next-attempt.ts";
import { computeBackoffMs } from "../../src/agents/coordination/plan/backoff.ts";
import type { Step } from "../../src/agents/coordination/ledger/state.ts";
import {
  admit,
  BACKOFF_MS,
  DELIVERY,
  dispatch,
  failStep,
  finish,
  openPlan,
  planStep,
  planScene,
  retry,
  runOut,
  SETTLE_PLAN,
  HITL,
  type PlanSetup,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";
import { timeAt } from "./scene.ts";

/** The attempt of the only step fails four seconds after the start. */
const FAILED_AT_MS = 4_000;

const openAttempt = (fields: StepFields = {}, opened: Partial<PlanSetup> = {}): PlanScene =>
  planScene(openPlan({ steps: 1, ...opened }), admit(planStep("a", fields)), dispatch("a"));
const computeDueTime = (budget: number): EpochMs =>
  timeAt(FAILED_AT_MS + computeBackoffMs({ budget, backoffMs: BACKOFF_MS }, 1, "seed:a"));
const listAsked = ({ log }: PlanScene): number =>
  log.filter(({ type }) => type === "coordination.escalated").length;
/** Returns what follows where the command ends the newest attempt of the step. */
const choose = (scene: PlanScene, ending: Command, step: Step = scene.step("a")) =>
  chooseNextAttempt(scene.open, step, {
    command: ending as Command & { type: "failStep" | "timeOutStep" },
    now: timeAt(FAILED_AT_MS),
  });

describe("the next attempt and the deadline of the plan", () => {
  const openUntil = (deadlineAtMs: EpochMs, policy: Partial<PlanSetup> = {}): PlanScene =>
    openAttempt({ retryBudget: 1 }, { plan: { deadlineAtMs }, ...policy }).then(failStep("a"));

  it("has its place before the deadline, and none at it", () => {
    const dueAtMs = computeDueTime(1);
    const before = openUntil((dueAtMs + 1) as EpochMs);
    expect(before.step("a").phase).toMatchObject({ status: "backoff", retryAtMs: dueAtMs });
    expect(openUntil(dueAtMs).status("a")).toBe("failed");
  });

  it("is asked about before the deadline, and not after it", () => {
    const before = openUntil(computeDueTime(1), HITL);
    expect([before.status("a"), listAsked(before)]).toEqual(["blocked", 1]);
    const after = openUntil(timeAt(FAILED_AT_MS), HITL);
    expect([after.status("a"), listAsked(after)]).toEqual(["failed", 0]);
  });
});

describe("an attempt that people grant", () => {
  it("is none of the retries that the step has by itself", () => {
    const scene = openAttempt({ retryBudget: 1 }, HITL).then(failStep("a", 1, "input_unavailable"));
    expect(scene.status("a")).toBe("blocked");
    scene.then(retry("a"), dispatch("a", 2), failStep("a", 2));
    expect(scene.status("a")).toBe("backoff");
    scene.passes(60_000);
    scene.then(dispatch("a", 3), failStep("a", 3));
    expect(scene.status("a")).toBe("blocked");
  });
});

describe("the budget of a step", () => {
  const openLimited = (budget: StepFields["budget"]): PlanScene =>
    openAttempt({ retryBudget: 5, budget }, HITL);

  it("of wall time leaves room for an attempt that begins before its end, and none at it", () => {
    const wallMs = computeDueTime(5) - timeAt(FAILED_AT_MS - 1_000);
    expect(
      openLimited({ wallMs: wallMs + 1 })
        .then(failStep("a"))
        .status("a"),
    ).toBe("backoff");
    expect(openLimited({ wallMs }).then(failStep("a")).status("a")).toBe("blocked");
  });

  it("has what all attempts used", () => {
    const scene = openLimited({ tokens: 150 }).then(failStep("a", 1, "child_failed", { tokens: 100 }));
    expect(scene.status("a")).toBe("backoff");
    scene.passes(60_000);
    scene.then(dispatch("a", 2), failStep("a", 2, "child_failed", { tokens: 49 }));
    expect(scene.status("a")).toBe("backoff");
    scene.passes(60_000);
    scene.then(dispatch("a", 3), failStep("a", 3, "child_failed", { tokens: 1 }));
    expect(scene.last("coordination.escalated").payload).toMatchObject({ cause: "budget" });
  });

  it("has a spawn for each attempt of a step of which no spending is known", () => {
    const chosen = [1, 2].map((spawns) => {
      const scene = openLimited({ spawns });
      const { spent: _, ...step } = scene.step("a");
      return Object.keys(choose(scene, failStep("a"), step).after);
    });
    expect(chosen).toEqual([["escalated"], ["retryAtMs"]]);
  });
});

describe("nothing follows an attempt", () => {
  it.each([
    ["that was the last one, where nobody is to be asked", failStep("a"), {}],
    ["that ran out of time, where nobody is to be asked", runOut("a"), {}],
    ["that was cancelled", failStep("a", 1, "child_cancelled"), {}],
    ["of a step that somebody cancelled", failStep("a"), { cancelledBy: "operator" }],
  ] as const)("%s", (_, command, step) => {
    const scene = openAttempt();
    expect(choose(scene, command, { ...scene.step("a"), ...step })).toStrictEqual({ after: {} });
  });

  it("at telling the owner, who may have been told", () => {
    const scene = openAttempt().then(finish("a"), SETTLE_PLAN, dispatch(DELIVERY));
    const step = scene.step(DELIVERY);
    expect(choose(scene, failStep(DELIVERY, 1, "child_cancelled"), step)).toStrictEqual({ after: {} });
    const unsent = choose(scene, failStep(DELIVERY, 1, "spawn_refused"), step);
    expect(unsent.after.retryAtMs).toBeGreaterThan(timeAt(FAILED_AT_MS));
  });
});
