/** Owns: which text a question rules on: the held result, or the last words of a child that reported none. */
import type { ContentRef } from "../../agents/coordination/contracts/fact-fields.ts";
import { readStoredState } from "../../agents/coordination/runtime/log/read-state.ts";
import type { FoundQuestion } from "./question-report.ts";
import type { ReportedLedger } from "./reported-ledger.ts";

/** Returns `undefined` where nothing is held, or no longer. @throws CoordinationError as `LedgerStore.read` */
export async function findHeldOutput(
  reader: ReportedLedger,
  { view, question }: FoundQuestion,
): Promise<ContentRef | undefined> {
  const heldView = view.steps.find(({ stepId }) => stepId === question.stepId)?.held;
  if (heldView?.output && heldView.escalationId === question.escalationId) return heldView.output;
  if (question.stepId === undefined || question.closed) return undefined;
  const state = await readStoredState(reader, view.coordinationId);
  const step = state.kind === "unopened" ? undefined : state.steps.get(question.stepId);
  return step && findLastWords(step);
}

interface SpokenStep {
  readonly phase: { readonly attempt: number };
  readonly withheld?: { readonly attempt: number; readonly text: ContentRef } | undefined;
}

function findLastWords({ withheld, phase }: SpokenStep): ContentRef | undefined {
  return withheld?.attempt === phase.attempt ? withheld.text : undefined;
}
