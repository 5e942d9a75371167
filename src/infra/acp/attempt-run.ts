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
import type { Order, Start } from "../../agents/coordination/ports/agent-runner.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type { Logger } from "../../agents/coordination/ports/logger.ts";
import { waitWithin } from "../../agents/coordination/std/wait-for.ts";
import type { AcpLimits } from "./acp-limits.ts";
import { AgentFailure, sentenceOf, type Exit } from "./agent-failure.ts";
import type { AgentNotes } from "./agent-notes.ts";
import { startProcess, stopProcess, type AgentProcess } from "./agent-process.ts";
import { openConversation, type Conversation, type Prompted } from "./conversation.ts";
import { endingOf } from "./stop-reason.ts";

export interface AttemptJob {
  readonly order: Order;
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
type Situation =
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
interface Course {
  situation: Situation;
  cancelled: boolean;
  /** The process did not go, whatever we did. */
  unreachable: boolean;
}

export function startAttempt(job: AttemptJob): AttemptRun {
  const course: Course = { situation: { kind: "starting" }, cancelled: false, unreachable: false };
  const { promise: started, resolve: onStarted } = Promise.withResolvers<Start>();
  const ending = runAttempt(job, course, onStarted);
  return {
    started,
    gone: ending,
    observe: () => observationOf(course.situation),
    cancel: () => cancelAttempt(job, course, ending),
  };
}

async function runAttempt(
  job: AttemptJob,
  course: Course,
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
    refuse(sentenceOf(error, undefined));
    return undefined;
  }
  const { config, programVersion, limits } = job;
  const conversation = openConversation(agent, { permissions: config.permissions, programVersion, limits });
  void endWithProcess(agent, conversation, job);
  const running: Running = { job, course, agent, conversation };
  let prompted: Prompted;
  try {
    await job.notes.add(job.order.idempotencyKey, agent.pid);
    prompted = await begin(job, course, conversation);
  } catch (error) {
    refuse(sentenceOf(error, await end(running, error)));
    return undefined;
  }
  const child = childOf(job.order, prompted.sessionId);
  course.situation = { kind: "running", child, conversation, sessionId: prompted.sessionId };
  onStarted({ kind: "started", child });
  const ending = await awaitEnding(prompted.answer, child, running);
  course.situation = { kind: "ended", child, ending };
  return ending;
}

/** Starts the process, once no earlier process of the gateway has an agent at work. */
async function startAgent({ order, config, cwd, isLeft }: AttemptJob, course: Course): Promise<AgentProcess> {
  if (await isLeft(order.idempotencyKey)) {
    course.unreachable = true;
    throw new AgentFailure(
      "The agent of this attempt may still run since an earlier process of the gateway.",
    );
  }
  return startProcess(config, cwd);
}

/** Sends the prompt, within the time that a start may take. */
async function begin(
  { order, cwd, clock, limits }: AttemptJob,
  course: Course,
  conversation: Conversation,
): Promise<Prompted> {
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

interface Running {
  readonly job: AttemptJob;
  readonly course: Course;
  readonly agent: AgentProcess;
  readonly conversation: Conversation;
}

async function awaitEnding(
  answer: Promise<unknown>,
  child: ObservedChild,
  running: Running,
): Promise<ChildEnding> {
  const { course, conversation } = running;
  const stopping: Situation = { kind: "stopping", child };
  let stopReason: unknown;
  try {
    stopReason = await answer;
  } catch (error) {
    course.situation = stopping;
    const outcome = course.cancelled ? "cancelled" : "failed";
    const message = sentenceOf(error, await end(running, error));
    const usage = conversation.words.usage();
    return { outcome, message, ...(usage && { usage }) };
  }
  course.situation = stopping;
  const ending = endingOf(stopReason, conversation.words);
  await end(running);
  return ending;
}

/** Ends the process: at once when it is at fault, else it may go by itself. */
async function end(
  { job, course, agent, conversation }: Running,
  error?: unknown,
): Promise<Exit | undefined> {
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
 * A connection ends with its pipe, not with the process: the last answer may still be in it. But what the process
 * started may hold the pipe open for ever.
 */
async function endWithProcess(
  agent: AgentProcess,
  conversation: Conversation,
  { clock, limits }: AttemptJob,
): Promise<void> {
  await agent.exited;
  await waitWithin(clock, limits.exitMs, conversation.closed, undefined);
  conversation.close();
}

function childOf({ childSessionKey }: Order, sessionId: string): ObservedChild {
  return {
    childSessionKey,
    childRunId: sessionId.slice(0, BOUNDS.sessionKeyCharsMax).toWellFormed(),
  };
}

function observationOf(situation: Situation): Observation {
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

async function cancelAttempt(
  { clock, limits }: AttemptJob,
  course: Course,
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
