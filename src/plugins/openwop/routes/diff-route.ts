/** Owns: comparing two runs of the caller's tenant over HTTP (RFC 0054). */
import { compareRuns, type ComparedRun } from "../../../agents/coordination/workflow/run-diff.ts";
import type { HostEvent } from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { runInSlices } from "../../../platform/give-way.ts";
import { refuse, type HttpRefusal } from "../http/error-map.ts";
import { HTTP_BOUNDS } from "../http/http-bounds.ts";
import {
  createJsonAnswer,
  route,
  type Answer,
  type Ask,
  type Route,
  type RouteDependencies,
} from "../http/route.ts";
import { runDiffSchema } from "../http/schemas.ts";

export const diffRoute: Route = route({
  method: "GET",
  path: "/v1/runs/{runId}:diff",
  operationId: "diffRuns",
  auth: "bearer",
  summary: "How another run differs from this one.",
  status: 200,
  answer: runDiffSchema,
  isLong: true,
  queries: [{ name: "against", summary: "The other run.", schema: { type: "string" } }],
  handle: diff,
});

async function diff(ask: Ask, dependencies: RouteDependencies): Promise<Answer> {
  const against = ask.query("against");
  if (against === undefined || against === "")
    return refuse("validation_error", "`against` names the run to compare with.");
  const one = await readRun(ask, dependencies, ask.param("runId"));
  if ("kind" in one) return one;
  const other = await readRun(ask, dependencies, against);
  if ("kind" in other) return other;
  return createJsonAnswer(200, await runInSlices(compareRuns(one, other)));
}

const PAGE = 1_000;

/** Reads as much of the log as one answer is made of. */
async function readRun(
  { caller }: Ask,
  { host }: RouteDependencies,
  runId: string,
): Promise<ComparedRun | HttpRefusal> {
  const events: HostEvent[] = [];
  for (;;) {
    const page = await host.events(caller, runId, { from: events.length, limit: PAGE });
    if (page.kind === "refused") return page;
    const { events: more, isComplete } = page.value;
    events.push(...more);
    const isOver = isComplete || more.length < PAGE || events.length >= HTTP_BOUNDS.answerEventsMax;
    if (isOver) return { runId, events, isComplete };
  }
}
