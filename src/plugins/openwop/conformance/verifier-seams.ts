/**
 * Owns: the seams through which the conformance suite sees a verifier and an attestation at work. Each registers a small
 * workflow for the tenant that asks, starts a run of it like every other, and answers with what is in its log.
 */
import { hash } from "node:crypto";
import { z } from "zod";
import { addMs } from "../../../agents/coordination/contracts/ids.ts";
import { verdictSchema } from "../../../agents/coordination/contracts/verification.ts";
import { hasRunEnded } from "../../../agents/coordination/contracts/workflows/workflow-summary.ts";
import type {
  HostAnswer,
  Caller,
  HostEvent,
  RunSnapshot,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { HTTP_BOUNDS } from "../http/http-bounds.ts";
import {
  answerFromOutcome,
  createJsonAnswer,
  type RouteAnswer,
  type RouteRequest,
  type Route,
  type RouteDependencies,
} from "../http/route.ts";
import { waitForEvents } from "../routes/wait-for-events.ts";
import { createSeamRoute, record } from "./seam.ts";

const verifyBody = z.object({ simulateVerdict: verdictSchema });
const attestBody = z.object({
  childOutputs: record,
  outputAttestation: record.default({}),
  /** Absent: the run ends without an answer. */
  approvalAction: z.string().max(HTTP_BOUNDS.idCharsMax).optional(),
  editedArtifactData: record.optional(),
});

export const verifierSeams: readonly Route[] = [
  createSeamRoute({
    method: "POST",
    path: "/agents/verify-run",
    operationId: "seamVerifyRun",
    summary: "Runs a worker whose work a verifier rules on.",
    body: verifyBody,
    handle: runVerifiedWorker,
  }),
  createSeamRoute({
    method: "POST",
    path: "/subrun/attest",
    operationId: "seamAttest",
    summary: "Runs a child whose outputs are attested.",
    refusals: [422],
    body: attestBody,
    handle: runAttestedChild,
  }),
];

const WAIT_MS = 30_000;

/** A run of a test, with its snapshot and events. */
interface EndedSeamRun {
  readonly runId: string;
  readonly snapshot: RunSnapshot;
  readonly events: readonly HostEvent[];
}

/**
 * Returns a run with its events once it has ended, waits for people, 30 seconds are over or the client leaves; a
 * refusal where the host does not show it.
 */
async function awaitSettled(
  { host, clock }: RouteDependencies,
  ask: RouteRequest,
  runId: string,
): Promise<HostAnswer<EndedSeamRun>> {
  const { caller, signal } = ask;
  const untilMs = addMs(clock.now(), WAIT_MS);
  for (;;) {
    const snapshot = await host.snapshot(caller, runId);
    const page = await host.events(caller, runId, { from: 0, limit: HTTP_BOUNDS.answerEventsMax });
    if (snapshot.kind === "refused") return snapshot;
    if (page.kind === "refused") return page;
    const { events } = page.value;
    const { status } = snapshot.value;
    const isOver = signal().aborted || clock.now() >= untilMs;
    if (hasRunEnded(status) || status.startsWith("waiting-") || isOver)
      return { kind: "done", value: { runId, events, snapshot: snapshot.value } };
    const waitMs = Math.max(1, untilMs - clock.now());
    await waitForEvents(host, clock, { caller, runId, from: events.length, limit: 1, waitMs, signal });
  }
}

/** The definition of a workflow that a test runs, unchecked. */
type VerifiedDefinition = Readonly<Record<string, unknown>> & { readonly id: string };

/**
 * Registers the definitions and runs the first one, which may start the others; returns the run's id, or the host's
 * first refusal.
 */
async function registerAndRun(
  { host }: RouteDependencies,
  caller: Caller,
  definitions: readonly VerifiedDefinition[],
  configurable: Readonly<Record<string, unknown>> = {},
): Promise<HostAnswer<string>> {
  for (const definition of definitions) {
    const registered = await host.register(caller, definition);
    if (registered.kind === "refused") return registered;
  }
  const workflowId = definitions[0]?.id ?? "";
  const created = await host.create(caller, { workflowId, inputs: {}, configurable, transport: "rest" });
  return created.kind === "refused" ? created : { kind: "done", value: created.value.runId };
}

const WORKER: VerifiedDefinition = {
  id: "seam.verified-worker",
  name: "A worker",
  version: "1",
  edges: [],
  nodes: [{ id: "work", typeId: "core.noop" }],
  variables: [{ name: "result", type: "string", defaultValue: "done" }],
};

function createVerifiedWorkflow(verdict: string): VerifiedDefinition {
  const decide = [{ kind: "next-worker", nextWorkerIds: [WORKER.id] }, { kind: "terminate" }];
  const verifier = { agentId: "seam-verifier", criteria: ["acceptable"], mockVerdicts: [verdict] };
  return {
    id: `seam.verified-${verdict}`,
    name: "A verified worker",
    version: "1",
    nodes: [
      { id: "supervisor", typeId: "core.orchestrator.supervisor", config: { mockDispatchPlan: decide } },
      { id: "dispatch", typeId: "core.dispatch", config: { outputMapping: { result: "result" }, verifier } },
    ],
    edges: [
      { id: "to", sourceNodeId: "supervisor", targetNodeId: "dispatch" },
      { id: "back", sourceNodeId: "dispatch", targetNodeId: "supervisor" },
    ],
    variables: [{ name: "result", type: "string" }],
  };
}

/** A worker that is to revise for ever is stopped by the loop's limit. */
const LOOP_MAX = 3;

async function runVerifiedWorker(
  ask: RouteRequest<z.output<typeof verifyBody>>,
  dependencies: RouteDependencies,
): Promise<RouteAnswer> {
  const definitions = [createVerifiedWorkflow(ask.body.simulateVerdict), WORKER];
  const begun = await registerAndRun(dependencies, ask.caller, definitions, { maxLoopIterations: LOOP_MAX });
  if (begun.kind === "refused") return begun;
  return answerFromOutcome(
    await awaitSettled(dependencies, ask, begun.value),
    ({ runId, snapshot: { status }, events }) =>
      createJsonAnswer(200, {
        runId,
        status,
        outcome: status.startsWith("waiting-") ? "escalated" : status,
        committed: status === "completed" && findHarvestedOutput(events) !== undefined,
        events: events.filter(({ type }) => type === "agent.verified").map(flattenVerdictEvent),
      }),
  );
}

/** Returns an event with its payload's members at the top, where the suite reads the verdict. */
function flattenVerdictEvent(event: HostEvent): Readonly<Record<string, unknown>> {
  return { ...event, ...event.payload };
}

/** The payload of an event, unchecked. */
type EventPayload = Readonly<Record<string, unknown>>;

function findHarvestedOutput(events: readonly HostEvent[]): EventPayload | undefined {
  return events
    .filter(({ type }) => type === "core.workflowChain.event")
    .map(({ payload }) => payload as EventPayload)
    .find(({ phase }) => phase === "output.harvested");
}

const NODE = "merge";

/** Creates a workflow and its child whose outputs are attested; the same outputs and gate give the same ids. */
function createAttestedWorkflows({
  childOutputs,
  outputAttestation,
}: z.output<typeof attestBody>): VerifiedDefinition[] {
  const digits = hash("sha256", JSON.stringify({ childOutputs, outputAttestation })).slice(0, 16);
  const names = Object.keys(childOutputs);
  const variables = names.map((name) => ({ name, type: nameVariableType(childOutputs[name]) }));
  const workflowId = `seam.attested-child-${digits}`;
  const outputMapping = Object.fromEntries(names.map((name) => [name, name]));
  const config = { workflowId, outputMapping, outputAttestation };
  return [
    {
      id: `seam.attested-${digits}`,
      name: "An attested child",
      version: "1",
      edges: [],
      variables,
      nodes: [{ id: NODE, typeId: "core.subWorkflow", config }],
    },
    {
      id: workflowId,
      name: "A child",
      version: "1",
      edges: [],
      nodes: [{ id: "work", typeId: "core.noop" }],
      variables: variables.map((variable) => ({ ...variable, defaultValue: childOutputs[variable.name] })),
    },
  ];
}

function nameVariableType(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return ["string", "number", "boolean"].find((type) => typeof value === type) ?? "object";
}

async function runAttestedChild(
  ask: RouteRequest<z.output<typeof attestBody>>,
  dependencies: RouteDependencies,
): Promise<RouteAnswer> {
  const begun = await registerAndRun(dependencies, ask.caller, createAttestedWorkflows(ask.body));
  if (begun.kind === "refused") return begun;
  const seen = await awaitSettled(dependencies, ask, begun.value);
  if (seen.kind === "refused") return seen;
  const isAsked = seen.value.snapshot.status.startsWith("waiting-");
  const ruled = isAsked ? await answerForPeople(ask, dependencies, begun.value) : undefined;
  if (ruled?.kind === "refused") return ruled;
  return answerFromOutcome(
    isAsked ? await awaitSettled(dependencies, ask, begun.value) : seen,
    ({ runId, events }) => {
      const harvestedEvent = findHarvestedOutput(events);
      const attestation = harvestedEvent?.["attestation"] ?? findShownAttestation(events);
      return createJsonAnswer(200, {
        runId,
        ...(attestation !== undefined && { attestation }),
        ...(harvestedEvent && { harvestedEvent: { type: "core.workflowChain.event", ...harvestedEvent } }),
        merged: harvestedEvent !== undefined,
        ...(harvestedEvent && { mergedValues: collectChangedVariables(events) }),
      });
    },
  );
}

const ACTIONS: readonly unknown[] = ["accept", "edit-accept", "reject"];

/**
 * Gives the answer that the suite wants people to give; cancels the run where it names none, or one that is not known.
 */
async function answerForPeople(
  { caller, body }: RouteRequest<z.output<typeof attestBody>>,
  { host }: RouteDependencies,
  runId: string,
): Promise<HostAnswer<unknown>> {
  const { approvalAction: action, childOutputs, editedArtifactData = childOutputs } = body;
  if (!ACTIONS.includes(action)) return host.cancel(caller, runId, { reason: "nobody answered" });
  const value = { action, ...(action === "edit-accept" && { editedArtifactData }) };
  return host.resolve(caller, runId, { nodeId: NODE }, value);
}

/** Returns what people were shown before anything was merged. */
function findShownAttestation(events: readonly HostEvent[]): unknown {
  const interrupt = events.find(({ type }) => type === "interrupt.requested");
  const payload: EventPayload | undefined = interrupt?.payload;
  return (payload?.["data"] as EventPayload | undefined)?.["attestation"];
}

function collectChangedVariables(events: readonly HostEvent[]): EventPayload {
  const changes = events.filter(({ type }) => type === "variable.changed");
  return Object.fromEntries(
    changes.map(({ payload }) => {
      const { name, next } = payload as EventPayload;
      return [String(name), next];
    }),
  );
}
