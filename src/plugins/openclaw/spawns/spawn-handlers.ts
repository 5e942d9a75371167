/**
 * Owns: the two hooks around `sessions_spawn`. Before: the intent is recorded and the envelope goes into the params (D1).
 * After: the child is bound to its step, or the host's refusal recorded.
 *
 * A spawn that cannot be recorded goes on uncoordinated, and that is said loudly; in strict mode it is refused instead, and so it is
 * where only the ledger could hold its child, or its result, and where a plugin decides about spawns and denies it or could not be
 * asked.
 */
import type { CoordinationEnvelope } from "../../../agents/coordination/contracts/envelope.ts";
import type { InputProblem } from "../../../agents/coordination/contracts/fact-fields.ts";
import { isAgentListed } from "../../../agents/coordination/contracts/host-agent-id.ts";
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import type { Coordinator } from "../../../agents/coordination/runtime/coordinator.ts";
import { explainUnenforceable } from "../../../agents/coordination/runtime/privileges/admitted-privilege.ts";
import type { SpawnAdmission } from "../../../agents/coordination/runtime/spawns/admit-spawn.ts";
import { createCallKey } from "../runtime-access/call-key.ts";
import { continueOrRefuse, createCallRefusal } from "../runtime-access/refuse-call.ts";
import { reportFailure } from "../runtime-access/report-failure.ts";
import { readPrivilegeRules, readRulesInForce, type RulesInForce } from "../runtime-access/rules-in-force.ts";
import { createDefaultAgentFinder } from "../host/host-names.ts";
import type { HookContext, HookEvent, HookResult, OpenClawPluginApi } from "../host/sdk.ts";
import { findRuntime, type PendingSpawn, type SharedRuntime } from "../runtime-access/shared-runtime.ts";
import { explainRepetition } from "./children-after-compaction.ts";
import { explainUndecidedSpawn, findSpawnDenial } from "./spawn-decision.ts";
import { cleanLabel } from "./clean-label.ts";
import {
  accessNarrowedSpawns,
  forgetNarrowedSpawn,
  noteNarrowedChild,
} from "../runtime-access/narrowed-spawns.ts";
import {
  isChildBounded,
  refuseUncheckedResult,
  refuseUnrecordedSpawn,
  refuseUnboundedChild,
} from "./refuse-unrecorded.ts";
import { readSpawnCall, type SpawnCall, type SpawnReading } from "./spawn-request.ts";
import { readSpawnResult } from "../host/spawn-result.ts";

type BeforeEvent = HookEvent<"before_tool_call">;
type BeforeContext = HookContext<"before_tool_call">;
type BeforeResult = HookResult<"before_tool_call">;

export interface SpawnHandlerDependencies {
  readonly api: OpenClawPluginApi;
  /** Runs `work` on the shared runtime. @throws CoordinationError `LEDGER_BUSY` after `budgetMs`; `work` itself goes on. */
  readonly use: <T>(work: (runtime: SharedRuntime) => Promise<T>, budgetMs: number) => Promise<T>;
  readonly quietly: <T>(hook: string, work: (runtime: SharedRuntime) => Promise<T>) => Promise<T | undefined>;
  /** Whether a session is held to privileges, and so whatever it spawns. */
  readonly isHeld: (runtime: SharedRuntime, session: SessionKey) => Promise<boolean>;
}

export interface SpawnHandlers {
  /** Answers by `untilMs`, `SPAWN_BUDGET_MS` after the host's call; what ruled on it before took its time from the same budget. */
  beforeSpawn(event: BeforeEvent, ctx: BeforeContext, untilMs: number): Promise<BeforeResult>;
  afterSpawn(event: HookEvent<"after_tool_call">, ctx: HookContext<"after_tool_call">): Promise<void>;
}

/**
 * All waits of the path together, in milliseconds: for a reload, for the plugins that decide, for a place in the lane and
 * for the ledger. The host blocks the spawn of a hook that takes more than 10 s.
 */
export const SPAWN_BUDGET_MS = 8_000;

/** Left by plugins to the lane and the ledger, and to plugins also where a ledger that hangs took their time before. */
const ADMISSION_MS = 3_500;
const DECIDE_MS_MIN = 2_000;

export function createSpawnHandlers(dependencies: SpawnHandlerDependencies): SpawnHandlers {
  return {
    beforeSpawn: (event, ctx, untilMs) => admitOrRefuse(dependencies, { event, ctx, untilMs }),
    afterSpawn: async (event, { sessionKey }) => {
      const key = createCallKey(sessionKey ?? "", event.runId, event.toolCallId);
      // Also where there is no open runtime, whose ledger would take it.
      noteNarrowedChild(key, event);
      await dependencies.quietly("after_tool_call", (runtime) =>
        settleSpawn(runtime, { event, sessionKey, key }),
      );
    },
  };
}

