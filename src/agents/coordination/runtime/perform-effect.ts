/** Owns: what each effect of `planDispatch` does. Every one may be cut off at any line and done again. */
import { addMs, type SessionKey, type StepId } from "../contracts/ids.ts";
import { envelopeOf } from "../dispatch/envelope-of.ts";
import type { AskHost, Effect } from "../dispatch/plan-dispatch.ts";
import { ruleOnObservation } from "../dispatch/rule-on-observation.ts";
import { childOf, type Coordination, type OpenCoordination } from "../ledger/state.ts";
import type { AgentRunner, SpawnQuery } from "../ports/agent-runner.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import type { OwnerTurns } from "./owner-turns.ts";
import type { RunLog } from "./run-log.ts";

export interface EffectParts {
  readonly runs: RunLog;
  readonly turns: OwnerTurns;
  readonly runner: AgentRunner;
  readonly clock: Clock;
  readonly logger: Logger;
}

export async function performEffect(parts: EffectParts, state: Coordination, effect: Effect): Promise<void> {
  if (state.kind !== "open") return;
  if (effect.kind === "askHost") return askHost(parts, state, effect);
  const now = parts.clock.now();
  const quietSince = parts.turns.quietSince(state.created.ownerSession, now);
  if (quietSince === undefined || now < addMs(quietSince, state.created.settleMs)) return;
  await parts.runs.submit(state.coordinationId, [{ type: "settleCoordination" }]);
}

/** The host's answer becomes facts; a child that is found again gets its envelope again. */
async function askHost(
  parts: EffectParts,
  state: OpenCoordination,
  { stepId, attempt }: AskHost,
): Promise<void> {
  const query = queryFor(state, stepId);
  if (!query) return;
  const seen = await parts.runner.observe(query);
  const { coordinationId } = state;
  const latest = await parts.runs.state(coordinationId);
  const commands = ruleOnObservation(latest, { stepId, attempt, now: parts.clock.now() }, seen);
  if (commands.length === 0) return;
  const submitted = await parts.runs.submit(coordinationId, commands);
  parts.logger.info(
    { runId: coordinationId, stepId, seen: seen.kind, result: submitted.kind },
    "reconciled with the host",
  );
  const envelope =
    seen.kind === "running" && submitted.kind === "accepted"
      ? envelopeOf(submitted.state, stepId)
      : undefined;
  if (envelope) await parts.runner.bind(envelope);
}

function queryFor(state: OpenCoordination, stepId: StepId): SpawnQuery | undefined {
  const step = state.steps.get(stepId);
  if (!step || step.phase.status === "waiting") return undefined;
  const own = childOf(step.phase)?.childSessionKey;
  const taken = new Set<SessionKey>();
  for (const other of state.steps.values()) {
    const child = childOf(other.phase);
    if (child && child.childSessionKey !== own) taken.add(child.childSessionKey);
  }
  const { sourceSession, input } = step.spec;
  return {
    sourceSession,
    input,
    dispatchedAtMs: step.phase.dispatchedAtMs,
    taken,
    ...(own && { childSessionKey: own }),
  };
}
