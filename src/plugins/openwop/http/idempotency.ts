/**
 * Owns: requests that carry an `Idempotency-Key` (idempotency.md, layer 1).
 *
 * I1 A key belongs to the authenticated tenant and the route, and to the principal where people answer; the parameters of
 *    the path, the body and a condition of the request (`If-Match`) are what is asked.
 * I2 Only answers that stay true are kept: success, and refusals that asking again does not change.
 * I3 The run that a keyed request creates has the id that was kept with the key, so that a second try finds the run of the
 *    first: after a crash, and after a failure that left open whether the run was begun. Only a refusal frees the key.
 *    Whoever answers a question is told so again where that answer is in the log.
 */
import { hash } from "node:crypto";
import { formatCanonicalJson } from "../../../agents/coordination/std/canonical-json.ts";
import { addMs, type CoordinationId, type EpochMs } from "../../../agents/coordination/contracts/ids.ts";
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

export interface BegunRequest {
  readonly runId: CoordinationId;
  /** The request was begun before, and nobody knows what became of it. */
  readonly isRepeated: boolean;
}

/** Does the work, or answers what it answered before. */
export async function runOnceForKey(
  { requests, clock, newRunId }: IdempotencyDependencies,
  { tenant, endpoint, key, asked: request, headersOf }: KeyedAsk,
  work: (request: BegunRequest) => Promise<Answer>,
): Promise<Answer> {
  const unusable = refuseKey(key);
  if (unusable) return unusable;
  const at: RequestKey = { tenant, endpoint, key };
  const now = clock.now();
  const leaseUntilMs = addMs(now, HTTP_BOUNDS.requestLeaseMs);
  const digest = hash("sha256", formatCanonicalJson(request));
  await giveWay();
  const runId = newRunId();
  const begun = await requests.begin({ ...at, digest, runId, now, leaseUntilMs });
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
      return await runAndKeepAnswer(requests, { ...at, leaseUntilMs }, () =>
        work({ runId: begun.runId, isRepeated: begun.runId !== runId }),
      );
  }
}

async function runAndKeepAnswer(
  requests: RequestLog,
  at: LeasedKey,
  work: () => Promise<Answer>,
): Promise<Answer> {
  const made = await workOrLapse(requests, at, work);
  const answer = findKeepable(made);
  if (!answer || !isFinal(made, answer)) {
    await requests.release(at);
    return answer ?? made;
  }
  const body = answer.kind === "json" ? JSON.stringify(answer.body) : NO_BODY;
  await requests.finish(at, { status: answer.status, body });
  return { ...answer, headers: { ...answer.headers, [REPLAYED]: "false" } };
}

type LeasedKey = RequestKey & { readonly leaseUntilMs: EpochMs };

/** I3: what throws may have been done nevertheless. */
async function workOrLapse(
  requests: RequestLog,
  at: LeasedKey,
  work: () => Promise<Answer>,
): Promise<Answer> {
  let made: Answer | undefined;
  try {
    made = await work();
    return made;
  } finally {
    if (made === undefined) await requests.lapse(at);
  }
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

/** Refusals that tell how something is at the moment: a run that is active, a gate that is not asked yet, a version. */
const MOMENTARY: ReadonlySet<HttpRefusal["code"]> = new Set([
  "not_found",
  "run_not_paused",
  "run_not_pausable",
  "interrupt_not_found",
  "workflow_not_found",
  "invalid_from_seq",
  "workspace_conflict",
  "state_conflict",
]);

function isFinal(made: Answer, { status, headers }: JsonAnswer | TextAnswer): boolean {
  if (status >= 200 && status < 300) return true;
  if (made.kind === "refused" && MOMENTARY.has(made.code)) return false;
  return [404, 409, 410, 422].includes(status) && headers?.["retry-after"] === undefined;
}

function refuseKey(key: string): HttpRefusal | undefined {
  const max = WORKFLOW_BOUNDS.idempotencyKeyCharsMax;
  if (/^[\x20-\x7e]+$/.test(key) && key.length <= max) return undefined;
  return refuse("validation_error", `An \`Idempotency-Key\` has 1 to ${max} visible ASCII characters.`);
}
