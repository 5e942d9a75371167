/** Owns: reading what programs and critics say: untrusted text that is taken as a whole or not at all. */
import {
  findingSchema,
  verdictSchema,
  type Verdict,
} from "../../agents/coordination/contracts/verification.ts";
import { VERIFY_LIMITS } from "./verify-limits.ts";

/** The fields of a verifier's answer, unchecked. */
type AnswerFields = Readonly<Record<string, unknown>>;

export interface ProgramLine {
  readonly criteria?: readonly string[];
  readonly confidence?: number;
}

/**
 * Returns the criteria and the confidence that the last line of a checking program states, such as `{"criteria":
 * [...], "confidence": 0.9}`; both may be missing, and a line that does not begin with `{` states nothing. `undefined`
 * where the line begins like an object and is none, has a member that cannot be read, or is too long.
 */
export function readProgramLine(line: string): ProgramLine | undefined {
  const words = line.trim();
  if (!words.startsWith("{")) return {};
  const fields = Buffer.byteLength(line) > VERIFY_LIMITS.lineBytesMax ? undefined : parseJsonObject(words);
  if (!fields) return undefined;
  return readStatedFields(fields);
}

function readStatedFields(fields: AnswerFields): ProgramLine | undefined {
  const criteria = Object.hasOwn(fields, "criteria") ? readCriterionKeys(fields["criteria"]) : [];
  const confidence = Object.hasOwn(fields, "confidence") ? fields["confidence"] : undefined;
  if (!criteria || (confidence !== undefined && !isConfidence(confidence))) return undefined;
  return { ...(criteria.length > 0 && { criteria }), ...(confidence !== undefined && { confidence }) };
}

export interface CriticAnswer {
  readonly verdict: Verdict;
  readonly criteria: readonly string[];
  readonly confidence: number;
}

/**
 * Returns a critic's verdict, criteria and confidence; `undefined` for an answer that is not this one JSON object,
 * alone or in a code block, or whose criteria do not suit the verdict or were not asked for.
 */
export function readCriticAnswer(text: string, criteriaAsked: readonly string[]): CriticAnswer | undefined {
  const fields = parseJsonObject(unwrapCodeBlock(text));
  const verdict = verdictSchema.safeParse(fields?.["verdict"]);
  const criteria = readCriterionKeys(fields?.["criteria"]);
  const confidence = fields?.["confidence"];
  if (!verdict.success || !criteria || !isConfidence(confidence)) return undefined;
  const isRight =
    verdict.data === "pass" ? criteriaAsked.every((key) => criteria.includes(key)) : criteria.length > 0;
  const isForeign = criteria.some((key) => !criteriaAsked.includes(key));
  return isRight && !isForeign ? { verdict: verdict.data, criteria, confidence } : undefined;
}

/** Returns the text within a block of code, into which models like to put JSON; any other text as it is. */
function unwrapCodeBlock(text: string): string {
  const [, inner = text] = /^\s*```(?:json)?\n(.*)\n```\s*$/su.exec(text) ?? [];
  return inner;
}

function parseJsonObject(text: string): AnswerFields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as AnswerFields)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Reads a list of keys, each once; `undefined` when one is no key or there are too many. */
function readCriterionKeys(value: unknown): readonly string[] | undefined {
  const keys = findingSchema.shape.criteria.safeParse(value);
  return keys.success && keys.data ? [...new Set(keys.data)] : undefined;
}

function isConfidence(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= 1;
}
