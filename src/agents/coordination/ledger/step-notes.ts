/** Owns: what is noted about the work of a step's child, beside the step's phase (`state.ts`), and reading it. */
import type { ChildDifference } from "../contracts/fact-fields.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import type { EpochMs } from "../contracts/ids.ts";
import type { MergedPaths } from "../contracts/worktree-fields.ts";

export interface StepNotes {
  /** The newest report of the child of the current attempt. */
  readonly report?: StepReport;
  /** How often the child of the current attempt has reported. */
  readonly reports?: number;
  /** How far the child of the current attempt says it is. */
  readonly progress?: StepProgress;
  /** Where the child of the current attempt does not run as it was asked. */
  readonly differences?: readonly ChildDifference[];
  /** The differences of the attempts whose results the current attempt revises. */
  readonly revisedDifferences?: readonly ChildDifference[];
  /** Withheld words of any attempt, because the same session may go on. */
  readonly withheld?: WithheldText;
  readonly withheldCount?: number;
  /** Texts of any attempt that its parent is shown a part of, the newest last. */
  readonly shortened?: readonly ShortenedText[];
  /** How many messages of any attempt did not go to a chat. */
  readonly suppressed?: number;
  /** Budget that is set aside for plans inside. It counts while its attempt is at work. */
  readonly loan?: Loan;
  /** Outcomes that came too late, as `attempt:outcome`. */
  readonly late?: readonly string[];
  /** Files of its worktree that were merged into the folder of the repository. */
  readonly merged?: MergedPaths;
}

/**
 * Lists, each once, the differences between how the children behind a step's current result were asked and how they
 * ran. It includes those of attempts whose results it revises.
 */
export function listRunDifferences({
  revisedDifferences = [],
  differences = [],
}: StepNotes): ChildDifference[] {
  const all = [...revisedDifferences, ...differences];
  return all.filter((one, place) => place === all.findIndex((other) => isSameDifference(one, other)));
}

function isSameDifference(one: ChildDifference, other: ChildDifference): boolean {
  return one.field === other.field && one.asked === other.asked && one.ran === other.ran;
}

type Loan = Omit<FactPayloads["budget.lent"], "stepId">;

/** The newest text of the child that was kept back from its parent. */
type WithheldText = Omit<FactPayloads["result.withheld"], "stepId">;

type ShortenedText = Omit<FactPayloads["result.shortened"], "stepId">;

type StepReport = Omit<FactPayloads["step.reported"], "stepId">;

type StepProgress = Omit<FactPayloads["step.progressed"], "stepId" | "attempt"> & {
  readonly atMs: EpochMs;
};
