/**
 * Owns: what follows when an attempt of a planned step goes wrong: another one after a wait, a question to people, or the
 * end of the step. D4 attempts never exceed the budget and what people granted.
 */
import { BOUNDS } from "../contracts/bounds.ts";
import type { FailStep, TimeOutStep } from "../contracts/commands.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { addMs, type EpochMs } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { isDelivery, spentBy } from "../ledger/plan-progress.ts";
import type { Spent, Step } from "../ledger/state.ts";
import { backoffMs } from "../plan/backoff.ts";
import { asking } from "./ask-people.ts";
import { limitIn, stopOf, type PlannedCoordination } from "./plan-rules.ts";

export interface NextTry {
  /** What the outcome itself says of it. */
  readonly after: Pick<FactPayloads["step.failed"], "retryAtMs" | "escalated">;
  /** The question that follows the outcome. */
  readonly asked?: FactDraft;
}

interface Ended {
  readonly command: FailStep | TimeOutStep;
  readonly now: EpochMs;
}

export function nextTry(state: PlannedCoordination, step: Step, ended: Ended): NextTry {
  if (isDelivery(step)) return { after: deliveryRetry(state, step, ended) };
  if (isFinal(state, step, ended)) return { after: {} };
  const retryAtMs = retryAt(state, step, ended);
  const limit = spentLimit(step, ended.command, retryAtMs ?? ended.now);
  if (retryAtMs !== undefined && !limit) return { after: { retryAtMs } };
  if (state.created.failurePolicy.escalationPolicy === "none") return { after: {} };
  const inTime = ended.command.type === "timeOutStep" ? "deadline" : "retries_exhausted";
  return askedFor(state, step, { cause: limit ? "budget" : inTime, now: ended.now });
}

function isFinal(state: PlannedCoordination, { spec, cancelledBy }: Step, { command, now }: Ended): boolean {
  const isCancelled = cancelledBy !== undefined || (command.type === "failStep" && command.cancelled);
  return !spec.planned || isCancelled || stopOf(state, now) !== undefined;
}

/** The outcome and the question name each other. */
function askedFor(
  state: PlannedCoordination,
  { spec: { stepId } }: Step,
  { cause, now }: { readonly cause: "budget" | "deadline" | "retries_exhausted"; readonly now: EpochMs },
): NextTry {
  const asked = asking(state, { stepId, cause, kind: "approval", answers: ["approve", "deny"] }, { now });
  const { escalationId, deadlineAtMs: answerByMs } = asked.payload;
  return { after: { escalated: { escalationId, answerByMs } }, asked };
}

/** A turn that the host began and no longer knows may have been seen by the owner. */
const UNSENT: ReadonlySet<string> = new Set(["spawn_refused", "spawn_not_confirmed"]);

/** A message that the host may have passed on is never sent again; one that it surely has not is. */
function deliveryRetry(state: PlannedCoordination, step: Step, ended: Ended): NextTry["after"] {
  const isUnsent = ended.command.type === "failStep" && UNSENT.has(ended.command.error.code);
  const retryAtMs = isUnsent ? retryAt(state, step, ended) : undefined;
  return retryAtMs === undefined ? {} : { retryAtMs };
}

/** When the next attempt is due, where the budget and the plan's deadline leave room for one. */
function retryAt({ created }: PlannedCoordination, step: Step, { command, now }: Ended): EpochMs | undefined {
  const { spec, phase } = step;
  if (!spec.planned || !hasAttemptLeft(step)) return undefined;
  // The same outputs give the same input.
  if (command.type === "failStep" && command.error.code === "input_unavailable") return undefined;
  const rule = { budget: spec.retryBudget, backoffMs: spec.planned.backoffMs };
  const { seed = "", deadlineAtMs } = created.plan ?? {};
  const atMs = addMs(now, backoffMs(rule, phase.attempt, `${seed}:${spec.stepId}`));
  return isTooLate(atMs, isDelivery(step) ? undefined : deadlineAtMs) ? undefined : atMs;
}

function isTooLate(atMs: EpochMs, deadlineAtMs: EpochMs | undefined): boolean {
  return deadlineAtMs !== undefined && atMs >= deadlineAtMs;
}

/** D4: an attempt that revises a result is none of the retries. */
function hasAttemptLeft({ spec, phase, granted = 0, revisions = 0 }: Step): boolean {
  return phase.attempt - revisions <= Math.min(spec.retryBudget + granted, BOUNDS.retryBudgetMax);
}

/** Which limit of the step's own budget is reached when its next attempt would begin, this attempt included. */
function spentLimit(
  { spec, spent, phase, begunAtMs = 0 as EpochMs }: Step,
  command: Ended["command"],
  nextAtMs: EpochMs,
): string | undefined {
  const budget = spec.planned?.budget;
  if (!budget) return undefined;
  if (budget.wallMs !== undefined && nextAtMs >= addMs(begunAtMs, budget.wallMs)) return "wallMs";
  const usage = spentBy(command.type === "failStep" ? command.usage : undefined);
  const before: Spent = spent ?? { spawns: phase.attempt, tokens: 0, costMicroUsd: 0 };
  const tokens = before.tokens + usage.tokens;
  return limitIn({ ...before, tokens, costMicroUsd: before.costMicroUsd + usage.costMicroUsd }, budget);
}
