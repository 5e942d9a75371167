/**
 * Owns: one attempt from the start of its process until the process is gone.
 *
 * An attempt counts as ended only then: a next attempt, or a step that waits for this one, must not meet an agent that
 * still writes to its folder.
 */
import { BOUNDS } from "../../agents/coordination/contracts/bounds.ts";
import type { AcpAgentConfig } from "../../agents/coordination/contracts/config/config.ts";
import { addMs, type IdempotencyKey } from "../../agents/coordination/contracts/ids.ts";
import type {
  Cancellation,
  ChildEnding,
  Observation,
  ObservedChild,
} from "../../agents/coordination/contracts/observation.ts";
import type { AttemptOrder, Start } from "../../agents/coordination/ports/agent-runner.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type { Logger } from "../../agents/coordination/ports/logger.ts";
import { waitWithin } from "../../agents/coordination/std/wait-for.ts";
import type { AcpLimits } from "./acp-limits.ts";
import { AgentFailure, describeMissingAnswer, type ProcessExit } from "./agent-failure.ts";
import type { AgentNotes } from "./agent-notes.ts";
import { startAgentProcess, stopProcess, type AgentProcess } from "./agent-process.ts";
import { openConversation, type Conversation, type SentPrompt } from "./conversation.ts";
import { judgeStopReason } from "./stop-reason.ts";

export interface AttemptJob {
  readonly order: AttemptOrder;
  readonly config: AcpAgentConfig;
  readonly cwd: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly programVersion: string;
  readonly limits: AcpLimits;
  readonly notes: AgentNotes;
  /** True for an attempt that may still run since an earlier process of the gateway. */
  readonly isLeft: (key: IdempotencyKey) => Promise<boolean>;
}

export interface AttemptRun {
  readonly started: Promise<Start>;
  /** Resolves when the process is gone: with the ending, or with nothing when the prompt was never sent. */
  readonly gone: Promise<ChildEnding | undefined>;
  observe(): Observation;
  cancel(): Promise<Cancellation>;
}

/** How far the attempt is, for those who ask and for those who cancel. */
type AttemptSituation =
  | { readonly kind: "starting"; readonly conversation?: Conversation }
  | {
      readonly kind: "running";
      readonly child: ObservedChild;
      readonly conversation: Conversation;
      readonly sessionId: string;
    }
  | { readonly kind: "stopping"; readonly child: ObservedChild }
  | { readonly kind: "ended"; readonly child: ObservedChild; readonly ending: ChildEnding }
  | { readonly kind: "refused" };

/** The state of an attempt while it runs. */
interface AttemptCourse {
  situation: AttemptSituation;
  cancelled: boolean;
  /** The process did not go, whatever we did. */
  unreachable: boolean;
}

/** Starts an attempt with an ACP agent in the background, and returns at once the run that observes and cancels it. */
export function startAttempt(job: AttemptJob): AttemptRun {
  const course: AttemptCourse = { situation: { kind: "starting" }, cancelled: false, unreachable: false };
  const { promise: started, resolve: onStarted } = Promise.withResolvers<Start>();
  const ending = runAttempt(job, course, onStarted);
  return {
    started,
    gone: ending,
    observe: () => observeSituation(course.situation),
    cancel: () => cancelAttempt(job, course, ending),
  };
}

/** Runs an attempt until its process is gone. Returns its ending; nothing where the prompt was never sent. */
async function runAttempt(
  job: AttemptJob,
  course: AttemptCourse,
  onStarted: (start: Start) => void,
): Promise<ChildEnding | undefined> {
  const refuse = (message: string): void => {
    course.situation = { kind: "refused" };
    onStarted({ kind: course.unreachable ? "unknown" : "refused", message });
  };
  let agent: AgentProcess;
  try {
    agent = await startAgent(job, course);
  } catch (error) {
    refuse(describeMissingAnswer(error, undefined));
    return undefined;
  }
  const { config, programVersion, limits } = job;
  const conversation = openConversation(agent, { permissions: config.permissions, programVersion, limits });
  void closeAfterExit(agent, conversation, job);
  const running: RunningAttempt = { job, course, agent, conversation };
  let prompted: SentPrompt;
  try {
    await job.notes.add(job.order.idempotencyKey, agent.pid);
    prompted = await sendPrompt(job, course, conversation);
  } catch (error) {
    refuse(describeMissingAnswer(error, await endAgentProcess(running, error)));
    return undefined;
  }
  const child = createObservedChild(job.order, prompted.sessionId);
  course.situation = { kind: "running", child, conversation, sessionId: prompted.sessionId };
  onStarted({ kind: "started", child });
  const ending = await awaitEnding(prompted.answer, child, running);
  course.situation = { kind: "ended", child, ending };
  return ending;
}

/**
 * Starts the agent's process. Throws AgentFailure where it cannot be started, or one of this attempt may still run
 * since an earlier process of the gateway.
 */
async function startAgent(
  { order, config, cwd, isLeft }: AttemptJob,
  course: AttemptCourse,
): Promise<AgentProcess> {
  if (await isLeft(order.idempotencyKey)) {
    course.unreachable = true;
    throw new AgentFailure(
      "The agent of this attempt may still run since an earlier process of the gateway.",
    );
  }
  return startAgentProcess(config, cwd);
}

