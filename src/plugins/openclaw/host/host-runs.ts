/**
 * Owns: reading the host's records of a run that this plugin started: its task row and its session's transcript.
 *
 * The row decides whether a run goes on. `waitForRun` does not: it calls a run ended that only yielded to its children,
 * and it knows no run of the process before. It only tells when looking at the row is worth it.
 */
import { z } from "zod";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import type { Usage } from "../../../agents/coordination/contracts/fact-fields.ts";
import { type SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import type {
  ChildEnding,
  Observation,
  ObservedChild,
} from "../../../agents/coordination/contracts/observation.ts";
import type { Attempt, Start } from "../../../agents/coordination/ports/agent-runner.ts";
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import { errorFields } from "./provider-refusal.ts";
import type { OpenClawPluginApi } from "./sdk.ts";
import { readSessionAgent } from "./session-entry.ts";
import { formatSentence } from "./spawn-result.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";
import { waitForDuration, waitUnlessAborted } from "../../../agents/coordination/std/wait-for.ts";

export type HostRuntime = OpenClawPluginApi["runtime"];

export interface RunnerDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
}

type BoundRuns = ReturnType<HostRuntime["tasks"]["async"]["runs"]["bindSession"]>;
export type TaskRow = NonNullable<Awaited<ReturnType<BoundRuns["resolve"]>>>;

/** The host writes the row before `run` answers, which has been seen to take two seconds. */
export const BEGIN_MS_MAX = 60_000;

/** How long one wait for the end lasts. It never hears of a run of the process before, so the row must be looked at. */
const WAIT_MS = 5_000;
/** Between two looks when waiting answered at once. */
const PAUSE_MS = 250;
const PAUSE_MS_MAX = 2_000;

/** The host gives out no more at once. */
const MESSAGES_MAX = 1_000;

/**
 * Returns the host's id of an attempt's run; while the host has told none, the idempotency key with which it was
 * started.
 */
export function getHostRunId({ childRunId, idempotencyKey }: Attempt): string {
  return childRunId ?? idempotencyKey;
}

/**
 * Returns the key of the main session of a session's agent, under which the host keeps the task rows of runs that a
 * plugin started.
 */
export function formatRowOwner(runtime: HostRuntime, sessionKey: SessionKey): string {
  const mainKey = runtime.config.current().session?.mainKey ?? "main";
  return `agent:${readSessionAgent(sessionKey)}:${mainKey}`.toLowerCase();
}

/**
 * Returns the host's task row of an attempt's run; `undefined` where it has none, or only one that it matched loosely.
 */
export async function findRunRow(runtime: HostRuntime, attempt: Attempt): Promise<TaskRow | undefined> {
  const sessionKey = formatRowOwner(runtime, attempt.childSessionKey);
  const runId = getHostRunId(attempt);
  const row = await runtime.tasks.async.runs.bindSession({ sessionKey }).resolve(runId);
  // `resolve` also takes session keys and parts of ids.
  return row?.runId === runId ? row : undefined;
}

/** True of a task row of the host whose run is queued or running. */
export function isRowOpen({ status }: TaskRow): boolean {
  return status === "queued" || status === "running";
}

/**
 * Returns how the run of a task row ended, with the host's error; any status that is not known counts as failed. The
 * row must not be open any more.
 */
export function readRowEnding({ status, error }: TaskRow): ChildEnding {
  switch (status) {
    case "succeeded":
      return { outcome: "completed" };
    case "timed_out":
      return { outcome: "timed_out" };
    case "cancelled":
      return { outcome: "cancelled", ...(error && { message: formatSentence(error) }) };
    default:
      return { outcome: "failed", message: formatSentence(error ?? `the host calls the run ${status}`) };
  }
}

/**
 * Returns the result of `start` for a child that was found to have begun before: started, with its ending where it has
 * one.
 */
export function createObservedStart(seen: Extract<Observation, ObservedChild>): Start {
  const { kind, childSessionKey, childRunId } = seen;
  const child = { childSessionKey, childRunId };
  if (kind === "running") return { kind: "started", child };
  const { outcome, message, reply, replyEnd, usage, refusal } = seen;
  const ending = {
    outcome,
    ...(message && { message }),
    ...(reply && { reply }),
    ...(replyEnd && { replyEnd }),
    ...(usage && { usage }),
    ...(refusal && { refusal }),
  };
  return { kind: "started", child, ending };
}

/** True where an attempt without a task row may still get one: this process dispatched it, less than a minute ago. */
export function mayStillGetRow({ dispatchedAtMs }: Attempt, clock: Clock): boolean {
  const ofThisProcess = dispatchedAtMs >= performance.timeOrigin;
  return ofThisProcess && clock.now() - dispatchedAtMs < BEGIN_MS_MAX;
}

const messageSchema = z.object({
  role: z.string(),
  content: z.unknown(),
  idempotencyKey: z.string().optional(),
  /** Unix time in milliseconds. */
  timestamp: z.number().optional().catch(undefined),
  ...errorFields,
  usage: z
    .object({
      totalTokens: z.number().min(0).optional(),
      cost: z.object({ total: z.number().min(0).optional() }).optional(),
    })
    .optional(),
});
export type TranscriptMessage = z.infer<typeof messageSchema>;

