/**
 * Owns: asking people through the host's own approvals, outside of any tool call. The host keeps an approval for ten minutes, so a
 * longer question may be put again by its further notices.
 *
 * Who may answer there is the host's to say. Without anybody who can, the host says so at once, and the notice has failed.
 */
import { z } from "zod";
import type {
  ChannelNotice,
  HumanChannel,
  NoticeOutcome,
  Question,
} from "../../../agents/coordination/ports/human-channel.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import type { TakeChannelAnswer } from "../../channels.ts";
import { formatErrorSentence } from "./host-runs.ts";
import { runOutsideCalls } from "./outside-calls.ts";
import { loadHarness } from "./sdk.ts";

const APPROVAL_MS_MAX = 600_000;
const TITLE_CHARS_MAX = 80;
const DESCRIPTION_CHARS_MAX = 512;
/** Nobody takes a question that goes on for one that ends here. */
const CUT = "\u2026 [cut here: read all of it with `questions show` before you answer]";
/** How long calling the host itself may take, beyond what it waits for people. */
const CALL_GRACE_MS = 10_000;

const requestedSchema = z.object({
  id: z.string().min(1).optional(),
  status: z.string().optional(),
  decision: z.string().nullable().optional(),
});
/** The host does not say who decided. */
const decidedSchema = z.object({
  decision: z.string().nullable().optional(),
  /** `user`: a person decided. The host denies by itself, too, as where it finds nobody to ask. */
  terminalReason: z.string().nullish(),
});

export interface HostApprovalDependencies {
  readonly pluginId: string;
  readonly logger: Logger;
  readonly now: () => number;
  readonly take: TakeChannelAnswer;
}

/**
 * Creates the channel that notifies people of questions through the host's own approvals; an error becomes a failed
 * notice.
 */
export function createApprovalChannel(dependencies: HostApprovalDependencies): HumanChannel {
  return {
    notify: async (notice) => {
      try {
        return await runOutsideCalls(() => requestApproval(dependencies, notice));
      } catch (error) {
        return { kind: "failed", tries: 1, message: formatErrorSentence(error) };
      }
    },
  };
}

/** Asks for an approval and returns whether that was delivered; the decision is taken in the background. */
async function requestApproval(
  dependencies: HostApprovalDependencies,
  { question, chatSession }: ChannelNotice,
): Promise<NoticeOutcome> {
  const { callGatewayTool } = await loadHarness();
  const timeoutMs = Math.min(APPROVAL_MS_MAX, question.deadlineAtMs - dependencies.now());
  if (timeoutMs <= 0) return { kind: "failed", tries: 1, message: "the question's time is over" };
  if (!question.answers.includes("approve"))
    return { kind: "failed", tries: 1, message: "an approval takes no answer in words" };
  const { id, status } = requestedSchema.parse(
    await callGatewayTool(
      "plugin.approval.request",
      { timeoutMs: CALL_GRACE_MS },
      { ...createApprovalRequest(dependencies, question, timeoutMs), sessionKey: chatSession },
    ),
  );
  if (!id || status !== "accepted")
    return { kind: "failed", tries: 1, message: "nobody is connected who could approve" };
  void runOutsideCalls(() => takeHostDecision(dependencies, question, { id, timeoutMs }));
  return { kind: "delivered", tries: 1 };
}

/** Spaces and joiners that the host writes as `\u{A0}` and the like. With these a text can be longer than it takes. */
const ODD_SPACES = /[\u00A0\u1680\u2000-\u200A\u202F\u205F\u3000\u115F\u1160\u3164\uFFA0]/gu;
const JOINERS = /[\u200C\u200D]/gu;

/** Creates the params of the host's approval: texts within its bounds, and the other way to answer. */
function createApprovalRequest(
  { pluginId }: HostApprovalDependencies,
  question: Question,
  timeoutMs: number,
): object {
  const { questionId, text } = question;
  const title = replaceOddSpaces(question.title);
  const quotedText = text === undefined ? "" : ` The agent wrote: ${replaceOddSpaces(JSON.stringify(text))}`;
  // However long the agent's words are, the other way to answer is told.
  const how = ` Answer here, or with /coordination approve ${questionId}`;
  const subject = cutSubject(`${title}${quotedText}`, Math.max(0, DESCRIPTION_CHARS_MAX - how.length));
  return {
    pluginId,
    title: `Coordination: ${title}`.slice(0, TITLE_CHARS_MAX).toWellFormed(),
    description: `${subject}${how}`.slice(0, DESCRIPTION_CHARS_MAX).toWellFormed(),
    timeoutMs,
    twoPhase: true,
    allowedDecisions: ["allow-once", "deny"],
  };
}

/** Makes odd spaces plain and removes joiners, which the host would write out and so lengthen the text. */
function replaceOddSpaces(text: string): string {
  return text.replace(ODD_SPACES, " ").replace(JOINERS, "");
}

/** Cuts a text that is too long, with a note that there is more to read. */
function cutSubject(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text.toWellFormed();
  return `${text.slice(0, Math.max(0, charsMax - CUT.length)).toWellFormed()}${CUT}`;
}

/**
 * Waits for the host's decision and passes it on as an answer. Nothing depends on it: the question stays open without
 * it.
 */
async function takeHostDecision(
  { logger, take }: HostApprovalDependencies,
  { questionId }: Question,
  { id, timeoutMs }: { readonly id: string; readonly timeoutMs: number },
): Promise<void> {
  try {
    const { callGatewayTool } = await loadHarness();
    const options = { timeoutMs: timeoutMs + CALL_GRACE_MS };
    const { decision, terminalReason } = decidedSchema.parse(
      await callGatewayTool("plugin.approval.waitDecision", options, { id }),
    );
    if ((terminalReason ?? "user") !== "user" || (decision !== "allow-once" && decision !== "deny")) return;
    const answer = decision === "deny" ? "deny" : "approve";
    const refused = await take({ questionId, answer, by: { kind: "person" } }, "host");
    if (refused !== undefined)
      logger.info({ question: questionId }, `an approval did not count: ${refused.reason}`);
  } catch (error) {
    logger.warn(
      { question: questionId },
      `the host does not say what people decided: ${formatErrorSentence(error)}`,
    );
  }
}
