/**
 * Owns: holding sessions to their privileges: before every call, and in what their models are shown.
 *
 * It fails closed: where it cannot be told what a child may do, its calls are refused. A session that nobody spawned is held to
 * nothing, and goes on. Words of a model are never asked; what holds a session is in the ledger (H3). A session that was held by
 * another ledger, which the gateway used before, may do nothing: this one does not say what holds it. Neither may one whose record
 * was pruned.
 */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import { listOfferedTools } from "../../../agents/coordination/privileges/offered-tools.ts";
import {
  describeBound,
  describeRefusedCall,
  type PrivilegeRefusal,
} from "../../../agents/coordination/privileges/privilege-sentence.ts";
import { findToolRefusal } from "../../../agents/coordination/privileges/tool-rule.ts";
import type { SessionBounds } from "../../../agents/coordination/runtime/privileges/bounds-of-session.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";
import { createRecentMap } from "../../../agents/coordination/std/recent.ts";
import type { HookContext, HookEvent, HookResult, OpenClawPluginApi } from "../host/sdk.ts";
import { createCallRefusal } from "../runtime-access/refuse-call.ts";
import { findRuntime, findStartFailure, type SharedRuntime } from "../runtime-access/shared-runtime.ts";
import { isNarrowedChild } from "../runtime-access/narrowed-spawns.ts";
import { findExtractors } from "../writes/extractor-registry.ts";
import { isToolWatched } from "../writes/read-tool-call.ts";
import { readHookedCall, type HookedCall } from "../writes/write-handlers.ts";
import { TOOL_NAMES } from "../declarations/tool-declarations.ts";
import { findAgentWorkspace } from "../host/working-folder.ts";
import { accessBoundsMemory } from "./bounds-memory.ts";
import type { SessionParents } from "./session-parents.ts";
import { loadToolNames } from "./tool-names.ts";

type BeforeResult = HookResult<"before_tool_call">;
type AfterEvent = HookEvent<"after_tool_call">;
type PromptResult = NonNullable<HookResult<"before_prompt_build">>;

export interface PrivilegeDependencies {
  readonly api: OpenClawPluginApi;
  readonly use: <T>(work: (runtime: SharedRuntime) => Promise<T>) => Promise<T>;
  readonly quietly: <T>(hook: string, work: (runtime: SharedRuntime) => Promise<T>) => Promise<T | undefined>;
  readonly parents: SessionParents;
}

export interface PrivilegeHandlers {
  /** Refuses a call that its session may not make; `undefined` for any other. Never throws. */
  refuseCall(
    event: HookEvent<"before_tool_call">,
    ctx: HookContext<"before_tool_call">,
  ): Promise<BeforeResult>;
  /**
   * Records a call of a tool that its session may not use and was not shown: the host answers it itself, without asking us before.
   */
  noteUnshownCall(event: AfterEvent, ctx: HookContext<"after_tool_call">): Promise<void>;
  /** Returns the tools that a session's model is shown less, and words about them; `undefined` for one that is held to nothing. */
  narrowPrompt(runtime: SharedRuntime, session: SessionKey): Promise<PromptResult | undefined>;
  /** Why a child of the session must not run where its calls cannot be seen. */
  readonly isHeld: (runtime: SharedRuntime, session: SessionKey) => Promise<boolean>;
}

/** Calls between their two hooks. */
const CALLS_MAX = 1_000;

/** A child may begin before the hook behind its spawn has told the ledger of it. */
const UNRECORDED_MS_MAX = 3_000;
const UNRECORDED_POLL_MS = 25;

/** A program of the host's own sandbox: it reaches nothing but tools, and each of their calls is ruled on by itself. */
const CODE_MODE = "code_mode_exec";

/**
 * Creates the handlers that refuse tool calls by which a child would break the bounds on its privileges; where these
 * are unknown because of a failure, a child's calls are refused and a person's go on.
 */
