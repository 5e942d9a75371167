/**
 * Owns: the result in an agent's last answer. It is a text, or JSON, and may come as `{"result": ..., "confidence": ...}`. It is
 * untrusted: with a return schema it counts only as what the schema describes (RFC 0077, step 6).
 */
import { AGENT_BOUNDS } from "../../../contracts/workflows/agent-manifest.ts";
import type { WorkflowPayloads } from "../../../contracts/workflows/workflow-events.ts";
import type { ChatFinish } from "../../../ports/outbound.ts";
import type { OutputContract } from "../../../ports/output-contract.ts";
import type { Values } from "../../../workflow/state/values.ts";
import { stripJsonFence } from "../../../std/foreign-text.ts";
import { isRecord } from "../../../std/is-record.ts";

/** The result in an agent's last answer, and how sure the agent is of it. */
type FinalResult = NonNullable<WorkflowPayloads["coordination.agent_turned"]["final"]>;

export type AgentResult =
  | { readonly kind: "result"; readonly final: FinalResult }
  | { readonly kind: "unusable"; readonly error: { readonly code: string; readonly message: string } };

interface ModelAnswer {
  readonly text: string;
  readonly finish: ChatFinish;
}

/**
 * Returns the result in the last answer of an agent's model, by the agent's schema if there is one, or the error for
 * which the answer cannot be used.
 */
export function readAgentResult(
  contract: OutputContract,
  schema: Values | undefined,
  { text, finish }: ModelAnswer,
): AgentResult {
  if (text.trim() === "") return createUnusableResult("agent_answer_empty", "the agent's model said nothing");
  const { answerCharsMax } = AGENT_BOUNDS;
  if (text.length > answerCharsMax)
    return createUnusableResult(
      "agent_answer_too_large",
      `the agent's answer is longer than ${answerCharsMax} characters`,
    );
  if (finish === "length")
    return createUnusableResult(
      "agent_answer_incomplete",
      "the agent's answer was cut off where its length is bounded",
    );
  const json = parseFencedJson(text);
  return schema
    ? readResultBySchema(contract, schema, json)
    : { kind: "result", final: readResultWithoutSchema(text, json) };
}

function createUnusableResult(code: string, message: string): AgentResult {
  return { kind: "unusable", error: { code, message } };
}

/** Returns the JSON of the answer, out of its envelope where it has one; the text where it is no JSON. */
function readResultWithoutSchema(text: string, json: { readonly value: unknown } | undefined): FinalResult {
  if (!json) return { result: text };
  const { value } = json;
  if (!isRecord(value)) return { result: value };
  const enveloped = readEnvelope(value);
  return enveloped ?? { result: value, ...readConfidence(value) };
}

/** Returns the first reading of the JSON that satisfies the schema, else the problems as unusable. */
function readResultBySchema(
  contract: OutputContract,
  schema: Values,
  json: { readonly value: unknown } | undefined,
): AgentResult {
  const invalid = "handoff_return_schema_violation";
  if (!json)
    return createUnusableResult(
      invalid,
      "the agent's answer is no JSON, and its return schema asks for that",
    );
  const candidates = listResultCandidates(json.value);
  const problemsOf = (result: unknown) => contract.check(schema, result);
  const found = candidates.find(({ result }) => problemsOf(result).length === 0);
  if (found) return { kind: "result", final: { ...found, schemaValidated: true } };
  const details = problemsOf(candidates[0]?.result).map(({ path, message }) => `${path}: ${message}`);
  const message = `the agent's answer is not what its return schema asks for: ${details.join("; ")}`;
  return createUnusableResult(invalid, message.slice(0, 2_000));
}

/** Lists what may be the result: an envelope's, the value itself, or the value without its `confidence`. */
function listResultCandidates(value: unknown): FinalResult[] {
  if (!isRecord(value)) return [{ result: value }];
  const enveloped = readEnvelope(value);
  const statedConfidence = readConfidence(value);
  const { confidence: _, ...rest } = value;
  return [
    ...(enveloped ? [enveloped] : []),
    { result: value, ...statedConfidence },
    ...(statedConfidence.confidence === undefined ? [] : [{ result: rest, ...statedConfidence }]),
  ];
}

/** Reads `{"result": ..., "confidence": ...}`; `undefined` for an object without `result` or with any other member. */
function readEnvelope(value: Values): FinalResult | undefined {
  const isEnvelope = Object.keys(value).every((key) => key === "result" || key === "confidence");
  return isEnvelope && "result" in value ? { result: value["result"], ...readConfidence(value) } : undefined;
}

function readConfidence({ confidence }: Values): { readonly confidence?: number } {
  return typeof confidence === "number" && confidence >= 0 && confidence <= 1 ? { confidence } : {};
}

/** Parses JSON that is the whole text, or the whole but for a fence around it; else `undefined`. */
function parseFencedJson(text: string): { readonly value: unknown } | undefined {
  const bare = stripJsonFence(text);
  if (!/^\s*[[{"\d\-tfn]/.test(bare)) return undefined;
  try {
    return { value: JSON.parse(bare) as unknown };
  } catch {
    return undefined;
  }
}
