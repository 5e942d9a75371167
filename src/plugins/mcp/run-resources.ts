/** Owns: runs and their logs as resources of the MCP server, a bounded page at a time. */
import type {
  Caller,
  EventPage,
  HostEvent,
} from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { giveWay, runInSlices } from "../../platform/give-way.ts";
import { countCharsLeft, writeJsonInParts } from "../../platform/write-json.ts";
import { listTenantRuns } from "../openwop/runs/list-tenant-runs.ts";
import { MCP_BOUNDS } from "./mcp-bounds.ts";
import type { McpDependencies } from "./mcp-tool.ts";
import { createRunReport } from "./describe-run.ts";
import {
  EVENTS_TEMPLATE,
  formatEventsUri,
  formatRunUri,
  parseRunUri,
  RUN_TEMPLATE,
  type RunPlace,
} from "./run-uris.ts";

const MIME_TYPE = "application/json";

export const RESOURCE_TEMPLATES = [
  {
    uriTemplate: RUN_TEMPLATE,
    name: "run",
    title: "A run",
    description: "How a run is: its status, outputs, error and question.",
    mimeType: MIME_TYPE,
  },
  {
    uriTemplate: EVENTS_TEMPLATE,
    name: "events",
    title: "The log of a run",
    description: `The events of a run from a sequence on, at most ${MCP_BOUNDS.eventsMax} and about ${MCP_BOUNDS.resultCharsMax} characters at once; \`next\` is where to go on.`,
    mimeType: MIME_TYPE,
  },
];

/**
 * Returns one page of MCP resources, one for each run of the caller's tenant, the newest first; `undefined` for a
 * cursor that cannot be read.
 */
export async function listRunResources(
  dependencies: McpDependencies,
  caller: Caller,
  cursor: string | undefined,
) {
  const after = cursor === undefined ? undefined : parseCursor(cursor);
  if (cursor !== undefined && !after) return undefined;
  const { runs, next } = await listTenantRuns(dependencies, caller, {
    limit: MCP_BOUNDS.pageMax,
    ...(after && { after }),
  });
  return {
    resources: runs.map(({ runId, summary: { workflowId, status } }) => ({
      uri: formatRunUri(runId),
      name: `${workflowId} ${runId}`,
      description: `A run of ${workflowId}: ${status}`,
      mimeType: MIME_TYPE,
    })),
    ...(next && { nextCursor: String(next.ordinal) }),
  };
}

function parseCursor(cursor: string): { readonly ordinal: number } | undefined {
  return /^\d{1,15}$/u.test(cursor) ? { ordinal: Number(cursor) } : undefined;
}

/**
 * Returns the content of the resource of a run or its events as JSON text; `undefined` for one that is not there, or
 * is another tenant's.
 */
export async function readRunResource(dependencies: McpDependencies, caller: Caller, uri: string) {
  const place = parseRunUri(uri);
  const value = place && (await readRunOrEvents(dependencies, caller, place));
  if (!value) return undefined;
  const text = (await runInSlices(writeJsonInParts(value))).join("");
  return { contents: [{ uri, mimeType: MIME_TYPE, text }] };
}

async function readRunOrEvents(
  dependencies: McpDependencies,
  caller: Caller,
  place: RunPlace,
): Promise<object | undefined> {
  if (place.kind === "events") return await readEventsPage(dependencies, caller, place);
  const found = await dependencies.host.snapshot(caller, place.runId);
  return found.kind === "done" ? await createRunReport(dependencies, caller, found.value) : undefined;
}

async function readEventsPage(
  { host }: McpDependencies,
  caller: Caller,
  { runId, from = 0, limit = MCP_BOUNDS.eventsDefault }: RunPlace & { readonly kind: "events" },
): Promise<object | undefined> {
  const most = Math.max(1, Math.min(limit, MCP_BOUNDS.eventsMax));
  const events: HostEvent[] = [];
  let next = from;
  let charsLeft: number = MCP_BOUNDS.resultCharsMax;
  while (events.length < most && charsLeft > 0) {
    const read = await host.events(caller, runId, {
      from: next,
      limit: Math.min(most - events.length, MCP_BOUNDS.eventsAtOnce),
    });
    if (read.kind === "refused") return undefined;
    const page = cutEventPage(read.value, charsLeft);
    events.push(...page.events);
    next = (page.events.at(-1)?.sequence ?? next - 1) + 1;
    if (page.isComplete) return { runId, events, isComplete: true };
    if (page.events.length === 0) break;
    ({ charsLeft } = page);
    await giveWay();
  }
  return { runId, events, isComplete: false, next: formatEventsUri(runId, next, most) };
}

/** Leaves out the events after the one with which the characters are used up. */
function cutEventPage(
  { events, isComplete }: EventPage,
  charsMax: number,
): EventPage & { readonly charsLeft: number } {
  let charsLeft = charsMax;
  const end = events.findIndex((event) => {
    charsLeft = countCharsLeft(event, charsLeft);
    return charsLeft <= 0;
  });
  if (end === -1 || end === events.length - 1) return { events, isComplete, charsLeft };
  return { events: events.slice(0, end + 1), isComplete: false, charsLeft };
}
