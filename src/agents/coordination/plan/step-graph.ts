/** Owns: what a compiled plan looks like. It is data: JSON can carry it and nothing in it refers to the plan. */
import type { DeliveryMode, Lane, Priority } from "../contracts/envelope.ts";
import type { SpendingLimit } from "../contracts/fact-fields.ts";
import type { AgentId, CoordinationId, SessionKey, StepId } from "../contracts/ids.ts";
import type { ArbiterPolicy, CoordinationStep, FailurePolicy } from "../contracts/plan.ts";
import type { Privilege } from "../contracts/privilege.ts";
import type { StepVerify, SuccessCriterion } from "../contracts/verification.ts";
import type { StepIsolation } from "../contracts/worktree-fields.ts";

export type Json = NonNullable<CoordinationStep["input"]>[string];
export type JsonObject = Readonly<Record<string, Json>>;

/** True when a value that came from JSON is an object. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A key of an object or an index of an array. */
export type PathSegment = string | number;

/** A reference to a value among the outputs of another step. */
export interface OutputReference {
  readonly kind: "reference";
  readonly stepId: StepId;
  /** From the step's outputs; at least one segment. */
  readonly path: readonly PathSegment[];
}

/** A text with values of other steps in it. */
export interface TextTemplate {
  readonly kind: "template";
  readonly parts: readonly (string | OutputReference)[];
}

/** One place of a step's input that is filled in before the step is dispatched. */
export interface InputBinding {
  /** From the step's input. */
  readonly at: readonly PathSegment[];
  readonly value: OutputReference | TextTemplate;
}

/** How many of the dependencies must have completed before the step runs. */
export interface FanIn {
  readonly kind: "all" | "any" | "min";
  readonly count: number;
}

/** A step that is sent once (`best_effort`) has a budget of 0. */
export interface RetryRule {
  readonly budget: number;
  readonly backoffMs: number;
}

export interface CompiledStep {
  readonly stepId: StepId;
  readonly agent: AgentId;
  readonly task: string;
  /** In the order of the graph, as all lists of steps are. */
  readonly dependsOn: readonly StepId[];
  readonly dependents: readonly StepId[];
  readonly fanIn: FanIn;
  /** 0 without dependencies, else one more than the deepest of them. */
  readonly depth: number;
  /** The longest chain of timeouts from this step to an end of the graph, its own included. */
  readonly criticalPathMs: number;
  readonly lane: Lane;
  readonly priority: Priority;
  readonly deliveryMode: DeliveryMode;
  readonly timeoutMs: number;
  readonly retry: RetryRule;
  readonly resources: readonly string[];
  readonly input: NonNullable<CoordinationStep["input"]>;
  readonly bindings: readonly InputBinding[];
  readonly outputSchema?: NonNullable<CoordinationStep["outputSchema"]>;
  readonly verify?: StepVerify;
  /** How sure the planner is, from 0 to 1. */
  readonly confidence?: number;
  readonly budget?: SpendingLimit;
  /** Bounds on its child. */
  readonly privilege?: Privilege;
  readonly isolate?: StepIsolation;
}

export interface StepGraph {
  readonly coordinationId: CoordinationId;
  readonly objective: string;
  readonly ownerSession: SessionKey;
  readonly conflictPolicy: ArbiterPolicy;
  readonly failurePolicy: FailurePolicy;
  readonly deadlineMs?: number;
  readonly budget?: SpendingLimit;
  readonly confidence?: number;
  readonly successCriteria?: readonly SuccessCriterion[];
  /** By depth, then by id: an order in which every step comes after its dependencies, whatever the order in the plan. */
  readonly steps: readonly CompiledStep[];
  /** The number of steps on the longest chain. */
  readonly depth: number;
  readonly criticalPathMs: number;
  readonly criticalPath: readonly StepId[];
}
