/** Owns: comparing two runs of the caller's tenant over HTTP (RFC 0054). */
import { diffRunsInSlices, type ComparedRun } from "../../../agents/coordination/workflow/run-diff.ts";
import { runInSlices } from "../../../platform/give-way.ts";
import { refuse, type HttpRefusal } from "../http/error-map.ts";
import {
  createJsonAnswer,
  defineRoute,
  type RouteAnswer,
  type RouteRequest,
  type Route,
  type RouteDependencies,
} from "../http/route.ts";
import { runDiffSchema } from "../http/schemas.ts";
import { readRunLog } from "./read-run-log.ts";

export const diffRoute: Route = defineRoute({
  method: "GET",
  path: "/v1/runs/{runId}:diff",
  operationId: "diffRuns",
  auth: "bearer",
  summary: "How another run differs from this one.",
  status: 200,
  answer: runDiffSchema,
  isLong: true,
  queries: [{ name: "against", summary: "The other run.", schema: { type: "string" } }],
  handle: compareTwoRuns,
});

async function compareTwoRuns(ask: RouteRequest, dependencies: RouteDependencies): Promise<RouteAnswer> {
  const against = ask.query("against");
  if (against === undefined || against === "")
    return refuse("validation_error", "`against` names the run to compare with.");
  const one = await readComparedRun(ask, dependencies, ask.param("runId"));
  if ("kind" in one) return one;
  const other = await readComparedRun(ask, dependencies, against);
  if ("kind" in other) return other;
  return createJsonAnswer(200, await runInSlices(diffRunsInSlices(one, other)));
}

async function readComparedRun(
  ask: RouteRequest,
  dependencies: RouteDependencies,
  runId: string,
): Promise<ComparedRun | HttpRefusal> {
  const log = await readRunLog(ask, dependencies, runId);
  return log.kind === "refused" ? log : { runId, ...log.value };
}
