/**
 * Owns: finding the coordination that a spawn belongs to, or opening one, and recording the intent there.
 *
 * A coordination spans one W3C trace of its owner: what a child spawns joins its parent's; a spawn after the end opens a
 * new one whose `causalRef` names the one before.
 */
import type { AdmitSpawn, Command } from "../contracts/commands.ts";
import type { CoordinationEnvelope } from "../contracts/envelope.ts";
import { invariant } from "../contracts/errors.ts";
import type { AgentId, CoordinationId, SessionKey, StepId } from "../contracts/ids.ts";
import type { RefusalCode } from "../dispatch/decide.ts";
import { envelopeOf } from "../dispatch/envelope-of.ts";
import type { Coordination } from "../ledger/state.ts";
import { childName, traceName } from "../ledger/summary.ts";
import type { ContentInput } from "../ports/content-store.ts";
import type { Found, LedgerStore } from "../ports/ledger-store.ts";
import type { RunLog, Submitted } from "./run-log.ts";

/** A coordination may end between finding it and joining it; then a new one is opened. */
const JOIN_ATTEMPTS_MAX = 3;

export interface SpawnRequest {
  readonly sourceSession: SessionKey;
  readonly sourceAgent: AgentId;
  /** The W3C trace; without one the source's run groups its spawns. */
  readonly traceId?: string;
  readonly spawn: Omit<AdmitSpawn, "type" | "parentStepId" | "sourceSession" | "input" | "timeoutMs"> & {
    /** Absent: the configured limit. */
    readonly timeoutMs?: number;
  };
  readonly input: ContentInput;
  /** What the owner was asked to do; becomes the objective of a coordination that this spawn opens. */
  readonly objective: ContentInput;
}

export type Admission =
  | { readonly kind: "admitted"; readonly envelope: CoordinationEnvelope; readonly state: Coordination }
  | { readonly kind: "refused"; readonly code: RefusalCode; readonly reason: string };

export interface AdmitParts {
  readonly store: LedgerStore;
  readonly runs: RunLog;
  readonly settings: {
    readonly stepTimeoutMs: number;
    readonly settleMs: number;
    readonly acknowledgeMs: number;
    readonly contentMs: number;
  };
  readonly newCoordinationId: () => CoordinationId;
  /** Openings under way by trace, so that parallel spawns open one coordination between them. */
  readonly opening: Map<string, Promise<unknown>>;
}

/** @throws CoordinationError when the ledger could not record the intent; nothing was recorded then. */
export async function admitSpawn(parts: AdmitParts, request: SpawnRequest): Promise<Admission> {
  for (let tries = 1; ; tries += 1) {
    const home = await findHome(parts, request);
    const submitted =
      home.kind === "join" ? await join(parts, request, home) : await open(parts, request, home);
    const again =
      submitted.kind === "refused" && submitted.code === "COORDINATION_ENDED" && tries < JOIN_ATTEMPTS_MAX;
    if (!again) return admissionOf(submitted);
  }
}

function admissionOf(submitted: Submitted): Admission {
  if (submitted.kind === "refused")
    return { kind: "refused", code: submitted.code, reason: submitted.reason };
  const envelope = submitted.stepId && envelopeOf(submitted.state, submitted.stepId);
  invariant(envelope !== undefined, "an admitted spawn has a step");
  return { kind: "admitted", envelope, state: submitted.state };
}

type Home =
  | { readonly kind: "join"; readonly runId: CoordinationId; readonly parentStepId?: StepId }
  | { readonly kind: "open"; readonly causalRef?: CoordinationId };

async function findHome(parts: AdmitParts, request: SpawnRequest): Promise<Home> {
  const parent = await openHolder(parts, childName(request.sourceSession));
  if (parent?.open)
    return { kind: "join", runId: parent.runId, ...(parent.stepId && { parentStepId: parent.stepId }) };
  const trace = traceOf(request);
  await settled(parts, trace);
  const earlier = await openHolder(parts, trace);
  if (earlier?.open) return { kind: "join", runId: earlier.runId };
  const before = earlier ?? parent;
  return before ? { kind: "open", causalRef: before.runId } : { kind: "open" };
}

/** Who holds a reference, and whether that coordination can still be joined. */
async function openHolder(
  { store, runs }: AdmitParts,
  name: string,
): Promise<(Found & { open: boolean }) | undefined> {
  const found = await store.find(name);
  return found && { ...found, open: (await runs.state(found.runId)).kind === "open" };
}

/** Waits until no other spawn of the trace is opening a coordination. */
async function settled({ opening }: AdmitParts, trace: string): Promise<void> {
  for (let other = opening.get(trace); other; other = opening.get(trace)) await other.catch(() => undefined);
}

function traceOf({ sourceSession, traceId, spawn }: SpawnRequest): string {
  return traceName(sourceSession, traceId ?? spawn.call.runId ?? "none");
}

function join(parts: AdmitParts, request: SpawnRequest, home: Home & { kind: "join" }): Promise<Submitted> {
  return parts.runs.submit(
    home.runId,
    [admission(parts, request, home.parentStepId)],
    contentsOf(parts, [request.input]),
  );
}

async function open(
  parts: AdmitParts,
  request: SpawnRequest,
  home: Home & { kind: "open" },
): Promise<Submitted> {
  const trace = traceOf(request);
  // Another spawn of the trace may have begun to open while this one was looking.
  if (parts.opening.has(trace)) {
    await settled(parts, trace);
    const found = await parts.store.find(trace);
    if (found) return join(parts, request, { kind: "join", runId: found.runId });
  }
  const commands = [opening(parts, request, home), admission(parts, request)];
  const opened = parts.runs.submit(
    parts.newCoordinationId(),
    commands,
    contentsOf(parts, [request.input, request.objective]),
  );
  parts.opening.set(trace, opened);
  try {
    return await opened;
  } finally {
    if (parts.opening.get(trace) === opened) parts.opening.delete(trace);
  }
}

function opening(
  { settings }: AdmitParts,
  request: SpawnRequest,
  { causalRef }: Home & { kind: "open" },
): Command {
  const { runId, spanId } = request.spawn.call;
  const traceId = request.traceId ?? runId;
  return {
    type: "openCoordination",
    origin: "observed",
    ownerSession: request.sourceSession,
    ownerAgent: request.sourceAgent,
    objective: request.objective.ref,
    trace: {
      ...(traceId && { traceId }),
      ...(runId && { runId }),
      ...(spanId && { spanId }),
      ...(causalRef && { causalRef }),
    },
    failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
    settleMs: settings.settleMs,
    acknowledgeMs: settings.acknowledgeMs,
  };
}

function admission({ settings }: AdmitParts, request: SpawnRequest, parentStepId?: StepId): AdmitSpawn {
  return {
    type: "admitSpawn",
    ...request.spawn,
    ...(parentStepId && { parentStepId }),
    sourceSession: request.sourceSession,
    input: request.input.ref,
    timeoutMs: request.spawn.timeoutMs ?? settings.stepTimeoutMs,
  };
}

function contentsOf({ settings }: AdmitParts, contents: readonly ContentInput[]): readonly ContentInput[] {
  return settings.contentMs === 0 ? [] : contents;
}
