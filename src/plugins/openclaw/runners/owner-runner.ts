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
  readRowEnding,
  findRunRow,
  findFirstAnswer,
  observeUntilEnd,
  isRowOpen,
  isHostRefusal,
  mayStillGetRow,
  formatErrorSentence,
  readTranscript,
  getHostRunId,
  sliceFromRunBegin,
  createObservedStart,
  type HostRuntime,
  type RunnerDependencies,
  type TaskRow,
  type TranscriptMessage,
} from "../host/host-runs.ts";

/** The host keeps the rows of runs for seven days. Without them, and with a transcript that was reset, nothing is certain. */
const ROWS_KEPT_MS = 6 * 24 * 3_600_000;
/** Between a run that failed and the next one. */
const PAUSE_MS = 60_000;

/**
 * Creates the runner whose runs are turns of a plan's owner session, by which the owner is told the plan's result at
 * most once; what is not certain is `unknown`, and is not told again.
 */
export function createOwnerRunner(runtime: HostRuntime, { clock, logger }: RunnerDependencies): AgentRunner {
  /** Keys of attempts that are being started right now. */
  const starting = new Set<string>();
  /** Keys of second and third runs that the host was asked for and may not have a row of yet. */
  const requested = new Set<string>();
  const mayHaveBegun = (attempt: Attempt, { nextRun, notBeforeMs }: MissingRun): boolean => {
    if (clock.now() < notBeforeMs) return false;
    if (starting.has(attempt.idempotencyKey) || requested.has(nextRun.idempotencyKey)) return true;
    return nextRun === attempt && mayStillGetRow(attempt, clock);
  };
  const observe = async (attempt: Attempt): Promise<Observation> => {
    try {
      const telling = await findTelling(runtime, attempt);
      if (telling.kind !== "nothing") return telling.seen;
      const ageMs = clock.now() - attempt.dispatchedAtMs;
      return { kind: mayHaveBegun(attempt, telling) || ageMs > ROWS_KEPT_MS ? "unknown" : "absent" };
    } catch (error) {
      logger.warn(
        { key: attempt.idempotencyKey },
        `the host does not say whether an owner was told: ${formatErrorSentence(error)}`,
      );
      return { kind: "unknown" };
    }
  };
  const request = async (order: ToldMessage, nextRun: Attempt): Promise<Start> => {
    if (nextRun === order) return runTelling(runtime, order, nextRun);
    const { idempotencyKey: key } = nextRun;
    requested.add(key);
    clock.wakeAt(addMs(clock.now(), BEGIN_MS_MAX), () => requested.delete(key));
    const started = await runTelling(runtime, order, nextRun);
    if (started.kind === "refused") requested.delete(key);
    return started;
  };
  return {
    start: async (order) => {
      const calledAtMs = clock.now();
      starting.add(order.idempotencyKey);
      try {
        const seen = await findTelling(runtime, order);
        if (seen.kind !== "nothing") return createObservedStart(seen.seen);
        // Who observed nothing before the pause was over may rely on it, also where this look takes longer.
        if (calledAtMs < seen.notBeforeMs) return PAUSING;
        return await request(order, seen.nextRun);
      } catch (error) {
        return { kind: "unknown", message: formatErrorSentence(error) };
      } finally {
        starting.delete(order.idempotencyKey);
      }
    },
    observe,
    follow: (attempt, signal) => {
      const findAnswerOrObserve = () => observeAnswer(runtime, attempt).catch(() => observe(attempt));
      return observeUntilEnd(runtime, { clock, observe: findAnswerOrObserve }, attempt, signal);
    },
    // An owner's turn is not ours to stop.
    cancel: () => Promise.resolve("already_ended"),
  };
}

const PAUSING: Start = { kind: "unknown", message: "the next run begins a minute after the one that failed" };

/** So many runs tell one thing, if none but the last one can. */
const RUNS_MAX = 3;

type ObservedRun = Extract<Observation, ObservedChild>;

/** A run that tells the message, or failed to, as the host sees it. */
interface SightedRun {
  readonly kind: "something";
  readonly seen: ObservedRun;
  /** It was told, and its turn goes on. */
  readonly answers: boolean;
}

/** No run tells the message: which one may begin, and when. */
interface MissingRun {
  readonly kind: "nothing";
  /** The attempt itself where no run was begun. */
  readonly nextRun: Attempt;
  readonly notBeforeMs: number;
}

/** The run that tells a message, or the run that is to begin. */
type RunFinding = MissingRun | SightedRun;

/** Returns how the run stands that tells the message; without one, which run is to begin, and not before when. */
async function findTelling(
  runtime: HostRuntime,
  attempt: Attempt,
  { number, notBeforeMs } = { number: 1, notBeforeMs: 0 },
): Promise<RunFinding> {
  const run = createNumberedRun(attempt, number);
  const row = await findRunRow(runtime, run);
  // After the row: what a run that has ended wrote is there by now.
  const messagesOfRun = sliceFromRunBegin(
    await readTranscript(runtime, run.childSessionKey),
    getHostRunId(run),
  );
  if (messagesOfRun) return createToldObservation(run, row, messagesOfRun);
  if (!row) return { kind: "nothing", nextRun: run, notBeforeMs };
  const nextMs = number < RUNS_MAX ? findNextRunTime(attempt, row) : undefined;
  if (nextMs !== undefined) return findTelling(runtime, attempt, { number: number + 1, notBeforeMs: nextMs });
  if (row.status === "succeeded" && !wasRunLost(row)) return createToldObservation(run, row, []);
  return createUntold(run, row);
}

