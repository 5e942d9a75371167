import type { SessionKey } from "./ids.ts";

/** The host's own record of a spawn. */
export type Observation =
  /** The host could not be asked, or does not say: nothing may be concluded. */
  | { readonly kind: "unknown" }
  /** The host has no record of such a spawn. */
  | { readonly kind: "absent" }
  | ({ readonly kind: "running" } & ObservedChild)
  | ({ readonly kind: "ended" } & ObservedChild & ChildEnding);

export interface ObservedChild {
  readonly childSessionKey: SessionKey;
  readonly childRunId: string;
}

/** How a child ended. `message` is the host's sentence about a failure. */
export interface ChildEnding {
  readonly outcome: "completed" | "failed" | "cancelled" | "timed_out";
  readonly message?: string;
}
