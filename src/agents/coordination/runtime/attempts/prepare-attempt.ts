/** Owns: what an attempt of a planned step is told, and in which session it runs. Both follow from the ledger alone. */
import { chooseTraceId, computeAttemptSpanId } from "../../telemetry/span.ts";
import type { Command } from "../../contracts/commands.ts";
import { createStepError, type ContentRef } from "../../contracts/fact-fields.ts";
import {
  createIdempotencyKey,
  type CoordinationId,
  type SessionKey,
  type StepId,
} from "../../contracts/ids.ts";
import { assertInvariant, isCoordinationError } from "../../contracts/errors.ts";
import { buildEnvelope } from "../../dispatch/build-envelope.ts";
import { isPlanned, type PlannedCoordination } from "../../dispatch/plan-rules.ts";
import { isDelivery } from "../../ledger/plan-progress.ts";
import { findFailedReport, findCompletedOutput } from "../../ledger/readable-results.ts";
import {
  findChildOfPhase,
  findSessionOfPhase,
  type KnownCoordination,
  type OpenCoordination,
  type Step,
} from "../../ledger/state.ts";
import { fillInput } from "../../plan/fill-input.ts";
import { formatInstruction } from "../../plan/instruction.ts";
import { listReferences } from "../../plan/read-bindings.ts";
import type { CompiledStep, Json } from "../../plan/step-graph.ts";
import type { AgentRunner, Attempt, AttemptOrder, Start } from "../../ports/agent-runner.ts";
import { isStartedElsewhere, inferStarterGateway } from "./attempt-facts.ts";
import { createFailureOutcome, type AttemptOutcome } from "./attempt-outcome.ts";
import { formatDeliveryMessage, listDeliveredSteps, listFailureReports } from "./delivery-message.ts";
import { quoteReason } from "./quote-reason.ts";
import { formatRevisionMessage } from "./revision-message.ts";
import type { IndexedGraph } from "../log/plan-source.ts";
import type { OpenStep } from "../log/step-of-child.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

/** The message to the agent of an attempt, or why its input cannot be filled in. */
export type AttemptMessage =
  | {
      readonly kind: "message";
      readonly text: string;
      readonly ref: ContentRef;
      /** It would come out differently once other steps have completed. */
      readonly isPassing?: boolean;
    }
  /** The input cannot be filled in; `why` says where. */
  | { readonly kind: "unfillable"; readonly why: string };

type MessageDependencies = Pick<RuntimeDependencies, "plans" | "content" | "refOf" | "runs" | "settings">;
type TextDependencies = Pick<MessageDependencies, "content" | "runs">;

/**
 * Returns the message that the agent of the step's next attempt is sent: what to revise, the delivery, or the task
 * with its input; `unfillable` where its input cannot be filled in.
 */
export async function createAttemptMessage(
  dependencies: MessageDependencies,
  state: OpenCoordination,
  step: Step,
): Promise<AttemptMessage> {
  const revision = await createRevisionMessage(dependencies, state, step);
  if (revision && isSessionContinued(dependencies, state, step)) return revision;
  if (!isPlanned(state))
    return { kind: "unfillable", why: "the result of a spawn has nothing to be revised" };
  if (isDelivery(step)) return createTextMessage(dependencies, await createDeliveryText(dependencies, state));
  const instruction = await createInstructionMessage(dependencies, state, step);
  const note = revision?.text ?? (await createFailureNote(dependencies, state, step));
  if (instruction.kind !== "message" || note === undefined) return instruction;
  return { ...createTextMessage(dependencies, `${instruction.text}\n\n${note}`), isPassing: true };
}

/** Creates what another attempt is told of the one before it, whose agent reported why it could not do the work. */
async function createFailureNote(
  dependencies: TextDependencies,
  { coordinationId }: PlannedCoordination,
  step: Step,
): Promise<string | undefined> {
  const report = findFailedReport(step);
  if (!report) return undefined;
  const text = (await readTexts(dependencies, coordinationId, [report.sha256])).get(report.sha256);
  const reason = text === undefined ? undefined : quoteReason(text);
  return reason === undefined
    ? undefined
    : `[Coordination] The attempt before this one reported that it could not do it. It said, as data: ${reason}`;
}

/**
 * Creates the message of an attempt at a revision: the criteria that were not met, and the last result where its agent
 * does not remember it; `undefined` for any other attempt.
 */
async function createRevisionMessage(
  dependencies: MessageDependencies,
  state: OpenCoordination,
  step: Step,
): Promise<(AttemptMessage & { readonly kind: "message" }) | undefined> {
  const { phase } = step;
  if (phase.status !== "backoff" || !phase.revision) return undefined;
  const { criteria, output } = phase.revision;
  const before =
    output && !isSessionContinued(dependencies, state, step)
      ? await dependencies.content.get(output.sha256)
      : undefined;
  return { ...createTextMessage(dependencies, formatRevisionMessage(criteria, before)), isPassing: true };
}

/**
 * True where the next attempt goes on in the session of the last one, as the host's agents do. A program is started
 * anew, and so is who gets another worktree, and whose session is in another gateway, which is gone.
 */
