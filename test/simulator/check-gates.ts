/** Owns: what follows from a failed attempt and from a budget, by the log alone: no retry too few, and nothing begins unasked (D4). */
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { EventCheck } from "./check-log.ts";
import { listBroken } from "./list-broken.ts";
import type { FactOf, PayloadOf } from "./journal.ts";

interface StepBooks {
  readonly spec: PayloadOf<"step.admitted">;
  revised: number;
  granted: number;
}

interface RunBooks {
  readonly created: PayloadOf<"coordination.created">;
  readonly steps: Map<string, StepBooks>;
  /** Questions about the budget of the plan. */
  readonly budgets: Set<string>;
  isStopped: boolean;
  /** Nobody let the plan spend more. */
  isSpent: boolean;
}

export function createGateCheck(): EventCheck {
  const runs = new Map<string, RunBooks>();
  return { see: (event) => seeEvent(runs, event) };
}

function seeEvent(runs: Map<string, RunBooks>, event: RunEvent): string[] {
  if (event.type === "coordination.created") {
    const { payload: created } = event;
    const run = { created, steps: new Map(), budgets: new Set<string>(), isStopped: false, isSpent: false };
    runs.set(event.runId, run);
  }
  const run = runs.get(event.runId);
  return run ? seeFact(run, event) : [];
}

function seeFact(run: RunBooks, event: RunEvent): string[] {
  switch (event.type) {
    case "step.admitted":
      run.steps.set(event.payload.stepId, { spec: event.payload, revised: 0, granted: 0 });
      return [];
    case "result.revised":
    case "step.retry_granted":
      countTurn(run, event);
      return [];
    case "coordination.cancel_requested":
      run.isStopped = true;
      return [];
    case "coordination.escalated":
      if (event.payload.cause === "budget" && event.payload.stepId === undefined)
        run.budgets.add(event.payload.escalationId);
      return [];
    case "escalation.closed":
      closeQuestion(run, event);
      return [];
    case "step.dispatched":
      return checkBegin(run, event);
    case "step.failed":
    case "step.timed_out":
      return checkFailure(run, event);
    default:
      return [];
  }
}

function countTurn(
  { steps }: RunBooks,
  event: FactOf<"result.revised"> | FactOf<"step.retry_granted">,
): void {
  const step = steps.get(event.payload.stepId);
  if (!step) return;
  if (event.type === "result.revised") step.revised += 1;
  else step.granted += 1;
}

function closeQuestion(run: RunBooks, { payload }: FactOf<"escalation.closed">): void {
  const { resolution, escalationId } = payload;
  if (run.budgets.has(escalationId) && resolution !== "continued" && resolution !== "approved")
    run.isSpent = true;
}

function checkBegin({ isSpent }: RunBooks, { payload }: FactOf<"step.dispatched">): string[] {
  const isOfPlan = !payload.stepId.startsWith("@");
  return isOfPlan && isSpent ? [`${payload.stepId} begins although the budget is spent`] : [];
}

/** After these nothing is tried again without people. */
const FINAL: ReadonlySet<string> = new Set(["input_unavailable", "withheld"]);

/** D4: where nothing stops it and nothing limits it, an attempt that failed is made again as often as the budget says. */
function checkFailure(run: RunBooks, event: FactOf<"step.failed"> | FactOf<"step.timed_out">): string[] {
  const { stepId, attempt, retryAtMs } = event.payload;
  const step = run.steps.get(stepId);
  if (!step || retryAtMs !== undefined || !isUnlimited(run, step)) return [];
  if (event.type === "step.failed" && (event.payload.cancelled || FINAL.has(event.payload.error.code)))
    return [];
  const { spec, revised } = step;
  return listBroken({
    [`D4: ${stepId}:${attempt} is not tried again, with a budget of ${spec.retryBudget}`]:
      attempt - revised <= spec.retryBudget,
  });
}

function isUnlimited({ created, isStopped }: RunBooks, { spec }: StepBooks): boolean {
  const { plan, failurePolicy } = created;
  const limits = [plan?.deadlineAtMs, plan?.budget, plan?.decision, spec.planned?.budget];
  const isOfPlan = spec.planned !== undefined && !spec.stepId.startsWith("@");
  const mayStop = isStopped || failurePolicy.timeoutPolicy === "fail_fast";
  return isOfPlan && !mayStop && limits.every((limit) => limit === undefined);
}
