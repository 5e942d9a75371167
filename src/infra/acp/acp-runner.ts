/**
 * Owns: `AgentRunner` for agents that are programs speaking the Agent Client Protocol over stdio: one process per
 * attempt, and which attempts are known. An attempt that is not known here does not run: an agent ends
 * with the pipe to us, and is killed before anything else where it did not.
 */
import { resolve } from "node:path";
import type { AcpAgentConfig } from "../../agents/coordination/contracts/config/config.ts";
import type { AgentId, IdempotencyKey } from "../../agents/coordination/contracts/ids.ts";
import type { Observation } from "../../agents/coordination/contracts/observation.ts";
import type { AgentRunner, AttemptOrder, Start } from "../../agents/coordination/ports/agent-runner.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type { Logger } from "../../agents/coordination/ports/logger.ts";
import { waitUnlessAborted } from "../../agents/coordination/std/wait-for.ts";
import { ACP_LIMITS, type AcpLimits } from "./acp-limits.ts";
import { createAgentNotes, type AgentNotes } from "./agent-notes.ts";
import { startAttempt, type AttemptJob, type AttemptRun } from "./attempt-run.ts";

export interface AcpRunnerOptions {
  readonly agents: Readonly<Record<string, AcpAgentConfig>>;
  /** The folder of an agent whose configuration names none. */
  readonly defaultCwd: (agentId: AgentId) => string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Our version, which agents are told. */
  readonly programVersion: string;
  /** Where the processes that run are noted, for the next process of the gateway. */
  readonly notesFolder: string;
  readonly limits?: Partial<AcpLimits>;
}

export interface AcpRunner extends AgentRunner {
  /** Cancels all that run, and resolves when their processes are gone. Nothing starts afterwards. */
  close(): Promise<void>;
}

/**
 * Creates the runner of attempts whose agents are processes that speak ACP. It ends at once what earlier processes of
 * the gateway left running.
 */
export function createAcpRunner(options: AcpRunnerOptions): AcpRunner {
  const limits: AcpLimits = { ...ACP_LIMITS, ...options.limits };
  const runs = new Map<IdempotencyKey, AttemptRun>();
  const notes = createAgentNotes({ ...options, limits });
  const isLeft = createLeftoverRunLookup(notes);
  const forgetOldest = createEndedMemory(limits, (key) => runs.delete(key));
  let closing = false;

  const begin = (order: AttemptOrder): AttemptRun | Start => {
    if (closing) return createRefusal("The gateway is stopping.");
    const job = prepareJob(order, { ...options, limits, notes, isLeft });
    if ("kind" in job) return job;
    const run = startAttempt(job);
    runs.set(order.idempotencyKey, run);
    void freezeEndedRun(run).then((kept) => {
      runs.delete(order.idempotencyKey);
      if (!kept) return;
      runs.set(order.idempotencyKey, kept.run);
      forgetOldest(order.idempotencyKey, kept.replyChars);
    });
    return run;
  };

  return {
    start: async (order) => {
      const run = runs.get(order.idempotencyKey) ?? begin(order);
      return "started" in run ? awaitAttemptStart(run) : run;
    },
    observe: async ({ idempotencyKey }) =>
      runs.get(idempotencyKey)?.observe() ?? { kind: (await isLeft(idempotencyKey)) ? "unknown" : "absent" },
    follow: async ({ idempotencyKey }, signal) => {
      const run = runs.get(idempotencyKey);
      if (run) return waitUnlessAborted(observeAfterEnd(run), signal, { kind: "unknown" });
      return { kind: (await isLeft(idempotencyKey)) ? "unknown" : "absent" };
    },
    cancel: async ({ idempotencyKey }) => {
      const run = runs.get(idempotencyKey);
      if (run) return run.cancel();
      return (await isLeft(idempotencyKey)) ? "unreachable" : "already_ended";
    },
    close: async () => {
      closing = true;
      await Promise.all([...runs.values()].map((run) => run.cancel()));
    },
  };
}

/**
 * Creates a function that says whether an attempt may still run since an earlier process of the gateway. All are ended
 * at once, because nobody asks for those that another gateway has taken over; one that could not be ended is tried
 * again when it is asked for.
 */
function createLeftoverRunLookup(notes: AgentNotes): (key: IdempotencyKey) => Promise<boolean> {
  let looked = notes.endLeft();
  return async (key) => {
    const left = await looked;
    if (!left.has(key)) return false;
    looked = notes.endLeft();
    return (await looked).has(key);
  };
}

interface JobOptions extends AcpRunnerOptions {
  readonly limits: AcpLimits;
  readonly notes: AgentNotes;
  readonly isLeft: AttemptJob["isLeft"];
}

/** Returns what an attempt needs to run, or a refusal where its agent or its folder is missing. */
function prepareJob(order: AttemptOrder, options: JobOptions): AttemptJob | Start {
  const config = Object.hasOwn(options.agents, order.agentId) ? options.agents[order.agentId] : undefined;
  if (!config) return createRefusal(`There is no ACP agent named ${order.agentId}.`);
  try {
    const cwd = resolve(order.folder ?? config.cwd ?? options.defaultCwd(order.agentId));
    return { ...options, order, config, cwd };
  } catch {
    return createRefusal(`There is no folder for the ACP agent ${order.agentId}.`);
  }
}

/**
 * Waits for an attempt's end and returns a run that only repeats how it ended, so that what it took to run it can be
 * let go; `undefined` where it never began.
 */
async function freezeEndedRun(
  run: AttemptRun,
): Promise<{ readonly run: AttemptRun; readonly replyChars: number } | undefined> {
  const ending = await run.gone;
  if (!ending) return undefined;
  const { started, gone: exited } = run;
  const seen = run.observe();
  const cancelled = await run.cancel();
  return {
    run: { started, gone: exited, observe: () => seen, cancel: () => Promise.resolve(cancelled) },
    replyChars: (ending.reply?.length ?? 0) + (ending.replyEnd?.length ?? 0),
  };
}

function createRefusal(message: string): Start {
  return { kind: "refused", message };
}

/** Waits for the start and returns it, with the ending where there is one already. */
async function awaitAttemptStart(run: AttemptRun): Promise<Start> {
  const start = await run.started;
  const seen = run.observe();
  if (start.kind !== "started" || seen.kind !== "ended") return start;
  const { kind: _kind, childRunId: _run, childSessionKey: _session, ...ending } = seen;
  return { ...start, ending };
}

/** Waits until the process is gone and returns what is observed then. */
async function observeAfterEnd(run: AttemptRun): Promise<Observation> {
  await run.gone;
  return run.observe();
}

/** Creates a function that notes each attempt that ended, and forgets the oldest ones beyond the bounds. */
function createEndedMemory(
  { endedMax, endedReplyCharsMax }: AcpLimits,
  forget: (key: IdempotencyKey) => void,
): (key: IdempotencyKey, replyChars: number) => void {
  const kept = new Map<IdempotencyKey, number>();
  let chars = 0;
  return (key, replyChars) => {
    kept.set(key, replyChars);
    chars += replyChars;
    for (const [oldest, oldestChars] of kept) {
      if (kept.size <= endedMax && chars <= endedReplyCharsMax) return;
      kept.delete(oldest);
      chars -= oldestChars;
      forget(oldest);
    }
  };
}
