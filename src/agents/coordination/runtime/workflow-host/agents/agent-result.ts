/**
 * Owns: the result in an agent's last answer. It is a text, or JSON, and may come as `{"result": ..., "confidence": ...}`. It is
 * untrusted: with a return schema it counts only as what the schema describes (RFC 0077, step 6).
 */
import { AGENT_BOUNDS } from "../../../contracts/workflows/agent-manifest.ts";
import type { WorkflowPayloads } from "../../../contracts/workflows/workflow-events.ts";
import type { ChatFinish } from "../../../ports/outbound.ts";
import type { OutputContract } from "../../../ports/output-contract.ts";
import { isRecord, type Values } from "../../../workflow/state/values.ts";

type Final = NonNullable<WorkflowPayloads["coordination.agent_turned"]["final"]>;

export type AgentResult =
  | { readonly kind: "result"; readonly final: Final }
  | { readonly kind: "unusable"; readonly error: { readonly code: string; readonly message: string } };

interface Said {
  readonly text: string;
  readonly finish: ChatFinish;
}

export function readResult(
  contract: OutputContract,
  schema: Values | undefined,
  { text, finish }: Said,
): AgentResult {
  if (text.trim() === "") return unusable("agent_answer_empty", "the agent's model said nothing");
  const { answerCharsMax } = AGENT_BOUNDS;
  if (text.length > answerCharsMax)
    return unusable(
      "agent_answer_too_large",
      `the agent's answer is longer than ${answerCharsMax} characters`,
    );
  if (finish === "length")
    return unusable("agent_answer_incomplete", "the agent's answer was cut off where its length is bounded");
  const json = jsonIn(text);
  return schema ? bySchema(contract, schema, json) : { kind: "result", final: freely(text, json?.value) };
}

function unusable(code: string, message: string): AgentResult {
  return { kind: "unusable", error: { code, message } };
}

function freely(text: string, value: unknown): Final {
  if (!isRecord(value)) return { result: value ?? text };
  const enveloped = envelopeIn(value);
  return enveloped ?? { result: value, ...confidenceIn(value) };
}

function bySchema(
  contract: OutputContract,
  schema: Values,
  json: { readonly value: unknown } | undefined,
): AgentResult {
  const invalid = "handoff_return_schema_violation";
  if (!json) return unusable(invalid, "the agent's answer is no JSON, and its return schema asks for that");
  const candidates = candidatesIn(json.value);
  const problemsOf = (result: unknown) => contract.check(schema, result);
  const found = candidates.find(({ result }) => problemsOf(result).length === 0);
  if (found) return { kind: "result", final: { ...found, schemaValidated: true } };
  const told = problemsOf(candidates[0]?.result).map(({ path, message }) => `${path}: ${message}`);
  const message = `the agent's answer is not what its return schema asks for: ${told.join("; ")}`;
  return unusable(invalid, message.slice(0, 2_000));
}

/** In an envelope, as it is, or with the confidence beside what the schema describes. */
function candidatesIn(value: unknown): Final[] {
  if (!isRecord(value)) return [{ result: value }];
  const enveloped = envelopeIn(value);
  const sure = confidenceIn(value);
  const { confidence: _, ...rest } = value;
  return [
    ...(enveloped ? [enveloped] : []),
    { result: value, ...sure },
    ...(sure.confidence === undefined ? [] : [{ result: rest, ...sure }]),
  ];
}

function envelopeIn(value: Values): Final | undefined {
  const isEnvelope = Object.keys(value).every((key) => key === "result" || key === "confidence");
  return isEnvelope && "result" in value ? { result: value["result"], ...confidenceIn(value) } : undefined;
}

function confidenceIn({ confidence }: Values): { readonly confidence?: number } {
  return typeof confidence === "number" && confidence >= 0 && confidence <= 1 ? { confidence } : {};
}

const FENCED = /^\s*```(?:json)?\s*\n([\s\S]*?)\n\s*```\s*$/;

/** The whole text, or what stands in a fence; words around it make it a text. */
function jsonIn(text: string): { readonly value: unknown } | undefined {
  const bare = FENCED.exec(text)?.[1] ?? text;
  if (!/^\s*[[{"\d\-tfn]/.test(bare)) return undefined;
  try {
    return { value: JSON.parse(bare) as unknown };
  } catch {
    return undefined;
  }
}
