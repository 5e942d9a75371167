/** Owns: the steps of a compiled plan as the ledger admits them. */
import { BOUNDS } from "../contracts/bounds.ts";
import type {
  CarriedResult,
  ContentRef,
  Planned,
  RunnerKind,
  StepAdmitted,
} from "../contracts/fact-fields.ts";
import type { AgentId, SessionKey, StepId } from "../contracts/ids.ts";
import type { AdmittedPrivilege } from "../contracts/privilege.ts";
import type { CompiledStep, StepGraph } from "./step-graph.ts";

/** The owner of a plan, with the rules and look-ups by which its steps are admitted. */
export interface PlanAdmission {
  readonly ownerSession: SessionKey;
  readonly runnerOf: (agent: AgentId) => RunnerKind;
  /** Names a text by its hash. */
  readonly refOf: (text: string) => ContentRef;
  /** Returns the gate of a step's results, and whether people are to begin it. */
  readonly gateStep: (step: CompiledStep, runner: RunnerKind) => Pick<StepAdmitted, "gate" | "decision">;
  /** Returns the bounds on a step's child; absent where nobody narrows it. */
  readonly privilegeOf?: (step: CompiledStep) => AdmittedPrivilege | undefined;
  /** Results that a fork has from its source. */
  readonly carried?: ReadonlyMap<StepId, CarriedResult>;
}

export type PlannedStep = StepAdmitted & { readonly planned: Planned };

/** A range of a graph's steps, from one and before another, in its order: ten thousand are admitted bit by bit. */
export interface StepRange {
  readonly from: number;
  readonly to: number;
}

/** Returns what the steps of a compiled plan in a range, by default all, are admitted with. */
export function createPlannedSteps(
  graph: StepGraph,
  admitting: PlanAdmission,
  { from, to }: StepRange = { from: 0, to: graph.steps.length },
): PlannedStep[] {
  return graph.steps.slice(from, to).map((step) => createPlannedStep(step, admitting));
}

/**
 * Returns a compiled step as the ledger admits it. The content is the task without its input, which is known only when
 * the step is dispatched.
 */
function createPlannedStep(step: CompiledStep, admitting: PlanAdmission): PlannedStep {
  const { ownerSession, runnerOf, refOf, gateStep: gated } = admitting;
  const runner = runnerOf(step.agent);
  const carried = admitting.carried?.get(step.stepId);
  const privilege = admitting.privilegeOf?.(step);
  const { stepId, agent, lane, priority, deliveryMode, timeoutMs, retry } = step;
  return {
    stepId,
    lane,
    priority,
    deliveryMode,
    timeoutMs,
    ...(stepId.length <= BOUNDS.nameCharsMax && { name: stepId }),
    runner,
    agentId: agent,
    sourceSession: ownerSession,
    input: refOf(step.task),
    retryBudget: retry.budget,
    collect: false,
    call: {},
    // A step that is not run is neither held nor doubted, and needs no worktree.
    ...(carried ? { carried } : gated(step, runner)),
    ...(privilege && { privilege }),
    ...(step.isolate && !carried && { isolate: step.isolate }),
    planned: {
      dependsOn: [...step.dependsOn],
      fanIn: step.fanIn.count,
      backoffMs: retry.backoffMs,
      criticalPathMs: step.criticalPathMs,
      ...(step.budget && { budget: step.budget }),
    },
  };
}
