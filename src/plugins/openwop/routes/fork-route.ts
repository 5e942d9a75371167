/** Owns: the route that forks runs (replay.md). The host checks in the protocol's order; the body's form comes behind the run. */
import { z } from "zod";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { WORKFLOW_BOUNDS } from "../../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import type { ForkRun } from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { refuse, type HttpRefusal } from "../http/error-map.ts";
import {
  answerFromOutcome,
  createJsonAnswer,
  defineRoute,
  type RouteAnswer,
  type RouteRequest,
  type Route,
  type RouteDependencies,
} from "../http/route.ts";
import { forkedSchema } from "../http/schemas.ts";

const record = z.record(z.string(), z.unknown());

/** run-options.schema.json. Options that are not in it could not be kept, and are refused. */
const overlaySchema = z.strictObject({
  configurable: record.optional(),
  tags: z.array(z.string().min(1).max(WORKFLOW_BOUNDS.tagCharsMax)).max(WORKFLOW_BOUNDS.tagsMax).optional(),
  metadata: record.optional(),
});

const forkBody = z.strictObject({
  mode: z.enum(["replay", "branch"]),
  fromSeq: z.number().optional(),
  runOptionsOverlay: overlaySchema.optional(),
});
type ForkBody = z.output<typeof forkBody>;

export const forkRoute: Route = defineRoute({
  method: "POST",
  path: "/v1/runs/{runId}:fork",
  operationId: "forkRun",
  auth: "bearer",
  summary: "Makes a run out of the events of another one.",
  status: 201,
  refusals: [403, 422],
  body: forkBody,
  answer: forkedSchema,
  handle: handleFork,
});

async function handleFork(
  ask: RouteRequest<ForkBody>,
  { host, pathPrefix }: RouteDependencies,
): Promise<RouteAnswer> {
  const refused = refuseLongMetadata(ask.body);
  if (refused) return refused;
  const { mode, fromSeq, runOptionsOverlay } = ask.body;
  const request = {
    sourceRunId: ask.param("runId"),
    mode,
    ...(fromSeq !== undefined && { fromSeq }),
    ...(runOptionsOverlay && { overlay: pickStatedOptions(runOptionsOverlay) }),
    ...(ask.subject !== undefined && { runId: ask.subject as CoordinationId }),
  };
  return answerFromOutcome(await host.fork(ask.caller, request), (forked) =>
    createJsonAnswer(201, {
      ...forked,
      status: "pending",
      eventsUrl: `${pathPrefix}/v1/runs/${encodeURIComponent(forked.runId)}/events`,
    }),
  );
}

function refuseLongMetadata({ runOptionsOverlay: { metadata } = {} }: ForkBody): HttpRefusal | undefined {
  const charsMax = WORKFLOW_BOUNDS.metadataCharsMax;
  return metadata && JSON.stringify(metadata).length > charsMax
    ? refuse("validation_error", `\`metadata\` is longer than ${charsMax} characters.`)
    : undefined;
}

/** Picks the options that were stated; an empty `configurable` counts as not stated. */
function pickStatedOptions({
  configurable,
  tags,
  metadata,
}: NonNullable<ForkBody["runOptionsOverlay"]>): NonNullable<ForkRun["overlay"]> {
  return {
    ...(configurable && Object.keys(configurable).length > 0 && { configurable }),
    ...(tags && { tags }),
    ...(metadata && { metadata }),
  };
}
