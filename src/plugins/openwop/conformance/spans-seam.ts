/** Owns: the route at which the conformance suite reads the spans of a run; those of a fork with its source's. */
import { hash } from "node:crypto";
import type { WorkflowEvent } from "../../../agents/coordination/contracts/workflows/workflow-events.ts";
import { createWorkflowSpans } from "../../../agents/coordination/telemetry/project-workflow.ts";
import type { Span } from "../../../agents/coordination/telemetry/span.ts";
import { refuse } from "../http/error-map.ts";
import {
  createJsonAnswer,
  type RouteAnswer,
  type RouteRequest,
  type RouteDependencies,
} from "../http/route.ts";
import { readRunLog } from "../routes/read-run-log.ts";
import { createSeamRoute } from "./seam.ts";

export const spansSeam = createSeamRoute({
  method: "GET",
  path: "/test/otel/spans",
  operationId: "seamSpans",
  summary: "The spans of a run that have ended.",
  queries: [{ name: "runId", summary: "The run.", schema: { type: "string" } }],
  handle: listSpans,
});

async function listSpans(ask: RouteRequest, dependencies: RouteDependencies): Promise<RouteAnswer> {
  const runId = ask.query("runId");
  if (runId === undefined) return refuse("validation_error", "`runId` is missing.");
  const log = await readRunLog(ask, dependencies, runId);
  if (log.kind === "refused") return log;
  const projection = createWorkflowSpans((text) => hash("sha256", text));
  // A host of workflows alone has no other runs.
  const events = log.value.events as readonly WorkflowEvent[];
  const spans = events.flatMap((event) => projection.take(event));
  return createJsonAnswer(200, { spans: spans.map(formatSpan) });
}

/** Returns a span as the suite reads it, with its times as ISO 8601. */
function formatSpan({ startMs, endMs, error, ...span }: Span): object {
  return {
    ...span,
    startTime: new Date(startMs).toISOString(),
    endTime: new Date(endMs).toISOString(),
    status: error === undefined ? "OK" : "ERROR",
  };
}
