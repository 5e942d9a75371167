/** Owns: what the recorded histories came to, as a person reads it in their logs, and telling the same of a folded state. */
import type { KnownCoordination, Step } from "../../src/agents/coordination/ledger/state.ts";

export interface ReviewedEnd {
  readonly end: string;
  /**
   * Each step with how it ended, in which attempt, and why where that says more. A step that is skipped while it waits for another
   * attempt ended as its last one did.
   */
  readonly steps: Readonly<Record<string, string>>;
  /** Each question with its cause, the answer that counted, and how it was closed. */
  readonly questions?: readonly string[];
  /** How conflicts were resolved. */
  readonly conflicts?: readonly string[];
  /** Who changed a resource last. */
  readonly changes?: Readonly<Record<string, string>>;
  /** Claims that are there at half of the log. */
  readonly claims?: readonly string[];
  /** Spawns that may be used by plans inside, by step. */
  readonly loans?: Readonly<Record<string, number>>;
  /** Tokens of all model calls. */
  readonly tokens?: number;
  /** Who was stopped by the budget. */
  readonly stops?: readonly string[];
}

/** By the history and the run in it. */
export const REVIEWED_ENDS: Readonly<Record<string, ReviewedEnd>> = {
  "after-0.1.0-claims-and-gate co-g1-1-1": {
    end: "cancelled",
    steps: {
      "step-1": "completed 1 released by approved",
    },
    questions: ["escalation-1 confidence approve approved"],
    conflicts: ["changed-since"],
    changes: {
      "file:/repo/folder/c.md": "@owner",
      "file:/repo/a.md": "@owner",
    },
    claims: ["@owner file:/repo/folder/c.md", "@owner file:/repo/a.md"],
  },
  "after-0.1.0-claims-approved co-g1-1-1": {
    end: "failed",
    steps: {
      "step-1": "timed_out 1",
    },
    conflicts: ["approved"],
    changes: {
      "file:/repo/risky.md": "@owner",
    },
    claims: ["step-1 file:/repo/risky.md"],
  },
  "after-0.1.0-claims-denied plan-2": {
    end: "failed",
    steps: {
      s1: "skipped 0 deadline",
      s2: "skipped 0 deadline",
      s3: "timed_out 1",
      s4: "skipped 0 deadline",
      s5: "skipped 0 deadline",
      s6: "skipped 0 deadline",
      s7: "skipped 0 deadline",
      s8: "skipped 0 deadline",
      "@delivery": "completed 1",
    },
    conflicts: ["denied"],
  },
  "after-0.1.0-claims-merged plan-2": {
    end: "failed",
    steps: {
      s1: "timed_out 1",
      "@delivery": "completed 1",
    },
    conflicts: ["merged"],
    changes: {
      "file:/repo/merge.md": "@owner",
      "file:/repo/b.md": "@owner",
      "file:/repo/a.md": "@owner",
      "file:/repo/folder/c.md": "@owner",
    },
    claims: [
      "@owner file:/repo/merge.md",
      "@owner file:/repo/a.md",
      "@owner file:/repo/b.md",
      "@owner file:/repo/folder/c.md",
    ],
  },
  "after-0.1.0-claims-renewed co-g1-1-1": {
    end: "cancelled",
    steps: {
      "step-1": "completed 1",
    },
    changes: {
      "file:/repo/folder/c.md": "@owner",
      "file:/repo/merge.md": "step-1",
      "file:/repo/a.md": "@owner",
    },
    claims: ["@owner file:/repo/folder/c.md", "step-1 file:/repo/merge.md"],
  },
  "after-0.1.0-forks plan-1": {
    end: "escalated",
    steps: {
      s1: "completed 1",
      s2: "failed 1",
      s3: "skipped 0 deadline",
      s4: "skipped 0 deadline",
      "@delivery": "completed 2",
    },
    questions: ["escalation-1 retries_exhausted expired"],
    changes: {
      "file:/repo/folder/c.md": "s1",
    },
  },
  "after-0.1.0-forks fork-2": {
    end: "escalated",
    steps: {
      s1: "completed 0 carried",
      s2: "failed 1",
      s3: "skipped 0 deadline",
      s4: "skipped 0 deadline",
      "@delivery": "completed 1",
    },
    questions: ["escalation-1 retries_exhausted expired"],
  },
  "after-0.1.0-gates plan-1": {
    end: "escalated",
    steps: {
      s1: "skipped 0 denied",
      "@delivery": "completed 1",
    },
    questions: ["escalation-1 confidence expired"],
  },
  "after-0.1.0-gates fork-3": {
    end: "escalated",
    steps: {
      s1: "failed 1",
      "@delivery": "completed 1",
    },
    questions: ["escalation-1 verifier expired"],
  },
  "after-0.1.0-loans inside-1": {
    end: "cancelled",
    steps: {
      n1: "cancelled 1",
    },
    loans: {
      n1: 1,
    },
  },
  "after-0.1.0-loans fork-3": {
    end: "escalated",
    steps: {
      s1: "failed 1",
      s2: "skipped 0 budget",
      "@delivery": "completed 1",
    },
    questions: ["escalation-1 budget expired"],
  },
  "after-0.1.0-notes co-1": {
    end: "success",
    steps: {
      "step-1": "completed 1",
    },
    tokens: 300,
    stops: ["step-1 tokens 300"],
  },
  "after-0.1.0-plans plan-1": {
    end: "failed",
    steps: {
      s1: "timed_out 1",
      "@delivery": "completed 1",
    },
    questions: ["escalation-1 budget cancelled"],
    changes: {
      "file:/repo/a.md": "s1",
    },
  },
  "after-0.1.0-plans plan-3": {
    end: "failed",
    steps: {
      s1: "timed_out 1",
      s2: "skipped 0 fail_fast",
      s3: "skipped 0 fail_fast",
      "@delivery": "completed 1",
    },
  },
  "after-0.1.0-plans inside-1": {
    end: "success",
    steps: {
      n1: "completed 1",
      "@delivery": "completed 1",
    },
  },
  "after-0.1.0-questions co-g1-1-1": {
    end: "failed",
    steps: {
      "step-1": "timed_out 1",
    },
    questions: ["escalation-1 agent expired", "escalation-2 conflict expired"],
    conflicts: ["unanswered"],
    changes: {
      "file:/repo/a.md": "@owner",
      "file:/repo/b.md": "step-1",
      "file:/repo/merge.md": "step-1",
      "file:/repo/folder/c.md": "@owner",
    },
    claims: ["step-1 file:/repo/b.md", "step-1 file:/repo/merge.md"],
  },
  "after-0.1.0-questions plan-1": {
    end: "partial",
    steps: {
      s1: "completed 2",
      s2: "failed 1",
      "@delivery": "completed 1",
    },
    questions: ["escalation-1 deadline approve retried", "escalation-2 retries_exhausted deny denied"],
  },
  "after-0.1.0-worktrees plan-2": {
    end: "partial",
    steps: {
      s1: "completed 1 released by replaced",
      "@delivery": "completed 1",
    },
    questions: ["escalation-1 confidence answer answered"],
    changes: {
      "file:/repo/merge.md": "s1",
      "file:/repo/folder/c.md": "s1",
    },
  },
  "after-0.1.0-worktrees fork-3": {
    end: "escalated",
    steps: {
      s1: "failed 1",
      s2: "skipped 0 fail_fast",
      "@delivery": "completed 2",
    },
    questions: ["escalation-1 merge expired"],
  },
};

