/**
 * Owns: whether an `outputSchema` can be used as a JSON Schema (draft 2020-12; `definitions` and `items` lists of older drafts
 * too), and whether it allows an output. Unknown keywords are annotations. Does not own: validating outputs with it.
 */
import { BOUNDS } from "../contracts/bounds.ts";
import { orderNodes } from "./order-nodes.ts";
import { quoted, type ProblemList } from "./plan-problem.ts";
import type { Segment } from "./step-graph.ts";

type Fields = Readonly<Record<string, unknown>>;

const TYPES = ["null", "boolean", "object", "array", "number", "string", "integer"];

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;
const isNumber = (value: unknown): boolean => typeof value === "number" && Number.isFinite(value);
const isNames = (value: unknown): boolean =>
  isDistinct(value) && value.every((each) => typeof each === "string");
const isType = (value: unknown): boolean => typeof value === "string" && TYPES.includes(value);
const COUNT = { is: isCount, must: "a whole number from 0" };
const NUMBER = { is: isNumber, must: "a number" };
const BOOLEAN = { is: (value: unknown) => typeof value === "boolean", must: "true or false" };

/** Keywords with a plain value. */
const PLAIN: Readonly<Record<string, { readonly is: (value: unknown) => boolean; readonly must: string }>> = {
  type: {
    is: (value) => isType(value) || (isDistinct(value) && value.length > 0 && value.every(isType)),
    must: `one of ${TYPES.join(", ")}, or a list of them`,
  },
  enum: { is: (value) => Array.isArray(value) && value.length > 0, must: "a list with at least one value" },
  required: { is: isNames, must: "a list of different names" },
  pattern: { is: isPattern, must: `a regular expression of at most ${BOUNDS.patternCharsMax} characters` },
  multipleOf: { is: (value) => isNumber(value) && Number(value) > 0, must: "a number above 0" },
  format: { is: (value) => typeof value === "string", must: "a text" },
  uniqueItems: BOOLEAN,
  ...Object.fromEntries(
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"].map((key) => [key, NUMBER]),
  ),
  ...Object.fromEntries(
    [
      "minLength",
      "maxLength",
      "minItems",
      "maxItems",
      "minProperties",
      "maxProperties",
      "minContains",
      "maxContains",
    ].map((key) => [key, COUNT]),
  ),
};

/** Keywords that hold schemas; those marked `same` are held against the same value, not one inside of it. */
const SINGLE = [
  "contains",
  "propertyNames",
  "additionalProperties",
  "unevaluatedProperties",
  "additionalItems",
  "unevaluatedItems",
];
const SINGLE_SAME = ["not", "if", "then", "else"];
const LIST_SAME = ["allOf", "anyOf", "oneOf"];
const MAP = ["properties", "patternProperties", "$defs", "definitions"];
const MAP_SAME = ["dependentSchemas"];
const REFUSED = ["$dynamicRef", "$recursiveRef"];

interface Node {
  readonly schema: unknown;
  readonly at: readonly Segment[];
  /** What it is held against is the same value as of the schema around it. */
  readonly within?: number;
}

interface Child extends Node {
  readonly isSame: boolean;
}

export function checkOutputSchema(schema: object, path: readonly Segment[], problems: ProblemList): void {
  const nodes: Node[] = [{ schema, at: [] }];
  const say = (at: readonly Segment[], message: string): void =>
    problems.add("OUTPUT_SCHEMA_INVALID", [...path, ...at], message);
  if (isBeyondBounds(schema)) {
    const { outputSchemaDepthMax, outputSchemaValuesMax } = BOUNDS;
    say(
      [],
      `a schema has at most ${outputSchemaDepthMax} levels and ${outputSchemaValuesMax} values; make it smaller`,
    );
    return;
  }
  // The list grows while it is walked.
  for (const [index, { schema: each, at }] of nodes.entries()) {
    if (isFields(each)) {
      checkKeywords(each, at, say);
      for (const { isSame, ...child } of childrenOf(each, at, say))
        nodes.push({ ...child, ...(isSame && { within: index }) });
    } else if (typeof each !== "boolean") say(at, "a schema is an object, true or false; correct it");
  }
  checkReferences(nodes, say);
}

type Say = (at: readonly Segment[], message: string) => void;

function checkKeywords(schema: Fields, at: readonly Segment[], say: Say): void {
  for (const [keyword, value] of Object.entries(schema)) {
    const rule = Object.hasOwn(PLAIN, keyword) ? PLAIN[keyword] : undefined;
    if (rule && !rule.is(value)) say([...at, keyword], `${keyword} must be ${rule.must}`);
    if (REFUSED.includes(keyword)) say([...at, keyword], `${keyword} is not supported; use $ref`);
  }
  checkRequired(schema, at, say);
}

/** What is required and excluded can never be there. */
function checkRequired(schema: Fields, at: readonly Segment[], say: Say): void {
  const { properties, required, additionalProperties, patternProperties } = schema;
  if (additionalProperties !== false || patternProperties !== undefined) return;
  if (!isFields(properties) || !Array.isArray(required)) return;
  for (const name of required)
    if (typeof name === "string" && !Object.hasOwn(properties, name))
      say(
        [...at, "required"],
        `${quoted(name)} is required but not among the properties; declare it or do not require it`,
      );
}

