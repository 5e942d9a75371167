/**
 * Owns: turning untrusted values into typed ones, in bounded time, with errors that name the path,
 * what was expected and what came. Does not own: what any one schema says.
 */
import type { z } from "zod";
import { BOUNDS } from "./bounds.ts";
import { CoordinationError } from "./errors.ts";

/** One thing wrong with an input: where, what was expected there, what came instead. */
export interface ValidationProblem {
  readonly path: string;
  readonly expected: string;
  readonly received: string;
}

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly ValidationProblem[] };

export interface ValueBounds {
  readonly charsMax: number;
  readonly depthMax: number;
}

export const ENVELOPE_BOUNDS: ValueBounds = {
  charsMax: BOUNDS.envelopeCharsMax,
  depthMax: BOUNDS.envelopeDepthMax,
};
export const PLAN_BOUNDS: ValueBounds = { charsMax: BOUNDS.planCharsMax, depthMax: BOUNDS.planDepthMax };
export const EVENT_BOUNDS: ValueBounds = { charsMax: BOUNDS.eventCharsMax, depthMax: BOUNDS.eventDepthMax };

/**
 * Validates `value` against `schema` after checking its size and depth, so that a hostile value costs
 * no more than a walk up to the bound.
 */
export function parseBounded<S extends z.ZodType>(
  schema: S,
  value: unknown,
  bounds: ValueBounds,
): Parsed<z.output<S>> {
  const tooLarge = breaksBounds(value, bounds);
  if (tooLarge) return { ok: false, problems: [tooLarge] };
  const result = schema.safeParse(value, { reportInput: true });
  if (result.success) return { ok: true, value: result.data };
  return { ok: false, problems: result.error.issues.slice(0, BOUNDS.validationProblemsMax).map(toProblem) };
}

/** @throws CoordinationError `INPUT_INVALID` with all problems in the message. */
export function parseOrThrow<S extends z.ZodType>(
  schema: S,
  value: unknown,
  input: { readonly what: string; readonly bounds: ValueBounds },
): z.output<S> {
  const parsed = parseBounded(schema, value, input.bounds);
  if (parsed.ok) return parsed.value;
  throw new CoordinationError("INPUT_INVALID", `${input.what}: ${describeProblems(parsed.problems)}`);
}

export function describeProblems(problems: readonly ValidationProblem[]): string {
  return problems
    .map((problem) => `${problem.path}: expected ${problem.expected}, got ${problem.received}`)
    .join("; ");
}

interface Visit {
  readonly value: unknown;
  readonly depth: number;
  readonly path: string;
}

function breaksBounds(root: unknown, bounds: ValueBounds): ValidationProblem | undefined {
  const pending: Visit[] = [{ value: root, depth: 0, path: "" }];
  let chars = 0;
  let nodes = 0;
  for (let visit = pending.pop(); visit; visit = pending.pop()) {
    const { value, depth, path } = visit;
    nodes += 1;
    chars += typeof value === "string" ? value.length : 1;
    if (depth > bounds.depthMax) {
      return {
        path: shortPath(path),
        expected: `at most ${bounds.depthMax} levels`,
        received: "a deeper value",
      };
    }
    if (typeof value === "object" && value !== null) chars += pushChildren(pending, value, visit);
    if (chars > bounds.charsMax || nodes + pending.length > BOUNDS.valueNodesMax) {
      return {
        path: shortPath(path),
        expected: `at most ${bounds.charsMax} characters in all`,
        received: "a larger value",
      };
    }
  }
  return undefined;
}

/** Queues the children of `parent` and returns the characters that its keys add. */
function pushChildren(pending: Visit[], parent: object, { depth, path }: Visit): number {
  if (Array.isArray(parent)) {
    const count = Math.min(parent.length, BOUNDS.valueNodesMax + 1);
    for (let index = 0; index < count; index += 1) {
      pending.push({ value: parent[index], depth: depth + 1, path: depth < 4 ? `${path}[${index}]` : path });
    }
    return count;
  }
  let chars = 0;
  for (const [key, value] of Object.entries(parent)) {
    chars += key.length;
    pending.push({ value, depth: depth + 1, path: depth < 4 ? `${path}.${key.slice(0, 64)}` : path });
  }
  return chars;
}

function shortPath(path: string): string {
  return path.replace(/^\./, "").slice(0, 200) || "(root)";
}

function toProblem(issue: z.core.$ZodIssue): ValidationProblem {
  const path = issue.path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`))
    .join("");
  return { path: shortPath(path), expected: expectedBy(issue), received: describeValue(issue) };
}

function expectedBy(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.expected;
    case "invalid_value":
      return `one of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`;
    case "too_small":
      return `at least ${String(issue.minimum)}${unitOf(issue.origin)}`;
    case "too_big":
      return `at most ${String(issue.maximum)}${unitOf(issue.origin)}`;
    case "unrecognized_keys":
      return `no key ${issue.keys
        .slice(0, 5)
        .map((key) => JSON.stringify(key.slice(0, 64)))
        .join(", ")}`;
    default:
      return issue.message;
  }
}

function unitOf(origin: string): string {
  if (origin === "string") return " characters";
  return origin === "array" ? " items" : "";
}

function describeValue(issue: z.core.$ZodIssue): string {
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
