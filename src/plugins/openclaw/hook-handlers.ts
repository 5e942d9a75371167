/**
 * Owns: what each hook of the host means to the coordination.
 *
 * H2 a handler never throws into the host and answers within its budget. H3 whose child a session is comes from the
 * ledger. An event reaches one module instance, any of them: nothing is kept but in the shared runtime
 * (`shared-runtime.ts`) and in what `shareInProcess` holds.
 */
import type { CoordinationEnvelope } from "../../agents/coordination/contracts/envelope.ts";
import type { SessionKey } from "../../agents/coordination/contracts/ids.ts";
import type { ChildEnding } from "../../agents/coordination/contracts/observation.ts";
import { isTellingKey } from "../../agents/coordination/runtime/questions/tell-session.ts";
import { createObserveHandlers, type ObserveHandlers } from "./children/observe-handlers.ts";
import { createChatGuard, type ChatGuard } from "./withholding/chat-guard.ts";
import { createGateHandlers, type GateHandlers } from "./withholding/gate-handlers.ts";
import type { SpanOf } from "./withholding/text-transforms.ts";
import { createPrivilegeHandlers, type PrivilegeHandlers } from "./privileges/privilege-handlers.ts";
import { createSessionParents, type SessionParents } from "./privileges/session-parents.ts";
import { formatPromptContext } from "./runners/prompt-context.ts";
import type { HookContext, HookEvent, HookResult, OpenClawPluginApi } from "./host/sdk.ts";
import { noteProviderRefusal, waitForProviderTurn } from "./runtime-access/provider-turns.ts";
import { reportFailure } from "./runtime-access/report-failure.ts";
import {
  createRunQuietly,
  isStopError,
  runUnawaited,
  type RunQuietly,
} from "./runtime-access/run-quietly.ts";
import {
  findRuntime,
  loadRuntime,
  noteStartFailure,
  replaceRuntime,
  withRuntime,
  type SharedRuntime,
} from "./runtime-access/shared-runtime.ts";
import { noteTurnEnd } from "./runtime-access/turns-memory.ts";
import { noteCompaction, describeCompactedChildren } from "./spawns/children-after-compaction.ts";
import { createSpawnHandlers, SPAWN_BUDGET_MS, type SpawnHandlers } from "./spawns/spawn-handlers.ts";
import { formatSentence } from "./host/spawn-result.ts";
import { createLateError, runWithinBudget } from "./host/within-budget.ts";
import { createUsageHandlers, type UsageHandlers } from "./usage/usage-handlers.ts";
import { createWriteHandlers, type WriteHandlers } from "./writes/write-handlers.ts";

/** A session's request is kept to this length, as the objective of what it may spawn. */
const REQUEST_CHARS_MAX = 2_000;

/** Ruled on before its spawn is recorded, by the hook of spawns. */
const SPAWN_TOOL = "sessions_spawn";

/** A call may wait for another one to end, for plugins, and for a lease where the operator wants it. */
const CALL_BUDGET_MS = 12_000;
/** The host blocks a call after 18 s, also where its session was held back first for the sake of its provider. */
const CALL_HOOK_MS_MAX = 17_000;

/** After a ledger could not be opened at the start; twice as long after each further time. */
const FIRST_RETRY_MS = 1_000;
/** Each try blocks the gateway for as long as it waits for a file that another process has locked. */
const RETRY_MS_MAX = 10_000;

