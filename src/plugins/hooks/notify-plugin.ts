/** Owns: a plugin as a channel to people: telling it of a question, and passing on what it answers, now or later. */
import type { Answerer, AnswerKind, AnswerRefusal } from "../../agents/coordination/contracts/escalation.ts";
import type { ChannelNotice, NoticeOutcome } from "../../agents/coordination/ports/human-channel.ts";
import { awaitHookBack, findHook, type AskedHook } from "./asked-hooks.ts";
import { HOOK_LIMITS } from "./hook-limits.ts";
import { reportProblem, type ProblemDependencies } from "./hook-problem.ts";
import type { AnswerReceipt, EscalateAnswer, EscalateContext } from "./hook-types.ts";
import { copyIsolated } from "./isolated-copy.ts";
import { readPeoplesAnswer, type ReadResult } from "./read-answers.ts";
import { runHook } from "./run-hook.ts";

/** An answer that a plugin brings, as it is to be recorded. */
export interface PluginAnswer {
  readonly questionId: string;
  readonly answer: AnswerKind;
  readonly text?: string;
  readonly by: Answerer;
  readonly through: string;
}

/** Records an answer, whether or not it counts; `undefined` where it does. */
export type TakeAnswer = (answer: PluginAnswer) => Promise<AnswerRefusal | undefined>;

/** A notice for a plugin, and the function that takes its answers. */
interface NoticeDelivery {
  readonly notice: ChannelNotice;
  readonly plugin: string;
  readonly take: TakeAnswer;
}

/**
 * Tells people of a question through a plugin's `escalate` hook and returns whether the notice was delivered; waits
 * for a plugin that is being loaded again. Answers of people are passed to `take`. Never rejects.
 */
export async function notifyPlugin(
  dependencies: ProblemDependencies,
  telling: NoticeDelivery,
): Promise<NoticeOutcome> {
  const { plugin, notice } = telling;
  const hook = await awaitEscalateHook(dependencies, telling);
  if (hook === "closed")
    return {
      kind: "failed",
      tries: 1,
      message: "the question was closed before the plugin was loaded again",
    };
  const answer = createAnswerTaker(dependencies, telling);
  const outcome =
    hook &&
    (await runHook(dependencies, hook, {
      createArguments: (context) => {
        const { noticeId, notice: count } = notice;
        const more: EscalateContext = { ...context, noticeId, notice: count };
        return [
          copyIsolated(notice.question),
          (peoplesAnswer: EscalateAnswer) => answer(readPeoplesAnswer(peoplesAnswer)),
          more,
        ];
      },
      read: readReturnedAnswer,
      signal: notice.signal,
      deadlineAtMs: notice.question.deadlineAtMs,
    }));
  if (!outcome) return { kind: "failed", tries: 1, message: `no plugin takes questions as plugin:${plugin}` };
  if (outcome.kind === "problem") return { kind: "failed", tries: 1, message: outcome.problem.message };
  if (outcome.value) await answer({ kind: "read", value: outcome.value });
  return { kind: "delivered", tries: 1 };
}

/**
 * Returns the plugin's hook for questions, waiting only while the plugin is loaded again; `undefined` where there is
 * none, "closed" where the question was closed during the wait.
 */
async function awaitEscalateHook(
  { clock }: ProblemDependencies,
  { plugin, notice }: NoticeDelivery,
): Promise<AskedHook | "closed" | undefined> {
  const found = findHook(plugin, "escalate", clock.now());
  if (found?.backByMs === undefined) return found;
  const { signal, question } = notice;
  const hook = await awaitHookBack(found, { clock, signal, deadlineAtMs: question.deadlineAtMs });
  return (await notice.isOpen()) ? hook : "closed";
}

function readReturnedAnswer(returned: unknown): ReadResult<EscalateAnswer | undefined> {
  return returned === undefined ? { kind: "read", value: undefined } : readPeoplesAnswer(returned);
}

/**
 * Creates the function that takes the answers to one notice and says whether each counts. It never throws, because an
 * author would not look.
 */
function createAnswerTaker(
  dependencies: ProblemDependencies,
  { notice, plugin, take }: NoticeDelivery,
): (peoplesAnswer: ReadResult<EscalateAnswer>) => Promise<AnswerReceipt> {
  let answers = 0;
  return async (peoplesAnswer) => {
    answers += 1;
    if (answers > HOOK_LIMITS.answersMax) return { counted: false, because: "too_many" };
    // An instance that has ended may still answer, as long as its plugin is there or being loaded again.
    const hook = findHook(plugin, "escalate", dependencies.clock.now());
    if (!hook) return { counted: false, because: "not_allowed" };
    if (peoplesAnswer.kind === "malformed") {
      reportProblem(dependencies, hook, {
        because: "malformed",
        what: `gave an answer that does not count: ${peoplesAnswer.why}`,
      });
      return { counted: false, because: "not_an_answer" };
    }
    try {
      const refused = await take(createPluginAnswer(notice, plugin, peoplesAnswer.value));
      return refused === undefined ? { counted: true } : { counted: false, because: refused };
    } catch (error) {
      const code = error instanceof Error ? error.name : "UNKNOWN";
      dependencies.logger.error({ plugin, code }, `an answer of the plugin ${plugin} could not be recorded`);
      return { counted: false, because: "failed" };
    }
  };
}

function createPluginAnswer(
  { question }: ChannelNotice,
  plugin: string,
  { answer, text, by }: EscalateAnswer,
): PluginAnswer {
  return {
    questionId: question.questionId,
    answer,
    ...(text !== undefined && { text }),
    by: { kind: "plugin", ...(by !== undefined && { id: by }) },
    through: `plugin:${plugin}`,
  };
}
