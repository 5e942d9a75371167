import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { draftAttemptOutcome } from "../../src/agents/coordination/runtime/attempts/attempt-outcome.ts";
import {
  replayCoordination,
  type ReplayedCoordination,
  type ReplayQuery,
} from "../../src/agents/coordination/runtime/replay-coordination.ts";
import { RUN, timeAt } from "./scene.ts";
import {
  admit,
  answer,
  BACKOFF_MS,
  dispatch,
  failStep,
  HITL,
  openPlan,
  planScene,
  planStep,
  startStep,
  type PlanScene,
} from "./planned-scene.ts";

const createPlan = (retryBudget: number): PlanScene =>
  planScene(openPlan({ steps: 1 }), admit(planStep("a", { retryBudget })));

const refuse = (attempt: number, retryAfterMs?: number): Command => ({
  ...failStep("a", attempt, "provider_refused"),
  ...(retryAfterMs !== undefined && { retryAfterMs }),
});

/** Plays attempts that end alike, each begun when it is due, until no further one is planned. */
function playUntilOver(scene: PlanScene, end: (attempt: number) => Command): number {
  for (let attempt = 1; ; attempt += 1) {
    scene.then(dispatch("a", attempt), startStep("a", attempt), end(attempt));
    const { phase } = scene.step("a");
    if (phase.status !== "backoff") return attempt;
    scene.passes(phase.retryAtMs - timeAt(scene.nowMs));
  }
}

describe("an attempt that a provider refused", () => {
  it("is the only one of a step that may be sent once", () => {
    const once = admit(planStep("a", { retryBudget: 0, deliveryMode: "best_effort" }));
    const scene = planScene(openPlan({ steps: 1 }), once);
    expect(playUntilOver(scene, (attempt) => refuse(attempt, 1_000))).toBe(1);
    expect(scene.status("a")).toBe("failed");
  });

  it("uses up what people grant to a step that may be sent once", () => {
    const once = admit(planStep("a", { retryBudget: 0, deliveryMode: "best_effort" }));
    const scene = planScene(openPlan({ steps: 1, ...HITL }), once, dispatch("a"), startStep("a"), refuse(1));
    scene.then(answer(1, "approve"), dispatch("a", 2), startStep("a", 2), failStep("a", 2));
    expect(scene.status("a")).toBe("blocked");
    expect(scene.plans()).toEqual([]);
  });

  it("does not count as a retry, up to a number of them", () => {
    const scene = createPlan(0);
    expect(playUntilOver(scene, (attempt) => refuse(attempt))).toBe(1 + BOUNDS.refusedAttemptsMax);
    expect(scene.status("a")).toBe("failed");
  });

  it("leaves the retries for what goes wrong otherwise", () => {
    const scene = createPlan(1);
    const attempts = playUntilOver(scene, (attempt) =>
      attempt === 1 ? refuse(attempt) : failStep("a", attempt),
    );
    expect(attempts).toBe(3);
  });

  it("is followed by one that waits as long as the provider said, at most ten minutes", () => {
    for (const [saidMs, waitedMs] of [
      [90_000, 90_000],
      [365 * 86_400_000, BOUNDS.retryAfterMsMax],
    ] as const) {
      const scene = createPlan(0).then(dispatch("a"), startStep("a"), refuse(1, saidMs));
      expect(scene.step("a").phase).toMatchObject({ retryAtMs: timeAt(scene.nowMs + waitedMs) });
    }
    const unsaid = createPlan(0).then(dispatch("a"), startStep("a"), refuse(1));
    const { phase } = unsaid.step("a");
    expect(phase.status === "backoff" && phase.retryAtMs - timeAt(unsaid.nowMs)).toBeLessThanOrEqual(
      BACKOFF_MS,
    );
  });

  it("is told from other failures by what the runner saw", async () => {
    const scene = createPlan(0).then(dispatch("a"), startStep("a"));
    const draft = (refusal?: { readonly retryAfterMs?: number }) =>
      draftAttemptOutcome(
        {} as never,
        { state: scene.open, step: scene.step("a") },
        { outcome: "failed", message: "it went wrong", ...(refusal && { refusal }) },
      );
    expect((await draft({ retryAfterMs: 2_000 })).commands).toMatchObject([
      { type: "failStep", error: { code: "provider_refused" }, retryAfterMs: 2_000 },
    ]);
    expect((await draft()).commands).toMatchObject([{ error: { code: "child_failed" } }]);
  });
});

function replayScene({ log }: PlanScene, query?: ReplayQuery): Promise<ReplayedCoordination> {
  const store = {
    read: (_: unknown, { from, limit }: { from: number; limit: number }) =>
      Promise.resolve(log.slice(from, from + limit)),
    get: () => Promise.resolve(undefined),
  };
  return replayCoordination(store, RUN, query);
}

describe("a replay of a plan whose provider said when it takes calls again", () => {
  const failRefused = (scene: PlanScene, saidMs: number): PlanScene =>
    scene.then(dispatch("a"), startStep("a"), refuse(1, saidMs));

  it.each([1, 60_000, 365 * 86_400_000])("is equal where it said %i ms", async (saidMs) => {
    const scene = failRefused(createPlan(0), saidMs);
    expect(scene.step("a").phase.status).toBe("backoff");
    const { difference, decisions } = await replayScene(scene);
    expect({ difference, decisions }).toEqual({ difference: undefined, decisions: 5 });
  });

  it("finds a retry that is later than any provider may ask for, or sooner than the plan says", async () => {
    for (const atMs of [timeAt(3_600_000), timeAt(0)]) {
      const scene = failRefused(createPlan(0), 60_000);
      const log = scene.log.map((event) =>
        event.type === "step.failed" ? { ...event, payload: { ...event.payload, retryAtMs: atMs } } : event,
      );
      expect((await replayScene({ ...scene, log })).difference?.why).toMatch(/^retryAtMs: /);
    }
  });

  it("is equal where the wait reached past the deadline of the plan", async () => {
    for (const policy of [{}, HITL]) {
      const opening = openPlan({ steps: 1, plan: { deadlineAtMs: timeAt(120_000) }, ...policy });
      const scene = failRefused(planScene(opening, admit(planStep("a"))), 300_000);
      expect(scene.step("a").phase.status).not.toBe("backoff");
      expect((await replayScene(scene)).difference).toBeUndefined();
    }
  });

  it("is equal where the wait reached past the time of the step, and not past the deadline", async () => {
    const opening = openPlan({ steps: 1, plan: { deadlineAtMs: timeAt(400_000) }, ...HITL });
    const step = planStep("a", { budget: { wallMs: 30_000 } });
    const scene = failRefused(planScene(opening, admit(step)), 60_000);
    expect(scene.log.find(({ type }) => type === "coordination.escalated")?.payload).toMatchObject({
      cause: "budget",
    });
    expect((await replayScene(scene)).difference).toBeUndefined();
  });

  it("under a policy still waits as the provider said", async () => {
    const scene = failRefused(createPlan(0), 60_000);
    const { whatIf } = await replayScene(scene, { policy: { retry: { backoffMs: 10 } } });
    expect(whatIf).toMatchObject({ points: [], leftOut: 0, uncertain: [] });
  });
});
