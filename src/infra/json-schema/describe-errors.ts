/** Owns: what ajv found as sentences for a plan's author and for the agent. No value of the outputs is in them. */
import type { ErrorObject } from "ajv";
import { BOUNDS } from "../../agents/coordination/contracts/bounds.ts";
import type { OutputProblem } from "../../agents/coordination/ports/output-contract.ts";

/** The parameters of a validation error; each keyword has its own. */
type ErrorParameters = Readonly<Record<string, unknown>>;

/** The outputs that were checked, and the names of properties that may be shown. */
interface CheckedOutputs {
  readonly outputs: unknown;
  /** Names of properties that may be shown, because the schema has them. */
  readonly names: ReadonlySet<string>;
}

/** Returns ajv's errors about a value as problems, each with its place and once, and not more than the bound. */
export function describeErrors(errors: readonly ErrorObject[], checked: CheckedOutputs): OutputProblem[] {
  const problems = new Map<string, OutputProblem>();
  for (const found of pickMainErrors(errors)) {
    const path = formatProblemPath(found, checked);
    const message = describeAjvError(found);
    problems.set(`${path} ${message}`, { path, message });
    if (problems.size >= BOUNDS.problemsMax) break;
  }
  return [...problems.values()];
}

/** An error that is worth telling. */
interface MainError {
  readonly error: ErrorObject;
  /** The types of alternatives that differ in nothing else. */
  readonly types?: readonly string[];
}

const ALTERNATIVES = ["anyOf", "oneOf"];
const SUMMARIES = [...ALTERNATIVES, "contains", "propertyNames"];

/**
 * Returns the errors that help an author. Ajv lists what went wrong inside of a summary before it; only what helps is
 * left of that.
 */
function pickMainErrors(errors: readonly ErrorObject[]): MainError[] {
  const helpful: MainError[] = [];
  for (const error of errors) {
    if (!SUMMARIES.includes(error.keyword)) {
      if (error.keyword !== "if") helpful.push({ error });
      continue;
    }
    const inner: MainError[] = [];
    for (let last = helpful.at(-1); last && isInside(last.error, error); last = helpful.at(-1)) {
      inner.push(last);
      helpful.pop();
    }
    helpful.push(
      ...(ALTERNATIVES.includes(error.keyword) ? summarizeAlternatives(error, inner.reverse()) : [{ error }]),
    );
  }
  return helpful;
}

function isInside(inner: ErrorObject, outer: ErrorObject): boolean {
  const { instancePath } = outer;
  return inner.instancePath === instancePath || inner.instancePath.startsWith(`${instancePath}/`);
}

/**
 * Returns the errors of alternatives that help: where some are a wrong type of the value itself, the others, or else
 * one that names all types; where none is, the summary itself.
 */
function summarizeAlternatives(error: ErrorObject, inner: readonly MainError[]): MainError[] {
  const isOfType = (each: MainError): boolean =>
    each.error.instancePath === error.instancePath && each.error.keyword === "type";
  const others = inner.filter((each) => !isOfType(each));
  const types = inner.filter(isOfType).flatMap((each) => each.types ?? listExpectedTypes(each.error));
  if (others.length > 0 && types.length > 0) return others.slice(0, BOUNDS.problemsMax);
  if (others.length === 0 && types.length > 0 && inner[0])
    return [{ error: inner[0].error, types: [...new Set(types)] }];
  return [{ error }];
}

function listExpectedTypes({ params }: ErrorObject): string[] {
  const { type } = params as ErrorParameters;
  return Array.isArray(type) ? type.map(String) : String(type).split(",");
}

