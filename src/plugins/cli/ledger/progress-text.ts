/** Owns: how what agents say of their progress reads. */
import { formatDuration } from "../../../agents/coordination/std/quantities.ts";
import type { ProgressReport } from "../../reports/progress-report.ts";

/**
 * Returns the last reported progress of a step as a text like `40%, checking the links (3.0s ago)`; the reported line
 * may be withheld or deleted.
 */
export function describeProgress({ percent, line, lineWithheld, atMs }: ProgressReport, now: number): string {
  const words = line ?? (lineWithheld ? "(withheld)" : "(not kept any more)");
  const share = percent === undefined ? "" : `${percent}%, `;
  return `${share}${words} (${formatDuration(Math.max(0, now - atMs))} ago)`;
}
