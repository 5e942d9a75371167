/** Owns: a value that a simple JSON Schema accepts, for the protocol's mock provider. */
import { isRecord } from "../../../agents/coordination/std/is-record.ts";

const DEPTH_MAX = 16;
const SAMPLE_CHARS_MAX = 10_000;

export function sampleOf(schema: unknown, depth = 0): unknown {
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
      return "sample".padEnd(Math.min(numberOr(schema["minLength"], 0), SAMPLE_CHARS_MAX), ".");
    case "integer":
    case "number":
      return numberOr(schema["minimum"], 0);
    case "array": {
      const count = Math.min(numberOr(schema["minItems"], 0), 100);
      return Array.from({ length: count }, () => sampleOf(schema["items"], depth + 1));
    }
    case "null":
      return null;
    default:
      return sampleObject(schema, depth);
  }
}

function sampleObject(schema: Readonly<Record<string, unknown>>, depth: number): unknown {
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? schema["required"].map(String) : [];
  return Object.fromEntries(required.map((key) => [key, sampleOf(properties[key] ?? {}, depth + 1)]));
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}
