/**
 * Owns: a resource as the page shows it, which is read on any machine, and which result of a step the page shows.
 */
import type { ContentRef } from "../../agents/coordination/contracts/fact-fields.ts";
import { parseFileResource } from "../../agents/coordination/contracts/resource-names.ts";

/**
 * Returns the name of a resource for a reader on any machine: a file by its path with the name of its machine behind
 * it, and any other as it is.
 */
export function describeShownResource(resource: string): string {
  const file = parseFileResource(resource);
  return file?.machine === undefined ? resource : `file:${file.path} on ${file.machine}`;
}

interface WithResults {
  readonly held?: { readonly output?: ContentRef; readonly words?: ContentRef };
  readonly results?: readonly { readonly content: ContentRef }[];
}

/**
 * Returns the reference to the result of a step that the page shows: what is held, or was said last where nothing was
 * reported, else the newest that may be read; `undefined` where there is none.
 */
export function findShownOutput({ held: heldView, results }: WithResults): ContentRef | undefined {
  return heldView?.output ?? heldView?.words ?? results?.at(-1)?.content;
}
