/**
 * Owns: what a workflow definition must be to be run (workflow-definition.schema.json). Fields that only editors need are let
 * through unread.
 */
import { z } from "zod";
import { parseBounded, type Parsed } from "../validation.ts";
import { WORKFLOW_BOUNDS } from "./workflow-bounds.ts";

const name = z.string().min(1).max(WORKFLOW_BOUNDS.nameCharsMax);
const record = z.record(z.string(), z.unknown());

const portValue = z.discriminatedUnion("type", [
  z.object({ type: z.literal("static"), value: z.unknown() }),
  z.object({ type: z.literal("expression"), expression: z.string().min(1) }),
  z.object({
    type: z.literal("connection"),
    nodeId: name,
    outputKey: name,
    optional: z.boolean().optional(),
  }),
  z.object({ type: z.literal("variable"), variableName: name, optional: z.boolean().optional() }),
]);
/** The value of a port: a constant, or where it comes from. */
export type PortValue = z.infer<typeof portValue>;

const agentRef = z.looseObject({ agentId: z.string().min(3).max(WORKFLOW_BOUNDS.nameCharsMax) });

const node = z.looseObject({
  id: z.string().min(1).max(128),
  typeId: z
    .string()
    .regex(/^[a-z][a-zA-Z0-9._-]*$/)
    .max(WORKFLOW_BOUNDS.nameCharsMax),
  name: z.string().optional(),
  config: record.default({}),
  inputs: z.record(z.string(), portValue).default({}),
  settings: record.optional(),
  disabled: z.boolean().optional(),
  agent: agentRef.optional(),
  outputRole: z.enum(["primary", "secondary"]).optional(),
});
/** A node of a workflow definition. */
export type WorkflowNode = z.infer<typeof node>;

const edgeCondition = z.looseObject({
  type: z.enum(["expression", "equals", "notEquals", "contains", "regex"]).optional(),
  left: z.string().optional(),
  right: z.unknown().optional(),
  expression: z.string().optional(),
});
/** When an edge is followed. */
export type EdgeCondition = z.infer<typeof edgeCondition>;

const edge = z.looseObject({
  id: name,
  sourceNodeId: name,
  sourceOutput: z.string().optional(),
  targetNodeId: name,
  targetInput: z.string().optional(),
  condition: edgeCondition.optional(),
  triggerRule: z.enum(["all_success", "any_success", "all_complete", "none_failed", "any_failed"]).optional(),
});
/** An edge of a workflow definition. */
export type WorkflowEdge = z.infer<typeof edge>;

const variable = z.looseObject({
  name,
  type: z.enum(["string", "number", "boolean", "object", "array"]),
  required: z.boolean().optional(),
  defaultValue: z.unknown().optional(),
  sensitive: z.boolean().optional(),
});
/** A variable of a workflow definition. */
export type WorkflowVariable = z.infer<typeof variable>;

/** The schema of a workflow definition (OpenWOP, workflow-definition.schema.json). */
export const workflowDefinitionSchema = z.looseObject({
  id: z
    .string()
    // The official pattern has no dots; clients that register workflows by the protocol's seam use them.
    .regex(/^[a-z][a-z0-9_.-]*$/)
    .max(128),
  name,
  version: z.string().min(1),
  nodes: z.array(node).min(1).max(WORKFLOW_BOUNDS.nodesMax),
  edges: z.array(edge).max(WORKFLOW_BOUNDS.edgesMax).default([]),
  triggers: z.array(z.looseObject({ id: name, type: name })).default([]),
  variables: z.array(variable).max(WORKFLOW_BOUNDS.variablesMax).default([]),
  configurableSchema: record.optional(),
  metadata: record.default({}),
  settings: z
    .looseObject({
      /** Milliseconds; 0: none. */
      timeout: z.int().min(0).optional(),
      maxRetries: z.int().min(0).optional(),
      maxLoopbackIterations: z.int().min(1).optional(),
    })
    .default({}),
});
/** A workflow as its author wrote it. */
export type WorkflowDefinition = z.infer<typeof workflowDefinitionSchema>;

/** Checks an untrusted value as a workflow definition, its shape and size, and returns that or the problems found. */
export function readWorkflowDefinition(value: unknown): Parsed<WorkflowDefinition> {
  return parseBounded(workflowDefinitionSchema, value, {
    charsMax: WORKFLOW_BOUNDS.definitionCharsMax,
    depthMax: WORKFLOW_BOUNDS.depthMax,
  });
}
