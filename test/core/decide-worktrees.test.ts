import { describe, expect, it } from "vitest";
import type {
  AskAboutMerge,
  Command,
  FinishMerge,
} from "../../src/agents/coordination/contracts/commands.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  admit,
  answer,
  ask,
  cancel,
  dispatch,
  failStep,
  finish,
  nameSessionOfAttempt,
  openPlan,
  planScene,
  planStep,
  report,
  startStep,
  type PlanSetup,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";
import { createContentRef, timeAt, describeReason } from "./scene.ts";

const attemptOf = (attempt = 1) => ({ stepId: "a" as StepId, attempt });
const openWorktree = (attempt = 1): Command => ({
  type: "openWorktree",
  ...attemptOf(attempt),
  repository: "/repo",
  base: "a".repeat(40),
  folder: `/trees/a-${attempt}`,
});
const beginMerge = (attempt = 1): Command => ({
  type: "beginMerge",
  ...attemptOf(attempt),
  files: [{ path: "/repo/a.txt", before: "1", after: "2" }],
});
const finishMerge = (...names: readonly string[]): FinishMerge => ({
  type: "finishMerge",
  ...attemptOf(),
  changed: names.map((name) => ({ resource: `file:/repo/${name}`, version: `sha256:${name}` })),
});
const failMerge = (message = "its changes cannot be read"): Command => ({
  type: "failMerge",
  ...attemptOf(),
  message,
});
const removeWorktree = (attempt = 1): Command => ({
  type: "removeWorktree",
  ...attemptOf(attempt),
  outcome: "left",
});
const QUESTION = createContentRef("question");
const askAboutMerge = (...names: readonly string[]): AskAboutMerge => ({
  type: "askAboutMerge",
  ...attemptOf(),
  files: [{ path: "/repo/a.txt", because: "both_changed" }],
  changed: finishMerge(...names).changed,
  question: QUESTION,
});

/** A plan whose step `a` works in a worktree of its own, and whose first attempt was dispatched. */
const openBegun = (fields: StepFields = {}, opened: Partial<PlanSetup> = {}): PlanScene =>
  planScene(
    openPlan({ steps: 2, ...opened }),
    admit(planStep("a", { isolate: "worktree", ...fields }), planStep("b", { after: ["a"] })),
    dispatch("a"),
  );
/** As before, and its child has ended well: the result is held until the work is merged back. */
const openHeld = (fields: StepFields = {}, opened: Partial<PlanSetup> = {}): PlanScene =>
  openBegun(fields, opened).then(
    openWorktree(),
    startStep("a"),
    finish("a", 1, { output: createContentRef("out") }),
  );

describe("a worktree", () => {
  it("is opened for the attempt that begins, with all that is recorded of it, and once", () => {
    const scene = openBegun();
    expect(scene.when(openWorktree())).toMatchObject({ kind: "accepted", stepId: "a" });
    const { type: _, ...opened } = openWorktree();
    expect(scene.last("worktree.opened").payload).toEqual(opened);
    expect(scene.when(openWorktree())).toEqual({ kind: "replay", stepId: "a" });
  });

  it.each<readonly [string, () => PlanScene]>([
    ["is at work", () => openBegun().then(startStep("a"))],
    ["was given up", () => openBegun({ retryBudget: 1 }).then(failStep("a"), dispatch("a", 2))],
    ["has ended", () => openBegun().then(failStep("a"))],
  ])("is not opened for an attempt that %s", (_, open) => {
    expect(describeReason(open().when(openWorktree()))).toBe(
      "STEP_ENDED: attempt 1 of step a does not begin any more",
    );
  });

  it.each([openWorktree(2), beginMerge(2), removeWorktree(2)])(
    "that there is not is refused: %o",
    (command) => {
      expect(describeReason(openHeld().when(command))).toBe(
        "UNKNOWN_STEP: there is no worktree of attempt 2 of step a",
      );
    },
  );

  it("of an attempt that is over is removed, and the log says how that went", () => {
    const scene = openBegun().then(openWorktree(), failStep("a"));
    expect(scene.plans()).toContain("removeWorktree a 1");
    expect(scene.when(removeWorktree())).toMatchObject({ kind: "accepted", stepId: "a" });
    expect(scene.last("worktree.removed").payload).toEqual({ stepId: "a", attempt: 1, outcome: "left" });
    expect(scene.last("worktree.removed").causationId).toBe(scene.last("step.failed").eventId);
    expect(scene.plans()).not.toContain("removeWorktree a 1");
  });
});

