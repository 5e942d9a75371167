/**
 * Owns: requests that carry an `Idempotency-Key` (idempotency.md, layer 1).
 *
 * I1 A key belongs to the authenticated tenant and the route, and to the principal where people answer; the parameters of
 *    the path, the body and a condition of the request (`If-Match`) are what is asked.
 * I2 Only answers that stay true are kept: success, and refusals that asking again does not change.
 * I3 The run that a keyed request creates has the id that was kept with the key, so that a second try finds the run of the
 *    first: after a crash, and after a failure that left open whether the run was begun. Only a refusal frees the key.
 *    So it is with the question that a keyed request answers, and whoever answers it is told so again where that answer
 *    is in the log.
 */
import { hash } from "node:crypto";
import { formatCanonicalJson } from "../../../agents/coordination/std/canonical-json.ts";
import { WORKFLOW_BOUNDS } from "../../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import type { KeptAnswer, RequestLog } from "../../../agents/coordination/ports/workflow-store.ts";
import { giveWay } from "../../../platform/give-way.ts";
import { createErrorAnswer, refuse, type HttpRefusal } from "./error-map.ts";
import { runKeyedRequest, type WorkOutcome } from "./keyed-request.ts";
import type { RouteAnswer, JsonAnswer, TextAnswer } from "./route.ts";

const REPLAYED = "openwop-idempotent-replay";

export interface KeyedAsk {
  readonly tenant: string;
  /** Such as `POST /v1/runs`. */
  readonly endpoint: string;
  readonly key: string;
  /** Parameters of the path, the body, and the condition where there is one. */
  readonly asked: unknown;
  /** Names what the request is about: the run that it creates, or the question that it answers. */
  readonly nameSubject: () => string | Promise<string>;
  /** Returns what headers a kept answer has besides those of every replay. */
  readonly headersOf?: (body: unknown) => Readonly<Record<string, string>>;
}

export interface IdempotencyDependencies {
  readonly requests: RequestLog;
  readonly clock: Clock;
}

export interface BegunRequest {
  /** As the first request with the key named it. */
  readonly subject: string;
  /** The request was begun before, and nobody knows what became of it. */
  readonly isRepeated: boolean;
}

/**
 * Does the work of an HTTP request and keeps its answer for the idempotency key, or returns the answer kept for the
 * same request; a refusal where the key is invalid, was used for another request, or is under way.
 */
export async function runOnceForKey(
  { requests, clock }: IdempotencyDependencies,
  { tenant, endpoint, key, asked: request, nameSubject, headersOf }: KeyedAsk,
  work: (request: BegunRequest) => Promise<RouteAnswer>,
): Promise<RouteAnswer> {
  const unusable = refuseInvalidKey(key);
  if (unusable) return unusable;
  const digest = hash("sha256", formatCanonicalJson(request));
  await giveWay();
  const newSubject = await nameSubject();
  const outcome = await runKeyedRequest(
    { requests, clock },
    { tenant, endpoint, key, digest, subject: newSubject },
    async (subject) => decideKeptAnswer(await work({ subject, isRepeated: subject !== newSubject })),
  );
  switch (outcome.kind) {
    case "done":
      return outcome.value;
    case "answered":
      return createReplayedAnswer(outcome.answer, headersOf);
    case "in_flight":
      return refuse("idempotency_in_flight", "The first request with this key is still under way.", {
        retryAfter: 1,
      });
    case "mismatch":
      return refuse("idempotency_key_mismatch", "The key was used before, to ask for something else.");
  }
}

/** Returns the answer with what its key keeps of it: the answer itself where it stays true. */
function decideKeptAnswer(made: RouteAnswer): WorkOutcome<RouteAnswer> {
  const answer = findKeepableAnswer(made);
  if (!answer) return { value: made, keep: "nothing" };
  if (made.kind === "json" && made.keep) return { value: made, keep: made.keep };
  if (!isLastingAnswer(made, answer)) return { value: made, keep: "nothing" };
  const { status, headers } = answer;
  const body = answer.kind === "json" ? JSON.stringify(answer.body) : NO_BODY;
  return { value: { ...answer, headers: { ...headers, [REPLAYED]: "false" } }, keep: { status, body } };
}

const NO_CONTENT = 204;
const NO_BODY = "";

function findKeepableAnswer(made: RouteAnswer): JsonAnswer | TextAnswer | undefined {
  if (made.kind === "refused") return createErrorAnswer(made);
  return made.kind === "json" || (made.kind === "text" && made.status === NO_CONTENT) ? made : undefined;
}

function createReplayedAnswer({ status, body }: KeptAnswer, headersOf: KeyedAsk["headersOf"]): TextAnswer {
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

/** True of an answer that stays true: success, and refusals that asking again does not change. */
function isLastingAnswer(made: RouteAnswer, { status, headers }: JsonAnswer | TextAnswer): boolean {
  if (status >= 200 && status < 300) return true;
  if (made.kind === "refused" && MOMENTARY.has(made.code)) return false;
  return [404, 409, 410, 422].includes(status) && headers?.["retry-after"] === undefined;
}

function refuseInvalidKey(key: string): HttpRefusal | undefined {
  const max = WORKFLOW_BOUNDS.idempotencyKeyCharsMax;
  if (/^[\x20-\x7e]+$/.test(key) && key.length <= max) return undefined;
  return refuse("validation_error", `An \`Idempotency-Key\` has 1 to ${max} visible ASCII characters.`);
}
