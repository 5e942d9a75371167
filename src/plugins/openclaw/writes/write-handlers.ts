/**
 * Owns: the two hooks around tool calls that may change something. Before: the call is ruled on, and happens, happens with others'
 * changes merged into it, waits for a person, or is refused in words for its model. After: what it left behind is recorded.
 *
 * H2 it answers within its budget and never throws into the host. A call that cannot be ruled on because the ledger fails goes on, and that is
 * said loudly; in strict mode it is refused instead.
 */
import type { EpochMs, SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import type { ReviewAnswer, WriteAnswer } from "../../../agents/coordination/runtime/arbiter/write-call.ts";
import type { CallEnding } from "../../../agents/coordination/runtime/arbiter/writes-under-way.ts";
import { createCallKey } from "../runtime-access/call-key.ts";
import { beginChangingCall, endChangingCall, holdChildEndUntil } from "../runtime-access/keep-back.ts";
import { continueOrRefuse } from "../runtime-access/refuse-call.ts";
import type { HookContext, HookEvent, HookResult, OpenClawPluginApi } from "../host/sdk.ts";
import { readRulesInForce } from "../runtime-access/rules-in-force.ts";
import { findRuntime, type SharedRuntime } from "../runtime-access/shared-runtime.ts";
import { findExtractors } from "./extractor-registry.ts";
import { readParam } from "./param.ts";
import { findReadEnd } from "./read-file-call.ts";
import { isToolWatched, readToolCall } from "./read-tool-call.ts";
import { rewriteToolCall } from "./rewrite-call.ts";
import type { ToolReading } from "./tool-reading.ts";

type BeforeEvent = HookEvent<"before_tool_call">;
type BeforeContext = HookContext<"before_tool_call">;
type BeforeResult = HookResult<"before_tool_call">;
type AfterEvent = HookEvent<"after_tool_call">;
type AfterContext = HookContext<"after_tool_call">;

export interface WriteHandlerDependencies {
  readonly api: OpenClawPluginApi;
  /** @throws CoordinationError `LEDGER_BUSY` when there is no answer by `answerByMs`; absent: within the time of any call. */
  readonly use: <T>(work: (runtime: SharedRuntime) => Promise<T>, answerByMs?: number) => Promise<T>;
  readonly quietly: <T>(hook: string, work: (runtime: SharedRuntime) => Promise<T>) => Promise<T | undefined>;
}

/** When a hook began, and when its host must have the answer. */
export interface CallTimes {
  readonly hookBeganAtMs: number;
  readonly answerByMs: number;
}

export interface WriteHandlers {
  /** `times`: where the hook has waited for something else already. */
  beforeCall(event: BeforeEvent, ctx: BeforeContext, times?: CallTimes): Promise<BeforeResult>;
  afterCall(event: AfterEvent, ctx: AfterContext): Promise<void>;
}

/**
 * Creates the handlers of the host hooks around tool calls: before a call that may change something it is ruled on,
 * and after one it is recorded what it left behind.
 */
export function createWriteHandlers(dependencies: WriteHandlerDependencies): WriteHandlers {
  return {
    beforeCall: async (event, ctx, times): Promise<BeforeResult> => {
      if (!mayNeedRuling(dependencies.api, event.toolName)) return undefined;
      try {
        return await dependencies.use(
          (runtime) => requestRuling(dependencies, runtime, { event, ctx, times }),
          times?.answerByMs,
        );
      } catch (error) {
        // Somebody must be able to look into what is wrong.
        return event.toolName === "read" ? undefined : continueOrRefuse(dependencies.api, error, "call");
      }
    },
    afterCall: async (event: AfterEvent, ctx: AfterContext): Promise<void> => {
      // Also of a tool that is not watched any more: the call may have been ruled on.
      if (!findRuntime()) return;
      const { sessionKey } = ctx;
      const key = createCallKey(sessionKey, event.runId ?? ctx.runId, event.toolCallId ?? ctx.toolCallId);
      const work = dependencies.quietly("after_tool_call", async (runtime) => {
        const { arbiter } = await runtime.coordinator();
        const readUpTo = event.toolName === "read" ? findReadEnd(event.result) : undefined;
        await arbiter.callEnded(key, { ...readCallEnding(event), ...(readUpTo && { readUpTo }) });
        if (sessionKey) await endChangingCall(runtime, sessionKey, key);
      });
      if (sessionKey) holdChildEndUntil(sessionKey, work);
      await work;
    },
  };
}

/**
 * True when a call may change what somebody holds. This runs at every tool call. Before the runtime exists nobody takes part; where
 * it cannot be made that is not known, and a strict operator has such calls refused.
 */
function mayNeedRuling(api: OpenClawPluginApi, tool: string): boolean {
  const { strict, conflicts: config } = readRulesInForce(api);
  if (!findRuntime() && !strict) return false;
  return config.enabled && isToolWatched({ tool, config, extractors: findExtractors });
}

const NOT_RUN: ReadonlySet<unknown> = new Set(["blocked", "skipped"]);

/** The error of a call that was aborted before its tool began, or while it ran; the host gives it no status. */
const ABORTED = /^(?:(?:(?:the|this) )?operation (?:was )?)?aborted\.?$/iu;

/**
 * Reads how a call ended. The host tells an error of a tool that failed, and by a status or as an abort that it did
 * not run one to its end.
 */
function readCallEnding({ error, result }: AfterEvent): Pick<CallEnding, "hasFailed" | "isNotRun"> {
  const status = readParam(readParam(result, "details"), "status");
  const isNotRun = NOT_RUN.has(status) || ABORTED.test(error ?? "");
  return { hasFailed: error !== undefined || isNotRun || status === "error", ...(isNotRun && { isNotRun }) };
}

/** A call before it happens, as the hook tells it. */
export interface HookedCall {
  readonly event: BeforeEvent;
  readonly ctx: BeforeContext;
  readonly times?: CallTimes | undefined;
}

/** Asks the arbiter about a call that would change something, and returns the hook's result. */
async function requestRuling(
  { api }: WriteHandlerDependencies,
  runtime: SharedRuntime,
  { event, ctx, times }: HookedCall,
): Promise<BeforeResult> {
  const { sessionKey } = ctx;
  if (!sessionKey) return undefined;
  const { arbiter } = await runtime.coordinator();
  if (!(await arbiter.concerns(sessionKey as SessionKey))) return undefined;
  const reading = await readHookedCall(api, runtime, { event, ctx });
  if (!reading) return undefined;
  const key = createCallKey(sessionKey, event.runId ?? ctx.runId, event.toolCallId ?? ctx.toolCallId);
  const answer = await arbiter.request({
    session: sessionKey as SessionKey,
    tool: event.toolName,
    callKey: key,
    ...(times && {
      hookBeganAtMs: times.hookBeganAtMs as EpochMs,
      answerByMs: times.answerByMs as EpochMs,
    }),
    ...reading,
    rewrite: (merged) => rewriteToolCall(event.toolName, event.params, reading.targets, merged),
  });
  // Nothing is appended for a call without targets: it does not show that the ledger takes anything.
  if (reading.targets.length > 0) runtime.health.succeeded();
  if (answer.kind !== "refused" && mayChangeSomething(reading)) beginChangingCall(runtime, sessionKey, key);
  return createHookResult(runtime, answer);
}

function mayChangeSomething({ targets, mayTouchAnything }: ToolReading): boolean {
  return targets.length > 0 || mayTouchAnything === true;
}

/**
 * Returns what the tool call of a host hook would change and look at, in its session's folder and under the present
 * configuration; `undefined` where that is nothing.
 */
export function readHookedCall(
  api: OpenClawPluginApi,
  runtime: SharedRuntime,
  { event, ctx }: HookedCall,
): Promise<ToolReading | undefined> {
  const { sessionKey = "", agentId = "" } = ctx;
  return readToolCall({
    tool: event.toolName,
    params: event.params,
    session: sessionKey,
    toolKind: event.toolKind,
    derivedPaths: event.derivedPaths,
    folder: runtime.folderOf(sessionKey, agentId),
    mainKey: readMainKey(api),
    config: runtime.config.conflicts,
    extractors: findExtractors,
  });
}

function createHookResult(runtime: SharedRuntime, answer: WriteAnswer): BeforeResult {
  switch (answer.kind) {
    case "free":
      return undefined;
    case "granted":
      return answer.params && { params: { ...answer.params } };
    case "refused":
      return { block: true, blockReason: answer.sentence };
    case "review":
      return {
        requireApproval: createApproval(runtime, answer),
        ...(answer.params && { params: { ...answer.params } }),
      };
  }
}

/** The host's request to people to approve a call. */
type ApprovalRequest = NonNullable<Extract<BeforeResult, object>["requireApproval"]>;

function createApproval(runtime: SharedRuntime, review: WriteAnswer & { kind: "review" }): ApprovalRequest {
  const { title, description, timeoutMs, settle } = review;
  const askedAtMs = performance.now();
  return {
    title,
    description,
    timeoutMs,
    severity: "warning",
    allowedDecisions: ["allow-once", "deny"],
    // The host does not wait for it: the call goes on at once when it is allowed.
    onResolution: async (decision) => {
      try {
        await settle(toReviewAnswer(decision, performance.now() - askedAtMs));
      } catch (error) {
        runtime.health.failed(error, 0);
      }
    },
  };
}

/** The host's word for how people decided on an approval. */
type ApprovalDecision = Parameters<NonNullable<ApprovalRequest["onResolution"]>>[0];

/** The host cancels within this time where it has nobody to ask. */
const NOBODY_TO_ASK_MS_MAX = 5_000;

/**
 * Translates the host's decision into the answer of a review. The host also cancels where a run is stopped while
 * people think: then there was somebody to ask.
 */
function toReviewAnswer(decision: ApprovalDecision, waitedMs: number): ReviewAnswer {
  if (decision === "cancelled" && waitedMs > NOBODY_TO_ASK_MS_MAX) return "withdrawn";
  return Object.hasOwn(ANSWERS, decision) ? ANSWERS[decision] : "denied";
}

const ANSWERS: Readonly<Record<ApprovalDecision, ReviewAnswer>> = {
  "allow-once": "approved",
  "allow-always": "approved",
  deny: "denied",
  timeout: "unanswered",
  cancelled: "nobody_to_ask",
};

function readMainKey({ runtime }: OpenClawPluginApi): string | undefined {
  const config = runtime.config.current() as { readonly session?: { readonly mainKey?: string } } | undefined;
  return config?.session?.mainKey;
}