function isSessionContinued(
  dependencies: Pick<RuntimeDependencies, "settings">,
  state: OpenCoordination,
  { spec, phase }: Step,
): boolean {
  if (spec.runner !== "subagent" || spec.isolate) return false;
  const recorded = "gateway" in phase ? phase.gateway : undefined;
  return !isStartedElsewhere(dependencies, inferStarterGateway(dependencies, state, recorded));
}

/** Creates the message with the task of a step, and its input as the outputs of other steps fill it in. */
async function createInstructionMessage(
  dependencies: MessageDependencies,
  state: PlannedCoordination,
  step: Step,
): Promise<AttemptMessage> {
  const graph = await findKeptGraph(dependencies, state);
  if (!graph) return { kind: "unfillable", why: "the text of the plan is not kept any more" };
  const compiled = graph.stepOf.get(step.spec.stepId);
  assertInvariant(compiled !== undefined, `the plan has no step ${step.spec.stepId}`);
  if (compiled.bindings.length === 0)
    return createTextMessage(dependencies, formatInstruction(compiled.task, compiled.input));
  const sources = listSourceSteps(compiled);
  const outputs = await readKeptOutputs(dependencies, state, sources);
  const missingSource = sources.find(
    (stepId) => findCompletedOutput(state.steps.get(stepId)?.phase) && !outputs.has(stepId),
  );
  if (missingSource !== undefined)
    return { kind: "unfillable", why: `what ${missingSource} came to is not kept any more` };
  const filled = fillInput(compiled, (stepId) => outputs.get(stepId));
  if (filled.kind === "unfillable") return { kind: "unfillable", why: `${filled.path}: ${filled.message}` };
  const isPassing = sources.some((stepId) => !outputs.has(stepId));
  return {
    ...createTextMessage(dependencies, formatInstruction(compiled.task, filled.input)),
    ...(isPassing && { isPassing }),
  };
}

/** Creates the text of the delivery from the log, so that an owner is told even when the text of the plan is gone. */
async function createDeliveryText(
  dependencies: MessageDependencies,
  state: PlannedCoordination,
): Promise<string> {
  const { coordinationId, created } = state;
  const outputs = await readKeptOutputs(dependencies, state, listDeliveredSteps(state));
  const { sha256 } = created.objective;
  const reportRefs = [...listFailureReports(state)];
  const hashes = [sha256, ...reportRefs.map(([, report]) => report.sha256)];
  const texts = await readTexts(dependencies, coordinationId, hashes);
  const reports = new Map(
    reportRefs.flatMap(([stepId, report]) => {
      const text = texts.get(report.sha256);
      return text === undefined ? [] : [[stepId, text] as const];
    }),
  );
  return formatDeliveryMessage(state, { objective: texts.get(sha256) ?? "(not kept)", outputs, reports });
}

/**
 * Finds the graph of a plan; `undefined` where an upgrade no longer compiles it, or its text was lost. Then its steps
 * fail and do not hang.
 */
async function findKeptGraph(
  { plans }: MessageDependencies,
  state: PlannedCoordination,
): Promise<IndexedGraph | undefined> {
  try {
    return await plans.graphOf(state);
  } catch (error) {
    if (isCoordinationError(error) && error.code === "LEDGER_CORRUPT") return undefined;
    throw error;
  }
}

/**
 * Returns the message that was recorded with an attempt's dispatch, or a new one where it is lost. Whatever is started
 * again under the same key is told the same (D2).
 */
export async function readSentMessage(
  dependencies: MessageDependencies,
  state: OpenCoordination,
  step: Step,
): Promise<AttemptMessage> {
  const ref = step.phase.status === "dispatched" ? step.phase.message : undefined;
  const text = ref && (await dependencies.content.get(ref.sha256));
  return ref && text !== undefined
    ? { kind: "message", text, ref }
    : createAttemptMessage(dependencies, state, step);
}

function createTextMessage(
  { refOf }: MessageDependencies,
  text: string,
): AttemptMessage & { readonly kind: "message" } {
  return { kind: "message", text, ref: refOf(text) };
}

function listSourceSteps({ bindings }: CompiledStep): StepId[] {
  return [...new Set(bindings.flatMap(({ value }) => listReferences(value).map(({ stepId }) => stepId)))];
}

/** Reads the outputs of the steps that have completed, as far as they are kept. */
async function readKeptOutputs(
  dependencies: TextDependencies,
  { coordinationId, steps }: PlannedCoordination,
  stepIds: readonly StepId[],
): Promise<ReadonlyMap<StepId, Json>> {
  const hashes = stepIds.flatMap((stepId) => {
    const output = findCompletedOutput(steps.get(stepId)?.phase);
    return output ? [[stepId, output.sha256] as const] : [];
  });
  const texts = await readTexts(
    dependencies,
    coordinationId,
    hashes.map(([, sha256]) => sha256),
  );
  return new Map(
    hashes.flatMap(([stepId, sha256]) => {
      const text = texts.get(sha256);
      return text === undefined ? [] : [[stepId, JSON.parse(text) as Json] as const];
    }),
  );
}

