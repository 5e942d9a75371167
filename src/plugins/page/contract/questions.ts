/** Owns: questions, conflicts and claims as they go over the wire. */
import type { ClaimReport } from "../../reports/claim-report.ts";
import type { ConflictRecord } from "../../reports/conflict-log.ts";
import type { QuestionReport } from "../../reports/question-report.ts";

export interface QuestionsList {
  /** Open ones: those that expire first come first. All: the newest come first. */
  readonly questions: readonly ShownQuestion[];
  /** There are more. */
  readonly isMore: boolean;
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
  /** The newest come first. */
  readonly conflicts: readonly ShownConflict[];
  /** There are more. */
  readonly isMore: boolean;
  /**
   * Coordinations whose logs are damaged, so that their conflicts are not here; absent where none was found. There may be more
   * among those that were not looked into.
   */
  readonly unreadable?: number;
}

/** As `conflicts --json`, with words for people. */
export interface ShownConflict extends ConflictRecord {
  /** Such as `draft` for the step that asked. */
  readonly requesterName: string;
  readonly outcome: string;
}

export interface ClaimsList {
  readonly claims: readonly ShownClaim[];
  /** There are more. */
  readonly isMore: boolean;
}

/** As `claims --json`. */
export interface ShownClaim extends ClaimReport {
  /** The owner's own session holds it, and no step. */
  readonly isOfOwner: boolean;
}