function childrenOf(schema: Fields, at: readonly Segment[], say: Say): Child[] {
  const children: Child[] = [];
  const single = (key: string, isSame: boolean): void => {
    if (Object.hasOwn(schema, key)) children.push({ schema: schema[key], at: [...at, key], isSame });
  };
  const many = (key: string, isSame: boolean, isRight: (value: unknown) => boolean): void => {
    if (!Object.hasOwn(schema, key)) return;
    const value = schema[key];
    if (!isRight(value)) {
      say(
        [...at, key],
        `${key} must be ${isRight === isFields ? "an object" : "a list with at least one item"} of schemas`,
      );
      return;
    }
    for (const [name, each] of Object.entries(value as Fields))
      children.push({ schema: each, at: [...at, key, Array.isArray(value) ? Number(name) : name], isSame });
  };
  for (const key of SINGLE) single(key, false);
  for (const key of SINGLE_SAME) single(key, true);
  for (const key of LIST_SAME) many(key, true, isFullList);
  many("prefixItems", false, isFullList);
  for (const key of MAP) many(key, false, isFields);
  for (const key of MAP_SAME) many(key, true, isFields);
  if (Array.isArray(schema["items"])) many("items", false, isFullList);
  else single("items", false);
  return children;
}

/** References stay inside of the schema, lead to a schema, and never lead back to where the same value is being checked. */
function checkReferences(nodes: readonly Node[], say: Say): void {
  const places = new Map(nodes.map(({ at }, index) => [pointerOf(at), index]));
  const held: number[][] = nodes.map(() => []);
  for (const [index, { schema, at, within }] of nodes.entries()) {
    if (within !== undefined) held[within]?.push(index);
    const target = targetOf(schema, places);
    if (target === "nowhere")
      say(
        [...at, "$ref"],
        "$ref must lead to a schema inside of this one, such as #/$defs/name; nothing is fetched",
      );
    else if (target !== undefined) held[index]?.push(target);
  }
  const [endless] = orderNodes(held).stuck;
  if (endless !== undefined)
    say(
      nodes[endless]?.at ?? [],
      "following $ref from here never ends; let it lead through a property or an item",
    );
}

function targetOf(schema: unknown, places: ReadonlyMap<string, number>): number | "nowhere" | undefined {
  if (!isFields(schema) || !Object.hasOwn(schema, "$ref")) return undefined;
  const { $ref } = schema;
  const pointer = typeof $ref === "string" ? normalPointer($ref) : undefined;
  return pointer === undefined ? "nowhere" : (places.get(pointer) ?? "nowhere");
}

function pointerOf(at: readonly Segment[]): string {
  return at.map((segment) => `/${String(segment).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** A JSON pointer in a URI fragment, as `pointerOf` writes it. */
function normalPointer(reference: string): string | undefined {
  if (!reference.startsWith("#")) return undefined;
  try {
    return decodeURIComponent(reference.slice(1));
  } catch {
    return undefined;
  }
}

/** Whether an output at this path may be there. Where the schema is not plain, it may. */
export function declares(schema: object, path: readonly Segment[]): boolean {
  let at: unknown = schema;
  for (const segment of path) {
    if (at === false) return false;
    if (!isFields(at)) return true;
    const next = typeof segment === "number" ? itemOf(at, segment) : propertyOf(at, segment);
    if (next === undefined) return true;
    at = next;
  }
  return at !== false;
}

function propertyOf(schema: Fields, name: string): unknown {
  if (!allowsType(schema, "object")) return false;
  const { properties, patternProperties, additionalProperties } = schema;
  if (isFields(properties) && Object.hasOwn(properties, name)) return properties[name];
  return patternProperties === undefined ? additionalProperties : undefined;
}

function itemOf(schema: Fields, index: number): unknown {
  if (!allowsType(schema, "array")) return false;
  const { prefixItems, items } = schema;
  if (Array.isArray(prefixItems) && index < prefixItems.length) return prefixItems[index];
  return Array.isArray(items) ? undefined : items;
}

function allowsType({ type }: Fields, wanted: string): boolean {
  if (type === undefined) return true;
  return Array.isArray(type) ? type.includes(wanted) : type === wanted;
}

function isBeyondBounds(schema: object): boolean {
  const pending: { readonly value: unknown; readonly depth: number }[] = [{ value: schema, depth: 0 }];
  let values = 0;
  for (let each = pending.pop(); each; each = pending.pop()) {
    values += 1;
    const { value, depth } = each;
    if (values + pending.length > BOUNDS.outputSchemaValuesMax || depth > BOUNDS.outputSchemaDepthMax)
      return true;
    if (typeof value === "object" && value !== null)
      for (const child of Object.values(value)) pending.push({ value: child, depth: depth + 1 });
  }
  return false;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isFullList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

function isDistinct(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && new Set(value).size === value.length;
}

function isPattern(value: unknown): boolean {
  if (typeof value !== "string" || value.length > BOUNDS.patternCharsMax) return false;
  try {
    new RegExp(value, "u");
    return true;
  } catch {
    return false;
  }
}
