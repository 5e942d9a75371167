/** Owns: runs and their logs as resources of the MCP server, a bounded page at a time. */
import type { Caller } from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
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
    description: `The events of a run from a sequence on, at most ${MCP_BOUNDS.eventsMax} at once; \`next\` is where to go on.`,
    mimeType: MIME_TYPE,
  },
];

/** One page of resources: the runs of the caller's tenant, the newest first. `undefined` for a cursor that is none. */
export async function listResources(
  dependencies: McpDependencies,
  caller: Caller,
  cursor: string | undefined,
) {
  const after = cursor === undefined ? undefined : readCursor(cursor);
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

function readCursor(cursor: string): { readonly ordinal: number } | undefined {
  return /^\d{1,15}$/u.test(cursor) ? { ordinal: Number(cursor) } : undefined;
}

/** The text of a resource; `undefined` for one that is not there, or is another tenant's. */
export async function readResource(dependencies: McpDependencies, caller: Caller, uri: string) {
  const place = parseRunUri(uri);
  const value = place && (await readPlace(dependencies, caller, place));
  return value && { contents: [{ uri, mimeType: MIME_TYPE, text: JSON.stringify(value) }] };
}

async function readPlace(
  dependencies: McpDependencies,
  caller: Caller,
  place: RunPlace,
): Promise<object | undefined> {
  if (place.kind === "events") return await readEvents(dependencies, caller, place);
  const found = await dependencies.host.snapshot(caller, place.runId);
  return found.kind === "done" ? createRunReport(found.value) : undefined;
}

async function readEvents(
  { host }: McpDependencies,
  caller: Caller,
  { runId, from = 0, limit = MCP_BOUNDS.eventsDefault }: RunPlace & { readonly kind: "events" },
): Promise<object | undefined> {
  const most = Math.max(1, Math.min(limit, MCP_BOUNDS.eventsMax));
  const page = await host.events(caller, runId, { from, limit: most });
  if (page.kind === "refused") return undefined;
  const { events, isComplete } = page.value;
  const next = (events.at(-1)?.sequence ?? from - 1) + 1;
  return { runId, events, isComplete, ...(!isComplete && { next: formatEventsUri(runId, next, most) }) };
}
