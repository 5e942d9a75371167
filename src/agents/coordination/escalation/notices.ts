/** Owns: who is told of a question and when: at first, as a reminder, or somebody else when nobody answered. */
import { BOUNDS } from "../contracts/bounds.ts";
import type { Notice, QuestionPolicy } from "../contracts/escalation.ts";
import { addMs, type EpochMs } from "../contracts/ids.ts";

/**
 * Returns the notices of a question, each with its channel and time. A notice that would come after the deadline is
 * left out, and so are those beyond a bound.
 */
export function scheduleNotices(
  { notify = [] }: Pick<QuestionPolicy, "notify">,
  askedAtMs: EpochMs,
  deadlineAtMs: EpochMs,
): Notice[] {
  return notify
    .map(({ channel, afterMs }) => ({ channel, atMs: addMs(askedAtMs, afterMs) }))
    .filter(({ atMs }) => atMs < deadlineAtMs)
    .slice(0, BOUNDS.noticesMax);
}

/**
 * Returns how many notices of a question come before the one at `place` through the same channel: 0 makes it the
 * first, more a reminder.
 */
export function countEarlierNotices(notices: readonly Notice[], place: number): number {
  const counted = notices[place];
  if (!counted) return 0;
  return notices.filter(
    ({ channel, atMs }, index) =>
      channel === counted.channel && (atMs < counted.atMs || (atMs === counted.atMs && index < place)),
  ).length;
}

export interface UnsentNotice extends Notice {
  /** Its place among the question's notices. */
  readonly notice: number;
}

/** Lists the notices of a question, due or not, of which it is not recorded that they were sent or failed. */
export function listUnsentNotices(question: {
  readonly notices?: readonly Notice[] | undefined;
  readonly notified?: ReadonlyMap<number, unknown> | undefined;
}): UnsentNotice[] {
  return (question.notices ?? [])
    .map((scheduledNotice, notice) => ({ ...scheduledNotice, notice }))
    .filter(({ notice }) => !question.notified?.has(notice));
}
