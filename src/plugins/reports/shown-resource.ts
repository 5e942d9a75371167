/**
 * Owns: a resource as the page shows it, which is read on any machine, and which result of a step the page shows.
 */
import type { ContentRef } from "../../agents/coordination/contracts/fact-fields.ts";
import { parseFile } from "../../agents/coordination/contracts/resource-names.ts";

/** Names the machine of a file behind its path; other resources are shown by their names. */
export function describeShownResource(resource: string): string {
  const file = parseFile(resource);
  return file?.machine === undefined ? resource : `file:${file.path} on ${file.machine}`;
}

interface WithResults {
  readonly held?: { readonly output?: ContentRef; readonly words?: ContentRef };
  readonly results?: readonly { readonly content: ContentRef }[];
}

/** Finds the result of a step that the page shows: what is held, or was said last where nothing was reported, else the newest that may be read. */
export function findShownOutput({ held: heldView, results }: WithResults): ContentRef | undefined {
  return heldView?.output ?? heldView?.words ?? results?.at(-1)?.content;
}
