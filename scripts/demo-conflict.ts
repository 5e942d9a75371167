/** Owns: the third part of the demo: two steps of a plan that write the same file, ruled on before the second write happens. */
import type { Gateway } from "../test/support/gateway.ts";
import { textOf, type Rule, type ScriptedModel, type ToolCall } from "../test/support/scripted-model.ts";
import { waitFor } from "../test/support/wait-for.ts";
import { openLedgerForReading } from "../src/plugins/ledger-reader.ts";
import { joinLedgerPath } from "../src/plugins/ledger-setting.ts";
import { createTask } from "./demo-script.ts";

const DRAFT_TASK =
  "Write one sentence about version 2.0 to notes.md with the tool write, and answer with it.";
const REVIEW_TASK =
  "Write the word reviewed to notes.md with the tool write, and answer with what came of it.";

export const CONFLICT_PLAN = {
  coordinationId: "one-file",
  objective: "Let two agents write the same file at the same time.",
  ownerSession: "agent:main:demo",
  deadlineMs: 600_000,
  conflictPolicy: { strategy: "owner_wins" },
  failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
  defaults: { timeoutMs: 240_000 },
  steps: [
    { stepId: "draft", agent: "main", task: DRAFT_TASK },
    { stepId: "review", agent: "main", task: REVIEW_TASK },
  ],
} as const;

/** `draft` writes first and works on; `review` comes in between. */
export const CONFLICT_RULES: readonly Rule[] = [
  createTask(
    DRAFT_TASK,
    { delayMs: 300, call: [createWrite("notes.md", "Version 2.0 runs plans.\n")] },
    { delayMs: 3_500, say: "Version 2.0 runs plans." },
  ),
  createTask(
    REVIEW_TASK,
    { delayMs: 1_600, call: [createWrite("notes.md", "reviewed\n")] },
    { delayMs: 600, say: "Somebody else holds notes.md; I left it as it is." },
  ),
];

/** A call of the tool `write`. */
export function createWrite(path: string, content: string): ToolCall {
  return { name: "write", args: { path, content } };
}

/** Resolves when the two have met, while the first of them is still at work. */
export function waitForConflict({ stateDir }: Gateway, timeoutMs: number): Promise<unknown> {
  return waitFor(
    async () => {
      const ledger = await openLedgerForReading(joinLedgerPath(stateDir));
      try {
        return (await ledger.holders("conflicts", 1))[0];
      } finally {
        await ledger.close();
      }
    },
    { what: "the two steps to meet", timeoutMs, everyMs: 100 },
  );
}

/** Finds the text that the model of the refused call was told; tool results are JSON. */
export function findRefusal({ requests }: ScriptedModel): string | undefined {
  const toolMessages = requests.flatMap(({ body }) => body.messages).filter(({ role }) => role === "tool");
  const [sentence] = toolMessages.flatMap((message) => REFUSAL.exec(textOf(message)) ?? []);
  return sentence?.replaceAll('\\"', '"');
}

const REFUSAL = /Coordination refused this call: .*?\(conflict [^)]*\)\./u;
