/** Owns: reading why an agent reported that it could not do its step, where people are asked whether to try once more. */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { ContentRef } from "../../contracts/fact-fields.ts";
import { parseFailureReason } from "../../plan/read-outputs.ts";
import type { ContentSource } from "../../ports/content-store.ts";
import { removeUnseen } from "./plain-text.ts";

/**
 * Returns the reason for a failure that an agent wrote in its report, cut to its bound; `undefined` where it gave
 * none, or it is not kept any more.
 */
export async function readReportedReason(
  { content }: ContentSource,
  report: ContentRef,
): Promise<string | undefined> {
  const outputs = await content.get(report.sha256);
  const reason = outputs === undefined ? undefined : parseFailureReason(outputs);
  return reason === undefined
    ? undefined
    : removeUnseen(reason).slice(0, BOUNDS.questionCharsMax).toWellFormed();
}
