/** Owns: what one arbiter keeps between calls. */
import type { CoordinationId } from "../../contracts/ids.ts";
import type { Command } from "../../contracts/commands.ts";
import type { AssessDependencies } from "./assess-call.ts";
import type { Participants } from "./participants.ts";
import type { UnanswerableSessions } from "./unanswerable-sessions.ts";

/** The collaborators and the memory of one arbiter. */
export interface ArbiterState extends AssessDependencies {
  readonly participants: Participants;
  readonly unanswerable: UnanswerableSessions;
  /** Changes that are not on disk yet, the oldest first. */
  readonly unrecorded: UnrecordedChanges[];
  readonly inRecordingTurn: InTurn;
  readonly inTurn: InTurn;
}
/** Runs `work` after all earlier work. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>;
/** Changes of one call that the ledger has not heard of yet. */
export interface UnrecordedChanges {
  readonly runId: CoordinationId;
  readonly commands: readonly Command[];
}
