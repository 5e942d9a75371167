/**
 * Owns: requests that carry an `Idempotency-Key` (idempotency.md, layer 1).
 *
 * I1 A key belongs to the authenticated tenant and the route; the parameters of the path and the body are what is asked.
 * I2 Only answers that stay true are kept: success, and refusals that asking again does not change.
 * I3 The run that a keyed request creates has the id that was kept with the key, so that a second try after a crash finds
 *    the run of the first.
 */
import { hash } from "node:crypto";
import { formatCanonicalJson } from "../../../agents/coordination/std/canonical-json.ts";
import { addMs, type CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { WORKFLOW_BOUNDS } from "../../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import type { RequestKey, RequestLog } from "../../../agents/coordination/ports/workflow-store.ts";
import { giveWay } from "../../../platform/give-way.ts";
import { createErrorAnswer, refuse, type HttpRefusal } from "./error-map.ts";
import { HTTP_BOUNDS } from "./http-bounds.ts";
import type { Answer, JsonAnswer, TextAnswer } from "./route.ts";

const REPLAYED = "openwop-idempotent-replay";

export interface KeyedAsk {
  readonly tenant: string;
  /** Such as `POST /v1/runs`. */
  readonly endpoint: string;
  readonly key: string;
  /** Parameters of the path, and the body. */
  readonly asked: unknown;
}

export interface IdempotencyDependencies {
  readonly requests: RequestLog;
  readonly clock: Clock;
  readonly newRunId: () => CoordinationId;
}

/** Does the work, or answers what it answered before. */
export async function runOnceForKey(
  { requests, clock, newRunId }: IdempotencyDependencies,
  { tenant, endpoint, key, asked: request }: KeyedAsk,
  work: (runId: CoordinationId) => Promise<Answer>,
): Promise<Answer> {
  const unusable = refuseKey(key);
  if (unusable) return unusable;
  const at: RequestKey = { tenant, endpoint, key };
  const now = clock.now();
  const digest = hash("sha256", formatCanonicalJson(request));
  await giveWay();
  const begun = await requests.begin({
    ...at,
    digest,
    runId: newRunId(),
    now,
    leaseUntilMs: addMs(now, HTTP_BOUNDS.requestLeaseMs),
  });
  switch (begun.kind) {
    case "answered":
      return replayAnswer(begun.answer.status, begun.answer.body);
    case "in_flight":
      return refuse("idempotency_in_flight", "The first request with this key is still under way.", {
        retryAfter: 1,
      });
    case "mismatch":
      return refuse("idempotency_key_mismatch", "The key was used before, to ask for something else.");
    case "new":
      return await runAndKeepAnswer(requests, at, () => work(begun.runId));
  }
}

async function runAndKeepAnswer(
  requests: RequestLog,
  at: RequestKey,
  work: () => Promise<Answer>,
): Promise<Answer> {
  let answer: JsonAnswer | undefined;
  try {
    const made = await work();
    answer = made.kind === "refused" ? createErrorAnswer(made) : made.kind === "json" ? made : undefined;
    if (!answer) return made;
  } finally {
    if (!answer || !isFinal(answer)) await requests.release(at);
  }
  if (!isFinal(answer)) return answer;
  const body = JSON.stringify(answer.body);
  await requests.finish(at, { status: answer.status, body });
  return { ...answer, headers: { ...answer.headers, [REPLAYED]: "false" } };
}

function replayAnswer(status: number, text: string): TextAnswer {
  const headers = { "content-type": "application/json", [REPLAYED]: "true" };
  return { kind: "text", status, text, headers };
}

/** 409 only where the state it tells of stays: a run that is active, or a gate that is waited for, does not. */
function isFinal({ status, headers }: JsonAnswer): boolean {
  if (status >= 200 && status < 300) return true;
  return [404, 409, 410, 422].includes(status) && headers?.["retry-after"] === undefined;
}

function refuseKey(key: string): HttpRefusal | undefined {
  const max = WORKFLOW_BOUNDS.idempotencyKeyCharsMax;
  if (/^[\x20-\x7e]+$/.test(key) && key.length <= max) return undefined;
  return refuse("validation_error", `An \`Idempotency-Key\` has 1 to ${max} visible ASCII characters.`);
}
