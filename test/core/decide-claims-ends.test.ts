import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { Command, ResourceContest } from "../../src/agents/coordination/contracts/commands.ts";
import { OWNER_STEP_ID, type StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { decodeEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import type { HeldClaim, OpenCoordination } from "../../src/agents/coordination/ledger/state.ts";
import {
  createAsk,
  openAtWork,
  change,
  nameConflict,
  createContest,
  createContestant,
  createHolder,
  LEASE_MS,
  NOTES,
  openOf,
  payloadsOf,
  release,
  REPORT,
  request,
  ruleByRecord,
  describeDecision,
  tokensOf,
} from "./claims-scene.ts";
import {
  admit,
  DELIVERY,
  dispatch,
  finish,
  failStep,
  openPlan,
  planScene,
  planStep,
  SETTLE_PLAN,
} from "./planned-scene.ts";
import { timeAt, complete, fail, SETTLE, stepId, timeOut, type Scene } from "./scene.ts";

const HELD_BY_2 = request(2, createAsk(NOTES, 3));
const requestWanted = (rest: Partial<ResourceContest> = {}): Command =>
  request(
    1,
    createAsk(NOTES, 4, { contest: createContest([createContestant(1, 4), createHolder(2, 3)], rest) }),
  );

describe("claims that are released", () => {
  const openScene = (): Scene =>
    openAtWork(2, request(1, createAsk(NOTES, 1), createAsk(REPORT, 2)), request(2, createAsk("queue:q", 3)));

  it.each<readonly [string, Parameters<typeof release>[0], readonly number[]]>([
    ["by their tokens", { tokens: [2] }, [1, 3]],
    ["by their tokens, known or not", { tokens: [2, 77] }, [1, 3]],
    ["by their tokens, one named twice", { tokens: [2, 2] }, [1, 3]],
    ["of one step", { stepId: stepId(1) }, [3]],
    ["of one step, as far as they lie in a folder", { stepId: stepId(1), within: "file:/repo" }, [3]],
    ["of one step on one file", { stepId: stepId(1), within: REPORT }, [1, 3]],
    ["of one step where it has none", { stepId: stepId(1), within: "queue:q" }, [1, 2, 3]],
    ["of all", {}, []],
  ])("%s end", (_, rest, left) => {
    const scene = openScene();
    scene.when(release(rest));
    expect(tokensOf(scene)).toEqual(left);
  });

  it("of one step in a folder end, and not those of another one there", () => {
    const scene = openAtWork(2, request(1, createAsk(NOTES, 1)), request(2, createAsk(REPORT, 2)));
    scene.when(release({ stepId: stepId(2), within: "file:/repo", because: "preempted" }));
    expect(payloadsOf(scene.log, "claim.released")).toEqual([
      { stepId: "step-2", token: 2, because: "preempted" },
    ]);
  });

  it("say why, and a second time nothing", () => {
    const scene = openScene();
    scene.when(release({ stepId: stepId(2), because: "turn_ended" }));
    expect(payloadsOf(scene.log, "claim.released")).toEqual([
      { stepId: "step-2", token: 3, because: "turn_ended" },
    ]);
    expect(describeDecision(scene.when(release({ stepId: stepId(2) })))).toEqual(["replay"]);
    expect(describeDecision(scene.when(release({ tokens: [3] })))).toEqual(["replay"]);
  });

  it.each([
    ["completes", complete(1)],
    ["fails", fail(1)],
    ["times out", timeOut(1)],
  ] as const)("are those of a step that %s, right behind its outcome", (_, end) => {
    const scene = openScene();
    expect(describeDecision(scene.when(end)).slice(1)).toEqual(["claim.released", "claim.released"]);
    expect(payloadsOf(scene.log, "claim.released").map(({ because }) => because)).toEqual([
      "step_ended",
      "step_ended",
    ]);
    expect(tokensOf(scene)).toEqual([3]);
  });

  it("are the owner's when the coordination ends, before its terminal event", () => {
    const scene = openAtWork(1, request(OWNER_STEP_ID, createAsk(NOTES, 1)), complete(1));
    expect(describeDecision(scene.when(SETTLE))).toEqual(["claim.released", "coordination.terminal"]);
    expect(payloadsOf(scene.log, "claim.released")[0]?.because).toBe("coordination_ended");
  });
});

describe("in a plan, claims", () => {
  const requestAs = (name: string, token: number): Command =>
    request(name as StepId, createAsk(NOTES, token));
  const running = planScene(openPlan({ steps: 1 }), admit(planStep("a", { retryBudget: 1 })), dispatch("a"));

  it("end with each attempt, behind what follows for the step", () => {
    const scene = running.then(requestAs("a", 1));
    expect(scene.says(failStep("a"))).toBe("step.failed claim.released");
    expect(scene.says(requestAs("a", 2))).toBe("STEP_ENDED");
    scene.then(dispatch("a", 2), requestAs("a", 3));
    expect(scene.says(failStep("a", 2))).toBe("step.failed claim.released");
  });

  it("of the owner end with the plan, before its terminal event", () => {
    const scene = planScene(
      openPlan({ steps: 1 }),
      admit(planStep("a")),
      dispatch("a"),
      finish("a"),
      SETTLE_PLAN,
    );
    scene.then(requestAs(OWNER_STEP_ID, 1), dispatch(DELIVERY), requestAs(DELIVERY, 2));
    expect(scene.says(finish(DELIVERY))).toBe("step.completed claim.released");
    expect(scene.says(SETTLE_PLAN)).toBe("claim.released coordination.terminal");
    expect(payloadsOf(scene.log, "claim.released").map(({ because }) => because)).toEqual([
      ...["step_ended", "coordination_ended"],
    ]);
  });
});

describe("a change", () => {
  it("is recorded each time, also to the same version: somebody elsewhere may have changed it in between", () => {
    const scene = openAtWork(2);
    expect(describeDecision(scene.when(change(1, "a")))).toEqual(["resource.changed"]);
    expect(describeDecision(scene.when(change(1, "a")))).toEqual(["resource.changed"]);
    expect(describeDecision(scene.when(change(2, "b")))).toEqual(["resource.changed"]);
  });

  it("is recorded of a step that has ended meanwhile, because it happened", () => {
    expect(describeDecision(openAtWork(1, complete(1)).when(change(1, "a")))).toEqual(["resource.changed"]);
  });

  it("of a step that there is not is refused", () => {
    expect(describeDecision(openAtWork(1).when(change(2, "a")))).toEqual(["UNKNOWN_STEP"]);
  });

  it("that cannot be told is recorded each time", () => {
    const scene = openAtWork(1);
    const unknown: Command = {
      type: "recordUndetermined",
      stepId: stepId(1),
      tool: "exec",
      because: "undeclared",
      action: "denied",
    };
    expect(describeDecision(scene.when(unknown))).toEqual(["write.undetermined"]);
    expect(describeDecision(scene.when(unknown))).toEqual(["write.undetermined"]);
    expect(describeDecision(scene.when({ ...unknown, stepId: stepId(2) }))).toEqual(["UNKNOWN_STEP"]);
    expect(describeDecision(scene.when({ ...unknown, stepId: OWNER_STEP_ID }))).toEqual([
      "write.undetermined",
    ]);
  });
});

describe("bounds", () => {
  const holdMany = (state: OpenCoordination, count: number): OpenCoordination => {
    const [claim] = openOf(openAtWork(1, request(1, createAsk(NOTES, 1)))).claims.values();
    const claims = state.claims.withMutations((all) => {
      for (let token = 1; token <= count; token += 1) all.set(token, { ...(claim as HeldClaim), token });
    });
    return { ...state, claims, claimCounts: state.claimCounts.set(stepId(1), count) };
  };

  it("a step holds so many claims and no more", () => {
    const state = openOf(openAtWork(1));
    const one = request(1, createAsk(REPORT, BOUNDS.claimsPerStepMax + 1));
    const full = decide(holdMany(state, BOUNDS.claimsPerStepMax), one, timeAt(0));
    expect(describeDecision(full)).toEqual(["TOO_MANY_CLAIMS"]);
    const room = decide(holdMany(state, BOUNDS.claimsPerStepMax - 1), one, timeAt(0));
    expect(describeDecision(room)).toEqual(["claim.acquired"]);
  });

  it("a full coordination renews what it holds", () => {
    const full = holdMany(openOf(openAtWork(1)), BOUNDS.claimsPerStepMax);
    const renewed = request(1, createAsk(NOTES, 9, { held: 1, expiresAtMs: timeAt(LEASE_MS + 1) }));
    expect(describeDecision(decide(full, renewed, timeAt(0)))).toEqual(["claim.renewed"]);
  });

  it("a coordination has so many conflicts and no more, and the same refusal of the same claims is told again", () => {
    const scene = openAtWork(2, HELD_BY_2);
    scene.when(requestWanted());
    const state = openOf(scene);
    const [conflict] = state.conflicts;
    if (!conflict) throw new Error("no conflict");
    const withConflicts = (count: number): OpenCoordination => ({
      ...state,
      conflicts: Array.from({ length: count }, (_, index) => ({
        ...conflict,
        conflictId: nameConflict(index + 1),
      })),
    });
    const other = requestWanted({ cause: "stale_base" });
    expect(
      describeDecision(decide(withConflicts(BOUNDS.conflictsPerCoordinationMax), other, timeAt(0))),
    ).toEqual(["TOO_MANY_CONFLICTS"]);
    expect(
      describeDecision(decide(withConflicts(BOUNDS.conflictsPerCoordinationMax - 1), other, timeAt(0))),
    ).toEqual([...["conflict.detected", "conflict.resolved"]]);
    expect(
      describeDecision(decide(withConflicts(BOUNDS.conflictsPerCoordinationMax), requestWanted(), timeAt(0))),
    ).toEqual(["replay"]);
    const uncontested = request(1, createAsk(REPORT, 9));
    const claimed = decide(withConflicts(BOUNDS.conflictsPerCoordinationMax), uncontested, timeAt(0));
    expect(describeDecision(claimed)).toEqual(["claim.acquired"]);
  });

  it("a conflict of as many claims as an event holds can be read and is ruled on again as it was", () => {
    const scene = openAtWork(1);
    const others = Array.from({ length: BOUNDS.claimsMax - 1 }, (_, index) =>
      createHolder(index + 2, index + 1),
    );
    scene.when(requestWanted({ claims: [createContestant(1, 999), ...others] }));
    const read = scene.log.map((event) => decodeEvent(JSON.parse(JSON.stringify(event))));
    const [detected] = payloadsOf(read, "conflict.detected");
    expect(detected && ruleByRecord(detected)).toEqual(payloadsOf(read, "conflict.resolved")[0]);
  });
});
