/** Owns: the route at which the conformance suite reads the spans of a run; those of a fork with its source's. */
import { hash } from "node:crypto";
import type { WorkflowEvent } from "../../../agents/coordination/contracts/workflows/workflow-events.ts";
import { createWorkflowSpans } from "../../../agents/coordination/telemetry/project-workflow.ts";
import type { Span } from "../../../agents/coordination/telemetry/span.ts";
import { refuse } from "../http/error-map.ts";
import { HTTP_BOUNDS } from "../http/http-bounds.ts";
import { createJsonAnswer, type Answer, type Ask, type RouteDependencies } from "../http/route.ts";
import { createSeam } from "./seam.ts";

export const spansSeam = createSeam({
  method: "GET",
  path: "/test/otel/spans",
  operationId: "seamSpans",
  summary: "The spans of a run that have ended.",
  queries: [{ name: "runId", summary: "The run.", schema: { type: "string" } }],
  handle: listSpans,
});

const PAGE = 1_000;

async function listSpans(ask: Ask, { host }: RouteDependencies): Promise<Answer> {
  const runId = ask.query("runId");
  if (runId === undefined) return refuse("validation_error", "`runId` is missing.");
  const projection = createWorkflowSpans((text) => hash("sha256", text));
  const spans: Span[] = [];
  for (let from = 0; from < HTTP_BOUNDS.answerEventsMax; from += PAGE) {
    const page = await host.events(ask.caller, runId, { from, limit: PAGE });
    if (page.kind === "refused") return page;
    const { events } = page.value;
    // A host of workflows alone has no other runs.
    spans.push(...(events as readonly WorkflowEvent[]).flatMap((event) => projection.take(event)));
    if (events.length < PAGE) break;
  }
  return createJsonAnswer(200, { spans: spans.map(formatSpan) });
}

/** Times are ISO 8601. */
function formatSpan({ startMs, endMs, error, ...span }: Span): object {
  return {
    ...span,
    startTime: new Date(startMs).toISOString(),
    endTime: new Date(endMs).toISOString(),
    status: error === undefined ? "OK" : "ERROR",
  };
}
