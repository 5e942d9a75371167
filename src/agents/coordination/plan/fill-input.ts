/**
 * Owns: putting the outputs of earlier steps into a step's input. The bindings come from the compiled plan; texts that steps
 * put out are never searched for bindings.
 */
import { BOUNDS } from "../contracts/bounds.ts";
import type { StepId } from "../contracts/ids.ts";
import { formatProblemPath } from "../contracts/validation.ts";
import { quoteName } from "./plan-problem.ts";
import type {
  CompiledStep,
  Json,
  JsonObject,
  OutputReference,
  PathSegment,
  TextTemplate,
} from "./step-graph.ts";

/** The input of a step with its bindings filled in, or why that cannot be done. */
export type FilledInput =
  | { readonly kind: "filled"; readonly input: JsonObject }
  | {
      readonly kind: "unfillable";
      /** The place in the step, as `input.items[0]`. */
      readonly path: string;
      /** As `steps.a.outputs.x[3] is not there`. */
      readonly message: string;
    };

/** The outputs of a step; nothing where it has not completed, which is so behind a fan-in that does not need all. */
export type OutputsOf = (stepId: StepId) => Json | undefined;

/**
 * Returns the input of a step with the outputs of other steps in the place of its bindings, or a refusal where an
 * output is missing or the whole is too large. A binding to a step that has not completed is filled with `null`.
 */
export function fillInput(step: CompiledStep, outputsOf: OutputsOf): FilledInput {
  const filled: FilledBinding[] = [];
  let chars = step.bindings.length === 0 ? 0 : JSON.stringify(step.input).length;
  for (const { at, value } of step.bindings) {
    const room = BOUNDS.filledInputCharsMax - chars;
    const boundValue =
      value.kind === "reference" ? findBoundValue(value, outputsOf) : fillTemplate(value, outputsOf, room);
    if (boundValue.kind === "missing") return refuseFilling(at, boundValue.message);
    chars += boundValue.chars;
    if (chars > BOUNDS.filledInputCharsMax) return refuseFilling(at, TOO_LARGE);
    filled.push({ at, value: boundValue.value });
  }
  return { kind: "filled", input: fillPlaces(step.input, filled) as JsonObject };
}

const TOO_LARGE = `with this value the input has more than ${BOUNDS.filledInputCharsMax} characters; bind less`;

function refuseFilling(at: readonly PathSegment[], message: string): FilledInput {
  return { kind: "unfillable", path: formatProblemPath(["input", ...at]), message };
}

/** The value of a binding, or why there is none. */
type BindingValue =
  | { readonly kind: "value"; readonly value: Json; readonly chars: number }
  | { readonly kind: "missing"; readonly message: string };

function findBoundValue(reference: OutputReference, outputsOf: OutputsOf): BindingValue {
  const found = lookUpValue(reference, outputsOf);
  if (found === undefined) return { kind: "missing", message: describeMissing(reference) };
  return { kind: "value", value: found, chars: JSON.stringify(found).length };
}

/**
 * Returns the text of a template with its bindings filled in. It stops as soon as there is no room: 1,000 large
 * outputs in one text would not fit into memory.
 */
function fillTemplate({ parts }: TextTemplate, outputsOf: OutputsOf, room: number): BindingValue {
  const texts: string[] = [];
  let chars = 0;
  for (const part of parts) {
    const value = typeof part === "string" ? part : lookUpValue(part, outputsOf);
    if (value === undefined && typeof part !== "string")
      return { kind: "missing", message: describeMissing(part) };
    const text = typeof value === "string" ? value : JSON.stringify(value);
    chars += text.length;
    if (chars > room) return { kind: "missing", message: TOO_LARGE };
    texts.push(text);
  }
  const value = texts.join("");
  return { kind: "value", value, chars: JSON.stringify(value).length };
}

/**
 * Looks up an output of a step: `null` where the step has not completed, `undefined` where it has no such output. Only
 * own members of objects and lists are found.
 */
export function lookUpValue({ stepId, path }: OutputReference, outputsOf: OutputsOf): Json | undefined {
  let at: Json | undefined = outputsOf(stepId);
  if (at === undefined || at === null) return null;
  for (const segment of path) {
    if (at === undefined) return undefined;
    at = typeof segment === "number" ? readItem(at, segment) : readOwnMember(at, segment);
  }
  return at;
}

function readItem(value: Json, index: number): Json | undefined {
  return Array.isArray(value) ? value[index] : undefined;
}

function readOwnMember(value: Json, name: string): Json | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

function describeMissing({ stepId, path }: OutputReference): string {
  const isPlain = /^[\w.-]+$/u.test(stepId) && stepId.length <= BOUNDS.nameCharsMax;
  return `${formatProblemPath(["steps", isPlain ? stepId : quoteName(stepId), "outputs", ...path])} is not there`;
}

/** The value of a binding, and its path in the input. */
interface FilledBinding {
  readonly at: readonly PathSegment[];
  readonly value: Json;
}

/**
 * Returns a copy of the value with these places filled; the rest is shared. An input has at most 16 levels, so this
 * may recurse.
 */
function fillPlaces(value: Json, places: readonly FilledBinding[]): Json {
  const [first] = places;
  if (!first) return value;
  if (first.at.length === 0) return first.value;
  const inside = Map.groupBy(places, ({ at }) => at[0]);
  const fillAt = (segment: PathSegment, child: Json): Json =>
    fillPlaces(
      child,
      (inside.get(segment) ?? []).map((place) => ({ ...place, at: place.at.slice(1) })),
    );
  if (Array.isArray(value)) return value.map((child, index) => fillAt(index, child));
  if (typeof value !== "object" || value === null) return value;
  // Not by assignment: a key could be __proto__.
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, fillAt(key, child)]));
}
