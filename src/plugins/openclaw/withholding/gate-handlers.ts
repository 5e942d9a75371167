/**
 * Owns: the hooks by which results are held: before a run and a model call the session is known; before a message is written the
 * child's last words are kept, and what the host would show of it to other sessions is left out.
 *
 * H2 a handler never throws into the host. H3 which session is gated says the ledger.
 */
import type {
  AgentId,
  CoordinationId,
  SessionKey,
  StepId,
} from "../../../agents/coordination/contracts/ids.ts";
import { isStrictGate } from "../../../agents/coordination/ledger/withheld-words.ts";
import { isOnlyPlaceholders, replacePlaceholders } from "../../../agents/coordination/gates/placeholder.ts";
import { parseConfidence } from "../../../agents/coordination/gates/stated-confidence.ts";
import { mustWithhold } from "../../../agents/coordination/gates/withholds.ts";
import type { HookContext, HookEvent, HookResult } from "../host/sdk.ts";
import type { ChildHooks } from "../runtime-access/run-quietly.ts";
import { readSessionAgent } from "../host/session-entry.ts";
import { findRuntime, type SharedRuntime } from "../runtime-access/shared-runtime.ts";
import { ESCALATE_TOOL, PROGRESS_TOOL, REPORT_TOOL } from "../declarations/tool-declarations.ts";
import type { ChildSession } from "../../../agents/coordination/runtime/results/child-words.ts";
import type { LongText } from "../runtime-access/long-texts.ts";
import { accessGateMemory, isKeptBack, type GatedNow } from "../runtime-access/gate-memory.ts";
import { listMessageParts, readSpokenWords, listPartTexts, type MessagePart } from "./message-parts.ts";
import type { SpanOf } from "./text-transforms.ts";

export interface GateHandlers {
  beforeRun(ctx: HookContext<"before_agent_run">): Promise<undefined>;
  modelCallStarted(ctx: HookContext<"model_call_started">): void;
  beforeMessageWrite(
    event: HookEvent<"before_message_write">,
    ctx: HookContext<"before_message_write">,
  ): HookResult<"before_message_write">;
}

export interface GateHandlerDependencies extends ChildHooks {
  readonly spanOf: SpanOf;
}

/**
 * Creates the handlers of host hooks that keep back what children with a gate say, and pass what is kept on to the
 * ledger.
 */
export function createGateHandlers({ quietly, spanOf, isChild }: GateHandlerDependencies): GateHandlers {
  // On the runtime that is open then, also in the middle of a reload.
  const keep = (session: SessionKey, shown: string): void => {
    const persistWords = (): Promise<true | undefined> =>
      quietly("before_message_write", async (runtime) =>
        (await runtime.coordinator()).heldSessions.keep(session, shown),
      );
    accessGateMemory().texts.keeping(session, "words", persistWords);
  };
  const keepLong = (session: SessionKey, { text, shown, sha256 }: LongText): void => {
    const persistWhole = (): Promise<true | undefined> =>
      quietly<true>("before_message_write", async (runtime) => {
        await (await runtime.coordinator()).childWords.keepWhole(session, text, shown.length);
        return true;
      });
    accessGateMemory().texts.keeping(session, `whole ${sha256}`, persistWhole);
  };
  return {
    beforeRun: async ({ sessionKey, trace }) => {
      if (!sessionKey) return undefined;
      const session = sessionKey as SessionKey;
      if (trace?.spanId) accessGateMemory().spans.set(trace.spanId, session);
      const isKnown = await quietly("before_agent_run", (runtime) =>
        learnSession(runtime, session, { isSpawned: isChild(session), waitMs: KNOWN_MS_MAX }),
      );
      if (!isKnown && isChild(session)) holdUntilKnown(session);
      return undefined;
    },
    modelCallStarted: ({ sessionKey }) => {
      const span = spanOf();
      if (span !== undefined && sessionKey) accessGateMemory().spans.set(span, sessionKey as SessionKey);
      if (!sessionKey) return;
      forgetDoubt(sessionKey);
      // Confirmed meanwhile: what is still to come is gated as it should be.
      if (isProvisional(sessionKey))
        void quietly("model_call_started", (runtime) =>
          learnSession(runtime, sessionKey as SessionKey, { isSpawned: true, waitMs: 0 }),
        );
      // Since the run began its coordination may have ended, or its step have got its most long texts.
      else if (accessGateMemory().children.get(sessionKey)?.canKeepWhole)
        void quietly("model_call_started", (runtime) => refreshChild(runtime, sessionKey as SessionKey));
    },
    beforeMessageWrite: ({ message }, { sessionKey }) => {
      if (!sessionKey) return undefined;
      const session = sessionKey as SessionKey;
      if (message.role === "assistant") {
        keepLongTexts(message, { session, keepLong });
        noteSpokenWords(message, session);
      }
      return keepLastWords(message, { session, keep });
    },
  };
}

