/**
 * Owns: where a child does not run as it was asked. The host chooses whatever a spawn did not name, so that its defaults, and
 * its fallbacks from them, are no difference.
 */
import type { ChildDifference, ChildRequest, ChildRun } from "../contracts/fact-fields.ts";
import type { AgentId } from "../contracts/ids.ts";

export interface AskedOfChild extends ChildRequest {
  readonly agentId: AgentId;
}

/** Compares the call that spawned the child with the child as the host tells it; no word of a model counts. */
export function findChildDifferences(request: AskedOfChild, ran: ChildRun): ChildDifference[] {
  return [
    ...compareField("agent", request.agentId, ran.agentId, isSameName),
    ...compareField("model", request.model, ran.model, isSameModel),
    ...compareField("thinking", request.thinking, ran.thinking, isSameThinking),
    ...compareField("folder", request.folder, ran.folder, isSameFolder),
  ];
}

function compareField(
  field: ChildDifference["field"],
  requested: string | undefined,
  ran: string | undefined,
  isSame: (requested: string, ran: string) => boolean,
): ChildDifference[] {
  return requested === undefined || ran === undefined || isSame(requested, ran)
    ? []
    : [{ field, asked: requested, ran }];
}

function isSameName(requested: string, ran: string): boolean {
  return requested.toLowerCase() === ran.toLowerCase();
}

const LEVELS: ReadonlySet<string> = new Set([
  "off",
  "minimal",
  "low",
  "medium",
  "high",
  "xhigh",
  "adaptive",
  "max",
  "ultra",
]);

/** The host has more words for its levels, which it alone can tell. */
function isSameThinking(requested: string, ran: string): boolean {
  return isSameName(requested, ran) || !LEVELS.has(requested.toLowerCase());
}

/** A model that was asked without a provider may be any provider's. */
export function isSameModel(requested: string, ran: string): boolean {
  if (isSameName(requested, ran)) return true;
  return !requested.includes("/") && isSameName(requested, ran.slice(ran.indexOf("/") + 1));
}

function isSameFolder(requested: string, ran: string): boolean {
  return removeLastSlash(requested) === removeLastSlash(ran);
}

function removeLastSlash(path: string): string {
  return path.endsWith("/") ? path.slice(0, -1) : path;
}

/** The difference of a changed file from the folder that was asked; none for a file within it, and for what is no file. */
export function findWriteDifference(
  folder: string | undefined,
  changedFile: string | undefined,
): ChildDifference[] {
  if (folder === undefined || changedFile === undefined) return [];
  const isWithin = changedFile.startsWith(`${removeLastSlash(folder)}/`);
  return isWithin || folder === "/" ? [] : [{ field: "writes", asked: folder, ran: changedFile }];
}

/** In words for whoever asked for the child. */
export function describeRefusedDifference({ field, asked: requested, ran }: ChildDifference): string {
  return `${field} ${requested} was asked, and ${ran} would have run`;
}