/** Formats where in the outputs an error is, as in `a[0].b`; a name that the schema does not have is `*`. */
function formatProblemPath({ error }: MainError, { outputs, names }: CheckedOutputs): string {
  const missing = (error.params as ErrorParameters)["missingProperty"];
  const keys = error.instancePath.split("/").slice(1);
  let path = "";
  let valueAtPath: unknown = outputs;
  for (const part of keys.slice(0, BOUNDS.outputDepthMax)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    path += Array.isArray(valueAtPath) ? `[${key}]` : `.${maskUnknownName(key, names)}`;
    valueAtPath =
      typeof valueAtPath === "object" && valueAtPath !== null
        ? (valueAtPath as ErrorParameters)[key]
        : undefined;
  }
  if (typeof missing === "string") path += `.${maskUnknownName(missing)}`;
  return path.replace(/^\./u, "").slice(0, BOUNDS.problemPathCharsMax) || "(root)";
}

/** Returns a property's name within its bound; `*` for one that the schema does not have. */
function maskUnknownName(name: string, names?: ReadonlySet<string>): string {
  return names && !names.has(name) ? "*" : name.slice(0, BOUNDS.nameCharsMax).toWellFormed();
}

function describeAjvError({ error, types }: MainError): string {
  const { keyword, params, data } = error;
  const write = Object.hasOwn(SENTENCES, keyword) ? SENTENCES[keyword] : undefined;
  if (keyword === "type")
    return `expected ${(types ?? listExpectedTypes(error)).join(" or ")}, got ${nameType(data)}`;
  return write?.(params as ErrorParameters) ?? `expected what ${keyword.slice(0, BOUNDS.nameCharsMax)} says`;
}

const describeAtLeast = (unit: string) => (params: ErrorParameters) =>
  `expected at least ${formatLimit(params, unit)}, got fewer`;
const describeAtMost = (unit: string) => (params: ErrorParameters) =>
  `expected at most ${formatLimit(params, unit)}, got more`;

function formatLimit({ limit }: ErrorParameters, unit: string): string {
  return `${String(limit)} ${unit}${limit === 1 ? "" : "s"}`;
}

const LIMIT = ({ comparison, limit }: ErrorParameters): string => {
  const words: ErrorParameters = { "<=": "at most", ">=": "at least", "<": "less than", ">": "more than" };
  return `expected ${String(words[String(comparison)])} ${String(limit)}`;
};

const UNKNOWN_PROPERTY = (): string => "expected no property that the schema does not name";
const UNKNOWN_ITEM = ({ limit, len }: ErrorParameters): string =>
  `expected at most ${String(limit ?? len)} items, got more`;

const SENTENCES: Readonly<Record<string, (params: ErrorParameters) => string>> = {
  required: () => "expected a value, got nothing",
  dependentRequired: () => "expected a value beside another one, got nothing",
  additionalProperties: UNKNOWN_PROPERTY,
  propertyNames: () => "expected other names of properties",
  enum: () => "expected one of the values of enum",
  const: () => "expected the value of const",
  minimum: LIMIT,
  maximum: LIMIT,
  exclusiveMinimum: LIMIT,
  exclusiveMaximum: LIMIT,
  multipleOf: ({ multipleOf }) => `expected a multiple of ${String(multipleOf)}`,
  minLength: describeAtLeast("character"),
  maxLength: describeAtMost("character"),
  pattern: () => "expected a text that matches the pattern",
  minItems: describeAtLeast("item"),
  maxItems: describeAtMost("item"),
  items: UNKNOWN_ITEM,
  uniqueItems: () => "expected different items, got the same one twice",
  contains: ({ minContains: min, maxContains: max }) =>
    `expected ${String(min)} ${typeof max === "number" ? `to ${max}` : "or more"} items that meet contains`,
  minProperties: ({ limit }) => `expected at least ${String(limit)} properties, got fewer`,
  maxProperties: ({ limit }) => `expected at most ${String(limit)} properties, got more`,
  not: () => "expected what does not meet not",
  oneOf: ({ passingSchemas }) =>
    passingSchemas ? "expected to meet one of oneOf, got more" : "expected to meet one of oneOf, got none",
  anyOf: () => "expected to meet one of anyOf, got none",
  "false schema": () => "expected nothing here",
};

function nameType(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return value === undefined ? "nothing" : typeof value;
}
