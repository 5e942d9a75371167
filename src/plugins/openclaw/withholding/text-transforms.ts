/**
 * Owns: what is done to the texts that go to and come from models, so that what a gated child says reaches nobody else before it is
 * ruled on (docs/openclaw.md, held results).
 *
 * T0 what comes from the model of a child and is too long for its parent is shortened; the whole of it goes to the ledger. Where
 * the ledger does not say whose child it is, or takes no more of it, nobody would keep the rest: it passes as it is. T1 what comes from the model of a
 * gated child is replaced before the host has a message, hence in its transcript, its records and everything that is built from
 * them. T2 what goes to the model of that same child has its own words again. T3 arguments of tool calls stay what they are: a tool
 * needs them, and the host passes them on to nobody.
 *
 * The host calls for every text of every session, without saying which: the session follows from the span of the model call.
 */
import {
  findHeldBackName,
  formatPlaceholder,
  replacePlaceholders,
} from "../../../agents/coordination/gates/placeholder.ts";
import { mustWithhold } from "../../../agents/coordination/gates/withholds.ts";
import { readStatedConfidence } from "../../../agents/coordination/gates/stated-confidence.ts";
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import {
  accessGateMemory,
  isKeptBack,
  type GatedNow,
  type SpeakingChild,
} from "../runtime-access/gate-memory.ts";

/** The span of the run in whose model call the caller is. */
export type SpanOf = () => string | undefined;

export interface TextTransforms {
  readonly fromModel: RegExp;
  readonly toModel: RegExp;
}

/**
 * Creates the patterns by which the host's text transforms hold back what gated children say and shorten what is too
 * long for a parent, and give a model its own words back.
 */
export function createTextTransforms(spanOf: SpanOf): TextTransforms {
  return {
    fromModel: createReplacingPattern((text) => {
      const session = findSessionOfSpan(spanOf());
      const gated = session && accessGateMemory().gated.get(session);
      const keptBy = session && findKeepingStep(session, text);
      if ((!gated && !keptBy) || isCalledForToolArgument()) return text;
      const shown = gated ? keepTextBack(gated, text) : text;
      return keptBy && shown === text ? shortenForParent(session, text, keptBy) : shown;
    }),
    toModel: createReplacingPattern((text) => {
      const session = findSessionOfSpan(spanOf());
      if (session === undefined) return text;
      const { gated: memory, children, longTexts } = accessGateMemory();
      const gated = memory.get(session);
      const restored = children.get(session) ? longTexts.restore(session, text) : text;
      return gated
        ? replacePlaceholders(restored, (name, placeholder) => findOwnWords(gated, name) ?? placeholder)
        : restored;
    }),
  };
}

function findSessionOfSpan(span: string | undefined): SessionKey | undefined {
  return span === undefined ? undefined : accessGateMemory().spans.get(span);
}

/** The step that a text is kept under. */
type KeepingStep = NonNullable<SpeakingChild["of"]>;

/**
 * Finds the step that keeps the whole of a text which is too long for the parent of its session. The host tells a parent what its
 * child says; the words of a plan's step are told by its plan.
 */
function findKeepingStep(session: SessionKey, text: string): KeepingStep | undefined {
  const { children, parentCharsMax } = accessGateMemory();
  if (text.length <= parentCharsMax) return undefined;
  const child = children.get(session);
  return child?.canKeepWhole && !child.isPlanned ? child.of : undefined;
}

function shortenForParent(session: SessionKey, text: string, keptBy: KeepingStep): string {
  const { longTexts, parentCharsMax } = accessGateMemory();
  return longTexts.shorten(session, text, parentCharsMax, keptBy);
}

/**
 * Returns a placeholder for a text that a gated session's agent says where it must be kept back, and else the text
 * itself; sets in memory whether the message is doubted. A message may have several texts, and the one that states the
 * confidence is mostly the last. The host hands all of them over again when the message is whole, and takes the words
 * of the agent from that.
 */
export function keepTextBack(gated: GatedNow, text: string): string {
  const { texts, gated: memory } = accessGateMemory();
  const { session, gate, isDoubted = false, reported } = gated;
  if (text.trim() === "" || isOwnPlaceholder(gated, text)) return text;
  const isLow = mustWithhold(gate, text, reported);
  // A text that was cut short while it was written may be sure enough when it is whole.
  const isSure = !isLow && readStatedConfidence(text).confidence !== undefined;
  const isDoubtedNow = isLow || (isDoubted && !isSure);
  if (isDoubtedNow !== isDoubted) memory.set(session, { ...gated, isDoubted: isDoubtedNow });
  return isKeptBack(gated) || isDoubtedNow ? formatPlaceholder(texts.add(session, text)) : text;
}

/**
 * True for our own replacement text. An agent cannot write it, because it does not know the name of a text before it
 * says it.
 */
function isOwnPlaceholder(gated: GatedNow, text: string): boolean {
  const name = findHeldBackName(text);
  return name !== undefined && text === formatPlaceholder(name) && findOwnWords(gated, name) !== undefined;
}

function findOwnWords({ session, keptText }: GatedNow, name: string): string | undefined {
  const { texts } = accessGateMemory();
  const isKept = keptText !== undefined && texts.nameOf(session, keptText) === name;
  return texts.textOf(session, name) ?? (isKept ? keptText : undefined);
}

/**
 * Creates a pattern that replaces the whole of a text by what `change` returns. The host takes patterns; one with a
 * `Symbol.replace` of its own sees the whole text.
 */
function createReplacingPattern(change: (text: string) => string): RegExp {
  const pattern = /(?!)/u;
  Object.defineProperty(pattern, Symbol.replace, { value: change });
  return pattern;
}

/**
 * True when the host calls for an argument of a tool call, as the stack says. Nothing but its own function tells an
 * argument of a tool call from a text. Where the host calls that by another name, arguments are replaced, too: the
 * tools of gated children fail, and nothing gets out.
 */
function isCalledForToolArgument(): boolean {
  return new Error("where").stack?.includes("transformToolCallArgument") ?? false;
}
