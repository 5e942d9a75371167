/** Owns: the addresses of runs as resources: `openwop://runs/{runId}` and the events of each. */

const PREFIX = "openwop://runs/";
const EVENTS = "/events";

export const RUN_TEMPLATE = `${PREFIX}{runId}`;
export const EVENTS_TEMPLATE = `${PREFIX}{runId}${EVENTS}{?from,limit}`;

/** Names the resource of an address. */
export type RunPlace =
  | { readonly kind: "run"; readonly runId: string }
  | { readonly kind: "events"; readonly runId: string; readonly from?: number; readonly limit?: number };

/** Returns the URI of the MCP resource of a run. */
export function formatRunUri(runId: string): string {
  return `${PREFIX}${encodeURIComponent(runId)}`;
}

/**
 * Returns the URI of the MCP resource that has at most `limit` events of a run, the first of them at sequence `from`.
 */
export function formatEventsUri(runId: string, from: number, limit: number): string {
  return `${formatRunUri(runId)}${EVENTS}?from=${from}&limit=${limit}`;
}

/** Returns the run, or the section of its events, that a resource's URI names; `undefined` for any other URI. */
export function parseRunUri(uri: string): RunPlace | undefined {
  if (!uri.startsWith(PREFIX)) return undefined;
  const [path = "", query] = uri.slice(PREFIX.length).split("?", 2);
  const isOfEvents = path.endsWith(EVENTS);
  const runId = decodeRunId(isOfEvents ? path.slice(0, -EVENTS.length) : path);
  if (!runId) return undefined;
  if (isOfEvents) return parseEventsPlace(runId, new URLSearchParams(query));
  return query === undefined ? { kind: "run", runId } : undefined;
}

function parseEventsPlace(runId: string, params: URLSearchParams): RunPlace | undefined {
  const from = parseUriNumber(params.get("from"));
  const limit = parseUriNumber(params.get("limit"));
  if (Number.isNaN(from) || Number.isNaN(limit)) return undefined;
  return {
    kind: "events",
    runId,
    ...(from !== undefined && { from }),
    ...(limit !== undefined && { limit }),
  };
}

function decodeRunId(text: string): string | undefined {
  if (text.includes("/")) return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Returns a whole number: `undefined` where there is no text, NaN for what is no number. */
function parseUriNumber(text: string | null): number | undefined {
  if (text === null) return undefined;
  return /^\d{1,15}$/u.test(text) ? Number(text) : Number.NaN;
}
