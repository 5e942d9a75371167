/**
 * Owns: the routes that only the conformance suite uses (host-sample-test-seams.md). They are there where they were asked
 * for, with a token, and nowhere else.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { addMs } from "../../../agents/coordination/contracts/ids.ts";
import type { RequestKey } from "../../../agents/coordination/ports/workflow-store.ts";
import type {
  HostEvent,
  WorkflowSeams,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { refuse } from "../http/error-map.ts";
import { HTTP_BOUNDS } from "../http/http-bounds.ts";
import {
  answerFromOutcome,
  createJsonAnswer,
  route,
  type Answer,
  type Ask,
  type Route,
  type RouteDependencies,
} from "../http/route.ts";
import { anySchema } from "../http/schemas.ts";

const SEAMS = "/v1/host/sample";
const record = z.record(z.string(), z.unknown());

const toggleBody = z.object({
  name: z.string().max(HTTP_BOUNDS.idCharsMax).optional(),
  value: z.unknown().optional(),
  reset: z.boolean().optional(),
});
const claimBody = z.object({ executors: z.int().min(2).max(50).default(2) });

export const seamRoutes: readonly Route[] = [
  route({
    method: "POST",
    path: `${SEAMS}/workflows`,
    operationId: "seamRegisterWorkflow",
    auth: "bearer",
    summary: "Registers a workflow.",
    status: 201,
    refusals: [422],
    body: record,
    answer: anySchema,
    handle: async (ask, { host }) =>
      answerFromOutcome(await host.register(ask.caller, ask.body), (registered) =>
        createJsonAnswer(201, registered),
      ),
  }),
  route({
    method: "GET",
    path: `${SEAMS}/test/runs/{runId}/events`,
    operationId: "seamRunEvents",
    summary: "The events of a run, by type.",
    auth: "bearer",
    status: 200,
    answer: anySchema,
    queries: [{ name: "type", summary: "Only this type.", schema: { type: "string" } }],
    handle: listEventsByType,
  }),
  route({
    method: "POST",
    path: `${SEAMS}/test/runs/{runId}/variables`,
    operationId: "seamSetVariables",
    summary: "Sets variables of a run.",
    auth: "bearer",
    status: 200,
    answer: anySchema,
    body: z.object({ variables: record }),
    handle: (ask, { host }) =>
      withSeams(host.seams, async (seams) =>
        answerFromOutcome(
          await seams.setVariables(ask.caller, ask.param("runId"), ask.body.variables),
          (changed) => createJsonAnswer(200, changed),
        ),
      ),
  }),
  route({
    method: "POST",
    path: `${SEAMS}/test/capability-toggle`,
    operationId: "seamToggle",
    summary: "Takes a capability away until it is reset.",
    auth: "bearer",
    status: 200,
    body: toggleBody,
    answer: anySchema,
    handle: (ask, { host }) =>
      withSeams(host.seams, (seams) => {
        const { name, value, reset } = ask.body;
        const change = reset === true ? "reset" : name === undefined ? undefined : { name, value };
        return Promise.resolve(createJsonAnswer(200, { overlay: seams.toggle(change) }));
      }),
  }),
  route({
    method: "POST",
    path: `${SEAMS}/test/reset`,
    operationId: "seamReset",
    auth: "bearer",
    summary: "Forgets what tests changed. Runs stay: the ledger forgets nothing.",
    status: 200,
    answer: anySchema,
    handle: ({ caller }, { host, rates }) => {
      host.seams?.toggle("reset");
      host.seams?.forget(caller);
      rates.reset();
      return createJsonAnswer(200, { ok: true });
    },
  }),
  route({
    method: "POST",
    path: `${SEAMS}/test/idempotency/concurrent-claim`,
    operationId: "seamClaim",
    summary: "Claims one key several times at once.",
    auth: "bearer",
    status: 200,
    body: claimBody,
    answer: anySchema,
    handle: claimAtOnce,
  }),
];

async function withSeams(
  seams: WorkflowSeams | undefined,
  use: (seams: WorkflowSeams) => Promise<Answer>,
): Promise<Answer> {
  return seams ? await use(seams) : refuse("not_found", "This host has no such seam.");
}

async function listEventsByType(ask: Ask, { host }: RouteDependencies): Promise<Answer> {
  const type = ask.query("type");
  const range = { from: 0, limit: HTTP_BOUNDS.answerEventsMax };
  const page = await host.events(ask.caller, ask.param("runId"), range);
  // The suite asks for a run that is not there, to see whether the seam is.
  if (page.kind === "refused" && page.code === "not_found") return createJsonAnswer(200, { events: [] });
  const isWanted = (event: HostEvent): boolean => type === undefined || event.type === type;
  return answerFromOutcome(page, ({ events }) => createJsonAnswer(200, { events: events.filter(isWanted) }));
}

/** Lets several claim at once; all get the id that the first one made. */
async function claimAtOnce(
  ask: Ask<z.output<typeof claimBody>>,
  dependencies: RouteDependencies,
): Promise<Answer> {
  const logicalInvocationId = `claim-${randomUUID()}`;
  const at = { tenant: ask.caller.tenant, endpoint: "@claim", key: logicalInvocationId };
  const attempts = Array.from({ length: ask.body.executors }, () => claim(at, dependencies));
  const first = await Promise.all(attempts);
  const delivered = first.filter((minted) => minted !== undefined).length;
  // Those that came second ask again, now that the first has answered.
  const mintedIds = await Promise.all(first.map(async (minted) => minted ?? (await claim(at, dependencies))));
  return createJsonAnswer(200, { logicalInvocationId, mintedIds, attempted: attempts.length, delivered });
}

async function claim(at: RequestKey, { host, clock }: RouteDependencies): Promise<string | undefined> {
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
