/** Owns: the origin of a fork as it lies in the row of its run. */
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import { runOriginSchema, type RunOrigin } from "../../agents/coordination/contracts/workflows/run-origin.ts";

export type StoredOrigin =
  | { readonly kind: "none" }
  | { readonly kind: "known"; readonly origin: RunOrigin }
  | { readonly kind: "unreadable"; readonly why: string };

/**
 * Reads the origin of a fork from its stored JSON, and returns it, or why it cannot be read, or that there is none
 * because the run is no fork (null). Does not throw.
 */
export function parseStoredOrigin(text: string | null | undefined): StoredOrigin {
  if (text === null || text === undefined) return { kind: "none" };
  try {
    const parsed = runOriginSchema.safeParse(JSON.parse(text));
    if (parsed.success) return { kind: "known", origin: parsed.data };
    return { kind: "unreadable", why: parsed.error.issues.map(({ path }) => path.join(".")).join(", ") };
  } catch {
    return { kind: "unreadable", why: "it is not JSON" };
  }
}

/**
 * Returns the origin of a fork from its stored JSON; `undefined` for a run that is no fork. @throws CoordinationError
 * `EVENT_UNREADABLE` where it cannot be read: without its origin no event of a run has an id
 */
export function readStoredOrigin(runId: string, text: string | null | undefined): RunOrigin | undefined {
  const stored = parseStoredOrigin(text);
  if (stored.kind === "unreadable") throw createUnreadableOriginError(runId, stored);
  return stored.kind === "known" ? stored.origin : undefined;
}

/** Creates the `EVENT_UNREADABLE` error that says why the stored origin of a run cannot be read. */
export function createUnreadableOriginError(
  runId: string,
  { why }: { readonly why: string },
): CoordinationError {
  return new CoordinationError("EVENT_UNREADABLE", `${runId}: the origin is unreadable: ${why}`);
}