export function createPrivilegeHandlers(dependencies: PrivilegeDependencies): PrivilegeHandlers {
  const { api, use, quietly, parents } = dependencies;
  const { isChild } = parents;
  const ruledCalls = createRecentMap<true>(CALLS_MAX);
  const boundsOf = (runtime: SharedRuntime, session: SessionKey): Promise<BoundsNow> =>
    readBounds(runtime, session, parents);
  return {
    refuseCall: async (event, ctx) => {
      const { sessionKey } = ctx;
      // Before there is a runtime nobody has spawned anything in this process; older children are known as such.
      if (!sessionKey || !(findRuntime() || isChild(sessionKey))) return undefined;
      try {
        return await use(async (runtime) => {
          const sessionBounds = await boundsOf(runtime, sessionKey as SessionKey);
          if (!hasBounds(sessionBounds)) return undefined;
          const ruling = await ruleOnCall({ api, runtime, sessionBounds }, { event, ctx });
          ruledCalls.set(createOuterCallKey(event, sessionKey), true);
          return ruling;
        });
      } catch (error) {
        // Also a session of the dashboard of which the host could never say who began it: most are of people.
        if (!isChild(sessionKey)) return undefined;
        findRuntime()?.health.failed(error, 0);
        return refuseUnknownBounds(sessionKey as SessionKey, parents);
      }
    },
    noteUnshownCall: async (event, { sessionKey }) => {
      const call = readUnshownCall(event);
      if (!call || !sessionKey || !isChild(sessionKey) || !findRuntime()) return;
      // Such a call was recorded if it was refused, and else it failed for another reason.
      if (ruledCalls.get(createOuterCallKey(call, sessionKey))) return;
      await quietly("after_tool_call", async (runtime) => {
        const { bounds, step } = await boundsOf(runtime, sessionKey as SessionKey);
        if (bounds.length === 0 || !step) return;
        const { expand } = await loadToolNames();
        const { toolName: tool } = call;
        const refused = findToolRefusal(bounds, tool, expand);
        const { privileges } = await runtime.coordinator();
        if (refused) await privileges.record(step, { tool, ...refused });
      });
    },
    narrowPrompt: async (runtime, session) => {
      const { bounds } = await boundsOf(runtime, session);
      if (bounds.length === 0) return undefined;
      const { expand, hostTools } = await loadToolNames();
      const toolsAllow = listOfferedTools(bounds, expand, { hostTools, ownTools: TOOL_NAMES });
      const lines = [
        "You may do no more than this here; a call beyond it is refused:",
        ...bounds.map(describeBound),
      ];
      return {
        ...(toolsAllow && { toolsAllow }),
        appendSystemContext: `<coordination-privileges>\n${lines.join("\n- ")}\n</coordination-privileges>`,
      };
    },
    isHeld: async (runtime, session) => hasBounds(await boundsOf(runtime, session)),
  };
}

interface NamedCall {
  readonly toolName: string;
  readonly toolCallId?: string | undefined;
}

/** Creates the key of a session's call; a call through Tool Search has the key of the call that led to it. */
function createOuterCallKey({ toolCallId = "", toolName }: NamedCall, session: string): string {
  const outer = /^tool_search_code:(.+):[^:]+:\d+$/u.exec(toolCallId)?.[1] ?? toolCallId;
  return JSON.stringify([session, outer, toolName]);
}

/** Returns the call that the host may have answered itself: one that failed, or what Tool Search was to call. */
function readUnshownCall({ toolName, toolCallId, params, error }: AfterEvent): NamedCall | undefined {
  if (toolName !== "tool_call") return error === undefined ? undefined : { toolName, toolCallId };
  const { id } = params;
  // A tool has a long id, too, such as `openclaw:core:exec`.
  return typeof id === "string" ? { toolName: id.slice(id.lastIndexOf(":") + 1), toolCallId } : undefined;
}

const UNTOLD =
  "what this session may do cannot be told now; try again in a moment, and if it does not help report in your result that you could not go on";

const LEFT_BEHIND =
  "the gateway's ledger was changed while this session worked, and the new one does not say what it may do; end your work and report in your result that you could not go on";

