/** Owns: playing agents that no live model plays (contracts/agent-mock.ts). */
import type { InstalledAgent } from "../../../contracts/workflows/agent-manifest.ts";
import { readAgentMock, type AgentMock } from "../../../contracts/workflows/agent-mock.ts";
import type { BoundTool } from "../../../contracts/workflows/agent-events.ts";
import type { ChatAnswer } from "../../../ports/outbound.ts";
import { sampleOf } from "../../../workflow/sample-of.ts";
import type { Values } from "../../../workflow/state/values.ts";
import { isRecord } from "../../../std/is-record.ts";

/** Returns the script of a mock agent, when the run has one. */
export function mockOf(configurable: Values | undefined): AgentMock | undefined {
  const ai = configurable?.["ai"];
  return isRecord(ai) && ai["provider"] === "mock" ? readAgentMock(ai) : undefined;
}

/** Marks a tool that only its mock run has. */
export const MOCK_TOOL = "mock";

export function listMockTools({ tools }: AgentMock): BoundTool[] {
  return tools.map(({ name: id }) => ({
    id,
    call: id,
    transport: "native",
    tool: MOCK_TOOL,
    parameters: { type: "object" },
  }));
}

/** `turn`: from 1. */
export function createMockAnswer(
  { script, confidence }: AgentMock,
  { returnSchema }: InstalledAgent,
  turn: number,
): ChatAnswer {
  const scriptedAnswer = {
    kind: "answered",
    finishReason: "stop",
    model: "mock",
    provider: "mock",
    usage: {},
  } as const;
  const entry = script[turn - 1];
  if (entry?.refuse) return { ...scriptedAnswer, text: "", refusal: "refused" };
  if (entry?.call) return { ...scriptedAnswer, text: entry.say ?? "", toolCalls: [entry.call] };
  if (entry?.say !== undefined) return { ...scriptedAnswer, text: entry.say };
  const result = returnSchema ? sampleOf(returnSchema) : "done";
  return {
    ...scriptedAnswer,
    text: JSON.stringify({ result, ...(confidence !== undefined && { confidence }) }),
  };
}
