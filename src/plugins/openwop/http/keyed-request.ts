/**
 * Owns: that the work of a request with a key is done once: its answer is kept for the same request, and so is its subject until then.
 */
import { addMs } from "../../../agents/coordination/contracts/ids.ts";
import { formatCanonicalJson } from "../../../agents/coordination/std/canonical-json.ts";
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import type {
  KeyedRequestStart,
  KeptAnswer,
  KeyedRequest,
  RequestLog,
} from "../../../agents/coordination/ports/workflow-store.ts";
import { HTTP_BOUNDS } from "./http-bounds.ts";

/**
 * Says what a key keeps when the work is done: the answer; the subject, for which the same request may be tried again; or
 * nothing, so that anything may be asked with the key.
 */
export type KeyRetention = KeptAnswer | "subject" | "nothing";

export interface WorkOutcome<T> {
  readonly value: T;
  readonly keep: KeyRetention;
}

export type KeyedOutcome<T> =
  { readonly kind: "done"; readonly value: T } | Exclude<KeyedRequestStart, { readonly kind: "new" }>;

/** Returns the text that names the question which a keyed request answers; empty without a question. */
export function formatQuestionSubject(question: object | undefined): string {
  return question ? formatCanonicalJson(question) : "";
}

/**
 * Returns the question that the text of a keyed request's subject names; `undefined` where it names none, or is the id
 * of a run, as older versions kept it.
 */
export function parseQuestionSubject(subject: string): unknown {
  return subject.startsWith("{") ? JSON.parse(subject) : undefined;
}

interface KeyedDependencies {
  readonly requests: RequestLog;
  readonly clock: Clock;
}

/**
 * Does the work of a keyed request and keeps what it says to keep, unless its key was used or is in use, which it
 * returns instead. Where this throws, the work may be done; the same request may be made again.
 */
export async function runKeyedRequest<T>(
  { requests, clock }: KeyedDependencies,
  request: Omit<KeyedRequest, "now" | "leaseUntilMs">,
  work: (subject: string) => Promise<WorkOutcome<T>>,
): Promise<KeyedOutcome<T>> {
  const now = clock.now();
  const leaseUntilMs = addMs(now, HTTP_BOUNDS.requestLeaseMs);
  const begun = await requests.begin({ ...request, now, leaseUntilMs });
  if (begun.kind !== "new") return begun;
  const leasedKey = { ...request, leaseUntilMs };
  try {
    const { keep, value } = await work(begun.subject);
    if (keep === "subject") await requests.lapse(leasedKey);
    else if (keep === "nothing") await requests.release(leasedKey);
    else await requests.finish(request, keep);
    return { kind: "done", value };
  } catch (error) {
    // Where this fails, too, the lease ends by itself.
    await requests.lapse(leasedKey).catch(() => undefined);
    throw error;
  }
}
