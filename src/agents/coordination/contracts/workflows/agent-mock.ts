/**
 * Owns: agents that no live model plays, for tests of hosts: what the model says and which tools are there comes with the run
 * (`configurable.ai` with `provider: "mock"`), so that it is the same after a crash. Only a host that allows mocks knows them.
 */
import { z } from "zod";

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
export type AgentMock = z.output<typeof mockSchema>;
/** A tool of a mock agent, which does nothing. */
export type MockTool = AgentMock["tools"][number];

/** Reads the script of a mock agent; `undefined` when the value is none. */
export function readAgentMock(value: unknown): AgentMock | undefined {
  const parsed = mockSchema.safeParse(value);
  return parsed.success ? parsed.data : undefined;
}
