/**
 * Owns: telling the owner of a plan how it went: one turn in its own session, at most once (D2).
 *
 * Told means that the message is in the owner's transcript: from then on the model reads it in this turn or the next, and
 * the host finishes a turn that it interrupted. So `observe` says ended at once; `follow` waits for the answer, too. Nothing
 * here sends a second time: what is not certain is `unknown`. A run that a crash took before its message was written is
 * certain: it waited for another turn of its owner. Once the host has closed it, within two minutes of its start, the owner
 * is told by a run under the next key, because the host takes no run under the same one. So it is, a minute later, where a run
 * failed before that; only the end of a plan is sent again by its plan instead.
 */
import { addMs, type SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import type {
  ChildEnding,
  Observation,
  ObservedChild,
} from "../../../agents/coordination/contracts/observation.ts";
import type { AgentRunner, Attempt, Start } from "../../../agents/coordination/ports/agent-runner.ts";
import { readSessionEntry } from "../host/session-entry.ts";
import {
  BEGIN_MS_MAX,
  endingOf,
  findRow,
  findFirstAnswer,
  followBy,
  isOpen,
  isRefusal,
  mayStillBegin,
  messageOf,
  readTranscript,
  runIdOf,
  sliceSinceBegin,
  startOf,
  type HostRuntime,
  type RunnerDependencies,
  type TaskRow,
  type TranscriptMessage,
} from "../host/host-runs.ts";

/** The host keeps the rows of runs for seven days. Without them, and with a transcript that was reset, nothing is certain. */
const ROWS_KEPT_MS = 6 * 24 * 3_600_000;
/** Between a run that failed and the next one. */
const PAUSE_MS = 60_000;

export function createOwnerRunner(runtime: HostRuntime, { clock, logger }: RunnerDependencies): AgentRunner {
  /** Keys of attempts that are being started right now. */
  const starting = new Set<string>();
  /** Keys of second and third runs that the host was asked for and may not have a row of yet. */
  const requested = new Set<string>();
  const mayHaveBegun = (attempt: Attempt, { nextRun, notBeforeMs }: Nothing): boolean => {
    if (clock.now() < notBeforeMs) return false;
    if (starting.has(attempt.idempotencyKey) || requested.has(nextRun.idempotencyKey)) return true;
    return nextRun === attempt && mayStillBegin(attempt, clock);
  };
  const observe = async (attempt: Attempt): Promise<Observation> => {
    try {
      const seen = await look(runtime, attempt);
      if (seen.kind !== "nothing") return seen.seen;
      const ageMs = clock.now() - attempt.dispatchedAtMs;
      return { kind: mayHaveBegun(attempt, seen) || ageMs > ROWS_KEPT_MS ? "unknown" : "absent" };
    } catch (error) {
      logger.warn(
        { key: attempt.idempotencyKey },
        `the host does not say whether an owner was told: ${messageOf(error)}`,
      );
      return { kind: "unknown" };
    }
  };
  const request = async (order: Telling, nextRun: Attempt): Promise<Start> => {
    if (nextRun === order) return runNext(runtime, order, nextRun);
    const { idempotencyKey: key } = nextRun;
    requested.add(key);
    clock.wakeAt(addMs(clock.now(), BEGIN_MS_MAX), () => requested.delete(key));
    const started = await runNext(runtime, order, nextRun);
    if (started.kind === "refused") requested.delete(key);
    return started;
  };
  return {
    start: async (order) => {
      const calledAtMs = clock.now();
      starting.add(order.idempotencyKey);
      try {
        const seen = await look(runtime, order);
        if (seen.kind !== "nothing") return startOf(seen.seen);
        // Who observed nothing before the pause was over may rely on it, also where this look takes longer.
        if (calledAtMs < seen.notBeforeMs) return PAUSING;
        return await request(order, seen.nextRun);
      } catch (error) {
        return { kind: "unknown", message: messageOf(error) };
      } finally {
        starting.delete(order.idempotencyKey);
      }
    },
    observe,
    follow: (attempt, signal) => {
      const findAnswerOrObserve = () => lookForAnswer(runtime, attempt).catch(() => observe(attempt));
      return followBy(runtime, { clock, observe: findAnswerOrObserve }, attempt, signal);
    },
    // An owner's turn is not ours to stop.
    cancel: () => Promise.resolve("already_ended"),
  };
}

const PAUSING: Start = { kind: "unknown", message: "the next run begins a minute after the one that failed" };

/** So many runs tell one thing, if none but the last one can. */
const RUNS_MAX = 3;

type ObservedRun = Extract<Observation, ObservedChild>;

interface Something {
  readonly kind: "something";
  readonly seen: ObservedRun;
  /** It was told, and its turn goes on. */
  readonly answers: boolean;
}

interface Nothing {
  readonly kind: "nothing";
  /** The attempt itself where no run was begun. */
  readonly nextRun: Attempt;
  readonly notBeforeMs: number;
}

type Seen = Nothing | Something;

async function look(
  runtime: HostRuntime,
  attempt: Attempt,
  { number, notBeforeMs } = { number: 1, notBeforeMs: 0 },
): Promise<Seen> {
  const run = nameRun(attempt, number);
  const row = await findRow(runtime, run);
  // After the row: what a run that has ended wrote is there by now.
  const since = sliceSinceBegin(await readTranscript(runtime, run.childSessionKey), runIdOf(run));
  if (since) return describeTold(run, row, since);
  if (!row) return { kind: "nothing", nextRun: run, notBeforeMs };
  const nextMs = number < RUNS_MAX ? findNextTime(attempt, row) : undefined;
  if (nextMs !== undefined) return look(runtime, attempt, { number: number + 1, notBeforeMs: nextMs });
  if (row.status === "succeeded" && !wasLost(row)) return describeTold(run, row, []);
  return describeUntold(run, row);
}

/** Finds from when on another run is to tell it, where this one did not for sure: at once, or a minute after it failed. */
function findNextTime(attempt: Attempt, row: TaskRow): number | undefined {
  if (wasLost(row)) return 0;
  const hasFailed = !isOpen(row) && endingOf(row).outcome === "failed";
  return attempt.isRepeated && hasFailed ? (row.endedAt ?? attempt.dispatchedAtMs) + PAUSE_MS : undefined;
}

/** The first run has the key of the attempt. */
function nameRun(attempt: Attempt, number: number): Attempt {
  if (number === 1) return attempt;
  const { childRunId: _, ...others } = attempt;
  const key = `run-${number}:${attempt.idempotencyKey}` as Attempt["idempotencyKey"];
  return { ...others, idempotencyKey: key };
}

function describeTold(
  run: Attempt,
  row: TaskRow | undefined,
  since: readonly TranscriptMessage[],
): Something {
  const seen = { kind: "ended", ...childOf(run), outcome: "completed", ...findFirstAnswer(since) } as const;
  return { kind: "something", seen, answers: isAnswering(row) };
}

/** A run that was lost did not tell, whatever its row says; nor did one that failed. */
function describeUntold(run: Attempt, row: TaskRow): Something {
  const child = childOf(run);
  if (isOpen(row)) return { kind: "something", seen: { kind: "running", ...child }, answers: false };
  const ending = row.status === "succeeded" ? LOST : endingOf(row);
  return { kind: "something", seen: { kind: "ended", ...child, ...ending }, answers: false };
}

const LOST: ChildEnding = {
  outcome: "failed",
  message: "a crash took the run before its message was written",
};

function childOf(run: Attempt): ObservedChild {
  return { childSessionKey: run.childSessionKey, childRunId: runIdOf(run) };
}

/**
 * True for a run of a process before that this process closed. Without its message in the transcript nobody read it: the host
 * closes it as failed, or as succeeded where it went on with the turn that the run had been waiting for.
 */
function wasLost(row: TaskRow): boolean {
  const { status, createdAt, endedAt = Infinity } = row;
  const begun = performance.timeOrigin;
  return !isOpen(row) && status !== "cancelled" && createdAt < begun && endedAt >= begun;
}

/** A turn that the host interrupted goes on under another run, and its own row stays open for ever. */
function isAnswering(row: TaskRow | undefined): boolean {
  return row !== undefined && isOpen(row) && row.createdAt >= performance.timeOrigin;
}

/** Looks for the owner's answer like `look`; a turn that goes on counts as running, although the owner was told. */
async function lookForAnswer(runtime: HostRuntime, attempt: Attempt): Promise<Observation> {
  const looked = await look(runtime, attempt);
  if (looked.kind === "nothing") return { kind: "unknown" };
  const { childSessionKey, childRunId } = looked.seen;
  return looked.answers ? { kind: "running", childSessionKey, childRunId } : looked.seen;
}

/** A message that is told by a turn of a session, once for each key. */
export interface Telling extends Attempt {
  readonly message: string;
}

export async function tell(runtime: HostRuntime, order: Telling): Promise<Start> {
  const seen = await look(runtime, order);
  return seen.kind === "nothing" ? runNext(runtime, order, seen.nextRun) : startOf(seen.seen);
}

async function runNext(runtime: HostRuntime, order: Telling, { idempotencyKey }: Attempt): Promise<Start> {
  const next = { ...order, idempotencyKey };
  const deliver = hasChat(runtime, order.childSessionKey);
  const first = await run(runtime, next, deliver);
  // The chat cannot be written to any more: the owner is told all the same. A refused run left nothing behind.
  return deliver && first.kind === "refused" ? await run(runtime, next, false) : first;
}

async function run(runtime: HostRuntime, order: Telling, deliver: boolean): Promise<Start> {
  try {
    const { runId, sessionKey } = await runtime.subagent.run({
      sessionKey: order.childSessionKey,
      message: order.message,
      deliver,
      idempotencyKey: order.idempotencyKey,
    });
    const childSessionKey = (sessionKey ?? order.childSessionKey) as SessionKey;
    return { kind: "started", child: { childSessionKey, childRunId: runId } };
  } catch (error) {
    return { kind: isRefusal(error) ? "refused" : "unknown", message: messageOf(error) };
  }
}

/**
 * Whether the session belongs to a chat, which then shows the answer. For a session without one the host would look for
 * any chat that is configured, and could tell a stranger.
 */
function hasChat(runtime: HostRuntime, sessionKey: SessionKey): boolean {
  const agentId = sessionKey.split(":")[1] ?? "main";
  return readSessionEntry(runtime.agent.session, sessionKey, agentId)?.delivery?.kind === "external";
}
