/**
 * Owns: whether an `outputSchema`, or another schema that an author writes, can be used as a JSON Schema (draft 2020-12, and
 * `definitions` of older ones). Unknown keywords are annotations. Does not own: validating outputs with it (`infra/json-schema`,
 * which takes what passes here), or what it says of a path (`declares.ts`).
 */
import { BOUNDS } from "../contracts/bounds.ts";
import { orderNodes } from "./order-nodes.ts";
import { readPattern } from "./pattern-syntax.ts";
import { createProblemList, quoteName, type ProblemList } from "./plan-problem.ts";
import { isJsonObject as isFields, type PathSegment } from "./step-graph.ts";

/** The keywords of a JSON schema, unchecked. */
type SchemaKeywords = Readonly<Record<string, unknown>>;

const TYPES = ["null", "boolean", "object", "array", "number", "string", "integer"];

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;
const isNumber = (value: unknown): boolean => typeof value === "number" && Number.isFinite(value);
const isNames = (value: unknown): boolean =>
  isDistinctList(value) && value.every((each) => typeof each === "string");
const isType = (value: unknown): boolean => typeof value === "string" && TYPES.includes(value);
const COUNT = { is: isCount, must: "a whole number from 0" };
const NUMBER = { is: isNumber, must: "a number" };
const BOOLEAN = { is: (value: unknown) => typeof value === "boolean", must: "true or false" };