/** Notes words of the session itself: it may say them in a chat, and may not be made to say those of its child. */
function noteSpokenWords(message: WrittenMessage, session: SessionKey): void {
  const { children, spoken } = accessGateMemory();
  const { words, toTools } = readSpokenWords(message.content);
  const parent = children.get(session)?.parent;
  if (parent !== undefined) spoken.noteOfChild(parent, session, words);
  spoken.noteOwn(session, words);
  spoken.noteToTools(session, toTools.join("\n"));
}

/** True while the ledger does not say what the session is, so that it is held for the time being. */
function isProvisional(session: string): boolean {
  const { gated, children } = accessGateMemory();
  const child = children.get(session);
  return gated.get(session)?.isProvisional === true || (child !== undefined && !child.of);
}

/** Has the ledger keep the whole of each text of which the parent is shown a part. */
function keepLongTexts(
  message: WrittenMessage,
  {
    session,
    keepLong,
  }: { readonly session: SessionKey; readonly keepLong: (session: SessionKey, text: LongText) => void },
): void {
  const { children, longTexts } = accessGateMemory();
  if (!children.get(session)) return;
  const written = listPartTexts(listMessageParts(message.content)).join("\n");
  for (const text of longTexts.takeWritten(session, written)) keepLong(session, text);
}

/** Forgets that the last message stated a doubt, which says nothing of the next one. */
function forgetDoubt(session: string): void {
  const { gated } = accessGateMemory();
  const gatedSession = gated.get(session);
  if (gatedSession?.isDoubted) gated.set(session, { ...gatedSession, isDoubted: false });
}

/** A child may run before the host has answered the call that spawned it. */
const KNOWN_MS_MAX = 2_000;
const LOOK_MS = 25;

/** How long the ledger is asked about a session, and whether it was spawned. */
interface SessionLookup {
  /** An agent spawned the session, so that the ledger may say of it what it is. */
  readonly isSpawned: boolean;
  readonly waitMs: number;
}

