/** Owns: the fourth part of the demo: a result that is sent back once, and one that a person has to let through. */
import type { Gateway } from "../test/support/gateway.ts";
import type { Rule } from "../test/support/scripted-model.ts";

const SUMMARY_TASK =
  "Summarise version 2.0 in one sentence that ends with the word signed. Answer with that sentence alone.";
const GUESS_TASK =
  'Guess how many people will use version 2.0. End your answer with a line that is a JSON object with your confidence from 0 to 1, such as {"confidence": 0.4}.';

export const GATES_PLAN = {
  coordinationId: "held-results",
  objective: "Check one result, and ask a person about another.",
  ownerSession: "agent:main:demo",
  deadlineMs: 600_000,
  conflictPolicy: {},
  failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
  defaults: { timeoutMs: 240_000 },
  steps: [
    { stepId: "summary", agent: "main", task: SUMMARY_TASK, verify: { checks: { signed: true } } },
    { stepId: "guess", agent: "main", task: GUESS_TASK },
  ],
  successCriteria: [{ key: "all-done" }],
} as const;

/** The operator's check: exit code 2 sends the result back. */
export const GATES_CONFIG = {
  verifiers: {
    signed: {
      kind: "command",
      command: process.execPath,
      args: [
        "-e",
        'process.exit(/signed/u.test(JSON.parse(require("fs").readFileSync("result.json")).text) ? 0 : 2)',
      ],
      reviseOn: [2],
    },
  },
} as const;

export const GATES_RULES: readonly Rule[] = [
  {
    when: (text) => text.includes("is not accepted yet"),
    turns: [{ delayMs: 800, say: "Version 2.0 runs plans. signed" }],
  },
  { when: (text) => text.includes(SUMMARY_TASK), turns: [{ delayMs: 800, say: "Version 2.0 runs plans." }] },
  {
    when: (text) => text.includes(GUESS_TASK),
    turns: [{ delayMs: 600, say: 'Perhaps a million.\n{"confidence": 0.4}' }],
  },
];

/** How long the demo waits for a person to approve a result, and where it reports. */
export interface ApprovalOptions {
  /** How long a person has to answer on the page before the demo does, in ms. */
  readonly personMs: number;
  readonly report: (line: string) => void;
}

/** Approves what is asked as long as the plan runs, in the place of a person who does not. */
export async function approveWhile(
  gateway: Gateway,
  ended: Promise<unknown>,
  { personMs, report }: ApprovalOptions,
): Promise<void> {
  let isOver = false;
  void ended.finally(() => (isOver = true)).catch(() => undefined);
  const seenAtMs = new Map<string, number>();
  while (!isOver) {
    const { questions } = (await gateway.call("coordination.questions", {})) as {
      readonly questions: readonly { readonly questionId: string; readonly title?: string }[];
    };
    for (const { questionId } of questions) {
      const askedAtMs = seenAtMs.get(questionId) ?? performance.now();
      if (!seenAtMs.has(questionId) && personMs > 0)
        report(
          `A result is held: approve it on the page, under Questions. In ${personMs / 1_000} s the demo does.`,
        );
      seenAtMs.set(questionId, askedAtMs);
      if (performance.now() - askedAtMs < personMs) continue;
      const { happened } = (await gateway.call("coordination.answer", { questionId, answer: "approve" })) as {
        readonly happened: string;
      };
      report(`approved ${questionId}: ${happened}`);
    }
    await Promise.race([ended.catch(() => undefined), new Promise((resolve) => setTimeout(resolve, 300))]);
  }
}