/** Keywords with a plain value. */
const PLAIN: Readonly<Record<string, { readonly is: (value: unknown) => boolean; readonly must: string }>> = {
  type: {
    is: (value) => isType(value) || (isDistinctList(value) && value.length > 0 && value.every(isType)),
    must: `one of ${TYPES.join(", ")}, or a list of them`,
  },
  enum: { is: (value) => Array.isArray(value) && value.length > 0, must: "a list with at least one value" },
  required: { is: isNames, must: "a list of different names" },
  pattern: { is: (value) => typeof value === "string", must: "a regular expression" },
  multipleOf: { is: (value) => isNumber(value) && Number(value) > 0, must: "a number above 0" },
  format: { is: (value) => typeof value === "string", must: "a text" },
  dependentRequired: {
    is: (value) => isFields(value) && Object.values(value).every(isNames),
    must: "an object of lists of different names",
  },
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
const SINGLE = ["items", "contains", "propertyNames", "additionalProperties"];
const SINGLE_SAME = ["not", "if", "then", "else"];
const LIST_SAME = ["allOf", "anyOf", "oneOf"];
const CHOICES = ["anyOf", "oneOf"];
const MAP = ["properties", "patternProperties", "$defs", "definitions"];
const MAP_SAME = ["dependentSchemas"];
/** Keywords that would not be checked as they are meant, with advice on what to write instead. */
const REFUSED: Readonly<Record<string, string>> = {
  $dynamicRef: "use $ref",
  $recursiveRef: "use $ref",
  $id: "only the outermost schema may have one",
  additionalItems: "use prefixItems, and items for those behind them",
  // The validator is wrong about them beside alternatives.
  unevaluatedProperties: "use additionalProperties",
  unevaluatedItems: "use items",
  dependencies: "use dependentRequired or dependentSchemas",
};

/** A schema inside another one, with its path. */
interface Subschema {
  readonly schema: unknown;
  readonly at: readonly PathSegment[];
  /** True where it is held against the same value as the schema around it. */
  readonly isSame: boolean;
}

/** A schema in the tree of all schemas, with the number of the one around it. */
interface SchemaNode extends Subschema {
  /** The schema around it. */
  readonly parent?: number;
}

/**
 * Adds a problem to the plan's list for everything for which an author's JSON Schema cannot be used; returns nothing.
 */
export function checkOutputSchema(schema: object, path: readonly PathSegment[], problems: ProblemList): void {
  const nodes: SchemaNode[] = [{ schema, at: [], isSame: false }];
  const report = (at: readonly PathSegment[], message: string): void =>
    problems.add("OUTPUT_SCHEMA_INVALID", [...path, ...at], message);
  if (isSchemaTooLarge(schema)) {
    const { outputSchemaDepthMax, outputSchemaValuesMax } = BOUNDS;
    report(
      [],
      `a schema has at most ${outputSchemaDepthMax} levels and ${outputSchemaValuesMax} values; make it smaller`,
    );
    return;
  }
  // The list grows while it is walked.
  for (const [index, { schema: each, at }] of nodes.entries()) {
    if (isFields(each)) {
      checkKeywords(each, at, report);
      for (const child of listSubschemas(each, at, report)) nodes.push({ ...child, parent: index });
    } else if (typeof each !== "boolean") report(at, describeWrongSchema(at));
  }
  if (nodes.length > BOUNDS.outputSchemaSchemasMax)
    report([], `a schema has at most ${BOUNDS.outputSchemaSchemasMax} schemas in it; make it smaller`);
  checkPatterns(nodes, report);
  checkReferences(nodes, report);
}

/**
 * Lists, as sentences that begin with its `place`, why a JSON Schema outside of a plan cannot be used; none where the
 * schema is absent or null.
 */
export function listSchemaProblems(schema: unknown, place: string): string[] {
  if (schema === undefined || schema === null) return [];
  if (!isFields(schema)) return [`${place} is not a usable JSON Schema: it must be an object`];
  const found = createProblemList();
  checkOutputSchema(schema, [], found);
  return found.problems.map(
    ({ path, message }) => `${place} is not a usable JSON Schema: ${path}: ${message}`,
  );
}

function describeWrongSchema(at: readonly PathSegment[]): string {
  return at.at(-1) === "items"
    ? "items is one schema for all items; use prefixItems for a list of them"
    : "a schema is an object, true or false; correct it";
}

/** Reports a problem at a path in the schema. */
type SchemaReporter = (at: readonly PathSegment[], message: string) => void;

/** Reports keywords of a schema that have a wrong value or are not supported, and required members that it excludes. */
function checkKeywords(schema: SchemaKeywords, at: readonly PathSegment[], report: SchemaReporter): void {
  for (const [keyword, value] of Object.entries(schema)) {
    const rule = Object.hasOwn(PLAIN, keyword) ? PLAIN[keyword] : undefined;
    if (rule && !rule.is(value)) report([...at, keyword], `${keyword} must be ${rule.must}`);
    const instead = Object.hasOwn(REFUSED, keyword) ? REFUSED[keyword] : undefined;
    if (instead !== undefined && !(keyword === "$id" && at.length === 0))
      report([...at, keyword], `${keyword} is not supported; ${instead}`);
  }
  checkRequired(schema, at, report);
}

/** Reports patterns that cannot be used, and where all patterns of a schema are too large together. */
function checkPatterns(nodes: readonly SchemaNode[], report: SchemaReporter): void {
  const { outputSchemaPatternCharsMax: charsMax, outputSchemaPatternSizeMax: sizeMax } = BOUNDS;
  let chars = 0;
  let sizes = 0;
  for (const { schema, at } of nodes) {
    for (const { text, place } of listPatterns(schema, at, report)) {
      const { size, problem } = readPattern(text);
      if (problem !== undefined) report(place, `this pattern cannot be used: ${problem}`);
      const isWithin = chars <= charsMax && sizes <= sizeMax;
      chars += text.length;
      sizes += size;
      if (isWithin && (chars > charsMax || sizes > sizeMax))
        report(
          place,
          `all patterns of a schema have at most ${charsMax} characters, and ${sizeMax} parts with repetitions written out; shorten them`,
        );
    }
  }
}

function listPatterns(
  schema: unknown,
  at: readonly PathSegment[],
  report: SchemaReporter,
): { readonly text: string; readonly place: readonly PathSegment[] }[] {
  if (!isFields(schema)) return [];
  const { pattern, patternProperties } = schema;
  const names = isFields(patternProperties) ? Object.keys(patternProperties) : [];
  if (names.length > BOUNDS.outputSchemaChoicesMax) report([...at, "patternProperties"], TOO_MANY_CHOICES);
  return [
    ...(typeof pattern === "string" ? [{ text: pattern, place: [...at, "pattern"] }] : []),
    ...names.map((text) => ({ text, place: [...at, "patternProperties", text] })),
  ];
}

const TOO_MANY_CHOICES = `there may be at most ${BOUNDS.outputSchemaChoicesMax} of them; leave some out`;

/** Reports members that are both required and excluded, and so can never exist. */
function checkRequired(schema: SchemaKeywords, at: readonly PathSegment[], report: SchemaReporter): void {
  const { properties, required, additionalProperties, patternProperties } = schema;
  if (additionalProperties !== false || patternProperties !== undefined) return;
  if (!isFields(properties) || !Array.isArray(required)) return;
  for (const name of required)
    if (typeof name === "string" && !Object.hasOwn(properties, name))
      report(
        [...at, "required"],
        `${quoteName(name)} is required but not among the properties; declare it or do not require it`,
      );
}

/**
 * Lists the schemas directly inside a schema, and reports keywords that should hold a list or an object of schemas and
 * do not, or too many alternatives.
 */
function listSubschemas(
  schema: SchemaKeywords,
  at: readonly PathSegment[],
  report: SchemaReporter,
): Subschema[] {
  const children: Subschema[] = [];
  const addChild = (key: string, isSame: boolean): void => {
    if (Object.hasOwn(schema, key)) children.push({ schema: schema[key], at: [...at, key], isSame });
  };
  const addChildren = (key: string, isSame: boolean, isRight: (value: unknown) => boolean): void => {
    if (!Object.hasOwn(schema, key)) return;
    const value = schema[key];
    if (!isRight(value)) {
      report(
        [...at, key],
        `${key} must be ${isRight === isFields ? "an object" : "a list with at least one item"} of schemas`,
      );
      return;
    }
    for (const [name, each] of Object.entries(value as SchemaKeywords))
      children.push({ schema: each, at: [...at, key, Array.isArray(value) ? Number(name) : name], isSame });
  };
  for (const key of SINGLE) addChild(key, false);
  for (const key of SINGLE_SAME) addChild(key, true);
  for (const key of LIST_SAME) addChildren(key, true, isNonEmptyList);
  for (const key of CHOICES)
    if (Array.isArray(schema[key]) && schema[key].length > BOUNDS.outputSchemaChoicesMax)
      report([...at, key], TOO_MANY_CHOICES);
  addChildren("prefixItems", false, isNonEmptyList);
  for (const key of MAP) addChildren(key, false, isFields);
  for (const key of MAP_SAME) addChildren(key, true, isFields);
  return children;
}

/**
 * Reports each `$ref` that leads out of the schema or to no schema, too many levels behind references, and one place
 * from which following `$ref` never ends.
 */
function checkReferences(nodes: readonly SchemaNode[], report: SchemaReporter): void {
  const places = new Map(nodes.map(({ at }, index) => [formatJsonPointer(at), index]));
  const sameValueEdges = linkSameValues(nodes);
  const targets = new Set<number>();
  for (const [index, { schema, at }] of nodes.entries()) {
    const target = findReferenceTarget(schema, places);
    if (target === "nowhere")
      report(
        [...at, "$ref"],
        "$ref must lead to a schema inside of this one, such as #/$defs/name; nothing is fetched",
      );
    else if (target !== undefined) {
      sameValueEdges[index]?.push(target);
      targets.add(target);
    }
  }
  checkReferenceLevels(nodes, targets, report);
  const [endless] = orderNodes(sameValueEdges).stuck;
  if (endless !== undefined)
    report(
      nodes[endless]?.at ?? [],
      "following $ref from here never ends; let it lead through a property or an item",
    );
}

/** Returns, by schema, the schemas directly inside of it that are held against the same value. */
function linkSameValues(nodes: readonly SchemaNode[]): number[][] {
  const sameValueEdges: number[][] = nodes.map(() => []);
  for (const [index, { parent, isSame }] of nodes.entries())
    if (parent !== undefined && isSame) sameValueEdges[parent]?.push(index);
  return sameValueEdges;
}

/**
 * Reports where the schemas that are referred to have too many levels together. They are turned into code one within
 * the other, which takes stack.
 */
function checkReferenceLevels(
  nodes: readonly SchemaNode[],
  targets: ReadonlySet<number>,
  report: SchemaReporter,
): void {
  const levels = nodes.map(() => 1);
  // Children come behind their parents.
  for (let index = nodes.length - 1; index > 0; index -= 1) {
    const parent = nodes[index]?.parent ?? 0;
    levels[parent] = Math.max(levels[parent] ?? 0, (levels[index] ?? 0) + 1);
  }
  let sum = 0;
  for (const target of targets) sum += levels[target] ?? 0;
  const max = BOUNDS.outputSchemaReferenceLevelsMax;
  if (sum > max)
    report(
      [],
      `the schemas that $ref leads to have ${sum} levels together, more than ${max}; use fewer of them`,
    );
}

/**
 * Returns the index of the schema that `$ref` leads to, or `nowhere` where it leads to none of these; `undefined`
 * where a schema has no `$ref`.
 */
function findReferenceTarget(
  schema: unknown,
  places: ReadonlyMap<string, number>,
): number | "nowhere" | undefined {
  if (!isFields(schema) || !Object.hasOwn(schema, "$ref")) return undefined;
  const { $ref } = schema;
  const pointer = typeof $ref === "string" ? normalizePointer($ref) : undefined;
  return pointer === undefined ? "nowhere" : (places.get(pointer) ?? "nowhere");
}

function formatJsonPointer(at: readonly PathSegment[]): string {
  return at.map((segment) => `/${String(segment).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** Returns the JSON pointer in a URI fragment, as `formatJsonPointer` writes it; `undefined` where there is none. */
function normalizePointer(reference: string): string | undefined {
  if (!reference.startsWith("#")) return undefined;
  try {
    return decodeURIComponent(reference.slice(1));
  } catch {
    return undefined;
  }
}

/** True when a schema has too many levels or too many values. */
function isSchemaTooLarge(schema: object): boolean {
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

function isNonEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

/** True for a list without a value that is in it twice. */
function isDistinctList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && new Set(value).size === value.length;
}
