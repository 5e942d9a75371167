/**
 * Owns: how a host tells another one which of its runs calls: the header `openwop-parent`. The protocol names what a run
 * answers about its parent (RFC 0040, ancestry), and no carrier for it. A header is ignored by hosts that do not know it,
 * where a field of the body may be refused.
 */
import { parentRunSchema, type ParentRun, type CallingRun } from "../contracts/workflows/workflow-events.ts";
import { parseJsonOrNothing } from "../std/parse-json.ts";

export const PARENT_HEADER = "openwop-parent";

const CHARS_MAX = 4_096;

/** Returns the header that tells a peer of the calling run: JSON in visible ASCII. */
export function formatParentHeader(parent: CallingRun): string {
  const { runId, hostId, cause, wellKnownUrl, eventId, depth } = parent;
  return JSON.stringify({ runId, hostId, cause, wellKnownUrl, eventId, depth }).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/**
 * Reads the parent run that a request's header names; `undefined` where there is none, or it cannot be read. Whoever
 * sends it may say anything: it tells where to look for the parent and grants nothing.
 */
export function readParentHeader(text: string | undefined): ParentRun | undefined {
  if (text === undefined || text.length > CHARS_MAX) return undefined;
  const parsed = parentRunSchema.omit({ nodeId: true }).safeParse(parseJsonOrNothing(text));
  if (!parsed.success || !isWebUrl(parsed.data.wellKnownUrl)) return undefined;
  return parsed.data;
}

/** True for a URL that a reader of the ancestry may safely follow. */
function isWebUrl(text: string | undefined): boolean {
  const url = text === undefined ? undefined : URL.parse(text);
  return url?.protocol === "https:" || url?.protocol === "http:";
}
