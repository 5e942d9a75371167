/**
 * Owns: what ajv is given of a schema. Only keywords that the plan compiler has checked are left, so that nothing else means
 * anything to ajv; every schema says what looking at a value costs; places that `$ref` leads to are definitions of their own.
 */

export type SchemaKeywords = Readonly<Record<string, unknown>>;

export const WORK = "x-work";

/** The cost of one look at a value. */
export interface WorkOf {
  readonly fixed: number;
  readonly perItem: number;
  readonly perKey: number;
  readonly isLengthCounted: boolean;
}

export interface UsableSchema {
  readonly schema: SchemaKeywords;
  /** All names of properties that the schema knows. */
  readonly names: ReadonlySet<string>;
}

/** With plain values, which may be long lists. */
const PLAIN = [
  ...["type", "enum", "const", "required", "dependentRequired", "pattern", "multipleOf", "uniqueItems"],
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"],
  ...["minItems", "maxItems", "minContains", "maxContains", "minProperties", "maxProperties"],
];
const ITEM_SCHEMAS = ["items", "contains"];
const KEY_SCHEMAS = ["propertyNames", "additionalProperties"];
const SAME_SCHEMAS = ["not", "if", "then", "else"];
const SCHEMAS = [...ITEM_SCHEMAS, ...KEY_SCHEMAS, ...SAME_SCHEMAS];
const LISTS = ["allOf", "anyOf", "oneOf", "prefixItems"];
const MAPS = ["properties", "patternProperties", "dependentSchemas"];

/** A child may end before it counts its own work; an alternative leaves an error behind. */
const CHILD_UNITS = 4;

/**
 * Copies a JSON Schema into the form that ajv is given, and returns it with the names of the properties that it knows.
 * @throws Error where it is no schema, or a `$ref` leads nowhere.
 */
export function createUsableSchema(root: SchemaKeywords): UsableSchema {
  const copying: SchemaCopy = { root, targets: listTargets(root), defs: new Map(), names: new Set() };
  const $ref = referToDefinition("", copying);
  const $defs: Record<string, unknown> = {};
  // The map grows while it is walked.
  for (const [pointer, name] of copying.defs)
    $defs[name] = copySchema(findSchema(root, pointer), pointer, copying);
  return { schema: { $ref, $defs }, names: copying.names };
}

/** A schema that is being copied, and the names of its definitions so far. */
interface SchemaCopy {
  readonly root: SchemaKeywords;
  readonly targets: ReadonlySet<string>;
  /** Pointer to the name of its definition. */
  readonly defs: Map<string, string>;
  readonly names: Set<string>;
}

/** Returns the reference to the definition of a place. A place that is new is noted, to be copied later. */
function referToDefinition(pointer: string, { defs }: SchemaCopy): string {
  const name = defs.get(pointer) ?? `s${defs.size}`;
  defs.set(pointer, name);
  return `#/$defs/${name}`;
}

/**
 * Copies the keywords of a schema that ajv is given, and adds what a look at a value costs. Throws where it is no
 * schema, or a `$ref` leads nowhere.
 */
function copySchema(schema: unknown, pointer: string, copying: SchemaCopy): unknown {
  if (typeof schema === "boolean") return schema;
  if (!isFields(schema)) throw new Error("this is not a schema");
  const copy: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) {
    const copied = copyKeywordValue(key, value, { pointer: `${pointer}/${key}`, copying });
    if (copied !== undefined) copy[key] = copied;
  }
  const { properties } = copy;
  if (isFields(properties)) for (const name of Object.keys(properties)) copying.names.add(name);
  return { ...copy, [WORK]: estimateWork(copy) };
}