describe("W2: a merge", () => {
  it("is recorded with its files before the first one is written, and once", () => {
    const scene = openHeld();
    expect(scene.plans()).toEqual(["mergeWorktree a 1"]);
    expect(scene.when(beginMerge())).toMatchObject({ kind: "accepted", stepId: "a" });
    const { type: _, ...begun } = beginMerge();
    expect(scene.last("worktree.merge_begun").payload).toEqual(begun);
    expect(scene.when(beginMerge())).toEqual({ kind: "replay", stepId: "a" });
    expect(scene.status("a")).toBe("held");
  });

  it("that is done lets the result count, with a change for each file, in one append", () => {
    const scene = openHeld().then(beginMerge());
    expect(scene.when(finishMerge("a.txt", "b.txt"))).toMatchObject({ kind: "accepted", stepId: "a" });
    const changes = scene.log.filter(({ type }) => type === "resource.changed");
    expect(changes.map(({ payload }) => payload)).toEqual(
      ["a.txt", "b.txt"].map((name) => ({
        stepId: "a",
        resource: `file:/repo/${name}`,
        version: `sha256:${name}`,
        tool: "worktree merge",
      })),
    );
    expect(scene.last("worktree.merged").payload).toEqual({ stepId: "a", attempt: 1, files: 2 });
    expect(scene.last("step.completed").payload).toEqual({
      stepId: "a",
      attempt: 1,
      via: "gate",
      output: createContentRef("out"),
    });
    expect(scene.plans()).toEqual(["removeWorktree a 1", "runStep b 1"]);
  });

  it.each([beginMerge(), finishMerge(), askAboutMerge(), failMerge()])(
    "is refused where there is no result to merge: %o",
    (command) => {
      const reason = "STEP_ENDED: attempt 1 of step a is not to be merged back now";
      expect(describeReason(openBegun().then(startStep("a")).when(command))).toBe(reason);
      expect(describeReason(openHeld().then(failMerge()).when(command))).toBe(reason);
    },
  );

  it("is refused before the checks have answered", () => {
    const scene = openHeld({ gate: { threshold: 0, checks: ["lint"] } });
    expect(describeReason(scene.when(beginMerge()))).toContain("STEP_ENDED");
    expect(scene.plans()).toEqual(["verifyResult a 1"]);
  });

  it("of what cannot be read fails the attempt, which is tried again where it may be", () => {
    const scene = openHeld().then(failMerge("no such commit"));
    expect(scene.last("step.failed").payload).toEqual({
      stepId: "a",
      attempt: 1,
      via: "gate",
      error: { code: "worktree_failed", message: "no such commit" },
      cancelled: false,
    });
    expect(scene.status("a")).toBe("failed");
    expect(openHeld({ retryBudget: 1 }).then(failMerge()).status("a")).toBe("backoff");
    expect(openHeld().when(failMerge())).toMatchObject({ kind: "accepted", stepId: "a" });
  });

  it("of what cannot be read is asked about where people are to be asked", () => {
    const scene = openHeld({}, { policy: { escalationPolicy: "hitl" } });
    expect(scene.says(failMerge())).toBe("step.failed coordination.escalated");
    expect(scene.status("a")).toBe("blocked");
  });
});

describe("W3: what cannot be merged", () => {
  it("is asked about in the same append: who did it, with which words, and what may be answered", () => {
    const scene = openHeld();
    expect(scene.when(askAboutMerge())).toMatchObject({ kind: "accepted", stepId: "a" });
    expect(scene.last("worktree.conflicted").payload).toEqual({
      stepId: "a",
      attempt: 1,
      files: askAboutMerge().files,
    });
    expect(scene.last("coordination.escalated").payload).toMatchObject({
      stepId: "a",
      cause: "merge",
      kind: "approval",
      answers: ["approve", "deny"],
      question: QUESTION,
      askedBy: nameSessionOfAttempt("a"),
    });
    expect([scene.status("a"), scene.plans()]).toEqual(["held", []]);
  });

  it("is recorded with what was written before it turned out, also where nobody is asked", () => {
    const changed = "worktree.conflicted resource.changed resource.changed";
    const half = askAboutMerge("b.txt", "c.txt");
    expect(openHeld().then(beginMerge()).says(half)).toBe(`${changed} coordination.escalated`);
    expect(openHeld().then(beginMerge(), cancel("a")).says(half)).toBe(`${changed} step.failed`);
  });

  it("counts once people have looked after it, without another merge", () => {
    const scene = openHeld().then(askAboutMerge());
    expect(scene.says(answer())).toBe("escalation.answered escalation.closed step.completed");
    expect(scene.last("step.completed").payload).toMatchObject({ released: "approved" });
    expect(scene.plans()).toEqual(["removeWorktree a 1", "runStep b 1"]);
  });

  it("is withheld where people say so", () => {
    const scene = openHeld().then(askAboutMerge());
    expect(scene.says(answer(1, "deny"))).toBe("escalation.answered escalation.closed step.failed");
    expect(scene.last("step.failed").payload.error.code).toBe("withheld");
  });

  it.each<readonly [string, Partial<PlanSetup>, readonly Command[]]>([
    ["the step", {}, [cancel("a")]],
    ["the plan", {}, [cancel()]],
  ])("is asked nobody about where somebody cancelled %s while files were written", (_, opened, commands) => {
    const scene = openHeld({}, opened).then(beginMerge(), ...commands);
    expect(scene.says(askAboutMerge())).toBe("worktree.conflicted step.failed");
    expect(scene.last("step.failed").payload).toMatchObject({
      error: { code: "child_cancelled", message: "cancelled while its result was held" },
      cancelled: true,
    });
    expect(scene.status("a")).toBe("cancelled");
  });

  it("is asked nobody about once the plan is past its deadline, and withheld for that reason", () => {
    const scene = openHeld({}, { plan: { deadlineAtMs: timeAt(60_000) } }).then(beginMerge());
    scene.passes(60_000);
    expect(scene.says(askAboutMerge())).toBe("worktree.conflicted step.failed");
    expect(scene.last("step.failed").payload.error).toEqual({
      code: "withheld",
      message: "the plan's deadline passed before people could be asked",
    });
    expect(scene.open.plan.hasExpired).toBe(false);
  });
});

