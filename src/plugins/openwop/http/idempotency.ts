/**
 * Owns: requests that carry an `Idempotency-Key` (idempotency.md, layer 1).
 *
 * I1 A key belongs to the authenticated tenant and the route, and to the principal where people answer; the parameters of
 *    the path, the body and a condition of the request (`If-Match`) are what is asked.
 * I2 Only answers that stay true are kept: success, and refusals that asking again does not change.
 * I3 The run that a keyed request creates has the id that was kept with the key, so that a second try after a crash finds
 *    the run of the first.
 */
import { hash } from "node:crypto";
import { formatCanonicalJson } from "../../../agents/coordination/std/canonical-json.ts";
import { addMs, type CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { WORKFLOW_BOUNDS } from "../../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import type {
  KeptAnswer,
  RequestKey,
  RequestLog,
} from "../../../agents/coordination/ports/workflow-store.ts";
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
  /** Parameters of the path, the body, and the condition where there is one. */
  readonly asked: unknown;
  /** Returns what headers a kept answer has besides those of every replay. */
  readonly headersOf?: (body: unknown) => Readonly<Record<string, string>>;
}

export interface IdempotencyDependencies {
  readonly requests: RequestLog;
  readonly clock: Clock;
  readonly newRunId: () => CoordinationId;
}

/** Does the work, or answers what it answered before. */
export async function runOnceForKey(
  { requests, clock, newRunId }: IdempotencyDependencies,
  { tenant, endpoint, key, asked: request, headersOf }: KeyedAsk,
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
      return replayAnswer(begun.answer, headersOf);
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
  let answer: JsonAnswer | TextAnswer | undefined;
  let body: string | undefined;
  try {
    const made = await work();
    answer = findKeepable(made);
    if (!answer) return made;
    if (isFinal(made, answer)) body = answer.kind === "json" ? JSON.stringify(answer.body) : NO_BODY;
  } finally {
    if (body === undefined) await requests.release(at);
  }
  if (body === undefined) return answer;
  await requests.finish(at, { status: answer.status, body });
  return { ...answer, headers: { ...answer.headers, [REPLAYED]: "false" } };
}

const NO_CONTENT = 204;
const NO_BODY = "";

function findKeepable(made: Answer): JsonAnswer | TextAnswer | undefined {
  if (made.kind === "refused") return createErrorAnswer(made);
  return made.kind === "json" || (made.kind === "text" && made.status === NO_CONTENT) ? made : undefined;
}

function replayAnswer({ status, body }: KeptAnswer, headersOf: KeyedAsk["headersOf"]): TextAnswer {
  const replayed = { [REPLAYED]: "true" };
  if (body === NO_BODY) return { kind: "text", status, text: null, headers: replayed };
  const more = headersOf?.(JSON.parse(body)) ?? {};
  return {
    kind: "text",
    status,
    text: body,
    headers: { "content-type": "application/json", ...more, ...replayed },
  };
}

/** 409 only where the state it tells of stays: a run that is active, a gate that is waited for, or a version does not. */
function isFinal(made: Answer, { status, headers }: JsonAnswer | TextAnswer): boolean {
  if (status >= 200 && status < 300) return true;
  if (made.kind === "refused" && made.code === "workspace_conflict") return false;
  return [404, 409, 410, 422].includes(status) && headers?.["retry-after"] === undefined;
}

function refuseKey(key: string): HttpRefusal | undefined {
  const max = WORKFLOW_BOUNDS.idempotencyKeyCharsMax;
  if (/^[\x20-\x7e]+$/.test(key) && key.length <= max) return undefined;
  return refuse("validation_error", `An \`Idempotency-Key\` has 1 to ${max} visible ASCII characters.`);
}