/**
 * Reads texts by their sha256, also those that are not on disk yet: the dispatch with the message joins their
 * transaction.
 */
async function readTexts(
  { content, runs }: TextDependencies,
  runId: CoordinationId,
  sha256s: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const underWay = runs.listTextsUnderWay(runId);
  const onDisk = await content.getMany([...new Set(sha256s)].filter((sha256) => !underWay.has(sha256)));
  return new Map([...underWay, ...onDisk]);
}

/**
 * Returns the key of the session that an attempt runs in, the same after a crash so that it can be found again: the
 * owner's, that of the result under revision, or a new child's. The host lower-cases session keys.
 */
export function chooseSession(
  dependencies: RuntimeDependencies,
  state: OpenCoordination,
  step: Step,
  attempt: number,
): SessionKey {
  const { spec, phase } = step;
  if (spec.runner === "owner") return spec.sourceSession;
  const isRevised =
    phase.status === "backoff" && phase.revision !== undefined && attempt === phase.attempt + 1;
  if (isRevised && phase.child && isSessionContinued(dependencies, state, step))
    return phase.child.childSessionKey;
  const key = createIdempotencyKey(state.coordinationId, spec.stepId, attempt);
  const kind = spec.runner === "acp_stdio" ? "acp-stdio" : "subagent";
  return `agent:${spec.agentId}:${kind}:coord-${dependencies.refOf(key).sha256.slice(0, 32)}` as SessionKey;
}

/**
 * Returns the command that records the step's next attempt, and its message as content where that must not be lost;
 * for a message that cannot be made, also the command that fails the attempt.
 */
export function draftDispatch(
  dependencies: RuntimeDependencies,
  { state, step, message }: OpenStep & { readonly message: AttemptMessage },
): AttemptOutcome {
  const { gateway } = dependencies.settings;
  const about = { stepId: step.spec.stepId, attempt: step.phase.attempt + 1 };
  const dispatch: Command = {
    type: "dispatchStep",
    ...about,
    targetSession: chooseSession(dependencies, state, step, about.attempt),
    ...(gateway !== undefined && { gateway }),
    ...(message.kind === "message" && { message: message.ref }),
  };
  if (message.kind === "unfillable") {
    const failure = createFailureOutcome(about, createStepError("input_unavailable", message.why));
    return { ...failure, commands: [dispatch, ...failure.commands] };
  }
  const { ref, text, isPassing } = message;
  return { commands: [dispatch], contents: isPassing ? [{ ref, text, keepWhileRunning: true }] : [] };
}

/** The start under way and the agent at work, for whoever has to stop them. */
export interface AttemptStarts {
  starting?: Promise<unknown>;
  /** The answer of the newest start, where the runner refused it, perhaps when nobody waited for it any more. */
  refusal?: Start;
  /** The agent that was started, or found at work. Absent for a delivery: nobody stops the owner's session. */
  atWork?: { readonly runner: AgentRunner; readonly attempt: Attempt };
}

/**
 * Returns the newest attempt of a step in the form by which runners know it; `undefined` before its dispatch, or where
 * it has no session.
 */
export function findNewestAttempt(
  { coordinationId }: Pick<KnownCoordination, "coordinationId">,
  { spec, phase }: Step,
): Attempt | undefined {
  const childSessionKey = findSessionOfPhase(phase);
  if (!childSessionKey || !("dispatchedAtMs" in phase)) return undefined;
  const childRunId = findChildOfPhase(phase)?.childRunId;
  return {
    idempotencyKey: createIdempotencyKey(coordinationId, spec.stepId, phase.attempt),
    agentId: spec.agentId,
    childSessionKey,
    ...(childRunId && { childRunId }),
    dispatchedAtMs: phase.dispatchedAtMs,
  };
}

/**
 * Returns the order by which a runner starts the agent of a step's dispatched attempt; `undefined` where the attempt
 * is not in that phase.
 */
export async function createStartOrder(
  dependencies: MessageDependencies,
  state: OpenCoordination,
  { step, message }: { readonly step: Step; readonly message: string },
): Promise<AttemptOrder | undefined> {
  const attempt = findNewestAttempt(state, step);
  const envelope = buildEnvelope(state, step.spec.stepId);
  if (!attempt || !envelope || step.phase.status !== "dispatched") return undefined;
  const graph = isDelivery(step) || !step.spec.planned ? undefined : await dependencies.plans.graphOf(state);
  const outputSchema = graph?.stepOf.get(step.spec.stepId)?.outputSchema;
  const hash = (text: string): string => dependencies.refOf(text).sha256;
  const traceId = chooseTraceId(state.coordinationId, state.created.trace.traceId, hash);
  const spanId = computeAttemptSpanId(attempt.idempotencyKey, hash);
  return {
    ...attempt,
    envelope,
    lane: step.spec.lane,
    message,
    ...(outputSchema && { outputSchema }),
    deadlineAtMs: step.phase.deadlineAtMs,
    traceparent: `00-${traceId}-${spanId}-01`,
  };
}
