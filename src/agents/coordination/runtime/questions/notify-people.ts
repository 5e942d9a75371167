/**
 * Owns: telling people of an open question through a channel, and recording what became of that. After a crash the same notice may
 * go out again under the same id; one that was given up is not tried again, and the log shows it unless the question was settled
 * meanwhile.
 */
import { nameGatewayAway, type OwnerPlace } from "../../contracts/coordination-summary.ts";
import type { Channel } from "../../contracts/escalation.ts";
import type { FactPayloads } from "../../contracts/facts.ts";
import type { CoordinationId } from "../../contracts/ids.ts";
import type { ContentSource } from "../../ports/content-store.ts";
import { listPossibleAnswers } from "../../escalation/rule-on-answer.ts";
import type { NotifyPeople } from "../../dispatch/effects/gate-effects.ts";
import { countEarlierNotices, listUnsentNotices } from "../../escalation/notices.ts";
import type { Escalation, OpenCoordination } from "../../ledger/state.ts";
import type { ChannelNotice, HumanChannel, NoticeOutcome, Question } from "../../ports/human-channel.ts";
import { askWithin } from "../environment/bounded-answer.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { isQuestionAboutResult } from "../../ledger/evolve-questions.ts";
import { findOverwrite, type Overwrite } from "../../ledger/overwritten-files.ts";
import { findReportBehindQuestion } from "../../ledger/readable-results.ts";
import { listRunDifferences } from "../../ledger/step-notes.ts";
import { isQuestionWithheld } from "../../ledger/withheld-words.ts";
import { formatShellArguments } from "../../std/shell-arguments.ts";
import { listOwnersAround } from "./plan-owners.ts";
import { createQuestionId } from "./question-requests.ts";
import { quoteUnlessPlain, removeUnseen } from "./plain-text.ts";
import { readQuestionText } from "./question-text.ts";
import { readReportedReason } from "./reported-reason.ts";

export interface NotifyDependencies extends RuntimeDependencies {
  readonly stopping: AbortSignal;
}

/**
 * Sends one notice of an open question through its channel, and records what became of that; does nothing where the
 * question is closed or the notice was sent. A failure is recorded and warned of, unless the question was answered or
 * given up in the meantime.
 */
export async function notifyPeople(
  dependencies: NotifyDependencies,
  { coordinationId }: OpenCoordination,
  { escalationId, notice, channel }: NotifyPeople,
): Promise<void> {
  const unsentNotice = await dependencies.runs.findOnDisk(coordinationId, (state) => {
    const escalation = state.kind === "open" ? state.escalations.get(escalationId) : undefined;
    if (state.kind !== "open" || !escalation || escalation.closed) return undefined;
    const isUnsent = listUnsentNotices(escalation).some((unsent) => unsent.notice === notice);
    return isUnsent ? { state, escalation } : undefined;
  });
  if (!unsentNotice) return;
  const question = await createChannelQuestion(dependencies, unsentNotice.state, unsentNotice.escalation);
  const noticeId = `${question.questionId}:${notice}`;
  const chat = await findSessionOfPeople(dependencies, unsentNotice.state.created);
  const away = findGatewayAway(dependencies, channel, chat);
  const message: ChannelNotice = {
    noticeId,
    question,
    chatSession: chat.ownerSession,
    notice: countEarlierNotices(unsentNotice.escalation.notices ?? [], notice),
    signal: dependencies.stopping,
    isOpen: async () => (await findResolution(dependencies, coordinationId, escalationId)) === undefined,
  };
  const outcome =
    away === undefined
      ? await notifyChannel(dependencies, dependencies.channelOf(channel), message)
      : createFailedNotice(`the session that people talk to is in gateway ${away}`);
  if (dependencies.stopping.aborted) return;
  if (outcome.kind === "failed") {
    // Nobody misses a question that was answered or given up in the meantime; of one that expired people should have heard.
    const resolution = await findResolution(dependencies, coordinationId, escalationId);
    if (resolution !== undefined && resolution !== "expired") return;
    dependencies.logger.warn(
      { runId: coordinationId, question: escalationId, channel, tries: outcome.tries },
      `people were not told of a question: ${outcome.message}`,
    );
  }
  await dependencies.runs.submit(coordinationId, [
    {
      type: "recordNotice",
      escalationId,
      notice,
      channel,
      outcome: outcome.kind,
      tries: Math.max(1, outcome.tries),
    },
  ]);
}

/** Finds how a question was closed, also by another process; `undefined` while it is open, or where the ledger cannot be read. */
async function findResolution(
  { runs }: NotifyDependencies,
  coordinationId: CoordinationId,
  escalationId: string,
): Promise<FactPayloads["escalation.closed"]["resolution"] | undefined> {
  const state = await runs.latest(coordinationId).catch(() => undefined);
  return !state || state.kind === "unopened"
    ? undefined
    : state.escalations.get(escalationId)?.closed?.resolution;
}

/** Finds the session that people talk to, with its gateway. A subagent has no chat, and may be at work. */
async function findSessionOfPeople({ store }: NotifyDependencies, owner: OwnerPlace): Promise<OwnerPlace> {
  const owners = await listOwnersAround(store, owner.ownerSession);
  return owners.at(-1) ?? owner;
}

/** The channels that tell people in a session of this gateway. */
const OF_SESSION: ReadonlySet<Channel> = new Set(["chat", "host"]);

/** Finds the gateway in which the channel would have to tell people. A session here has at most the key in common with theirs. */
function findGatewayAway(
  { settings }: NotifyDependencies,
  channel: Channel,
  chat: OwnerPlace,
): string | undefined {
  return OF_SESSION.has(channel) ? nameGatewayAway(chat, settings) : undefined;
}

