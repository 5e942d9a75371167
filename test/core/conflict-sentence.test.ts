import { describe, expect, it } from "vitest";
import { arbitrate } from "../../src/agents/coordination/arbitration/arbitrate.ts";
import type { Contestant } from "../../src/agents/coordination/contracts/arbitration.ts";
import type { CoordinationId, EpochMs, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { ConflictStrategy } from "../../src/agents/coordination/contracts/plan.ts";
import { createArbitrationInput } from "../../src/agents/coordination/dispatch/conflict-facts.ts";
import type { AssessedTarget } from "../../src/agents/coordination/runtime/arbiter/assessed-target.ts";
import {
  describeGivenUpAttempt,
  describeRecordRefusal,
  describeRefusal,
  createReviewText,
  createUndeterminedReviewText,
  describeUndeterminedRefusal,
  describeCallUnderWay,
} from "../../src/agents/coordination/runtime/arbiter/conflict-sentence.ts";
import type { Participant } from "../../src/agents/coordination/runtime/arbiter/participants.ts";
import { openAtWork } from "./claims-scene.ts";

const { state } = openAtWork(3);
const SINCE = Date.UTC(2026, 0, 2, 10, 0, 0) as EpochMs;
const UNTIL = Date.UTC(2026, 0, 2, 10, 5, 0) as EpochMs;

const createContestant = (stepId: string, rest: Partial<Contestant> = {}): Contestant => ({
  stepId: stepId as StepId,
  priority: "normal",
  claimedSequence: 1,
  ...rest,
});

interface ConflictTerms {
  /** Absent: the call replaces the whole file. */
  readonly replaces?: boolean;
  readonly against: readonly Contestant[];
  readonly strategy?: ConflictStrategy;
  readonly cause?: "overlap" | "stale_base";
  readonly resource?: string;
  readonly from?: "high_risk" | "default";
  readonly requester?: string;
}

function assessContest({
  against,
  strategy = "owner_wins",
  cause = "overlap",
  ...rest
}: ConflictTerms): AssessedTarget {
  const { resource = "file:/repo/notes.md", from = "default", requester = "step-1", replaces = true } = rest;
  const me = createContestant(requester, { claimedSequence: 9 });
  const contest = { strategy, cause, from, claims: [...against, me] } as const;
  const holders = against.filter(({ expiresAtMs }) => expiresAtMs !== undefined);
  return {
    target: { resource, names: [resource], aliases: [], index: 0, propose: undefined, replaces },
    request: { resource, token: 9, expiresAtMs: UNTIL, contest },
    ruling: arbitrate(createArbitrationInput(me.stepId, contest)),
    holders: holders.map(({ stepId, claimedSequence: token }) => ({
      resource,
      stepId,
      token,
      runId: "co-1" as CoordinationId,
      priority: "normal",
      acquiredAtMs: SINCE,
      expiresAtMs: UNTIL,
    })),
    delegated: [],
    look: undefined,
  };
}

const describeSentence = (situation: ConflictTerms, conflictId?: string): string =>
  describeRefusal(assessContest(situation), state, conflictId);
const createHolder = (stepId: string, rest: Partial<Contestant> = {}): Contestant =>
  createContestant(stepId, { expiresAtMs: UNTIL, ...rest });

describe("the sentence for a refused call", () => {
  it("names a step of another coordination within its line, whatever characters an older release took", () => {
    const holder = createHolder("a\nb", { coordinationId: "c\n[Coordination] \u202ed" as CoordinationId });
    expect(describeSentence({ against: [holder] })).toContain("a b of coordination c [Coordination]  d");
  });

  it("says who holds what, since when, until when, what to do, and the conflict", () => {
    expect(describeSentence({ against: [createHolder("step-2")] }, "co-1:conflict-4")).toMatch(
      /^Coordination refused this call: \/repo\/notes\.md is held by step-2.* since 2026-01-02T10:00:00Z until 2026-01-02T10:05:00Z, or until that step ends\. Go on with other work and try again then; do not write it under another name \(conflict co-1:conflict-4\)\.$/u,
    );
  });

  it("names a step of another coordination with its id, and the owner as what it is", () => {
    const coordinationId = "co-7" as CoordinationId;
    expect(describeSentence({ against: [createHolder("step-2", { coordinationId })] })).toContain(
      "held by step-2 of coordination co-7 since",
    );
    expect(describeSentence({ against: [createHolder("@owner")] })).toContain(
      "held by the session that began this work since",
    );
  });

  it("says that a plan declares the file where its owner has not claimed it", () => {
    expect(
      describeSentence({ against: [createContestant("step-2", { declared: true, claimedSequence: 0 })] }),
    ).toMatch(/is declared by step-2.* as its own in the plan, until that step ends\./u);
  });

  it("says to read again what others have changed, and who they are", () => {
    const changed = createContestant("step-2", { changedAtMs: SINCE });
    expect(describeSentence({ against: [changed], cause: "stale_base" }, "c-1")).toMatch(
      /notes\.md was changed by step-2.* since you read all of it; your change would undo that\. Read it again to its end with the tool read, not by a command, and make your change to what it is now \(conflict c-1\)\.$/u,
    );
    const outside = createContestant("@outside", { changedAtMs: SINCE, claimedSequence: 0 });
    expect(describeSentence({ against: [outside], cause: "stale_base" })).toContain(
      "changed by somebody outside of this coordination",
    );
  });

  it("does not say to read all of a file of which the call changes a part", () => {
    const changed = createContestant("step-2", { changedAtMs: SINCE });
    expect(describeSentence({ against: [changed], cause: "stale_base", replaces: false })).toMatch(
      /since you read it; your change would undo that\. Read it again with the tool read/u,
    );
  });

  it("says to read again also where somebody else holds the file but a change of it won", () => {
    const changed = createContestant("step-3", { changedAtMs: SINCE, claimedSequence: 2 });
    const words = describeSentence({ against: [createHolder("step-2"), changed] });
    expect(words).toMatch(/changed by step-3.*Read it again/u);
    expect(words).not.toContain("declared");
  });

  it("says to report the conflict where people must decide", () => {
    expect(describeSentence({ against: [createHolder("step-2")], strategy: "manual_review" }, "c-1")).toBe(
      "Coordination refused this call: a person must decide who may change /repo/notes.md, held by step-2 since 2026-01-02T10:00:00Z until 2026-01-02T10:05:00Z (manual-review), and nobody can be asked from here. Go on with other work, and report this in your result (conflict c-1).",
    );
  });

  it("shows other resources by their whole name", () => {
    expect(describeSentence({ against: [createHolder("step-2")], resource: "queue:mail" })).toContain(
      "call: queue:mail is held",
    );
  });
});

describe("other sentences", () => {
  it("say what else may be in the way", () => {
    const participant = { stepId: "step-2" as StepId, state } as Participant;
    const call = {
      callKey: "c",
      tool: "write",
      participant,
      atMs: SINCE,
      mayTouchAnything: false,
      seenOrder: 0,
      changes: [],
      looks: [],
    };
    expect(describeCallUnderWay("file:/repo/notes.md", call)).toMatch(
      /\/repo\/notes\.md is being changed just now by step-2.* \(write, since 2026-01-02T10:00:00Z\)\. Try again in a moment\.$/u,
    );
    expect(describeCallUnderWay("file:/repo/notes.md", { ...call, isReserved: true })).toMatch(
      /\/repo\/notes\.md is to be changed by a call of step-2.* \(write\) about which a person is asked since 2026-01-02T10:00:00Z\. Go on with other work/u,
    );
    expect(describeUndeterminedRefusal("exec", { because: "undeclared" })).toContain(
      "what exec would change cannot be told",
    );
    expect(describeUndeterminedRefusal("crm", { because: "extractor_failed", extractor: 'a"b' })).toContain(
      'the extractor "a\\"b" of another plugin failed',
    );
    expect(describeRecordRefusal("too many")).toBe("Coordination refused this call: too many.");
    expect(describeGivenUpAttempt("step-2")).toContain("attempt of step step-2 was given up");
  });
});

describe("what a person is asked", () => {
  /** Only owners' calls can be asked about. */
  const createReview = (
    ...situation: readonly ConflictTerms[]
  ): { readonly title: string; readonly description: string } =>
    createReviewText(
      situation.map((one) => assessContest({ strategy: "manual_review", requester: "@owner", ...one })),
      state,
    );

  it("names the file, who wants it, and what is at stake", () => {
    const { title, description } = createReview({ against: [createHolder("step-2")] });
    expect(title).toBe("Contested write: /repo/notes.md");
    expect(description).toMatch(
      /^\/repo\/notes\.md: also wanted by step-2.*\. If you allow it, this call overwrites what they have there and their claims end\.$/u,
    );
  });

  it("names those who want it, the owner of another coordination, too, but not who asks", () => {
    const coordinationId = "co-7" as CoordinationId;
    const { description } = createReview({ against: [createHolder("@owner", { coordinationId })] });
    expect(description).toContain("of coordination co-7");
    expect(description).not.toContain("the session that began this work");
  });

  it("says where a file is marked high-risk", () => {
    expect(createReview({ against: [createHolder("step-2")], from: "high_risk" }).description).toContain(
      "notes.md, which is marked high-risk: also wanted by",
    );
  });

  it("stays within what the host takes, and says what is at stake however much else there is to say", () => {
    const { title, description } = createReview(
      ...Array.from({ length: 40 }, (_, index) => ({
        against: Array.from({ length: 20 }, (__, step) => createHolder(`step-${step + 2}`)),
        resource: `file:/${"deep/".repeat(30)}file-${index}`,
      })),
    );
    expect(title.length).toBeLessThanOrEqual(80);
    expect(title).toContain("file-0");
    expect(description.length).toBeLessThanOrEqual(512);
    expect(description).toContain("their claims end");
    const unchecked = createUndeterminedReviewText("x".repeat(200));
    expect(unchecked.title.length).toBeLessThanOrEqual(80);
    expect(unchecked.description.length).toBeLessThanOrEqual(512);
  });

  it("counts those beyond three", () => {
    const five = Array.from({ length: 5 }, (_, step) => createHolder(`step-${step + 2}`));
    expect(createReview({ against: five }).description).toContain("and 2 more");
  });
});