export function tellEnd(half: KnownCoordination, whole: KnownCoordination): ReviewedEnd {
  const steps = [...whole.steps.values()];
  const { tokens } = whole.bill.sum;
  return dropEmpty({
    end: whole.kind === "ended" ? whole.status : "open",
    steps: Object.fromEntries(steps.map((step) => [step.spec.stepId, tellStep(step)])),
    questions: [...whole.escalations.values()].map(({ escalationId, cause, answered, closed }) =>
      [escalationId, cause, answered?.answer, closed?.resolution].filter(Boolean).join(" "),
    ),
    conflicts: whole.conflicts.map(({ resolution }) => resolution?.because ?? "open"),
    changes: Object.fromEntries([...whole.changes].map(([resource, { stepId }]) => [resource, stepId])),
    claims: [...half.claims.values()].map(({ stepId, resource }) => `${stepId} ${resource}`),
    loans: Object.fromEntries(
      steps.flatMap(({ spec, loan }) => (loan ? [[spec.stepId, loan.budget.spawns ?? 0]] : [])),
    ),
    tokens,
    stops: whole.bill.stops.map(({ stepId, limit, used }) => `${stepId} ${limit} ${used}`),
  });
}

function tellStep({ phase }: Step): string {
  const words: (string | number)[] = [phase.status, phase.attempt];
  if ("because" in phase) words.push(phase.because);
  if ("carriedFrom" in phase) words.push("carried");
  if ("released" in phase && phase.released) words.push(`released by ${phase.released}`);
  return words.join(" ");
}

function dropEmpty(end: ReviewedEnd): ReviewedEnd {
  const entries = Object.entries(end).filter(([, value]) =>
    typeof value === "object" ? Object.keys(value as object).length > 0 : value !== 0,
  );
  return Object.fromEntries(entries) as unknown as ReviewedEnd;
}
