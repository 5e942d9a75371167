/** Owns: whether an `outputSchema` leaves room for an output that a binding names. */
import { isJsonObject as isFields, type Segment } from "./step-graph.ts";

type Fields = Readonly<Record<string, unknown>>;

/** True when an output may exist at this path. A schema that is not plain allows any path. */
export function canHaveOutput(schema: object, path: readonly Segment[]): boolean {
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
  return Array.isArray(prefixItems) && index < prefixItems.length ? prefixItems[index] : items;
}

function allowsType({ type }: Fields, wanted: string): boolean {
  if (type === undefined) return true;
  return Array.isArray(type) ? type.includes(wanted) : type === wanted;
}
