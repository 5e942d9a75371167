/**
 * Owns: turning untrusted values into typed ones, in bounded time, with errors that name the path,
 * what was expected and what came. Does not own: what any one schema says.
 */
import type { z } from "zod";
import { BOUNDS } from "./bounds.ts";

/** One thing wrong with an input: where, what was expected there, what came instead. */
export interface ValidationProblem {
  readonly path: string;
  readonly expected: string;
  readonly received: string;
}

/** A value that was read, or what is wrong with it. */
export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly ValidationProblem[] };

/** How long and how deep a value may be before it is looked at. */
export interface ValueBounds {
  readonly charsMax: number;
  readonly depthMax: number;
  /** Values in all; absent: as many as any value may have. */
  readonly valuesMax?: number;
}

/** How large an envelope may be. */
export const ENVELOPE_BOUNDS: ValueBounds = {
  charsMax: BOUNDS.envelopeCharsMax,
  depthMax: BOUNDS.envelopeDepthMax,
};
/** How large a plan may be. */
export const PLAN_BOUNDS: ValueBounds = { charsMax: BOUNDS.planCharsMax, depthMax: BOUNDS.planDepthMax };
/** How large an event may be. */
export const EVENT_BOUNDS: ValueBounds = { charsMax: BOUNDS.eventCharsMax, depthMax: BOUNDS.eventDepthMax };

/**
 * Returns the value as `schema` parses it, or the problems found; its size and depth are checked first. So a hostile
 * value costs no more than a walk up to the bound.
 */
export function parseBounded<S extends z.ZodType>(
  schema: S,
  value: unknown,
  bounds: ValueBounds,
): Parsed<z.output<S>> {
  return catchReadErrors(() => {
    const tooLarge = findBrokenBound(value, bounds);
    if (tooLarge) return { ok: false, problems: [tooLarge] };
    const result = schema.safeParse(value, { reportInput: true });
    if (result.success) return { ok: true, value: result.data };
    return {
      ok: false,
      problems: result.error.issues.slice(0, BOUNDS.validationProblemsMax).map(problemFromIssue),
    };
  });
}

/** Returns all validation problems in one sentence, each with its path, what was expected and what was received. */
export function describeProblems(problems: readonly ValidationProblem[]): string {
  return problems
    .map((problem) => `${problem.path}: expected ${problem.expected}, got ${problem.received}`)
    .join("; ");
}

/** A value to look at; its path is spelled out only where something is wrong. */
interface VisitedValue {
  readonly value: unknown;
  readonly depth: number;
  readonly key: string | number;
  readonly parent?: VisitedValue;
}

/** Runs a read, and returns a problem where it throws: a value's getter or proxy may run its own code. */
function catchReadErrors<T>(read: () => Parsed<T>): Parsed<T> {
  try {
    return read();
  } catch {
    return {
      ok: false,
      problems: [{ path: "(root)", expected: "plain data", received: "a value that throws when it is read" }],
    };
  }
}

/**
 * Returns the problem of a place where a value is too deep, or has too many characters, items, keys or values;
 * `undefined` where it keeps the bounds.
 */
function findBrokenBound(root: unknown, bounds: ValueBounds): ValidationProblem | undefined {
  const { valuesMax = BOUNDS.valueNodesMax } = bounds;
  const pending: VisitedValue[] = [{ value: root, depth: 0, key: "" }];
  let chars = 0;
  let nodes = 0;
  for (let visit = pending.pop(); visit; visit = pending.pop()) {
    nodes += 1;
    chars += typeof visit.value === "string" ? visit.value.length : 1;
    if (visit.depth > bounds.depthMax)
      return createProblem(visit, `at most ${bounds.depthMax} levels`, "a deeper value");
    const keys = inspectKeys(visit.value);
    if (keys.count > keys.countMax) {
      const container = keys.unit === "items" ? "an array" : "an object";
      return createProblem(
        visit,
        `at most ${keys.countMax} ${keys.unit}`,
        `${container} of ${keys.count} ${keys.unit}`,
      );
    }
    chars += pushInnerValues(pending, visit, keys);
    if (chars > bounds.charsMax || nodes + pending.length > valuesMax) {
      const expected = `at most ${bounds.charsMax} characters and ${valuesMax} values in all`;
      return createProblem(visit, expected, "a larger value");
    }
  }
  return undefined;
}

