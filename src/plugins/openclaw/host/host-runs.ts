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
import { formatSentence } from "./spawn-result.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";
import { waitFor } from "../../../agents/coordination/std/wait-for.ts";

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

/** The host's name for the run of an attempt is the key that it was started with. */
export function runIdOf({ childRunId, idempotencyKey }: Attempt): string {
  return childRunId ?? idempotencyKey;
}

/** The session under which the host keeps the rows of runs that a plugin started: the main session of their agent. */
export function rowOwnerOf(runtime: HostRuntime, sessionKey: SessionKey): string {
  const agentId = sessionKey.split(":")[1] ?? "main";
  const mainKey = runtime.config.current().session?.mainKey ?? "main";
  return `agent:${agentId}:${mainKey}`.toLowerCase();
}

export async function findRow(runtime: HostRuntime, attempt: Attempt): Promise<TaskRow | undefined> {
  const sessionKey = rowOwnerOf(runtime, attempt.childSessionKey);
  const runId = runIdOf(attempt);
  const row = await runtime.tasks.async.runs.bindSession({ sessionKey }).resolve(runId);
  // `resolve` also takes session keys and parts of ids.
  return row?.runId === runId ? row : undefined;
}

export function isOpen({ status }: TaskRow): boolean {
  return status === "queued" || status === "running";
}

/** Returns how the run of a row that is not open ended. */
export function endingOf({ status, error }: TaskRow): ChildEnding {
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

/** Returns what starting answers when the run had begun before. */
export function startOf(seen: Extract<Observation, ObservedChild>): Start {
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

/** True when a run without a row may still get one. */
export function mayStillBegin({ dispatchedAtMs }: Attempt, clock: Clock): boolean {
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

/** The newest messages of a session, oldest first; none when the host does not know the session. */
export async function readTranscript(
  runtime: HostRuntime,
  sessionKey: SessionKey,
): Promise<readonly TranscriptMessage[]> {
  const { messages } = await runtime.subagent.getSessionMessages({ sessionKey, limit: MESSAGES_MAX });
  return messages.flatMap((message) => messageSchema.safeParse(message).data ?? []);
}

/** The messages since the one that began a run, which the host keys by the run's id; `undefined` when it is not there. */
export function sliceSinceBegin(
  messages: readonly TranscriptMessage[],
  runId: string,
): readonly TranscriptMessage[] | undefined {
  const at = messages.findIndex(
    ({ role, idempotencyKey }) => role === "user" && idempotencyKey === `${runId}:user`,
  );
  return at < 0 ? undefined : messages.slice(at);
}

type Reply = Pick<ChildEnding, "reply" | "replyEnd">;

/** Returns the last words of the agent; nothing when its last message has no text. */
export function findReply(messages: readonly TranscriptMessage[]): Reply {
  return cutReply(messages.findLast(({ role }) => role === "assistant"));
}

/** Finds what the agent answered first, after the tools that it called before. */
export function findFirstAnswer(messages: readonly TranscriptMessage[]): Reply {
  return cutReply(messages.find(({ role, stopReason }) => role === "assistant" && stopReason !== "toolUse"));
}

function cutReply(message: TranscriptMessage | undefined): Reply {
  const text = message ? textOf(message.content).trim() : "";
  if (text === "") return {};
  const { replyCharsMax, replyEndChars } = BOUNDS;
  const reply = text.slice(0, replyCharsMax);
  return text.length > replyCharsMax ? { reply, replyEnd: text.slice(-replyEndChars) } : { reply };
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.flatMap((part) => textPartSchema.safeParse(part).data?.text ?? []).join("\n");
}

/** Sums the usage of all model calls of the session; `undefined` when the provider did not say. */
export function sumUsage(messages: readonly TranscriptMessage[]): Usage | undefined {
  const usages = messages.flatMap(({ usage }) => usage ?? []);
  if (usages.length === 0) return undefined;
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  return {
    tokens: Math.round(sum(usages.map(({ totalTokens }) => totalTokens ?? 0))),
    costMicroUsd: Math.round(sum(usages.map(({ cost }) => cost?.total ?? 0)) * 1_000_000),
  };
}

/** Looks whenever the run may have ended, until it has or `signal` aborts. */
export async function followBy(
  runtime: HostRuntime,
  { clock, observe }: { readonly clock: Clock; readonly observe: () => Promise<Observation> },
  attempt: Attempt,
  signal: AbortSignal,
): Promise<Observation> {
  let pauseMs = 0;
  while (!signal.aborted) {
    const seen = await observe();
    if (seen.kind === "ended") return seen;
    if (seen.kind === "absent") break;
    if (pauseMs > 0) await waitFor(clock, pauseMs, signal);
    const fromMs = clock.now();
    await endOrTimeout(runtime, attempt, signal);
    const atOnce = clock.now() - fromMs < PAUSE_MS;
    pauseMs = atOnce ? Math.min(Math.max(pauseMs * 2, PAUSE_MS), PAUSE_MS_MAX) : 0;
  }
  return { kind: "unknown" };
}

async function endOrTimeout(runtime: HostRuntime, attempt: Attempt, signal: AbortSignal): Promise<void> {
  const { promise: aborted, release } = createAbortPromise(signal);
  const ended = runtime.subagent.waitForRun({ runId: runIdOf(attempt), timeoutMs: WAIT_MS });
  // The answer of waiting is not used, and neither is its error.
  await Promise.race([ended.catch(() => undefined), aborted]);
  release();
}

function createAbortPromise(signal: AbortSignal): {
  readonly promise: Promise<void>;
  readonly release: () => void;
} {
  const listening = new AbortController();
  const promise = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true, signal: listening.signal });
  });
  return { promise, release: () => listening.abort() };
}

/**
 * Whether the host refused the run before anything of it existed. It checks the request before it does anything else;
 * every other error may come after the run began.
 */
export function isRefusal(error: unknown): error is Error {
  return error instanceof Error && "code" in error && error.code === "INVALID_REQUEST";
}

export function messageOf(error: unknown): string {
  return formatSentence(describeError(error));
}