/**
 * Returns when another run may tell it: at once after a lost one and, where the attempt is repeated, a minute after
 * one that failed; else `undefined`.
 */
function findNextRunTime(attempt: Attempt, row: TaskRow): number | undefined {
  if (wasRunLost(row)) return 0;
  const hasFailed = !isRowOpen(row) && readRowEnding(row).outcome === "failed";
  return attempt.isRepeated && hasFailed ? (row.endedAt ?? attempt.dispatchedAtMs) + PAUSE_MS : undefined;
}

/** Returns the attempt under the key of its run of that number; the first run has the key of the attempt. */
function createNumberedRun(attempt: Attempt, number: number): Attempt {
  if (number === 1) return attempt;
  const { childRunId: _, ...others } = attempt;
  const key = `run-${number}:${attempt.idempotencyKey}` as Attempt["idempotencyKey"];
  return { ...others, idempotencyKey: key };
}

/** Returns how a run stands that told the owner: completed, with the first answer among the messages since. */
function createToldObservation(
  run: Attempt,
  row: TaskRow | undefined,
  since: readonly TranscriptMessage[],
): SightedRun {
  const seen = {
    kind: "ended",
    ...createObservedChild(run),
    outcome: "completed",
    ...findFirstAnswer(since),
  } as const;
  return { kind: "something", seen, answers: isTurnUnderWay(row) };
}

/**
 * Returns how a run stands that has not told. A run that was lost did not tell, whatever its row says; nor did one
 * that failed.
 */
function createUntold(run: Attempt, row: TaskRow): SightedRun {
  const child = createObservedChild(run);
  if (isRowOpen(row)) return { kind: "something", seen: { kind: "running", ...child }, answers: false };
  const ending = row.status === "succeeded" ? LOST : readRowEnding(row);
  return { kind: "something", seen: { kind: "ended", ...child, ...ending }, answers: false };
}

const LOST: ChildEnding = {
  outcome: "failed",
  message: "a crash took the run before its message was written",
};

function createObservedChild(run: Attempt): ObservedChild {
  return { childSessionKey: run.childSessionKey, childRunId: getHostRunId(run) };
}

/**
 * True for a run of a process before that this process closed. Without its message in the transcript nobody read it: the host
 * closes it as failed, or as succeeded where it went on with the turn that the run had been waiting for.
 */
function wasRunLost(row: TaskRow): boolean {
  const { status, createdAt, endedAt = Infinity } = row;
  const begun = performance.timeOrigin;
  return !isRowOpen(row) && status !== "cancelled" && createdAt < begun && endedAt >= begun;
}

/**
 * True while the run's own turn goes on. A turn that the host interrupted goes on under another run, and its own row
 * stays open for ever.
 */
function isTurnUnderWay(row: TaskRow | undefined): boolean {
  return row !== undefined && isRowOpen(row) && row.createdAt >= performance.timeOrigin;
}

/** Returns how the owner's answer stands; a turn that goes on counts as running, although the owner was told. */
async function observeAnswer(runtime: HostRuntime, attempt: Attempt): Promise<Observation> {
  const looked = await findTelling(runtime, attempt);
  if (looked.kind === "nothing") return { kind: "unknown" };
  const { childSessionKey, childRunId } = looked.seen;
  return looked.answers ? { kind: "running", childSessionKey, childRunId } : looked.seen;
}

/** A message that is told by a turn of a session, once for each key. */
export interface ToldMessage extends Attempt {
  readonly message: string;
}

/**
 * Starts a turn of a session that tells it the message, unless a run under this key told it before; returns the start
 * of either.
 */
export async function tellSessionOnce(runtime: HostRuntime, order: ToldMessage): Promise<Start> {
  const seen = await findTelling(runtime, order);
  return seen.kind === "nothing" ? runTelling(runtime, order, seen.nextRun) : createObservedStart(seen.seen);
}

/** Starts the run that tells a message, with delivery to the session's chat, or without it where that is refused. */
async function runTelling(
  runtime: HostRuntime,
  order: ToldMessage,
  { idempotencyKey }: Attempt,
): Promise<Start> {
  const next = { ...order, idempotencyKey };
  const deliver = hasChat(runtime, order.childSessionKey);
  const first = await startTurn(runtime, next, deliver);
  // The chat cannot be written to any more: the owner is told all the same. A refused run left nothing behind.
  return deliver && first.kind === "refused" ? await startTurn(runtime, next, false) : first;
}

async function startTurn(runtime: HostRuntime, order: ToldMessage, deliver: boolean): Promise<Start> {
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
    return { kind: isHostRefusal(error) ? "refused" : "unknown", message: formatErrorSentence(error) };
  }
}

/**
 * True where the session belongs to a chat, which then shows the answer. For a session without one the host would look
 * for any chat that is configured, and could tell a stranger.
 */
function hasChat(runtime: HostRuntime, sessionKey: SessionKey): boolean {
  const agentId = sessionKey.split(":")[1] ?? "main";
  return readSessionEntry(runtime.agent.session, sessionKey, agentId)?.delivery?.kind === "external";
}