export interface HookHandlers extends WriteHandlers {
  beforeSpawn(
    event: HookEvent<"before_tool_call">,
    ctx: HookContext<"before_tool_call">,
  ): Promise<HookResult<"before_tool_call">>;
  readonly afterSpawn: SpawnHandlers["afterSpawn"];
  subagentEnded(event: HookEvent<"subagent_ended">): Promise<void>;
  beforePromptBuild(
    event: HookEvent<"before_prompt_build">,
    ctx: HookContext<"before_prompt_build">,
  ): Promise<HookResult<"before_prompt_build">>;
  compacted(event: HookEvent<"after_compaction">, ctx: HookContext<"after_compaction">): Promise<void>;
  agentEnded(event: HookEvent<"agent_end">, ctx: HookContext<"agent_end">): Promise<void>;
  gates(spanOf: SpanOf): GateHandlers;
  readonly observation: ObserveHandlers;
  readonly usage: UsageHandlers;
  readonly chatGuard: ChatGuard;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Creates the handlers of the host hooks that the plugin registers, but for mentions in chats, and those of its
 * service's start and stop.
 */
export function createHookHandlers(api: OpenClawPluginApi): HookHandlers {
  const use = async <T>(work: (runtime: SharedRuntime) => Promise<T>, budgetMs?: number): Promise<T> => {
    // Work that a late hook began would be recorded for a call that goes on without it.
    if (budgetMs !== undefined && budgetMs <= 0) throw createLateError();
    return runWithinBudget(withRuntime(api, work), budgetMs);
  };
  const runQuietly = createRunQuietly(api, use);
  const parents = createSessionParents(api);
  const { isChild } = parents;
  const privileges = createPrivilegeHandlers({ api, use, quietly: runQuietly, parents });
  const spawns = createSpawnHandlers({ api, use, quietly: runQuietly, isHeld: privileges.isHeld });
  const useForCall = <T>(work: (runtime: SharedRuntime) => Promise<T>, answerByMs?: number): Promise<T> =>
    use(work, answerByMs === undefined ? CALL_BUDGET_MS : answerByMs - Date.now());
  const writes = createWriteHandlers({ api, quietly: runQuietly, use: useForCall });
  return {
    afterSpawn: (event, ctx) => spawns.afterSpawn(event, ctx),
    ...createCallHandlers({ privileges, spawns, writes, isChild }),
    chatGuard: createChatGuard({ quietly: runQuietly, isChild }),
    gates: (spanOf) => createGateHandlers({ quietly: runQuietly, spanOf, isChild }),
    observation: createObserveHandlers({ quietly: runQuietly, isChild }),
    usage: createUsageHandlers(runQuietly),
    subagentEnded: async (event: HookEvent<"subagent_ended">) => {
      // A session that was told something has ended a turn of ours, not its own work.
      if (event.runId !== undefined && isTellingKey(event.runId)) return;
      await runQuietly("subagent_ended", async (runtime) => {
        await (
          await runtime.coordinator()
        ).endChild(event.targetSessionKey as SessionKey, readEndedEvent(event));
      });
    },
    beforePromptBuild: async (event, ctx) => {
      const begin = (runtime: SharedRuntime) => beginTurn({ runtime, privileges }, event, ctx);
      const prompt = await runQuietly("before_prompt_build", begin);
      const { sessionKey } = ctx;
      if (sessionKey && isChild(sessionKey)) await waitForProviderTurn(sessionKey, ctx.modelProviderId);
      return prompt;
    },
    compacted: (event, ctx) => onCompacted(runQuietly, event, ctx),
    agentEnded: (event, ctx) => {
      noteProviderRefusal(event, ctx);
      noteTurnEnd(ctx);
      return runQuietly("agent_end", (runtime) => endTurn(runtime, ctx));
    },
    start: () => startRuntime(api, runQuietly),
    stop: async (): Promise<void> => {
      const runtime = findRuntime();
      await runtime?.close();
      if (runtime === findRuntime()) runtime?.health.closed();
    },
  };
}

/**
 * Makes the runtime; where that fails, as for a configuration that is refused, the operator and every later call are told why
 * there is none.
 */
async function makeRuntimeOrReport(api: OpenClawPluginApi): Promise<SharedRuntime> {
  noteStartFailure(undefined);
  try {
    return await loadRuntime(api);
  } catch (error) {
    if (error instanceof Error) noteStartFailure(error);
    await reportFailure(api, error, 0);
    throw error;
  }
}

/** Makes a runtime in place of the one before, and opens its ledger. */
async function startRuntime(api: OpenClawPluginApi, quietly: RunQuietly): Promise<void> {
  const next = await makeRuntimeOrReport(api);
  const previous = await replaceRuntime(next);
  await quietly("start", (runtime) => openLedgerOrRetry(runtime, FIRST_RETRY_MS));
  // A ledger on a server may answer late: the gateway goes on meanwhile.
  if (previous && previous.ledger.place !== next.ledger.place)
    runUnawaited(api, "start", () => reportPreviousLedger(previous, next));
}

/**
 * Opens the ledger for a gateway that starts, and again later where that fails. Without it no plan and no deadline
 * goes on.
 */
async function openLedgerOrRetry(runtime: SharedRuntime, retryMs: number): Promise<void> {
  try {
    await runtime.coordinator();
  } catch (error) {
    if (runtime.closed || isStopError(error)) return;
    runtime.health.failed(error, 0);
    setTimeout(() => void openLedgerOrRetry(runtime, Math.min(retryMs * 2, RETRY_MS_MAX)), retryMs).unref();
    return;
  }
  runtime.health.succeeded();
  void runtime.openwop?.start();
}

/**
 * Logs how many coordinations are left open in the previous runtime's ledger, where the next one's lacks them. The
 * code for it is loaded here.
 */
async function reportPreviousLedger(previous: SharedRuntime, next: SharedRuntime): Promise<void> {
  await (await import("./runtime-access/report-left-ledger.ts")).reportLeftLedger(previous, next);
}

async function onCompacted(
  quietly: RunQuietly,
  { compactedCount }: HookEvent<"after_compaction">,
  { sessionKey }: HookContext<"after_compaction">,
): Promise<void> {
  // The host also calls it where it found nothing to compact.
  if (!sessionKey || compactedCount === 0) return;
  await quietly("after_compaction", (runtime) => noteCompaction(runtime, sessionKey as SessionKey));
}

interface HeldCalls extends WriteHandlers {
  readonly beforeSpawn: HookHandlers["beforeSpawn"];
}

interface CallDependencies {
  readonly privileges: PrivilegeHandlers;
  readonly spawns: SpawnHandlers;
  readonly writes: WriteHandlers;
  readonly isChild: SessionParents["isChild"];
}

/**
 * Creates the hooks of tool calls, which check a session's privileges first. A call that may not happen is nothing to
 * record, to claim or to ask about.
 */
function createCallHandlers({ privileges, spawns, writes, isChild }: CallDependencies): HeldCalls {
  return {
    beforeSpawn: async (event, ctx) => {
      const untilMs = Date.now() + SPAWN_BUDGET_MS;
      return (await privileges.refuseCall(event, ctx)) ?? spawns.beforeSpawn(event, ctx, untilMs);
    },
    beforeCall: async (event, ctx) => {
      const hookBeganAtMs = Date.now();
      const { sessionKey } = ctx;
      // First, so that a claim is ruled on when its call happens. Whoever talks to a person does not wait.
      if (sessionKey && isChild(sessionKey)) await waitForProviderTurn(sessionKey);
      const answerByMs = Math.min(Date.now() + CALL_BUDGET_MS, hookBeganAtMs + CALL_HOOK_MS_MAX);
      return (
        (event.toolName === SPAWN_TOOL ? undefined : await privileges.refuseCall(event, ctx)) ??
        writes.beforeCall(event, ctx, { hookBeganAtMs, answerByMs })
      );
    },
    afterCall: async (event, ctx) => {
      await privileges.noteUnshownCall(event, ctx);
      await writes.afterCall(event, ctx);
    },
  };
}

/** Tells the coordinator that a turn of a session ended. */
async function endTurn(
  runtime: SharedRuntime,
  { sessionKey, runId }: HookContext<"agent_end">,
): Promise<void> {
  if (sessionKey && runId) await (await runtime.coordinator()).turnEnded(sessionKey as SessionKey, runId);
}

interface TurnDependencies {
  readonly runtime: SharedRuntime;
  readonly privileges: PrivilegeHandlers;
}

/** Notes the turn and the request that it carries, and returns what is added to its prompt. */
async function beginTurn(
  { runtime, privileges }: TurnDependencies,
  event: HookEvent<"before_prompt_build">,
  { sessionKey, runId, inputProvenance }: HookContext<"before_prompt_build">,
): Promise<HookResult<"before_prompt_build">> {
  if (!sessionKey) return undefined;
  const session = sessionKey as SessionKey;
  const coordinator = await runtime.coordinator();
  if (runId) coordinator.turnBegan(session, runId);
  // A turn that another session caused carries that session's words, not a request to this one.
  const request =
    inputProvenance?.kind === "inter_session" ? undefined : (event.currentUserMessage ?? event.prompt);
  if (request) runtime.requests.set(session, request.slice(0, REQUEST_CHARS_MAX));
  return createPromptAdditions({
    envelope: await coordinator.envelopeForChild(session),
    children: await describeCompactedChildren(runtime, session, runId),
    narrowed: await privileges.narrowPrompt(runtime, session),
  });
}

interface PromptParts {
  /** The place of a child. */
  readonly envelope: CoordinationEnvelope | undefined;
  /** The children of a session whose history was compacted. */
  readonly children: string | undefined;
  /** The tools that a session is held to. */
  readonly narrowed: HookResult<"before_prompt_build">;
}

/** Returns what is added to a prompt, and the tools that it offers where the session may not use all of them. */
function createPromptAdditions({
  envelope,
  children,
  narrowed,
}: PromptParts): HookResult<"before_prompt_build"> {
  const context = [envelope && formatPromptContext(envelope), narrowed?.appendSystemContext].filter(Boolean);
  if (context.length === 0 && children === undefined) return undefined;
  return {
    ...narrowed,
    ...(context.length > 0 && { appendSystemContext: context.join("\n\n") }),
    ...(children !== undefined && { prependContext: children }),
  };
}

/**
 * Translates the host's outcome of a child into an ending. An outcome that this release does not know is a failure;
 * without an outcome the child failed where there is an error, and else completed.
 */
function readEndedEvent({ outcome, error }: HookEvent<"subagent_ended">): ChildEnding {
  const message = error ? { message: formatSentence(error) } : {};
  switch (outcome) {
    case "ok":
      return { outcome: "completed" };
    case "timeout":
      return { outcome: "timed_out" };
    case "killed":
    case "reset":
    case "deleted":
      return { outcome: "cancelled", message: formatSentence(error ?? `the child session was ${outcome}`) };
    case "error":
      return { outcome: "failed", ...message };
    case undefined:
      return error ? { outcome: "failed", ...message } : { outcome: "completed" };
    default:
      return { outcome: "failed", message: `the host reports an outcome that this release does not know` };
  }
}