/** The keys of an object or an array, as far as they are counted. */
interface ContainerKeys {
  readonly unit: "items" | "keys";
  readonly count: number;
  readonly countMax: number;
  /** Keys of an object; those of an array are counted only, because it may be long and empty. */
  readonly names: readonly string[];
}

/** Returns how many items or keys a value has and may have, and the names of an object's keys. */
function inspectKeys(value: unknown): ContainerKeys {
  if (Array.isArray(value))
    return { unit: "items", count: value.length, countMax: BOUNDS.arrayItemsMax, names: [] };
  const names = typeof value === "object" && value !== null ? Object.keys(value) : [];
  return { unit: "keys", count: names.length, countMax: BOUNDS.objectKeysMax, names };
}

/** Queues the values directly inside a value, and returns how many characters its keys add. */
function pushInnerValues(pending: VisitedValue[], parent: VisitedValue, { names }: ContainerKeys): number {
  const { value } = parent;
  const depth = parent.depth + 1;
  if (Array.isArray(value)) {
    for (let key = 0; key < value.length; key += 1) pending.push({ value: value[key], depth, key, parent });
    return 0;
  }
  let chars = 0;
  for (const key of names) {
    chars += key.length;
    pending.push({ value: (value as Record<string, unknown>)[key], depth, key, parent });
  }
  return chars;
}

function createProblem(visit: VisitedValue, expected: string, received: string): ValidationProblem {
  return { path: formatVisitPath(visit), expected, received };
}

function formatVisitPath(visit: VisitedValue): string {
  const keys: PropertyKey[] = [];
  for (let at = visit; at.parent; at = at.parent) keys.unshift(at.key);
  return formatProblemPath(keys);
}

/** Formats a path like `steps[3].dependsOn[0]`, cut to its bounds. */
export function formatProblemPath(keys: readonly PropertyKey[]): string {
  const path = keys
    .slice(0, BOUNDS.planDepthMax)
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key).slice(0, BOUNDS.nameCharsMax)}`))
    .join("");
  return path.replace(/^\./, "").slice(0, BOUNDS.problemPathCharsMax) || "(root)";
}

function problemFromIssue(issue: z.core.$ZodIssue): ValidationProblem {
  return {
    path: formatProblemPath(issue.path),
    expected: describeExpected(issue),
    received: describeReceived(issue),
  };
}

function describeExpected(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.expected;
    case "invalid_value":
      return `one of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
    case "too_small":
      return `at least ${String(issue.minimum)}${formatUnit(issue.origin)}`;
    case "too_big":
      return `at most ${String(issue.maximum)}${formatUnit(issue.origin)}`;
    case "unrecognized_keys":
      return `no key ${issue.keys
        .slice(0, 5)
        .map((key) => JSON.stringify(key.slice(0, 64)))
        .join(", ")}`;
    case "invalid_union":
      return describeForms(issue);
    default:
      return issue.message;
  }
}

/** Describes what each form of a union expected of the value itself. */
function describeForms(issue: z.core.$ZodIssueInvalidUnion): string {
  const forms = issue.errors.flatMap(([first]) =>
    first?.path.length === 0 ? [describeExpected(first)] : [],
  );
  return [...new Set(forms)].join(" or ") || "one of its forms";
}

function formatUnit(origin: string): string {
  if (origin === "string") return " characters";
  return origin === "array" ? " items" : "";
}

function describeReceived(issue: z.core.$ZodIssue): string {
  const { input } = issue;
  if (issue.code === "unrecognized_keys") return "it";
  if (input === undefined) return "nothing";
  if (input === null) return "null";
  if (typeof input === "string") {
    return input.length <= 40 ? `string ${JSON.stringify(input)}` : `a string of ${input.length} characters`;
  }
  if (Array.isArray(input)) return `an array of ${input.length} items`;
  if (typeof input === "object") return "an object";
  return typeof input === "number" || typeof input === "boolean"
    ? `${typeof input} ${input}`
    : `a ${typeof input}`;
}