const PRUNED =
  "the record of what this session may do was pruned from the ledger; end your work and report in your result that you have to be spawned again";

const UNRECORDED =
  "a spawn is not recorded yet, and this session may be its child; try again in a moment, and if it does not help report in your result that you could not go on";

/** Returns why nobody can tell what a session may do, though the ledger can be read; `undefined` where it can be told. */
function explainUnknownBounds({ isLeftBehind, isPruned, isUnrecorded }: BoundsNow): string | undefined {
  if (isLeftBehind) return LEFT_BEHIND;
  if (isPruned) return PRUNED;
  return isUnrecorded && UNRECORDED;
}

/** True of a session that is held to something, also where nobody can tell to what. */
function hasBounds(sessionBounds: BoundsNow): boolean {
  return sessionBounds.bounds.length > 0 || explainUnknownBounds(sessionBounds) !== undefined;
}

/** Refuses a call of a child of which nobody can tell now what it may do; `undefined` where it was spawned free. */
function refuseUnknownBounds(session: SessionKey, parents: SessionParents): BeforeResult {
  const failure = findStartFailure();
  if (!failure) return createCallRefusal("call", UNTOLD);
  if (isSpawnedFree(session, parents, failure.sinceMs)) return undefined;
  return createCallRefusal(
    "call",
    `what this session may do cannot be told, because the coordination plugin does not start: ${describeError(failure.error)}. End your work and report in your result that you could not go on`,
  );
}

/**
 * True of a child that began while the plugin did not start, as did all spawned sessions above it. Only spawns that
 * are to be held to nothing go on then. False where the host cannot say who spawned one of them.
 */
function isSpawnedFree(
  child: SessionKey,
  { parentOf, isChild, isYoungerThan }: SessionParents,
  sinceMs: number,
): boolean {
  let session = child;
  try {
    for (let depth = 0; depth < BOUNDS.privilegeDepthMax; depth += 1) {
      const parent = parentOf(session);
      // A spawn that was recorded before may have its child only now.
      const isFree = isYoungerThan(session, sinceMs) && !isNarrowedChild(session, parent);
      if (isChild(session) && !(isFree && parent !== undefined)) return false;
      if (parent === undefined) return true;
      session = parent;
    }
  } catch {
    // The host cannot read its record of a session.
  }
  return false;
}

interface BoundsNow extends SessionBounds {
  /** The session was held by the ledger that the gateway used before, and this one does not know it. */
  readonly isLeftBehind?: true;
  /** The session may be the child of a spawn that is not recorded yet. */
  readonly isUnrecorded?: true;
}

/** Reads what a session is held to from memory, and else from the ledger. @throws as `boundsOf` */
async function readBounds(
  runtime: SharedRuntime,
  session: SessionKey,
  parents: SessionParents,
): Promise<BoundsNow> {
  const memory = accessBoundsMemory();
  const { place } = runtime.ledger;
  const before = memory.get(session);
  if (before?.place === place && before.sessionBounds.isKnown) return before.sessionBounds;
  const sessionBounds = await readRecordedBounds(runtime, session, parents);
  const isOfOtherLedger = before !== undefined && before.place !== place;
  if (isOfOtherLedger && before.sessionBounds.bounds.length > 0 && !sessionBounds.isKnown)
    return { ...sessionBounds, isLeftBehind: true };
  if (sessionBounds.isKnown || sessionBounds.bounds.length > 0) memory.set(session, { sessionBounds, place });
  return sessionBounds;
}

/** Reads a session's bounds from the ledger, and waits for those of a child that it does not know. @throws as `boundsOf` */
async function readRecordedBounds(
  runtime: SharedRuntime,
  session: SessionKey,
  parents: SessionParents,
): Promise<BoundsNow> {
  const { privileges } = await runtime.coordinator();
  const sessionBounds = await privileges.boundsOf(session, parents.parentOf);
  if (sessionBounds.isKnown || !parents.isChild(session)) return sessionBounds;
  return awaitRecordedBounds(runtime, session, parents);
}

