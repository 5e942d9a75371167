/** Owns: a value that a simple JSON Schema accepts, for the protocol's mock provider. */
import { isRecord } from "../../../agents/coordination/std/is-record.ts";

const DEPTH_MAX = 16;
const SAMPLE_CHARS_MAX = 10_000;
/** Nested arrays would grow with each level by as many times as they have items. */
const ALL_CHARS_MAX = 100_000;

/**
 * Returns the simplest value that a simple JSON Schema accepts, its constant, default or first choice where it has
 * one; `null` for what is no schema or nested too deeply. Beyond the size of a sample there are `null` and shorter
 * arrays.
 */
export function createSchemaSample(schema: unknown): unknown {
  return sampleSchema(schema, 0, { charsLeft: ALL_CHARS_MAX });
}

/** The number of characters that a sample may still have. */
interface SampleRoom {
  charsLeft: number;
}

/** Samples a schema, and takes its size off the room that is left. */
function sampleSchema(schema: unknown, depth: number, room: SampleRoom): unknown {
  room.charsLeft -= 1;
  if (!isRecord(schema) || depth > DEPTH_MAX || room.charsLeft < 0) return null;
  const choices: readonly unknown[] = Array.isArray(schema["enum"]) ? schema["enum"] : [];
  const stated = [schema["const"], schema["default"], choices[0]].find((value) => value !== undefined);
  if (stated !== undefined) {
    room.charsLeft -= JSON.stringify(stated).length;
    return stated;
  }
  const { type } = schema;
  const kind: unknown = Array.isArray(type) ? type[0] : type;
  switch (kind) {
    case "boolean":
      return true;
    case "string":
      return createTextSample(schema, room);
    case "integer":
    case "number":
      return readNumberOr(schema["minimum"], 0);
    case "array":
      return createArraySample(schema, depth, room);
    case "null":
      return null;
    default:
      return createObjectSample(schema, depth, room);
  }
}

/** The keywords of a JSON schema that a sample is made for. */
type SampledSchema = Readonly<Record<string, unknown>>;

function createTextSample(schema: SampledSchema, room: SampleRoom): string {
  const text = "sample".padEnd(Math.min(readNumberOr(schema["minLength"], 0), SAMPLE_CHARS_MAX), ".");
  room.charsLeft -= text.length;
  return text;
}

function createArraySample(schema: SampledSchema, depth: number, room: SampleRoom): unknown[] {
  const count = Math.min(readNumberOr(schema["minItems"], 0), 100);
  const items: unknown[] = [];
  while (items.length < count && room.charsLeft > 0)
    items.push(sampleSchema(schema["items"], depth + 1, room));
  return items;
}

function createObjectSample(schema: SampledSchema, depth: number, room: SampleRoom): unknown {
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const required = new Set(Array.isArray(schema["required"]) ? schema["required"].map(String) : []);
  const members = [...required].map((key) => {
    room.charsLeft -= key.length;
    return [key, sampleSchema(properties[key] ?? {}, depth + 1, room)] as const;
  });
  return Object.fromEntries(members);
}

function readNumberOr(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}
