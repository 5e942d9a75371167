/** Owns: who is told of a question and when: at first, as a reminder, or somebody else when nobody answered. */
import { BOUNDS } from "../contracts/bounds.ts";
import type { Notice, QuestionPolicy } from "../contracts/escalation.ts";
import { addMs, type EpochMs } from "../contracts/ids.ts";

/** Returns when each channel is to be notified. A notice that would come after the deadline is left out. */
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

/** Counts the notices of a question that come before one of them through the same channel: 0 makes it the first, more a reminder. */
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

/** The notices that nothing is known of yet. */
export function listUnsentNotices(question: {
  readonly notices?: readonly Notice[] | undefined;
  readonly notified?: ReadonlyMap<number, unknown> | undefined;
}): UnsentNotice[] {
  return (question.notices ?? [])
    .map((scheduledNotice, notice) => ({ ...scheduledNotice, notice }))
    .filter(({ notice }) => !question.notified?.has(notice));
}
