/** Owns: reading what the host answered to a spawn: accepted is exactly `details.status === "accepted"`. */
import { z } from "zod";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { sessionKeySchema } from "../../../agents/coordination/contracts/ids.ts";
import type { ObservedChild } from "../../../agents/coordination/contracts/observation.ts";

const acceptedSchema = z.object({
  status: z.literal("accepted"),
  childSessionKey: sessionKeySchema,
  runId: z.string().min(1).max(BOUNDS.sessionKeyCharsMax),
});

const detailsSchema = z.object({
  status: z.string().optional(),
  error: z.string().optional(),
  reason: z.string().optional(),
});

const resultSchema = z.object({ details: z.unknown() });

export type SpawnResult =
  | { readonly kind: "accepted"; readonly child: ObservedChild }
  | { readonly kind: "refused"; readonly message: string }
  /** Something went wrong, maybe after the child had been made: the host's records will tell. */
  | { readonly kind: "failed"; readonly message: string }
  /** The answer says neither: the host's records will tell. */
  | { readonly kind: "unclear" };

/**
 * Returns, from the host's result of a spawn call, the child that was accepted, or that the spawn was refused, failed,
 * or left it unclear whether there is a child.
 */
export function readSpawnResult(event: {
  readonly result?: unknown;
  readonly error?: string | undefined;
}): SpawnResult {
  const details = resultSchema.safeParse(event.result).data?.details;
  const accepted = acceptedSchema.safeParse(details).data;
  if (accepted) {
    return {
      kind: "accepted",
      child: { childSessionKey: accepted.childSessionKey, childRunId: accepted.runId },
    };
  }
  return readUnacceptedResult(detailsSchema.safeParse(details).data ?? {}, event.error);
}

/** Tells whether an answer that is not an acceptance is a refusal, a failure, or neither. */
function readUnacceptedResult(
  { status, error, reason }: z.infer<typeof detailsSchema>,
  eventError: string | undefined,
): SpawnResult {
  const message = eventError ?? error ?? reason;
  if (status === "accepted" || (status === undefined && message === undefined)) return { kind: "unclear" };
  const kind = status === "error" || eventError !== undefined ? "failed" : "refused";
  return { kind, message: formatSentence(message ?? `the host answered ${String(status)}`) };
}

/** Returns the message in one line, cut with an ellipsis to the length that an error message in an event may have. */
export function formatSentence(message: string): string {
  const line = message.replace(/\s+/gu, " ").trim();
  return line.length <= BOUNDS.errorMessageCharsMax
    ? line
    : `${line.slice(0, BOUNDS.errorMessageCharsMax - 1)}…`;
}
