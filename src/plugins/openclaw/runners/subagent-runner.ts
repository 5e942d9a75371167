/**
 * Owns: `AgentRunner` for steps that run as OpenClaw subagents. The attempt's key is the host's key and its run id; the
 * session is the attempt's own, so that the host can be asked about both after any crash.
 *
 * The host remembers a key only within one process. After a restart the row tells that the run began (D2).
 */
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import type {
  Cancellation,
  Observation,
  ObservedChild,
} from "../../../agents/coordination/contracts/observation.ts";
import type {
  AgentRunner,
  Attempt,
  AttemptOrder,
  Start,
} from "../../../agents/coordination/ports/agent-runner.ts";
import { waitWithin } from "../../../agents/coordination/std/wait-for.ts";
import { cancelRowRun, cancelSpawnsBelow } from "./cancel-rows.ts";
import {
  readRowEnding,
  readLastReply,
  findRunRow,
  observeUntilEnd,
  isRowOpen,
  isHostRefusal,
  mayStillGetRow,
  formatErrorSentence,
  readTranscript,
  formatRowOwner,
  getHostRunId,
  sliceFromRunBegin,
  createObservedStart,
  sumUsage,
  type HostRuntime,
  type RunnerDependencies,
  type TaskRow,
} from "../host/host-runs.ts";
import { readProviderRefusal, type ProviderRefusal } from "../host/provider-refusal.ts";
import { formatPromptContext } from "./prompt-context.ts";

/** The host takes 0.2 s for an agent and its agents, and gives up itself after 15 s. */
const CANCEL_MS_MAX = 20_000;

/**
 * Names the lane of the host that an attempt runs on. Work runs on the one for subagents, with its limit. Any lane that is not
 * the host's own runs one agent at a time, so each attempt of our control and escalation lanes gets one to itself: it waits
 * for its place with us, where its time has not begun, and for no agent that waits for it. The host forgets lanes that begin
 * with `nested:` when they are empty.
 */
function nameHostLane({ lane, idempotencyKey }: AttemptOrder): string {
  return lane === "data" ? "subagent" : `nested:coord:${lane}:${idempotencyKey}`;
}

export interface SubagentRunnerDependencies extends RunnerDependencies {
  /** Our tools that the agent gets besides those of its profile. They must be registered: else the host refuses the run. */
  readonly tools: readonly string[];
  /** Where the folder of an attempt is noted that works in one of its own. */
  readonly assignedFolders: { set(session: string, folder: string): unknown };
}

/**
 * Creates the runner that starts, observes and follows the attempts of steps as subagents of the host; an attempt that
 * may still begin is not reported as absent.
 */
export function createSubagentRunner(
  runtime: HostRuntime,
  dependencies: SubagentRunnerDependencies,
): AgentRunner {
  /** Keys that the host is being asked to run right now. */
  const starting = new Set<string>();
  const observe = (attempt: Attempt): Promise<Observation> => {
    const mayBegin = starting.has(attempt.idempotencyKey) || mayStillGetRow(attempt, dependencies.clock);
    return observeAttempt(runtime, dependencies, attempt, mayBegin);
  };
  return {
    start: async (order) => {
      starting.add(order.idempotencyKey);
      try {
        return await startAttempt(runtime, dependencies, order);
      } finally {
        starting.delete(order.idempotencyKey);
      }
    },
    observe,
    follow: (attempt, signal) =>
      observeUntilEnd(
        runtime,
        { clock: dependencies.clock, observe: () => observe(attempt) },
        attempt,
        signal,
      ),
    cancel: (attempt) =>
      waitWithin(
        dependencies.clock,
        CANCEL_MS_MAX,
        cancelAttempt(runtime, dependencies, attempt),
        "unreachable" as const,
      ),
  };
}

/** Starts the run of an attempt; returns how it stands where it had begun before. */
async function startAttempt(
  runtime: HostRuntime,
  dependencies: SubagentRunnerDependencies,
  order: AttemptOrder,
): Promise<Start> {
  try {
    const before = await findRunRow(runtime, order);
    if (before) return createObservedStart(await readRunRow(runtime, order, before));
  } catch (error) {
    return { kind: "unknown", message: formatErrorSentence(error) };
  }
  const { folder } = order;
  if (folder !== undefined) dependencies.assignedFolders.set(order.childSessionKey, folder);
  try {
    const { runId, sessionKey } = await runtime.subagent.run({
      sessionKey: order.childSessionKey,
      message: order.message,
      extraSystemPrompt: formatStepContext(order),
      lane: nameHostLane(order),
      deliver: false,
      idempotencyKey: order.idempotencyKey,
      ...(order.folder !== undefined && { cwd: order.folder }),
      ...(dependencies.tools.length > 0 && { toolsAlsoAllow: [...dependencies.tools] }),
    });
    const childSessionKey = (sessionKey ?? order.childSessionKey) as SessionKey;
    if (folder !== undefined) await writeRunFolder(runtime, dependencies, { order, folder });
    return { kind: "started", child: { childSessionKey, childRunId: runId } };
  } catch (error) {
    return { kind: isHostRefusal(error) ? "refused" : "unknown", message: formatErrorSentence(error) };
  }
}

