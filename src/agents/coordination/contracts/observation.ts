/** Owns: the words for what a host says of a child: whether it runs, how it ended, and whether it could be stopped. */
import type { Usage } from "./fact-fields.ts";
import type { SessionKey } from "./ids.ts";

/** The host's own record of a spawn. */
export type Observation =
  /** The host could not be asked, or does not say: nothing may be concluded. */
  | { readonly kind: "unknown" }
  /** The host has no record of such a spawn. */
  | { readonly kind: "absent" }
  | ({ readonly kind: "running" } & ObservedChild)
  | ({ readonly kind: "ended" } & ObservedChild & ChildEnding);

/** The child that the host created for a step. */
export interface ObservedChild {
  readonly childSessionKey: SessionKey;
  readonly childRunId: string;
}

/** How a child ended. `message` is the host's sentence about a failure. */
export interface ChildEnding {
  readonly outcome: "completed" | "failed" | "cancelled" | "timed_out";
  readonly message?: string;
  /** The last words of the child, cut to `BOUNDS.replyCharsMax`. */
  readonly reply?: string;
  /** The end of its last words, where `reply` was cut. */
  readonly replyEnd?: string;
  /** Usage of the attempt, as far as the runner knows. */
  readonly usage?: Usage;
  /** It failed because the provider of its model refused the last call. */
  readonly refusal?: { readonly retryAfterMs?: number };
}

/** How telling an agent to stop ended. */
export type Cancellation =
  | "stopped"
  /** There was nothing to stop any more. */
  | "already_ended"
  /** The agent may go on; its outcome will be refused. */
  | "unreachable";