type SpawnRefusal = Extract<SpawnAdmission, { readonly kind: "refused" }>;

/** These say no to the spawn itself; others say only that it could not be recorded. */
const BLOCKING: ReadonlySet<SpawnRefusal["code"]> = new Set([
  "LANE_FULL",
  "BUDGET_SPENT",
  "PLAN_STOPPED",
  "UNGATEABLE",
  "UNENFORCEABLE",
]);

interface SpawnCalled {
  readonly event: BeforeEvent;
  readonly ctx: BeforeContext;
}

interface HookedSpawn extends SpawnCalled {
  /** When the host must have its answer. */
  readonly untilMs: number;
}

/** How the host was answered where the ledger had not answered in time. */
interface EarlyAnswer {
  kind?: "refused" | "goes on";
}

async function admitOrRefuse(
  { api, use, isHeld }: SpawnHandlerDependencies,
  { event, ctx, untilMs }: HookedSpawn,
): Promise<BeforeResult> {
  const decideUntilMs = Math.min(untilMs, Math.max(untilMs - ADMISSION_MS, Date.now() + DECIDE_MS_MIN));
  const early: EarlyAnswer = {};
  let reading: SpawnReading | undefined;
  let deciding: Promise<string | undefined> | undefined;
  try {
    return await use(async (runtime) => {
      reading = readSpawnCall(createSpawnCall(runtime, event, ctx));
      const isRecorded = isAgentCoordinated(runtime.config, ctx);
      const unrecorded =
        !isRecorded &&
        refuseUnboundedChild(runtime.privilegeRules, reading, "this agent's spawns are not coordinated");
      if (unrecorded) return unrecorded;
      if (isRecorded) {
        // Plugins are asked before the ledger is read, since they may deny also where it cannot be.
        const request = reading.kind === "spawn" ? reading.request : undefined;
        deciding ??= findSpawnDenial(runtime, request, decideUntilMs);
        const denial = await deciding;
        if (denial !== undefined) return createCallRefusal("spawn", denial);
      }
      const unenforceable = await explainUnenforceableChild(runtime, reading, isHeld);
      if (unenforceable !== undefined) return createCallRefusal("spawn", unenforceable);
      if (!isRecorded) return undefined;
      const repetition = await explainRepetition(runtime, reading);
      return repetition === undefined
        ? admitToLedger(runtime, { reading, event, early })
        : createCallRefusal("spawn", repetition);
    }, untilMs - Date.now());
  } catch (error) {
    const denial = await (deciding ?? explainUndecidedSpawn());
    const answer = await answerUnrecordedSpawn(api, { event, ctx, reading, denial, error });
    early.kind = answer ? "refused" : "goes on";
    if (!answer) markUnansweredSpawn(createCallKey(ctx.sessionKey ?? "", event.runId, event.toolCallId));
    return answer;
  }
}

interface UnrecordedSpawn extends SpawnCalled {
  /** Absent where the runtime could not be entered. */
  readonly reading: SpawnReading | undefined;
  /** Why plugins do not let it begin; `undefined` where they do. */
  readonly denial: string | undefined;
  readonly error: unknown;
}

async function answerUnrecordedSpawn(
  api: OpenClawPluginApi,
  { event, ctx, reading, denial, error }: UnrecordedSpawn,
): Promise<BeforeResult> {
  const unheld = refuseSpawnOutsideRuntime(api, { event, ctx }, reading);
  if (!isAgentCoordinated(readRulesInForce(api), ctx)) return unheld;
  const refusal = denial === undefined ? unheld : createCallRefusal("spawn", denial);
  if (!refusal) return continueOrRefuse(api, error, "spawn");
  await reportFailure(api, error, 0);
  return refusal;
}

function markUnansweredSpawn(key: string): void {
  const pending = findRuntime()?.pendingSpawns;
  if (pending && !pending.get(key)) pending.set(key, []);
}

/** Returns why a child could not be held to what it may do; `undefined` where it can, or is held to nothing. */
async function explainUnenforceableChild(
  runtime: SharedRuntime,
  reading: SpawnReading,
  isHeld: SpawnHandlerDependencies["isHeld"],
): Promise<string | undefined> {
  if (reading.kind === "unreadable") return undefined;
  if (reading.privilegeProblem !== undefined) return reading.privilegeProblem;
  const { target, request } = reading;
  if (target.runner !== "acp") return undefined;
  const isNarrowed =
    isChildBounded(runtime.privilegeRules, reading) || (await isHeld(runtime, request.sourceSession));
  return explainUnenforceable(target, isNarrowed);
}