const textPartSchema = z.object({ type: z.literal("text"), text: z.string() });

/**
 * Reads the newest messages of a session from the host, oldest first; empty where the host does not know the session.
 * Malformed messages are left out.
 */
export async function readTranscript(
  runtime: HostRuntime,
  sessionKey: SessionKey,
): Promise<readonly TranscriptMessage[]> {
  const { messages } = await runtime.subagent.getSessionMessages({ sessionKey, limit: MESSAGES_MAX });
  return messages.flatMap((message) => messageSchema.safeParse(message).data ?? []);
}

/**
 * Returns the messages of a transcript from the one that began a run, which the host keys by the run's id; `undefined`
 * where the transcript lacks it.
 */
export function sliceFromRunBegin(
  messages: readonly TranscriptMessage[],
  runId: string,
): readonly TranscriptMessage[] | undefined {
  const at = messages.findIndex(
    ({ role, idempotencyKey }) => role === "user" && idempotencyKey === `${runId}:user`,
  );
  return at < 0 ? undefined : messages.slice(at);
}

/** The last words of a child, and whether they were cut. */
type ChildReply = Pick<ChildEnding, "reply" | "replyEnd">;

/**
 * Returns the text of the agent's last message, cut to its bound; empty where there is no such message, or it has no
 * text.
 */
export function readLastReply(messages: readonly TranscriptMessage[]): ChildReply {
  return createReply(messages.findLast(({ role }) => role === "assistant"));
}

/**
 * Returns the text of the agent's first message that does not end in a tool call, cut to its bound; empty where there
 * is none.
 */
export function findFirstAnswer(messages: readonly TranscriptMessage[]): ChildReply {
  return createReply(
    messages.find(({ role, stopReason }) => role === "assistant" && stopReason !== "toolUse"),
  );
}

/** Returns the beginning of a message's text, and its end where the text is too long; nothing without text. */
function createReply(message: TranscriptMessage | undefined): ChildReply {
  const text = message ? joinTextParts(message.content).trim() : "";
  if (text === "") return {};
  const { replyCharsMax, replyEndChars } = BOUNDS;
  const reply = text.slice(0, replyCharsMax);
  return text.length > replyCharsMax ? { reply, replyEnd: text.slice(-replyEndChars) } : { reply };
}

function joinTextParts(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.flatMap((part) => textPartSchema.safeParse(part).data?.text ?? []).join("\n");
}

/** Returns the sum of tokens and cost of all model calls in a transcript; `undefined` where no message tells of any. */
export function sumUsage(messages: readonly TranscriptMessage[]): Usage | undefined {
  const usages = messages.flatMap(({ usage }) => usage ?? []);
  if (usages.length === 0) return undefined;
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  return {
    tokens: Math.round(sum(usages.map(({ totalTokens }) => totalTokens ?? 0))),
    costMicroUsd: Math.round(sum(usages.map(({ cost }) => cost?.total ?? 0)) * 1_000_000),
  };
}

/**
 * Observes a run again whenever the host says that it may have ended, with growing pauses, and returns its ending;
 * `unknown` where the run is absent or `signal` aborts.
 */
export async function observeUntilEnd(
  runtime: HostRuntime,
  { clock, observe }: { readonly clock: Clock; readonly observe: () => Promise<Observation> },
  attempt: Attempt,
  signal: AbortSignal,
): Promise<Observation> {
  let pauseMs = 0;
  while (!signal.aborted) {
    const runObservation = await observe();
    if (runObservation.kind === "ended") return runObservation;
    if (runObservation.kind === "absent") break;
    if (pauseMs > 0) await waitForDuration(clock, pauseMs, signal);
    const fromMs = clock.now();
    await waitForEndOrTimeout(runtime, attempt, signal);
    const atOnce = clock.now() - fromMs < PAUSE_MS;
    pauseMs = atOnce ? Math.min(Math.max(pauseMs * 2, PAUSE_MS), PAUSE_MS_MAX) : 0;
  }
  return { kind: "unknown" };
}

/** Waits until the host says that the run ended, 5 seconds have passed, or `signal` aborts. */
async function waitForEndOrTimeout(
  runtime: HostRuntime,
  attempt: Attempt,
  signal: AbortSignal,
): Promise<void> {
  const ended = runtime.subagent.waitForRun({ runId: getHostRunId(attempt), timeoutMs: WAIT_MS });
  // The answer of waiting is not used, and neither is its error.
  await waitUnlessAborted(
    ended.catch(() => undefined),
    signal,
    undefined,
  );
}

/**
 * True of the error by which the host refused to start a run before anything of it existed. It checks the request
 * before it does anything else; every other error may come after the run began.
 */
export function isHostRefusal(error: unknown): error is Error {
  return error instanceof Error && "code" in error && error.code === "INVALID_REQUEST";
}

/** Returns the message of an error in one line, cut to the length that an error message in an event may have. */
export function formatErrorSentence(error: unknown): string {
  return formatSentence(describeError(error));
}