/**
 * Writes the folder of a run to its session's entry. The host goes on with a run after a restart, and then finds its
 * folder there alone.
 */
async function writeRunFolder(
  runtime: HostRuntime,
  { logger }: RunnerDependencies,
  { order, folder }: { readonly order: AttemptOrder; readonly folder: string },
): Promise<void> {
  const { childSessionKey: sessionKey, agentId } = order;
  try {
    await runtime.agent.session.patchSessionEntry({
      sessionKey,
      agentId,
      preserveActivity: true,
      update: () => ({ spawnedCwd: folder }),
    });
  } catch (error) {
    logger.warn(
      { session: sessionKey },
      `the host does not keep the folder of a run: ${formatErrorSentence(error)}`,
    );
  }
}

/** Returns how the run of an attempt stands; without a row `absent`, or `unknown` where it may still begin. */
async function observeAttempt(
  runtime: HostRuntime,
  { logger }: RunnerDependencies,
  attempt: Attempt,
  mayBegin: boolean,
): Promise<Observation> {
  try {
    const row = await findRunRow(runtime, attempt);
    if (row) return await readRunRow(runtime, attempt, row);
    return { kind: mayBegin ? "unknown" : "absent" };
  } catch (error) {
    logger.warn(
      { key: attempt.idempotencyKey },
      `the host does not say how a run goes: ${formatErrorSentence(error)}`,
    );
    return { kind: "unknown" };
  }
}

/** Returns how a run stands by its row; of one that ended also its reply, its usage and a provider's refusal. */
async function readRunRow(
  runtime: HostRuntime,
  attempt: Attempt,
  row: TaskRow,
): Promise<Extract<Observation, ObservedChild>> {
  const { childSessionKey } = attempt;
  const child = { childSessionKey, childRunId: getHostRunId(attempt) };
  if (isRowOpen(row)) return { kind: "running", ...child };
  const transcript = await readTranscript(runtime, childSessionKey);
  // A session that revises its result has the words of earlier attempts, too.
  const messages = sliceFromRunBegin(transcript, getHostRunId(attempt)) ?? transcript;
  const usage = sumUsage(messages);
  const refusal = readProviderRefusal(messages.findLast(({ role }) => role === "assistant"));
  return {
    kind: "ended",
    ...child,
    ...readRowEnding(row),
    ...readLastReply(messages),
    ...(usage && { usage }),
    ...(refusal && { refusal: omitProvider(refusal) }),
  };
}

function omitProvider({ retryAfterMs }: ProviderRefusal): { readonly retryAfterMs?: number } {
  return { ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

/** Stops the run of an attempt and all that its agent has spawned. */
async function cancelAttempt(
  runtime: HostRuntime,
  { clock, logger }: RunnerDependencies,
  attempt: Attempt,
): Promise<Cancellation> {
  try {
    const row = await findRunRow(runtime, attempt);
    if (!row) return mayStillGetRow(attempt, clock) ? "unreachable" : "already_ended";
    const cancellation = isRowOpen(row)
      ? await cancelRowRun(runtime, formatRowOwner(runtime, attempt.childSessionKey), row)
      : "already_ended";
    // The host stops the agents below a running one, but an agent that ended may have left some at work.
    const below = await cancelSpawnsBelow(runtime, attempt.childSessionKey);
    return below === "unreachable" ? below : cancellation;
  } catch (error) {
    logger.warn(
      { key: attempt.idempotencyKey },
      `the host does not cancel a run: ${formatErrorSentence(error)}`,
    );
    return "unreachable";
  }
}

/** Formats what the agent of a step reads besides its task: its envelope, and how the result gets back. */
function formatStepContext({ envelope, outputSchema }: AttemptOrder): string {
  return [
    formatPromptContext(envelope),
    "<coordination-report>",
    "Before your last message call the tool `coordination_report` once. `outcome` is `completed` or `failed`; `outputs` is",
    "your result as JSON; `confidence` says how sure you are of it; `evidence` says what it rests on.",
    ...(outputSchema ? [`\`outputs\` must satisfy this JSON Schema: ${JSON.stringify(outputSchema)}`] : []),
    "Where you do not have this tool, let your last message be the outputs as one JSON object.",
    "If you spawn agents of your own, call `sessions_yield` to wait for them: what they say after your last message is lost.",
    "</coordination-report>",
  ].join("\n");
}
