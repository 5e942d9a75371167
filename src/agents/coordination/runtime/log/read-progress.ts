/** Owns: reading what agents say of how far they are, from beside the log. */
import type { StepId } from "../../contracts/ids.ts";
import type { ContentsReader } from "../../ports/content-store.ts";
import type { CoordinationView } from "./coordination-view.ts";

/** Lines by the step that they are about, without those that are not kept any more. */
export type ProgressLines = ReadonlyMap<StepId, string>;

/**
 * Returns the newest progress line of each step of a coordination by step id, without those that are withheld or not
 * kept any more. @throws CoordinationError as `getMany`
 */
export async function readProgressLines(
  content: ContentsReader,
  { steps }: CoordinationView,
): Promise<ProgressLines> {
  const references = steps.flatMap(({ stepId, progress }) =>
    progress && !progress.lineWithheld ? [{ stepId, sha256: progress.line.sha256 }] : [],
  );
  if (references.length === 0) return new Map();
  const texts = await content.getMany(references.map(({ sha256 }) => sha256));
  return new Map(
    references.flatMap(({ stepId, sha256 }) => {
      const text = texts.get(sha256);
      return text === undefined ? [] : [[stepId, text] as const];
    }),
  );
}