/** Asks the ledger what the session is, and notes it; false where that is not known within `waitMs`. */
async function learnSession(
  runtime: SharedRuntime,
  session: SessionKey,
  { isSpawned, waitMs }: SessionLookup,
): Promise<boolean> {
  const { gated: memory } = accessGateMemory();
  const { heldSessions, childWords } = await runtime.coordinator();
  const untilMs = performance.now() + waitMs;
  for (;;) {
    const child = await childWords.childOf(session);
    noteChild(child, session);
    const gated = await heldSessions.gated(session);
    const mayCome = !child && isSpawned && runtime.pendingSpawns.size > 0;
    if (gated) memory.set(session, gated);
    else if (!mayCome) memory.delete(session);
    if (!mayCome) return true;
    if (performance.now() >= untilMs) return false;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

async function refreshChild(runtime: SharedRuntime, session: SessionKey): Promise<void> {
  const { childWords } = await runtime.coordinator();
  noteChild(await childWords.childOf(session), session);
}

function noteChild(child: ChildSession | undefined, session: SessionKey): void {
  const { children } = accessGateMemory();
  if (!child) {
    children.delete(session);
    return;
  }
  const { coordinationId, stepId, parent, isPlanned, canKeepWhole } = child;
  children.set(session, { session, of: { coordinationId, stepId }, parent, isPlanned, canKeepWhole });
}

/**
 * Holds back what a session says while the ledger does not answer, or its spawn is not confirmed. Where the operator
 * demands checks of the agent, nothing gets out unchecked; where only a stated doubt would hold a result, the child
 * goes on as any that is not coordinated.
 */
function holdUntilKnown(session: SessionKey): void {
  const { gated: memory, children } = accessGateMemory();
  if (!children.get(session)) children.set(session, { session });
  if (memory.get(session)) return;
  const gate = findRuntime()?.gateOfAgent(readSessionAgent(session) as AgentId);
  if (!gate || !isStrictGate(gate)) return;
  const unknown = { coordinationId: "" as CoordinationId, stepId: "" as StepId };
  memory.set(session, { session, ...unknown, gate, isStrict: true, isProvisional: true });
}

interface WrittenMessage {
  readonly role?: string;
  readonly stopReason?: string;
  readonly content?: unknown;
}

/**
 * Keeps the last words of a turn that are held, and returns the message without what must not be shown. Parts that the
 * output transform does not reach, and that the host shows to sessions which ask for a transcript, are not written at
 * all: thoughts, and the outputs of a report.
 */
function keepLastWords(
  message: WrittenMessage,
  {
    session,
    keep,
  }: { readonly session: SessionKey; readonly keep: (session: SessionKey, shown: string) => void },
): HookResult<"before_message_write"> {
  const gated = accessGateMemory().gated.get(session);
  if (!gated || message.role !== "assistant") return undefined;
  const parts = listMessageParts(message.content);
  const shown = listPartTexts(parts);
  const isReplaced = shown.some((text) => isOnlyPlaceholders(text));
  for (const text of shown)
    replacePlaceholders(text, (name, put) => (accessGateMemory().texts.keepWhole(session, name), put));
  if (isReplaced && message.stopReason !== "toolUse") {
    keep(session, shown.join("\n"));
    // A run that goes on remembers what it said, and could be asked for it.
    accessGateMemory().gated.set(session, { ...gated, isStrict: true });
  }
  const isHeld = isKeptBack(gated) || isReplaced;
  const left = parts
    .filter(({ type }) => !isHeld || type !== "thinking")
    .map((part) => removeWithheldWords(gated, removeReportOutputs(gated, part)));
  if (left.length === parts.length && left.every((part, index) => part === parts[index])) return undefined;
  return { message: { ...message, content: left } } as HookResult<"before_message_write">;
}

/** Removes the outputs of a report, because they are in the ledger and are held there. */
function removeReportOutputs(gated: GatedNow, part: MessagePart): MessagePart {
  if (part.type !== "toolCall" || part.name !== REPORT_TOOL) return part;
  const args = part.arguments;
  if (typeof args !== "object" || args === null) return part;
  const { confidence, outcome } = args as { readonly confidence?: unknown; readonly outcome?: unknown };
  const isLow = confidence !== undefined && mustWithhold(gated.gate, "", parseConfidence(confidence));
  if (!isKeptBack(gated) && !isLow) return part;
  return { ...part, arguments: { outcome, confidence, outputs: { heldBack: true } } };
}

/** Removes questions to people and parents, and progress: they are in the ledger, and are withheld there. */
function removeWithheldWords(gated: GatedNow, part: MessagePart): MessagePart {
  if (part.type !== "toolCall" || !isKeptBack(gated)) return part;
  switch (part.name) {
    case ESCALATE_TOOL:
      return { ...part, arguments: { question: WITHHELD_WORDS } };
    case PROGRESS_TOOL:
      return { ...part, arguments: { line: WITHHELD_WORDS } };
    default:
      return part;
  }
}

const WITHHELD_WORDS = "(withheld: it is in the ledger)";