/**
 * Refuses a spawn that could not be recorded although its result would have to be held, or its child. Other spawns go on. Where
 * the runtime could not be entered, the call was not read before.
 */
function refuseSpawnOutsideRuntime(
  api: OpenClawPluginApi,
  { event, ctx }: SpawnCalled,
  read: SpawnReading | undefined,
): BeforeResult {
  const runtime = findRuntime();
  const reading = read ?? readSpawnCall(createSpawnCall(runtime ?? createUnresolvedNames(api), event, ctx));
  const ungated =
    runtime && !runtime.closed && isAgentCoordinated(runtime.config, ctx)
      ? refuseUncheckedResult(runtime, reading.target, "it could not be recorded")
      : undefined;
  return ungated ?? refuseUnboundedChild(readPrivilegeRules(api), reading, "it could not be recorded");
}

type CallSource = Pick<SharedRuntime, "findDefaultAgent" | "names"> &
  Partial<Pick<SharedRuntime, "requests">>;

/** Creates names that stay as the call has them, for reading a call without a runtime, when nothing is recorded. */
function createUnresolvedNames(api: OpenClawPluginApi): CallSource {
  return {
    findDefaultAgent: createDefaultAgentFinder(api),
    names: { modelOf: String, folderOf: String, thinkingOf: () => undefined },
  };
}

function isAgentCoordinated(
  { agents }: Pick<RulesInForce, "agents">,
  { agentId }: Pick<BeforeContext, "agentId">,
): boolean {
  return !agents || (agentId !== undefined && isAgentListed(agents, agentId));
}

/** A spawn that is to be admitted, and the call of the host that asks for it. */
interface AdmissionRequest {
  readonly reading: SpawnReading;
  readonly event: BeforeEvent;
  readonly early: EarlyAnswer;
}

/**
 * Records the spawn in the ledger and hands over its envelope. Where the ledger does not take the spawn, it is
 * refused, or goes on uncoordinated.
 */
async function admitToLedger(
  runtime: SharedRuntime,
  { reading, event, early }: AdmissionRequest,
): Promise<BeforeResult> {
  const { strict } = runtime.config;
  if (reading.kind === "unreadable") return answerUnreadableSpawn(runtime, reading);
  const coordinator = await runtime.coordinator();
  const admission = await coordinator.admitSpawn(reading.request);
  runtime.health.succeeded();
  if (admission.kind === "refused") {
    if (strict || BLOCKING.has(admission.code)) return createCallRefusal("spawn", admission.reason);
    const unheld = refuseUnrecordedSpawn(runtime, reading, `it could not be recorded (${admission.reason})`);
    if (unheld) return unheld;
    runtime.logger.warn({ refusal: admission.code }, `a spawn goes on uncoordinated: ${admission.reason}`);
    return undefined;
  }
  const { envelope, state } = admission;
  const step = state.kind === "unopened" ? undefined : state.steps.get(envelope.stepId);
  const isNarrowed = step?.spec.privilege !== undefined;
  return handOverEnvelope(runtime, { coordinator, reading, event, early, envelope, isNarrowed });
}

/** Lets a spawn without a usable session or agent go on uncoordinated, or refuses it. */
function answerUnreadableSpawn(
  runtime: SharedRuntime,
  reading: SpawnReading & { readonly kind: "unreadable" },
): BeforeResult {
  const unheld = refuseUnrecordedSpawn(runtime, reading, "it cannot be recorded");
  if (unheld) return unheld;
  if (runtime.config.strict)
    return createCallRefusal("spawn", "the spawn names no session or agent that could be recorded");
  runtime.logger.warn(
    { session: reading.session },
    "a spawn without a usable session or agent goes on uncoordinated",
  );
  return undefined;
}

function createSpawnCall(source: CallSource, event: BeforeEvent, ctx: BeforeContext): SpawnCall {
  const sessionKey = ctx.sessionKey ?? "";
  return {
    params: event.params,
    sessionKey,
    agentId: ctx.agentId ?? "",
    runId: event.runId ?? ctx.runId,
    toolCallId: event.toolCallId ?? ctx.toolCallId,
    trace: ctx.trace,
    request: source.requests?.get(sessionKey),
    findDefaultAgent: source.findDefaultAgent,
    names: source.names,
  };
}

interface HandOver extends AdmissionRequest {
  readonly coordinator: Coordinator;
  readonly reading: SpawnReading & { readonly kind: "spawn" };
  readonly envelope: CoordinationEnvelope;
  /** The child is to be held to something. */
  readonly isNarrowed: boolean;
}