/**
 * Waits up to 3 seconds for the bounds of a child whose spawn may not be recorded yet: that of a bounded spawn of its
 * parent, which an earlier process may have left. Returns those of any other at once. @throws as `boundsOf`
 */
async function awaitRecordedBounds(
  runtime: SharedRuntime,
  session: SessionKey,
  { parentOf }: SessionParents,
): Promise<BoundsNow> {
  const { privileges } = await runtime.coordinator();
  const untilMs = performance.now() + UNRECORDED_MS_MAX;
  for (;;) {
    // Asked first: the child may be recorded while its bounds are read.
    const parent = parentOf(session);
    const isSpawnChildless = await privileges.hasChildlessSpawn(parent);
    const found = await privileges.boundsOf(session, parentOf);
    if (found.isKnown) return found;
    if (!isSpawnChildless && !isNarrowedChild(session, parent)) return found;
    if (performance.now() >= untilMs) {
      runtime.logger.info(
        { session },
        "a spawn is not recorded yet, and this session may be its child: its calls are refused",
      );
      return { ...found, isUnrecorded: true };
    }
    await new Promise((resolve) => setTimeout(resolve, UNRECORDED_POLL_MS));
  }
}

/** The bounds of a session, with the means to hold its calls to them. */
interface HeldSession {
  readonly api: OpenClawPluginApi;
  readonly runtime: SharedRuntime;
  readonly sessionBounds: SessionBounds;
}

/** Refuses a call of a session whose bounds nobody can tell, or that breaks one of them. */
async function ruleOnCall(holding: HeldSession, hooked: HookedCall): Promise<BeforeResult> {
  const reason = explainUnknownBounds(holding.sessionBounds);
  return reason === undefined ? refuseBrokenBound(holding, hooked) : createCallRefusal("call", reason);
}

/** Refuses a call that breaks a bound, and records that; `undefined` for any other call. */
async function refuseBrokenBound(holding: HeldSession, hooked: HookedCall): Promise<BeforeResult> {
  const { step } = holding.sessionBounds;
  const refusal = await findPrivilegeRefusal(holding, hooked);
  if (!step || !refusal) return undefined;
  await (await holding.runtime.coordinator()).privileges.record(step, refusal);
  return { block: true, blockReason: describeRefusedCall(refusal) };
}

/** Returns which bound a call breaks: one on tools, or else one on what it would change. */
async function findPrivilegeRefusal(
  holding: HeldSession,
  hooked: HookedCall,
): Promise<PrivilegeRefusal | undefined> {
  const { toolName: tool, toolKind } = hooked.event;
  if (toolKind !== CODE_MODE) {
    const { expand } = await loadToolNames();
    const refused = findToolRefusal(holding.sessionBounds.bounds, tool, expand);
    if (refused) return { tool, ...refused };
  }
  return findChangeRefusal(holding, hooked);
}

/** Returns the bound on writing that a call would break; `undefined` where it changes nothing beyond it. */
async function findChangeRefusal(
  { api, runtime, sessionBounds }: HeldSession,
  hooked: HookedCall,
): Promise<PrivilegeRefusal | undefined> {
  const { toolName: tool } = hooked.event;
  const isWriteHeld = sessionBounds.bounds.some(({ privilege }) => privilege.write !== undefined);
  if (!isWriteHeld || !isToolWatched({ tool, config: runtime.config.conflicts, extractors: findExtractors }))
    return undefined;
  const reading = await readHookedCall(api, runtime, hooked);
  if (!reading) return undefined;
  const { targets, undetermined } = reading;
  const { privileges } = await runtime.coordinator();
  return privileges.ruleOnChanges(
    sessionBounds,
    { tool, targets, ...(undetermined && { undetermined }) },
    { ofSession: runtime.folderOf, ofAgent: ({ agentId }) => findAgentWorkspace(api.runtime, agentId) },
  );
}
