/** Owns: what the routes of the conformance suite have in common (host-sample-test-seams.md). */
import { z } from "zod";
import type { WorkflowSeams } from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { refuse } from "../http/error-map.ts";
import {
  defineRoute,
  type RouteAnswer,
  type RouteRequest,
  type Route,
  type RouteDependencies,
  type RouteDescription,
} from "../http/route.ts";
import { anySchema } from "../http/schemas.ts";

export const record = z.record(z.string(), z.unknown());

/** The description of a route for tests. */
interface SeamDescription<S extends z.ZodType> extends Omit<RouteDescription, "auth" | "status" | "answer"> {
  /** Below the path of all seams. */
  readonly path: string;
  /** Absent: 200. */
  readonly status?: number;
  /** Absent: anything. */
  readonly answer?: z.ZodType;
  readonly body?: S;
  readonly handle: (
    ask: RouteRequest<z.output<S>>,
    dependencies: RouteDependencies,
  ) => Promise<RouteAnswer> | RouteAnswer;
}

/**
 * Returns a route below `/v1/host/sample` by which the conformance suite steers the host, and which always asks for a
 * bearer token.
 */
export function createSeamRoute<S extends z.ZodType = z.ZodUnknown>(seam: SeamDescription<S>): Route {
  return defineRoute<S>({
    auth: "bearer",
    status: 200,
    answer: anySchema,
    ...seam,
    path: `/v1/host/sample${seam.path}`,
  });
}

/**
 * Returns the answer that `use` makes with the host's seams for the conformance suite, and a `not_found` refusal where
 * the host has none.
 */
export async function answerWithSeams(
  { host: { seams } }: RouteDependencies,
  use: (seams: WorkflowSeams) => Promise<RouteAnswer> | RouteAnswer,
): Promise<RouteAnswer> {
  return seams ? await use(seams) : refuse("not_found", "This host has no such seam.");
}
