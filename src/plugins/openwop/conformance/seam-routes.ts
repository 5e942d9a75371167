/**
 * Owns: the routes that only the conformance suite uses (host-sample-test-seams.md). They are there where they were asked
 * for, with a token, and nowhere else.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { addMs } from "../../../agents/coordination/contracts/ids.ts";
import type { RequestKey } from "../../../agents/coordination/ports/workflow-store.ts";
import type { HostEvent } from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { HTTP_BOUNDS } from "../http/http-bounds.ts";
import {
  answerFromOutcome,
  createJsonAnswer,
  type RouteAnswer,
  type RouteRequest,
  type Route,
  type RouteDependencies,
} from "../http/route.ts";
import { answerWithSeams, createSeamRoute, record } from "./seam.ts";

const toggleBody = z.object({
  name: z.string().max(HTTP_BOUNDS.idCharsMax).optional(),
  value: z.unknown().optional(),
  reset: z.boolean().optional(),
});
const claimBody = z.object({ executors: z.int().min(2).max(50).default(2) });

export const seamRoutes: readonly Route[] = [
  createSeamRoute({
    method: "POST",
    path: "/workflows",
    operationId: "seamRegisterWorkflow",
    summary: "Registers a workflow.",
    status: 201,
    refusals: [422],
    body: record,
    handle: async (ask, { host }) =>
      answerFromOutcome(await host.register(ask.caller, ask.body), (registered) =>
        createJsonAnswer(201, registered),
      ),
  }),
  createSeamRoute({
    method: "GET",
    path: "/test/runs/{runId}/events",
    operationId: "seamRunEvents",
    summary: "The events of a run, by type.",
    queries: [{ name: "type", summary: "Only this type.", schema: { type: "string" } }],
    handle: listEventsByType,
  }),
  createSeamRoute({
    method: "POST",
    path: "/test/runs/{runId}/variables",
    operationId: "seamSetVariables",
    summary: "Sets variables of a run.",
    body: z.object({ variables: record }),
    handle: (ask, dependencies) =>
      answerWithSeams(dependencies, async (seams) =>
        answerFromOutcome(
          await seams.setVariables(ask.caller, ask.param("runId"), ask.body.variables),
          (changed) => createJsonAnswer(200, changed),
        ),
      ),
  }),
  createSeamRoute({
    method: "POST",
    path: "/test/capability-toggle",
    operationId: "seamToggle",
    summary: "Takes a capability away until it is reset.",
    body: toggleBody,
    handle: (ask, dependencies) =>
      answerWithSeams(dependencies, (seams) => {
        const { name, value, reset } = ask.body;
        const change = reset === true ? "reset" : name === undefined ? undefined : { name, value };
        return createJsonAnswer(200, { overlay: seams.toggle(change) });
      }),
  }),
  createSeamRoute({
    method: "POST",
    path: "/test/reset",
    operationId: "seamReset",
    summary: "Forgets what tests changed. Runs stay: the ledger forgets nothing.",
    handle: ({ caller }, { host, rates }) => {
      host.seams?.toggle("reset");
      host.seams?.forget(caller);
      rates.reset();
      return createJsonAnswer(200, { ok: true });
    },
  }),
  createSeamRoute({
    method: "POST",
    path: "/test/idempotency/concurrent-claim",
    operationId: "seamClaim",
    summary: "Claims one key several times at once.",
    body: claimBody,
    handle: claimConcurrently,
  }),
];

async function listEventsByType(ask: RouteRequest, { host }: RouteDependencies): Promise<RouteAnswer> {
  const type = ask.query("type");
  const range = { from: 0, limit: HTTP_BOUNDS.answerEventsMax };
  const page = await host.events(ask.caller, ask.param("runId"), range);
  // The suite asks for a run that is not there, to see whether the seam is.
  if (page.kind === "refused" && page.code === "not_found") return createJsonAnswer(200, { events: [] });
  const isWanted = (event: HostEvent): boolean => type === undefined || event.type === type;
  return answerFromOutcome(page, ({ events }) => createJsonAnswer(200, { events: events.filter(isWanted) }));
}

/** Lets several claim one key at once; all get the id that the first one made. */
async function claimConcurrently(
  ask: RouteRequest<z.output<typeof claimBody>>,
  dependencies: RouteDependencies,
): Promise<RouteAnswer> {
  const logicalInvocationId = `claim-${randomUUID()}`;
  const at = { tenant: ask.caller.tenant, endpoint: "@claim", key: logicalInvocationId };
  const attempts = Array.from({ length: ask.body.executors }, () => claimKey(at, dependencies));
  const first = await Promise.all(attempts);
  const delivered = first.filter((minted) => minted !== undefined).length;
  // Those that came second ask again, now that the first has answered.
  const mintedIds = await Promise.all(
    first.map(async (minted) => minted ?? (await claimKey(at, dependencies))),
  );
  return createJsonAnswer(200, { logicalInvocationId, mintedIds, attempted: attempts.length, delivered });
}

/** Returns the id that the first claim of the key made; `undefined` while that claim is under way. */
async function claimKey(at: RequestKey, { host, clock }: RouteDependencies): Promise<string | undefined> {
  const now = clock.now();
  const begun = await host.requests.begin({
    ...at,
    digest: at.key,
    now,
    leaseUntilMs: addMs(now, HTTP_BOUNDS.requestLeaseMs),
    subject: `run-${randomUUID()}`,
  });
  if (begun.kind === "answered") return begun.answer.body;
  if (begun.kind !== "new") return undefined;
  await host.requests.finish(at, { status: 200, body: begun.subject });
  return begun.subject;
}
