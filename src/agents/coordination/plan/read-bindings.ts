/**
 * Owns: finding the bindings in a step's input. `{{steps.<stepId>.outputs.<path>}}` alone is a reference; with other text around
 * it, a template. Nothing is evaluated: what is not of that form is refused.
 */
import { BOUNDS } from "../contracts/bounds.ts";
import type { StepId } from "../contracts/ids.ts";
import { quoteName, type ProblemList } from "./plan-problem.ts";
import type { InputBinding, OutputReference, PathSegment, TextTemplate } from "./step-graph.ts";

const OPEN = "{{";
const CLOSE = "}}";
const FORM = "{{steps.<stepId>.outputs.<path>}}";
const INDEX_DIGITS_MAX = 5;
const PATH_CHARS_MAX = BOUNDS.bindingSegmentsMax * (BOUNDS.nameCharsMax + 1);
const INNER_CHARS_MAX = BOUNDS.idCharsMax + PATH_CHARS_MAX + 20;

const INNER = /^steps\.(.+?)\.outputs\.(.+)$/su;
const PATH = /^[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*|\[(?:0|[1-9]\d*)\])*$/u;
const SEGMENT = /\[(\d+)\]|[A-Za-z_][\w-]*/gu;

/** A value in the input of a step that is to be searched for bindings, with its path. */
interface InputVisit {
  readonly value: unknown;
  readonly at: readonly PathSegment[];
}

/**
 * Returns the bindings in a step's input, in the order of the text; wrong ones are left out and added to the problems.
 * An input beyond a bound is a problem, too, and the rest of it is not read.
 */
export function readBindings(input: object, index: number, problems: ProblemList): InputBinding[] {
  const root: readonly PathSegment[] = ["steps", index, "input"];
  const bindings: InputBinding[] = [];
  const pending: InputVisit[] = [{ value: input, at: [] }];
  let values = 0;
  let references = 0;
  let chars = 0;
  for (let visit = pending.pop(); visit; visit = pending.pop()) {
    values += 1;
    chars += countTextAndKeyChars(visit);
    if (typeof visit.value === "string") {
      const value = readBinding(visit.value, [...root, ...visit.at], problems);
      if (value) bindings.push({ at: visit.at, value });
      references += value ? listReferences(value).length : 0;
    } else pushNestedValues(pending, visit, { root, problems });
    const excess = describeInputExcess({
      values: values + pending.length,
      references,
      chars,
      depth: visit.at.length,
    });
    if (excess === undefined) continue;
    problems.add("INPUT_TOO_LARGE", [...root, ...visit.at], `${excess}; pass less, or a file by its name`);
    break;
  }
  return bindings;
}

/** Lists the references to outputs in a binding: itself, or those between the texts of a template. */
export function listReferences(value: OutputReference | TextTemplate): readonly OutputReference[] {
  if (value.kind === "reference") return [value];
  return value.parts.filter((part) => typeof part !== "string");
}

/** Counts the characters of a text and of its key; a number counts as one. */
function countTextAndKeyChars({ value, at }: InputVisit): number {
  return String(at.at(-1) ?? "").length + (typeof value === "string" ? value.length : 1);
}

/** Says which bound of an input is exceeded; `undefined` where none is. */
function describeInputExcess(size: {
  readonly values: number;
  readonly references: number;
  readonly chars: number;
  readonly depth: number;
}): string | undefined {
  const { inputValuesMax, bindingsPerStepMax, inputDepthMax, filledInputCharsMax } = BOUNDS;
  if (size.depth > inputDepthMax) return `the input has more than ${inputDepthMax} levels`;
  if (size.values > inputValuesMax) return `the input has more than ${inputValuesMax} values`;
  if (size.chars > filledInputCharsMax) return `the input has more than ${filledInputCharsMax} characters`;
  if (size.references > bindingsPerStepMax) return `the input has more than ${bindingsPerStepMax} bindings`;
  return undefined;
}

/** Queues the values directly inside a value, and reports keys that have a binding in them. */
function pushNestedValues(
  pending: InputVisit[],
  { value, at }: InputVisit,
  { root, problems }: { readonly root: readonly PathSegment[]; readonly problems: ProblemList },
): void {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    const items: readonly unknown[] = value;
    for (let index = Math.min(items.length, BOUNDS.inputValuesMax + 1) - 1; index >= 0; index -= 1)
      pending.push({ value: items[index], at: [...at, index] });
    return;
  }
  for (const [key, child] of Object.entries(value).toReversed()) {
    if (key.includes(OPEN))
      problems.add(
        "BINDING_SYNTAX",
        [...root, ...at, key],
        "a key is never filled in; move the binding into a value",
      );
    pending.push({ value: child, at: [...at, key] });
  }
}

/**
 * Returns the binding in a text, a reference or a template; `undefined` where it has none, or a wrong one, which is
 * added to the problems.
 */
export function readBinding(
  text: string,
  path: readonly PathSegment[],
  problems: ProblemList,
): OutputReference | TextTemplate | undefined {
  const parts: (string | OutputReference)[] = [];
  let from = 0;
  for (let open = text.indexOf(OPEN); open !== -1; open = text.indexOf(OPEN, from)) {
    const close = text.indexOf(CLOSE, open);
    const reference = readReference(text, open + OPEN.length, close);
    if (typeof reference === "string") {
      const shown = quoteName(text.slice(open, close === -1 ? undefined : close + CLOSE.length));
      const where = `at character ${open + 1}, ${shown}`;
      problems.add("BINDING_SYNTAX", path, `${where} is no binding: ${reference}; write ${FORM}`);
      return undefined;
    }
    if (open > from) parts.push(text.slice(from, open));
    parts.push(reference);
    if (parts.length > 2 * BOUNDS.bindingsPerStepMax) break; // The caller refuses so many.
    from = close + CLOSE.length;
  }
  if (parts.length === 0) return undefined;
  if (from < text.length) parts.push(text.slice(from));
  const [first] = parts;
  return parts.length === 1 && typeof first === "object" ? first : { kind: "template", parts };
}

/** Reads the reference between the braces, or returns why it is none. */
function readReference(text: string, start: number, close: number): OutputReference | string {
  if (close === -1) return "it is not closed by }}";
  const inner = text.slice(start, close);
  if (inner.length > INNER_CHARS_MAX) return `it is longer than ${INNER_CHARS_MAX} characters`;
  if (inner !== inner.trim()) return "there is space inside of the braces";
  const [, stepId, path] = INNER.exec(inner) ?? [];
  if (stepId === undefined || path === undefined) return "it does not name a step and an output";
  if (!PATH.test(path)) return `${quoteName(path)} is not a path of names and [indices]`;
  const segments = [...path.matchAll(SEGMENT)].map(([name, digits]): PathSegment =>
    digits === undefined ? name : Number(digits),
  );
  const bad = segments.find(isBadSegment);
  if (bad !== undefined) return `${quoteName(String(bad))} cannot be looked up`;
  if (segments.length > BOUNDS.bindingSegmentsMax)
    return `its path has more than ${BOUNDS.bindingSegmentsMax} parts`;
  return { kind: "reference", stepId: stepId as StepId, path: segments };
}

/** True for a part of a path that is too long or too large, or is `__proto__`. */
function isBadSegment(segment: PathSegment): boolean {
  if (typeof segment === "number")
    return String(segment).length > INDEX_DIGITS_MAX || segment >= BOUNDS.arrayItemsMax;
  return segment === "__proto__" || segment.length > BOUNDS.nameCharsMax;
}
