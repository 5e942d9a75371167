/** Owns: the events of agents in workflow runs: what they say and do, and how invocations of manifests begin and end. */
import { z } from "zod";
import {
  agentId,
  causationHostId,
  count,
  errorObject,
  name,
  record,
  share,
  text,
} from "./workflow-fields.ts";

const confidence = share.optional();

/** How an agent of a manifest came to be invoked (RFC 0077). */
export const agentSourceSchema = z.enum(["workflow-node", "run-api", "chat-mention"]);
/** How an agent came to be run. */
export type AgentSource = z.infer<typeof agentSourceSchema>;

/** A tool that an agent may call in one invocation: what it is to the agent, and how this host reaches it. */
const boundToolSchema = z.strictObject({
  /** As the agent's allowlist names it. */
  id: name,
  /** As the model does: letters, digits and underscores. */
  call: name,
  transport: z.enum(["mcp", "native"]),
  description: text.optional(),
  /** JSON Schema of the arguments. */
  parameters: record,
  /** Names of the tool's server, and of the tool there. */
  server: name.optional(),
  tool: name.optional(),
});
/** A tool as it is bound to an agent's run. */
export type BoundTool = z.infer<typeof boundToolSchema>;

/** A call that a model asked for. One with a `problem` is not made. */
const askedCallSchema = z.strictObject({
  callId: name,
  toolName: name,
  /** As the model named it. */
  call: name,
  args: record,
  /** sha256 over the arguments in canonical JSON, secrets taken out (RFC 0064). */
  argsHash: z.string().length(64),
  problem: z.enum(["forbidden", "malformed", "over-limit"]).optional(),
});
/** A call that the model asked for. */
export type AskedCall = z.infer<typeof askedCallSchema>;

/** By type; `workflow-events.ts` has them among the others. */
export const AGENT_PAYLOADS = {
  "agent.reasoned": z.object({
    agentId,
    reasoning: text,
    verbosity: z.enum(["summary", "full", "off"]).optional(),
    causationHostId,
  }),
  "agent.reasoning.delta": z.object({
    agentId,
    delta: text,
    sequence: count,
    verbosity: z.enum(["summary", "full", "off"]).optional(),
  }),
  "agent.toolCalled": z.object({
    agentId,
    toolName: name,
    callId: name,
    inputs: z.unknown().optional(),
    argsHash: name.optional(),
    principal: name.optional(),
    transport: z.enum(["mcp", "http", "native"]).optional(),
    causationHostId,
  }),
  "agent.toolReturned": z.object({
    agentId,
    toolName: name,
    callId: name,
    outcome: z.unknown().optional(),
    error: errorObject.optional(),
    status: z.enum(["ok", "error", "forbidden", "rate_limited"]).optional(),
    durationMs: count.optional(),
    causationHostId,
  }),
  "agent.handoff": z.object({
    fromAgentId: agentId,
    toAgentId: agentId,
    reason: text.optional(),
    causationHostId,
  }),
  "agent.decided": z.object({ agentId, decision: z.unknown(), confidence, causationHostId }),
  /** RFC 0090: names what was checked and the verdict, never what was in it. */
  "agent.verified": z.strictObject({
    agentId,
    target: name,
    verdict: z.enum(["pass", "fail", "revise"]),
    criteria: z.array(name).optional(),
    confidence,
    causationHostId,
  }),
  /** RFC 0090 §C: the child completed, and says that it did not reach its goal. */
  "coordination.child_gave_up": z.strictObject({ childRunId: name, unmet: z.array(name) }),
  "agent.promptResolved": z.strictObject({
    nodeId: name,
    kind: z.enum(["system", "user", "few-shot", "schema-hint"]),
    agentId: agentId.optional(),
    chain: z.array(
      z.strictObject({
        layer: z.enum([
          "run-configurable",
          "node",
          "agent-intrinsic",
          "agent-overrides",
          "agent-library-default",
          "workflow-defaults",
          "host-defaults",
        ]),
        source: name.optional(),
        applied: z.boolean(),
        reason: name.optional(),
      }),
    ),
    resolved: name.nullable(),
    causationHostId,
  }),
  /** RFC 0077: the first and the last event of an agent's invocation. No prompt, result or secret is in them. */
  "agent.invocation.started": z.object({
    invocationId: name,
    agentId,
    source: agentSourceSchema,
    /** sha256 of the agent as it was installed. */
    manifest: z.string().length(64).optional(),
    modelClass: name.optional(),
    resolvedModel: name.optional(),
    resolvedProvider: name.optional(),
    resolvedAgentVersion: name.optional(),
    toolSurfaceCount: count.optional(),
    memoryBound: z.boolean().optional(),
  }),
  "agent.invocation.completed": z.object({
    invocationId: name,
    agentId,
    outcome: z.enum(["completed", "handed-off", "escalated", "refused", "failed"]),
    schemaValidated: z.boolean().optional(),
    confidence,
    enqueuedRunId: name.optional(),
  }),
  /** Everything that an invocation works with until its end, so that it is the same after a crash. */
  "coordination.agent_bound": z.strictObject({
    invocationId: name,
    agentId,
    model: name.optional(),
    provider: name.optional(),
    temperature: z.number().optional(),
    maxTokens: count.optional(),
    /** Below it, what the agent decides waits for people. */
    threshold: share,
    task: z.unknown(),
    tools: z.array(boundToolSchema),
    /** The scope of the agent's own memory, where it has one. */
    memoryScope: name.optional(),
  }),
  /** The answer of the agent's model in one turn. */
  "coordination.agent_turned": z.strictObject({
    invocationId: name,
    turn: z.int().min(1),
    text,
    calls: z.array(askedCallSchema),
    tokens: count,
    /** The result of the invocation; only in its last turn. */
    final: z
      .strictObject({ result: z.unknown(), confidence, schemaValidated: z.boolean().optional() })
      .optional(),
  }),
} as const;
