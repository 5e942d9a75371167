/** Owns: whether an `outputSchema` leaves room for an output that a binding names. */
import { isJsonObject as isFields, type PathSegment } from "./step-graph.ts";

/** The keywords of a JSON schema, unchecked. */
type SchemaKeywords = Readonly<Record<string, unknown>>;

/**
 * True unless the JSON Schema of a step's outputs excludes an output at this path. A schema that is not plain allows
 * any path.
 */
export function canHaveOutput(schema: object, path: readonly PathSegment[]): boolean {
  let at: unknown = schema;
  for (const segment of path) {
    if (at === false) return false;
    if (!isFields(at)) return true;
    const next = typeof segment === "number" ? findItemSchema(at, segment) : findPropertySchema(at, segment);
    if (next === undefined) return true;
    at = next;
  }
  return at !== false;
}

/** Returns the schema of a member: `false` where it cannot exist, `undefined` where nothing is said of it. */
function findPropertySchema(schema: SchemaKeywords, name: string): unknown {
  if (!allowsType(schema, "object")) return false;
  const { properties, patternProperties, additionalProperties } = schema;
  if (isFields(properties) && Object.hasOwn(properties, name)) return properties[name];
  return patternProperties === undefined ? additionalProperties : undefined;
}

/** Returns the schema of a list's item: `false` where it cannot exist, `undefined` where nothing is said of it. */
function findItemSchema(schema: SchemaKeywords, index: number): unknown {
  if (!allowsType(schema, "array")) return false;
  const { prefixItems, items } = schema;
  return Array.isArray(prefixItems) && index < prefixItems.length ? prefixItems[index] : items;
}

function allowsType({ type }: SchemaKeywords, wanted: string): boolean {
  if (type === undefined) return true;
  return Array.isArray(type) ? type.includes(wanted) : type === wanted;
}
