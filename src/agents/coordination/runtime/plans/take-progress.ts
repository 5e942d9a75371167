/**
 * Owns: what a child says of how far it is. The log has its hash and size; the line lies beside it. Which step it is about says the
 * ledger, never the child (H3).
 */
import { BOUNDS } from "../../contracts/bounds.ts";
import { assertInvariant } from "../../contracts/errors.ts";
import type { SessionKey } from "../../contracts/ids.ts";
import { findNextProgressTime } from "../../dispatch/decide-progress.ts";
import type { ContentInput } from "../../ports/content-store.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { removeUnseen } from "../questions/plain-text.ts";
import type { ChildProgress, ProgressAnswer } from "./plan-requests.ts";
import { findOpenStepOfChild, findAttemptOfSession } from "./take-report.ts";

/**
 * Returns the text as one line without characters that cannot be seen, cut to its bound; empty where nothing is left.
 */
export function formatProgressLine(text: string): string {
  const characters = Array.from(removeUnseen(text.toWellFormed()).replace(/\s+/gu, " ").trim());
  if (characters.length <= BOUNDS.progressCharsMax) return characters.join("");
  return `${characters.slice(0, BOUNDS.progressCharsMax - 1).join("")}…`;
}

/**
 * Records how far a child says that its step is, and returns when the next line may come; `too_soon` where this one
 * came too early, `refused` where it works on no step, its line says nothing or the ledger refuses it.
 */
export async function takeProgress(
  dependencies: RuntimeDependencies,
  childSessionKey: SessionKey,
  { percent, line }: ChildProgress,
): Promise<ProgressAnswer> {
  const text = formatProgressLine(line);
  if (text === "") return { kind: "refused", reason: "the line says nothing that can be seen" };
  const about = await findOpenStepOfChild(dependencies, childSessionKey);
  if (!about) return { kind: "refused", reason: "this session works on no step of a coordination" };
  const { stepId } = about.step.spec;
  const content: ContentInput = { ref: dependencies.refOf(text), text };
  const submitted = await dependencies.runs.submit(
    about.state.coordinationId,
    [
      {
        type: "recordProgress",
        stepId,
        attempt: findAttemptOfSession(dependencies, about, childSessionKey),
        line: content.ref,
        ...(percent !== undefined && { percent }),
      },
    ],
    dependencies.settings.contentMs === 0 ? [] : [content],
  );
  if (submitted.kind === "refused" && submitted.code !== "TOO_SOON")
    return { kind: "refused", reason: submitted.reason };
  const { state } = submitted;
  const step = state.kind === "unopened" ? undefined : state.steps.get(stepId);
  const nextAtMs = step && findNextProgressTime(step);
  assertInvariant(nextAtMs !== undefined, `step ${stepId} has told its progress`);
  return { kind: submitted.kind === "refused" ? "too_soon" : "recorded", nextAtMs };
}
