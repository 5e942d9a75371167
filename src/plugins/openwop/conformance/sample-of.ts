/** Owns: a value that a simple JSON Schema accepts, for the protocol's mock provider. */
import { isRecord } from "../../../agents/coordination/std/is-record.ts";

const DEPTH_MAX = 16;
const SAMPLE_CHARS_MAX = 10_000;

/**
 * Returns the simplest value that a simple JSON Schema accepts, its constant, default or first choice where it has
 * one; `null` for what is no schema, or nested too deeply.
 */
export function createSchemaSample(schema: unknown, depth = 0): unknown {
  if (!isRecord(schema) || depth > DEPTH_MAX) return null;
  if ("const" in schema) return schema["const"];
  if ("default" in schema) return schema["default"];
  const { enum: choices, type } = schema;
  if (Array.isArray(choices)) return choices[0];
  const kind: unknown = Array.isArray(type) ? type[0] : type;
  switch (kind) {
    case "boolean":
      return true;
    case "string":
      return "sample".padEnd(Math.min(readNumberOr(schema["minLength"], 0), SAMPLE_CHARS_MAX), ".");
    case "integer":
    case "number":
      return readNumberOr(schema["minimum"], 0);
    case "array": {
      const count = Math.min(readNumberOr(schema["minItems"], 0), 100);
      return Array.from({ length: count }, () => createSchemaSample(schema["items"], depth + 1));
    }
    case "null":
      return null;
    default:
      return createObjectSample(schema, depth);
  }
}

function createObjectSample(schema: Readonly<Record<string, unknown>>, depth: number): unknown {
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? schema["required"].map(String) : [];
  return Object.fromEntries(
    required.map((key) => [key, createSchemaSample(properties[key] ?? {}, depth + 1)]),
  );
}

function readNumberOr(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}