/** Copies the value of a keyword; `undefined` for a keyword that ajv is not given. */
function copyKeywordValue(
  key: string,
  value: unknown,
  { pointer, copying }: { readonly pointer: string; readonly copying: SchemaCopy },
): unknown {
  if (PLAIN.includes(key)) return value;
  if (key === "$ref") return referToDefinition(readPointer(value), copying);
  if (SCHEMAS.includes(key)) return copyOrReferTo(value, pointer, copying);
  if (LISTS.includes(key) && Array.isArray(value))
    return value.map((child, index) => copyOrReferTo(child, `${pointer}/${index}`, copying));
  return MAPS.includes(key) && isFields(value) ? copyMap(value, pointer, copying) : undefined;
}

/**
 * Returns the copy of a schema, or a reference where others refer to it, too. It is copied once, however often it is
 * named.
 */
function copyOrReferTo(schema: unknown, pointer: string, copying: SchemaCopy): unknown {
  return copying.targets.has(pointer)
    ? { $ref: referToDefinition(pointer, copying) }
    : copySchema(schema, pointer, copying);
}

function copyMap(map: SchemaKeywords, pointer: string, copying: SchemaCopy): SchemaKeywords {
  return Object.fromEntries(
    Object.entries(map).map(([name, child]) => [
      name,
      copyOrReferTo(child, `${pointer}/${escapeKey(name)}`, copying),
    ]),
  );
}

/** Returns the units of work that a look at a value by this schema costs, without those of its children. */
function estimateWork(schema: SchemaKeywords): WorkOf {
  const has = (key: string): boolean => Object.hasOwn(schema, key);
  const count = (key: string): number => (isObject(schema[key]) ? Object.keys(schema[key]).length : 0);
  const plain = PLAIN.reduce((sum, key) => sum + countValues(schema[key]), 0);
  const children = [...LISTS, ...MAPS].reduce((sum, key) => sum + count(key), 0);
  const same = [...SAME_SCHEMAS, "$ref"].filter(has).length;
  return {
    fixed: 1 + plain + CHILD_UNITS * (children + same),
    perItem: CHILD_UNITS * ITEM_SCHEMAS.filter(has).length,
    perKey: CHILD_UNITS * KEY_SCHEMAS.filter(has).length + count("patternProperties"),
    isLengthCounted: has("minLength") || has("maxLength"),
  };
}

/** Counts a value and all values within it; 0 for `undefined`. */
function countValues(root: unknown): number {
  if (root === undefined) return 0;
  let values = 0;
  const pending: unknown[] = [root];
  for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
    values += 1;
    if (isObject(value)) for (const child of Object.values(value)) pending.push(child);
  }
  return values;
}

/**
 * Lists every place that a text under `$ref` names, even where it is no reference, because a place too many costs
 * nothing.
 */
function listTargets(root: SchemaKeywords): ReadonlySet<string> {
  const targets = new Set<string>([""]);
  const pending: unknown[] = [root];
  for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
    if (!isObject(value)) continue;
    const { $ref } = value as SchemaKeywords;
    if (typeof $ref === "string" && $ref.startsWith("#")) targets.add(decodeRef($ref) ?? "");
    for (const child of Object.values(value)) pending.push(child);
  }
  return targets;
}

/** Returns the pointer of a `$ref`. @throws Error where it leads nowhere */
function readPointer($ref: unknown): string {
  const pointer = typeof $ref === "string" && $ref.startsWith("#") ? decodeRef($ref) : undefined;
  // The name of an anchor is no pointer, and anchors are not looked for.
  if (pointer === undefined || !/^(\/|$)/.test(pointer)) throw new Error("$ref leads nowhere");
  return pointer;
}

function decodeRef($ref: string): string | undefined {
  try {
    return decodeURIComponent($ref.slice(1));
  } catch {
    return undefined;
  }
}

function findSchema(root: SchemaKeywords, pointer: string): unknown {
  let at: unknown = root;
  for (const part of pointer.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (!isObject(at) || !Object.hasOwn(at, key)) throw new Error("$ref leads nowhere");
    at = (at as SchemaKeywords)[key];
  }
  return at;
}

function escapeKey(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function isFields(value: unknown): value is SchemaKeywords {
  return isObject(value) && !Array.isArray(value);
}