function createFailedNotice(message: string): NoticeOutcome {
  return { kind: "failed", tries: 1, message };
}

/** Sends a notice through a channel. One that throws, or says nothing until the question is over, has told nobody. */
function notifyChannel(
  dependencies: NotifyDependencies,
  to: HumanChannel | undefined,
  notice: ChannelNotice,
): Promise<NoticeOutcome> {
  if (!to) return Promise.resolve(createFailedNotice("there is no such channel"));
  const waitMs = Math.max(1, notice.question.deadlineAtMs - dependencies.clock.now());
  const waiting = { ...dependencies, waitMs, signal: dependencies.stopping };
  return askWithin(waiting, () => to.notify(notice), createFailedNotice("the channel gave no answer"));
}

/**
 * Creates the question as channels show it to people, with its title, text and possible answers; where its text is
 * withheld, the title says so in place of it.
 */
export async function createChannelQuestion(
  dependencies: ContentSource,
  { coordinationId, created, steps, conflicts }: OpenCoordination,
  escalation: Escalation,
): Promise<Question> {
  const {
    escalationId,
    cause,
    kind,
    stepId,
    askedBy,
    deadlineAtMs,
    onExpiry = "deny",
    confidence,
  } = escalation;
  const questionId = createQuestionId(coordinationId, escalationId);
  const about = formatTitle(escalation, findOverwrite({ conflicts, steps }, escalation));
  const title = isAlsoMismatch(steps, escalation) ? `${about} Its agent did not run as it was asked.` : about;
  return {
    questionId,
    coordinationId,
    escalationId,
    cause,
    kind,
    deadlineAtMs,
    onExpiry,
    ownerSession: created.ownerSession,
    ...(stepId && { stepId }),
    ...(askedBy && { askedBy }),
    ...(isQuestionWithheld(steps, escalation)
      ? { title: `${title} ${describeWithheld(questionId)}` }
      : {
          title,
          ...(await readReasonField(dependencies, steps, escalation)),
          ...(await readShownQuestion(dependencies, escalation)),
        }),
    answers: listPossibleAnswers(escalation),
    ...(confidence && {
      confidence: {
        floor: confidence.floor / 10_000,
        ...(confidence.measured !== undefined && { measured: confidence.measured / 10_000 }),
      },
    }),
  };
}

/** Reads why the agent says that it could not do the step, where people are asked whether that is tried once more. */
async function readReasonField(
  dependencies: ContentSource,
  steps: OpenCoordination["steps"],
  escalation: Escalation,
): Promise<Pick<Question, "text">> {
  const report = findReportBehindQuestion(steps, escalation);
  const text = report && (await readReportedReason(dependencies, report));
  return text === undefined ? {} : { text };
}

async function readShownQuestion(
  dependencies: ContentSource,
  escalation: Escalation,
): Promise<Pick<Question, "text" | "options">> {
  const words = await readQuestionText(dependencies, escalation);
  return {
    ...(words && { text: removeUnseen(words.question) }),
    ...(words?.options && { options: words.options.map(removeUnseen) }),
  };
}

/** True for a question about the result of an agent that did not run as it was asked, where it is asked for another reason. */
function isAlsoMismatch(steps: OpenCoordination["steps"], escalation: Escalation): boolean {
  const { cause, stepId } = escalation;
  const step = stepId === undefined || cause === "mismatch" ? undefined : steps.get(stepId);
  return step !== undefined && isQuestionAboutResult(escalation) && listRunDifferences(step).length > 0;
}

/** Says how an operator reads a question whose words are withheld from channels. */
function describeWithheld(questionId: string): string {
  return `Its words are withheld until its result is let through; an operator reads them with: openclaw coordination questions show ${formatShellArguments(questionId)}`;
}

/** Returns the title of a question: a sentence on what it is about by its cause, free of content. */
export function formatTitle(
  { cause, stepId, confidence }: Pick<Escalation, "cause" | "stepId" | "confidence">,
  overwrite?: Overwrite,
): string {
  const subject = stepId === undefined ? "the coordination" : `step ${quoteUnlessPlain(stepId)}`;
  switch (cause) {
    case "confidence":
      if ((confidence?.of ?? "decision") === "decision")
        return `Its planner is not sure that ${subject} should begin. Let it begin?`;
      return confidence?.of === "verdict"
        ? `A check of the result of ${subject} is not sure of its verdict. Let the result count?`
        : `The agent is not sure of the result of ${subject}. Let it count?`;
    case "merge":
      return `What ${subject} did in its worktree could not be merged. Let its result count?`;
    case "verifier":
      return `The result of ${subject} could not be verified. Let it count?`;
    case "mismatch":
      return `The agent of ${subject} did not run as it was asked. Let its result count?`;
    case "conflict":
      return describeConflict(subject, overwrite);
    case "retries_exhausted":
      return `The last attempt at ${subject} failed. Try once more?`;
    case "deadline":
      return `The last attempt at ${subject} ran out of time. Try once more?`;
    case "budget":
      return `The budget of ${subject} is spent. Go on?`;
    case "agent":
      return `The agent of ${subject} asks.`;
  }
}

function describeConflict(subject: string, overwrite: Overwrite | undefined): string {
  if (!overwrite) return `A write of ${subject} is contested. Let it happen?`;
  return overwrite.stepEnded
    ? `A command of ${subject}, which has ended, has overwritten a file that somebody else holds. Its holder keeps the file, whatever the answer. Look at what is in it, then approve.`
    : `A command of ${subject} has overwritten a file that somebody else holds. Give the file to ${subject}?`;
}
