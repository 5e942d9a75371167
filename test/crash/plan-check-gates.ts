/** Owns: that no result counts, and nothing doubted begins, but by the verdicts and answers that are on disk before (G1 to G3). */
import type { FactEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { Gate } from "../../src/agents/coordination/contracts/verification.ts";
import { filterByType, type Evidence, type FactOf } from "./plan-check.ts";

type StepAttempt = { readonly stepId: string; readonly attempt: number };

const isOf =
  ({ stepId, attempt }: StepAttempt) =>
  ({ payload }: { readonly payload: StepAttempt }): boolean =>
    payload.stepId === stepId && payload.attempt === attempt;

export function checkGates(evidence: Evidence): string[] {
  return [
    ...filterByType(evidence.facts, "step.completed").flatMap((fact) => checkRelease(evidence, fact)),
    ...evidence.dispatches.flatMap((fact) => checkBegin(evidence, fact)),
    ...checkRevisions(evidence),
    ...checkQuestions(evidence.facts),
  ];
}

/** G1, G3: what is held is let through by every check, or by people. */
function checkRelease({ facts, admitted }: Evidence, fact: FactOf<"step.completed">): string[] {
  const { stepId, attempt, released, via } = fact.payload;
  const earlier = facts.filter(({ sequence }) => sequence < fact.sequence);
  const gate = admitted.get(stepId)?.gate;
  const { checks = [] } = gate ?? {};
  const subject = `${stepId}:${attempt}`;
  if (!filterByType(earlier, "result.held").some(isOf(fact.payload)))
    return checks.length > 0 ? [`G1: ${subject} was never held`] : [];
  if (via !== "gate") return [`G1: ${subject} was held and counts ${via}`];
  return isReleased(earlier, fact, gate) ? [] : [`G1, G3: ${subject} was ${String(released)} by nobody`];
}

function isReleased(
  facts: readonly FactEvent[],
  { payload }: FactOf<"step.completed">,
  { checks = [], criticThreshold = 0 }: Pick<Gate, "checks" | "criticThreshold"> = {},
): boolean {
  const { released, stepId } = payload;
  const passed = passedOf(facts, payload, criticThreshold);
  // Held only until the work of its worktree was merged back.
  if (released === undefined && checks.length === 0)
    return filterByType(facts, "worktree.merged").some(isOf(payload));
  if (released === "verified") return checks.every((check) => passed.includes(check));
  return isAnswered(facts, stepId, released === "approved" ? "approved" : "answered");
}

/** The checks that passed, and are as sure of it as the gate of the step demands. */
function passedOf(facts: readonly FactEvent[], about: StepAttempt, threshold: number): string[] {
  return filterByType(facts, "result.verified")
    .filter(isOf(about))
    .filter(({ payload }) => payload.verdict === "pass" && (payload.confidence ?? 10_000) >= threshold)
    .map(({ payload }) => payload.check);
}

function isAnswered(facts: readonly FactEvent[], stepId: string, resolution: string): boolean {
  const requests = filterByType(facts, "coordination.escalated")
    .filter(({ payload }) => (payload.stepId ?? stepId) === stepId)
    .map(({ payload }) => payload.escalationId);
  return filterByType(facts, "escalation.closed").some(
    ({ payload }) => requests.includes(payload.escalationId) && payload.resolution === resolution,
  );
}

/** G2: what is doubted begins only when people approved. */
function checkBegin({ facts, admitted, created }: Evidence, fact: FactOf<"step.dispatched">): string[] {
  const { stepId } = fact.payload;
  const step = admitted.get(stepId);
  const isDoubted = step?.decision !== undefined || created.plan?.decision !== undefined;
  if (!isDoubted || stepId === "@delivery") return [];
  const earlier = facts.filter(({ sequence }) => sequence < fact.sequence);
  return isAnswered(earlier, stepId, "approved") ? [] : [`G2: ${stepId} began although it is doubted`];
}

function checkRevisions({ facts, admitted }: Evidence): string[] {
  return filterByType(facts, "result.revised").flatMap(({ payload: { stepId, revision } }) =>
    revision > (admitted.get(stepId)?.gate?.revisionsMax ?? 0)
      ? [`${stepId} was revised ${revision} times`]
      : [],
  );
}

/** E1: one answer counts, and every question is closed once. */
function checkQuestions(facts: readonly FactEvent[]): string[] {
  const requests = filterByType(facts, "coordination.escalated").map(({ payload }) => payload.escalationId);
  const closed = filterByType(facts, "escalation.closed").map(({ payload }) => payload.escalationId);
  const counted = filterByType(facts, "escalation.answered")
    .filter(({ payload }) => !payload.refused)
    .map(({ payload }) => payload.escalationId);
  return [
    ...(new Set(closed).size < closed.length ? ["E1: a question was closed twice"] : []),
    ...(new Set(counted).size < counted.length ? ["E1: two answers count"] : []),
    ...requests.filter((id) => !closed.includes(id)).map((id) => `${id} was never closed`),
  ];
}
