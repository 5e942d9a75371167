/** Owns: what the host's settings show of each setting: its name, what it is for, and whether it is secret. */
import type { z } from "zod";
import { TUNABLE } from "../src/agents/coordination/contracts/config/written-settings.ts";

type JsonSchema = z.core.JSONSchema.JSONSchema;

interface Hint {
  readonly label: string;
  readonly help: string;
  readonly sensitive?: true;
}

/** The host shows none of these, and keeps them out of what it reports. */
const SENSITIVE =
  /\.(?:secret|token|password|peerTokens\.\*|mcpServers\.\*|telemetry\.headers\.\*|env\.\*|args\[\]|webhooks\.\*\.url)$/u;
/** The help of secrets that have no description of their own. */
const SENSITIVE_HELP = "A value that may be secret: it is not shown.";

const PHASE1 = "coordination.phase1";
/** Here a policy pack holds settings of the same names, of any shape as far as the schema says. */
const IN_PACK = `${PHASE1}.policies.packs.*.settings`;

/** Lists hints for the secrets among the settings that a policy pack may hold. */
export function listPackHints(hints: readonly [string, Hint][]): [string, Hint][] {
  const places = TUNABLE.map((section) => `${PHASE1}.${section}.`);
  return hints
    .filter(([path, { sensitive }]) => sensitive && places.some((place) => path.startsWith(place)))
    .map(([path, hint]) => [path.replace(PHASE1, IN_PACK), hint]);
}

/** Lists a hint for every setting that says what it is for, by its path as the host writes it: `*` for any name, `[]` for any item. */
export function listHints(schema: JsonSchema, path = ""): [string, Hint][] {
  const isSensitive = SENSITIVE.test(path);
  const help = describeSetting(schema, isSensitive);
  const inner = listInner(schema, path).flatMap(([name, setting]) => listHints(setting, name));
  if (help === undefined) return inner;
  return [[path, { label: nameSetting(path), help, ...(isSensitive && { sensitive: true }) }], ...inner];
}

/** Returns what a setting is for, with its default where that is one value. */
function describeSetting(schema: JsonSchema, isSensitive: boolean): string | undefined {
  const help = schema.description ?? (isSensitive ? SENSITIVE_HELP : undefined);
  const { default: value } = schema;
  const isValue = typeof value === "number" || typeof value === "boolean" || typeof value === "string";
  return help !== undefined && isValue ? `${help} Default: ${String(value)}.` : help;
}

/** Lists the schemas within a schema, with their paths. */
function listInner(schema: JsonSchema, path: string): [string, JsonSchema][] {
  const { properties = {}, additionalProperties, items, anyOf = [], oneOf = [] } = schema;
  const start = path === "" ? "" : `${path}.`;
  const candidates: [string, unknown][] = [
    ...Object.entries(properties).map(([name, setting]): [string, unknown] => [start + name, setting]),
    [`${start}*`, additionalProperties],
    [`${path}[]`, items],
    ...[...anyOf, ...oneOf].map((form): [string, unknown] => [path, form]),
  ];
  return candidates.filter((candidate): candidate is [string, JsonSchema] => isSchema(candidate[1]));
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `coordination.phase1.results.parentCharsMax` is "Results: parent chars max". */
function nameSetting(path: string): string {
  const words = path
    .replace(/^coordination\.phase1\.?/u, "")
    .replaceAll("[]", "")
    .split(".")
    .filter((name) => name !== "*")
    .map((name) => name.replaceAll(/(?<=[a-z])(?=[A-Z])/gu, " ").toLowerCase())
    .join(": ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