const REFUSED_BEFORE = "the spawn was refused before the ledger took it";

/**
 * Returns the spawn's params with the envelope, and remembers the spawn until the hook behind it. In strict mode
 * malformed params are refused.
 */
async function handOverEnvelope(
  runtime: SharedRuntime,
  { coordinator, reading, event, early, envelope, isNarrowed }: HandOver,
): Promise<BeforeResult> {
  const { coordinationId, stepId, sourceSession } = envelope;
  for (const { code, path } of reading.problems) {
    runtime.logger.warn(
      { runId: coordinationId, stepId, problem: code, path },
      "a spawn came with a problem",
    );
  }
  if (early.kind === "refused") {
    await coordinator.refuseSpawn({ coordinationId, stepId, sourceSession }, REFUSED_BEFORE);
    return undefined;
  }
  const malformed = reading.problems.filter(({ code }) => code !== "ENVELOPE_NOT_AUTHORITATIVE");
  if (runtime.config.strict && malformed.length > 0) {
    const reason = describeMalformed(malformed);
    await coordinator.refuseSpawn({ coordinationId, stepId, sourceSession }, reason);
    return createCallRefusal("spawn", reason);
  }
  const key = createCallKey(sourceSession, event.runId, event.toolCallId);
  // The host has told already what came of it: its records have the child.
  if (early.kind === "goes on" && !runtime.pendingSpawns.get(key)) return undefined;
  if (isNarrowed) accessNarrowedSpawns().set(key, { parent: sourceSession });
  runtime.pendingSpawns.set(key, [...(runtime.pendingSpawns.get(key) ?? []), { coordinationId, stepId }]);
  // Whatever the model wrote there is replaced: the envelope comes from the ledger (H3).
  return { params: { ...event.params, ...cleanLabel(event.params["label"]), coordination: envelope } };
}

function describeMalformed(problems: readonly InputProblem[]): string {
  const fields = [...new Set(problems.map(({ path }) => path))].join(", ");
  return `the spawn's ${fields} ${problems.length === 1 ? "is" : "are"} malformed; correct or leave out what is named and spawn again`;
}

interface EndedSpawn {
  readonly event: HookEvent<"after_tool_call">;
  readonly sessionKey: string | undefined;
  readonly key: string;
}

async function settleSpawn(runtime: SharedRuntime, ended: EndedSpawn): Promise<void> {
  let isRecorded = false;
  try {
    isRecorded = await recordSpawnOutcome(runtime, ended);
  } finally {
    forgetNarrowedSpawn(ended.key, isRecorded);
  }
}

/** Records what came of a spawn. Returns whether the ledger knows it now. */
async function recordSpawnOutcome(runtime: SharedRuntime, ended: EndedSpawn): Promise<boolean> {
  const { event, sessionKey, key } = ended;
  const pending = takePendingSpawn(runtime, event, key);
  if (!pending || !sessionKey) return false;
  const claim = { ...pending, sourceSession: sessionKey as SessionKey };
  const coordinator = await runtime.coordinator();
  const result = readSpawnResult(event);
  if (result.kind === "refused") await coordinator.refuseSpawn(claim, result.message);
  if (result.kind === "failed") await coordinator.failSpawn(claim, result.message);
  if (result.kind !== "accepted") return result.kind !== "unclear";
  const envelope = await coordinator.confirmSpawn(claim, result.child);
  if (envelope) await runtime.runner.bind(envelope);
  return envelope !== undefined;
}

/**
 * Takes the pending spawn of an ended call out of memory. The host gives the params back unchanged, with our envelope,
 * only where it ran the tool; a call that was refused before that is known by its tool call alone.
 */
function takePendingSpawn(
  runtime: SharedRuntime,
  event: HookEvent<"after_tool_call">,
  key: string,
): PendingSpawn | undefined {
  const pending = runtime.pendingSpawns.get(key);
  if (!pending) return undefined;
  const named = readNamedStep(event.params);
  const index = Math.max(
    0,
    pending.findIndex(({ stepId }) => stepId === named),
  );
  const rest = pending.toSpliced(index, 1);
  if (rest.length > 0) runtime.pendingSpawns.set(key, rest);
  else runtime.pendingSpawns.delete(key);
  return pending[index];
}

function readNamedStep(params: Readonly<Record<string, unknown>>): unknown {
  const envelope = params["coordination"];
  return typeof envelope === "object" && envelope !== null && "stepId" in envelope
    ? envelope.stepId
    : undefined;
}
