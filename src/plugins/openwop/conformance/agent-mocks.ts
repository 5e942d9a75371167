/**
 * Owns: playing agents that no live model plays. The model's words and the tools come with the run
 * (`configurable.ai` with `provider: "mock"`), so that it is the same after a crash.
 */
import { z } from "zod";
import type { BoundTool } from "../../../agents/coordination/contracts/workflows/agent-events.ts";
import type { InstalledAgent } from "../../../agents/coordination/contracts/workflows/agent-manifest.ts";
import type { ChatAnswer } from "../../../agents/coordination/ports/outbound.ts";
import type { PlayedAgent } from "../../../agents/coordination/runtime/workflow-host/records/conformance-play.ts";
import { PLAYED_PROVIDER } from "../../../agents/coordination/workflow/node-contract/conformance-parts.ts";
import type { Values } from "../../../agents/coordination/workflow/state/values.ts";
import { isRecord } from "../../../agents/coordination/std/is-record.ts";
import { createSchemaSample } from "./sample-of.ts";

const name = z.string().min(1).max(256);
const mockSchema = z.object({
  provider: z.literal("mock"),
  /** One entry for each turn; what is not written is a sample of the return schema. */
  script: z
    .array(
      z.object({
        say: z.string().optional(),
        call: z.object({ name, args: z.record(z.string(), z.unknown()).default({}) }).optional(),
        refuse: z.boolean().optional(),
      }),
    )
    .max(16)
    .default([]),
  /** Tools that do nothing. */
  tools: z
    .array(
      z.object({
        name,
        requiredScopes: z.array(name).max(20).default([]),
        isExhausted: z.boolean().default(false),
        fails: z.boolean().default(false),
      }),
    )
    .max(16)
    .default([]),
  confidence: z.number().min(0).max(1).optional(),
  /** A host's deterministic floor may be asked without looking at the task. */
  validateHandoff: z.boolean().default(true),
});
/** The script of an agent that no live model plays. */
type AgentMock = z.output<typeof mockSchema>;

/**
 * Creates the played agent that the options of a run script for the conformance suite; `undefined` when they script
 * none, or none that is valid.
 */
export function createMockAgent(configurable: Values | undefined): PlayedAgent | undefined {
  const mock = readMockScript(configurable?.["ai"]);
  if (!mock) return undefined;
  const { tools, validateHandoff } = mock;
  return {
    model: { model: PLAYED_PROVIDER, provider: PLAYED_PROVIDER },
    isTaskChecked: validateHandoff,
    tools: listMockTools(mock),
    answer: (agent, turn) => createMockAnswer(mock, agent, turn),
    findTool: ({ id, tool }) =>
      tool === MOCK_TOOL ? tools.find(({ name: toolName }) => toolName === id) : undefined,
  };
}

/** Returns the script that the run's options have; `undefined` where they have none, or none that is valid. */
function readMockScript(ai: unknown): AgentMock | undefined {
  if (!isRecord(ai) || ai["provider"] !== PLAYED_PROVIDER) return undefined;
  const parsed = mockSchema.safeParse(ai);
  return parsed.success ? parsed.data : undefined;
}

/** Marks a tool that only its mock run has. */
const MOCK_TOOL = "mock";

function listMockTools({ tools }: AgentMock): BoundTool[] {
  return tools.map(({ name: id }) => ({
    id,
    call: id,
    transport: "native",
    tool: MOCK_TOOL,
    parameters: { type: "object" },
  }));
}

/** Returns the scripted answer of a turn, counted from 1; a sample of the return schema where none is written. */
function createMockAnswer(
  { script, confidence }: AgentMock,
  { returnSchema }: InstalledAgent,
  turn: number,
): ChatAnswer {
  const scriptedAnswer = {
    kind: "answered",
    finishReason: "stop",
    model: PLAYED_PROVIDER,
    provider: PLAYED_PROVIDER,
    usage: {},
  } as const;
  const entry = script[turn - 1];
  if (entry?.refuse) return { ...scriptedAnswer, text: "", refusal: "refused" };
  if (entry?.call) return { ...scriptedAnswer, text: entry.say ?? "", toolCalls: [entry.call] };
  if (entry?.say !== undefined) return { ...scriptedAnswer, text: entry.say };
  const result = returnSchema ? createSchemaSample(returnSchema) : "done";
  return {
    ...scriptedAnswer,
    text: JSON.stringify({ result, ...(confidence !== undefined && { confidence }) }),
  };
}
