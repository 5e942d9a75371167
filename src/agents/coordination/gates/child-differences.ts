/**
 * Owns: where a child does not run as it was asked. The host chooses whatever a spawn did not name, so that its defaults, and
 * its fallbacks from them, are no difference.
 */
import type { ChildDifference, ChildRequest, ChildRun } from "../contracts/fact-fields.ts";
import type { AgentId } from "../contracts/ids.ts";

export interface AskedOfChild extends ChildRequest {
  readonly agentId: AgentId;
}

/**
 * Returns where a child as the host tells it differs from the call that spawned it, in agent, model, thinking or
 * folder; none in a field that either leaves open. No word of a model counts.
 */
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

/**
 * True when the level that ran is the one that was asked, and for an asked word that is no known level: the host alone
 * can tell which level it means.
 */
function isSameThinking(requested: string, ran: string): boolean {
  return isSameName(requested, ran) || !LEVELS.has(requested.toLowerCase());
}

/**
 * True when the model that ran is the one that was asked; one that was asked without a provider may be any provider's.
 */
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

/**
 * Returns the one difference of a child that changed a file outside of the folder that was asked; an empty list for a
 * file within it, and where no folder or file is known.
 */
export function findWriteDifference(
  folder: string | undefined,
  changedFile: string | undefined,
): ChildDifference[] {
  if (folder === undefined || changedFile === undefined) return [];
  const isWithin = changedFile.startsWith(`${removeLastSlash(folder)}/`);
  return isWithin || folder === "/" ? [] : [{ field: "writes", asked: folder, ran: changedFile }];
}

/**
 * Returns the sentence that tells whoever asked for a child why it was not started: what was asked, and what would
 * have run.
 */
export function describeRefusedDifference({ field, asked: requested, ran }: ChildDifference): string {
  return `${field} ${requested} was asked, and ${ran} would have run`;
}