describe("a result in a worktree", () => {
  it("is held though nothing gates it, and does not count before its work is merged", () => {
    const scene = openHeld();
    expect(scene.status("a")).toBe("held");
    expect(scene.says(dispatch("b"))).toBe("NOT_READY");
  });

  it("that the checks pass is merged first", () => {
    const scene = openHeld({ gate: { threshold: 0, checks: ["lint"] } });
    const { phase } = scene.step("a");
    if (phase.status !== "held") throw new Error(`a is ${phase.status}`);
    const passing: Command = {
      type: "recordFinding",
      ...attemptOf(),
      target: phase.target,
      finding: { check: "lint", agentId: "agent:critic", verdict: "pass" },
    };
    expect(scene.says(passing)).toBe("result.verified");
    expect(scene.plans()).toEqual(["mergeWorktree a 1"]);
    scene.then(beginMerge(), finishMerge());
    expect(scene.last("step.completed").payload).toMatchObject({ released: "verified" });
  });

  it("that people approve is merged first, and counts as approved", () => {
    const scene = openHeld({ gate: { threshold: 10_000, requireConfidence: true } });
    expect(scene.says(answer())).toBe("escalation.answered escalation.closed");
    expect(scene.plans()).toEqual(["mergeWorktree a 1"]);
    scene.then(beginMerge(), finishMerge());
    expect(scene.last("step.completed").payload).toMatchObject({ released: "approved" });
  });

  it("that people replace is merged first, and counts with their text", () => {
    const scene = openHeld({ gate: { threshold: 10_000, requireConfidence: true } });
    scene.then(answer(1, "answer"), beginMerge(), finishMerge());
    expect(scene.last("step.completed").payload).toMatchObject({
      released: "replaced",
      output: createContentRef("theirs"),
    });
  });

  it("that people replaced keeps their text where they look after the merge, too", () => {
    const scene = openHeld({ gate: { threshold: 10_000, requireConfidence: true } });
    scene.then(answer(1, "answer"), askAboutMerge(), answer(2));
    expect(scene.last("step.completed").payload).toMatchObject({
      released: "replaced",
      output: createContentRef("theirs"),
    });
  });

  it("does not take the words of people about another result, nor about its agent's question", () => {
    const gate = { threshold: 10_000, requireConfidence: true };
    const scene = planScene(
      openPlan({ steps: 2 }),
      admit(planStep("a", { isolate: "worktree" }), planStep("b", { gate })),
      ...["a", "b"].flatMap((name) => [dispatch(name), startStep(name), finish(name)]),
      ask(nameSessionOfAttempt("a"), { stepId: attemptOf().stepId }),
      answer(1, "answer"),
      answer(2, "answer"),
      beginMerge(),
      finishMerge(),
    );
    expect(scene.last("step.completed").payload).toEqual({ stepId: "a", attempt: 1, via: "gate" });
  });

  it("of a later attempt does not take the words of people about an earlier one", () => {
    const gate = { threshold: 5_000, requireConfidence: true };
    const scene = openHeld({ gate, retryBudget: 2 });
    scene.then(answer(1, "answer"), failMerge());
    scene.passes(60_000);
    const second = { output: createContentRef("second") };
    scene.then(dispatch("a", 2), startStep("a", 2), report("a", 2, { confidence: 9_000, ...second }));
    scene.then(finish("a", 2, second), beginMerge(2), {
      ...finishMerge(),
      attempt: 2,
    });
    expect(scene.last("step.completed").payload).toEqual({
      stepId: "a",
      attempt: 2,
      via: "gate",
      ...second,
    });
  });

  it("is not stopped while its files are written, and ends by itself", () => {
    const scene = openHeld().then(beginMerge(), cancel());
    expect(scene.status("a")).toBe("held");
    expect(scene.plans()).toEqual(["mergeWorktree a 1", "skipSteps b"]);
    scene.then(finishMerge("a.txt"));
    expect(scene.status("a")).toBe("completed");
  });
});