/**
 * Opens a session and sends the prompt. Rejects with AgentFailure after the time that a start may take, and where the
 * attempt was cancelled before.
 */
async function sendPrompt(
  { order, cwd, clock, limits }: AttemptJob,
  course: AttemptCourse,
  conversation: Conversation,
): Promise<SentPrompt> {
  course.situation = { kind: "starting", conversation };
  if (course.cancelled) throw createEarlyCancellation();
  const cancelTimer = clock.wakeAt(addMs(clock.now(), limits.startMs), () =>
    conversation.close(new AgentFailure(`The agent was not ready within ${limits.startMs} ms.`)),
  );
  try {
    return await conversation.prompt(order, cwd);
  } finally {
    cancelTimer();
  }
}

/** An attempt at work, with its process and its conversation. */
interface RunningAttempt {
  readonly job: AttemptJob;
  readonly course: AttemptCourse;
  readonly agent: AgentProcess;
  readonly conversation: Conversation;
}

/** Waits for the answer to the prompt and the end of the process, and returns how the attempt ended. */
async function awaitEnding(
  answer: Promise<unknown>,
  child: ObservedChild,
  running: RunningAttempt,
): Promise<ChildEnding> {
  const { course, conversation } = running;
  const stopping: AttemptSituation = { kind: "stopping", child };
  let stopReason: unknown;
  try {
    stopReason = await answer;
  } catch (error) {
    course.situation = stopping;
    const outcome = course.cancelled ? "cancelled" : "failed";
    const message = describeMissingAnswer(error, await endAgentProcess(running, error));
    const usage = conversation.words.usage();
    return { outcome, message, ...(usage && { usage }) };
  }
  course.situation = stopping;
  const ending = judgeStopReason(stopReason, conversation.words);
  await endAgentProcess(running);
  return ending;
}

/**
 * Ends the process: at once where `error` is the agent's fault, else after it had time to go by itself. Returns its
 * exit; nothing where it cannot be killed.
 */
async function endAgentProcess(
  { job, course, agent, conversation }: RunningAttempt,
  error?: unknown,
): Promise<ProcessExit | undefined> {
  const { clock, limits, logger, order, notes } = job;
  const exit = await stopProcess(agent, error instanceof AgentFailure ? 0 : limits.exitMs, { clock, limits });
  conversation.close();
  const fields = {
    idempotencyKey: order.idempotencyKey,
    pid: agent.pid,
    exitCode: exit?.code ?? undefined,
    signal: exit?.signal ?? undefined,
    stderrBytes: agent.stderrBytes(),
  };
  if (exit) {
    logger.debug(fields, "an ACP agent's process ended");
    await notes.remove(order.idempotencyKey);
  } else {
    course.unreachable = true;
    logger.warn(fields, "an ACP agent's process cannot be killed");
  }
  return exit;
}

/**
 * Closes the conversation after the process has exited. It waits a while for the connection's own end, because the
 * last answer may still be in the pipe; but what the process started may hold the pipe open for ever.
 */
async function closeAfterExit(
  agent: AgentProcess,
  conversation: Conversation,
  { clock, limits }: AttemptJob,
): Promise<void> {
  await agent.exited;
  await waitWithin(clock, limits.exitMs, conversation.closed, undefined);
  conversation.close();
}

/**
 * Returns the child session of an attempt: the session key of its order, and the id of the agent's ACP session, cut to
 * the longest that is allowed, as its run id.
 */
function createObservedChild({ childSessionKey }: AttemptOrder, sessionId: string): ObservedChild {
  return {
    childSessionKey,
    childRunId: sessionId.slice(0, BOUNDS.sessionKeyCharsMax).toWellFormed(),
  };
}

function observeSituation(situation: AttemptSituation): Observation {
  switch (situation.kind) {
    case "starting":
      return { kind: "unknown" };
    case "running":
    case "stopping":
      return { kind: "running", ...situation.child };
    case "ended":
      return { kind: "ended", ...situation.child, ...situation.ending };
    case "refused":
      return { kind: "absent" };
  }
}

/**
 * Asks the agent to stop, ends its process by force where it does not stop in time, and resolves with what came of it:
 * `unreachable` where the process cannot be killed.
 */
async function cancelAttempt(
  { clock, limits }: AttemptJob,
  course: AttemptCourse,
  childEnding: Promise<ChildEnding | undefined>,
): Promise<Cancellation> {
  const { situation } = course;
  if (situation.kind === "ended" || situation.kind === "refused")
    return course.unreachable ? "unreachable" : "already_ended";
  course.cancelled = true;
  if (situation.kind === "starting") situation.conversation?.close(createEarlyCancellation());
  else if (situation.kind === "running") {
    const { conversation, sessionId } = situation;
    conversation.cancel(sessionId);
    const cancelTimer = clock.wakeAt(addMs(clock.now(), limits.cancelMs), () =>
      conversation.close(new AgentFailure(`The agent did not stop within ${limits.cancelMs} ms.`)),
    );
    void childEnding.then(cancelTimer);
  }
  const ending = await childEnding;
  if (course.unreachable) return "unreachable";
  return ending === undefined || ending.outcome === "cancelled" ? "stopped" : "already_ended";
}

function createEarlyCancellation(): AgentFailure {
  return new AgentFailure("The attempt was cancelled while the agent was starting.");
}
