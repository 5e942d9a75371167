/** Owns: a claim on a resource as it is kept beside the log, and the changes that events make to it. */
import type { Priority } from "./envelope.ts";
import type { CoordinationId, EpochMs, StepId } from "./ids.ts";

/** A claim that was not released, which may have expired. */
export interface ClaimEntry {
  readonly token: number;
  readonly resource: string;
  readonly runId: CoordinationId;
  readonly stepId: StepId;
  readonly priority: Priority;
  /** The time of its newest `claim.acquired`. */
  readonly acquiredAtMs: EpochMs;
  readonly expiresAtMs: EpochMs;
}

/** A change that an event makes to the claims kept beside the log. A function of the event. */
export type ClaimChange =
  | ({ readonly kind: "acquired" } & Omit<ClaimEntry, "runId">)
  | { readonly kind: "renewed"; readonly token: number; readonly expiresAtMs: EpochMs }
  | { readonly kind: "released"; readonly token: number };
