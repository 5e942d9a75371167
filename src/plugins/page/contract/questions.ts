/** Owns: questions, conflicts and claims as they go over the wire. */
import type { ClaimReport } from "../../reports/claim-report.ts";
import type { ConflictRecord } from "../../reports/conflict-log.ts";
import type { QuestionReport } from "../../reports/question-report.ts";

/** The query of `GET ./api/questions` and `GET ./api/conflicts`, all optional. */
export interface OpenQuery {
  /** `open` unless it is said. */
  readonly which?: "open" | "all";
  /** 50 unless it is said, 500 at most. */
  readonly limit?: string;
}

export interface QuestionsList {
  readonly questions: readonly ShownQuestion[];
  /** Coordinations whose logs are damaged, so that their questions are not here; absent where there are none. */
  readonly unreadable?: number;
}

/** As `questions --json`; what an agent asked (`asked`) only where it is not withheld, or with the right `results`. */
export interface ShownQuestion extends QuestionReport {
  /** Names what is shown; an answer says it, and counts only while it is still so. */
  readonly revision: string;
}

/** `GET ./api/questions/{id}`. */
export interface QuestionDetail extends ShownQuestion {
  /** The text of the held result; absent without the right `results`, `null` once it is no longer kept. */
  readonly heldText?: string | null;
  /** Only the beginning is here. */
  readonly isCut?: boolean;
}

export interface ConflictsList {
  readonly conflicts: readonly ShownConflict[];
}

/** As `conflicts --json`, with words for people. */
export interface ShownConflict extends ConflictRecord {
  /** Such as `draft` for the step that asked. */
  readonly requesterName: string;
  readonly outcome: string;
}

export interface ClaimsList {
  readonly claims: readonly ClaimReport[];
  /** There are more. */
  readonly isMore: boolean;
}
