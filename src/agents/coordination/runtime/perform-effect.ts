/** Owns: what each effect of `planDispatch` does. Every one may be cut off at any line and done again. */
import { addMs, type CoordinationId, type SessionKey, type StepId } from "../contracts/ids.ts";
import type { Observation } from "../contracts/observation.ts";
import { envelopeOf } from "../dispatch/envelope-of.ts";
import type { AskHost, Effect } from "../dispatch/plan-dispatch.ts";
import { ruleOnObservation } from "../dispatch/rule-on-observation.ts";
import { childOf, openStepsOf, type Coordination, type OpenCoordination } from "../ledger/state.ts";
import { childName } from "../ledger/summary.ts";
import type { AgentRunner, SpawnQuery } from "../ports/agent-runner.ts";
import type { Clock } from "../ports/clock.ts";
import type { LedgerStore } from "../ports/ledger-store.ts";
import type { Logger } from "../ports/logger.ts";
import type { OwnerTurns } from "./owner-turns.ts";
import type { RunLog } from "./run-log.ts";

/** A host that has not answered by then has not answered. */
const HOST_ANSWER_MS_MAX = 10_000;
/** The host is asked again at once when the child that it names works on another step. */
const ASK_TRIES_MAX = 16;

export interface EffectParts {
  readonly store: Pick<LedgerStore, "find">;
  readonly runs: RunLog;
  readonly turns: OwnerTurns;
  readonly runner: AgentRunner;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Aborted when the coordinator stops: then no answer is waited for. */
  readonly stopping: AbortSignal;
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
  { coordinationId }: OpenCoordination,
  { stepId, attempt }: AskHost,
): Promise<void> {
  const elsewhere = new Set<SessionKey>();
  for (let tries = 1; tries <= ASK_TRIES_MAX; tries += 1) {
    const query = queryFor(await parts.runs.state(coordinationId), stepId, elsewhere);
    if (!query) return;
    const seen = await observe(parts, query);
    if (await isHeldElsewhere(parts, { coordinationId, stepId }, seen)) {
      if ("childSessionKey" in seen) elsewhere.add(seen.childSessionKey);
      continue;
    }
    const latest = await parts.runs.state(coordinationId);
    const commands = ruleOnObservation(latest, { stepId, attempt, now: parts.clock.now() }, seen);
    if (commands.length === 0) return;
    const submitted = await parts.runs.submit(coordinationId, commands);
    parts.logger.info(
      { runId: coordinationId, stepId, seen: seen.kind, result: submitted.kind },
      "reconciled with the host",
    );
    if (submitted.kind === "refused" && submitted.code === "CHILD_TAKEN") continue;
    if (seen.kind === "running" && submitted.kind === "accepted") await bind(parts, submitted.state, stepId);
    return;
  }
}

/** Two spawns that the host's records cannot tell apart must not be given the same child. */
async function isHeldElsewhere(
  { store }: EffectParts,
  { coordinationId, stepId }: { readonly coordinationId: CoordinationId; readonly stepId: StepId },
  seen: Observation,
): Promise<boolean> {
  if (!("childSessionKey" in seen)) return false;
  const holder = await store.find(childName(seen.childSessionKey));
  return holder !== undefined && (holder.runId !== coordinationId || holder.stepId !== stepId);
}

/** A host that fails or does not answer in time says nothing; nothing may be concluded, and no slot stays taken. */
function observe(parts: EffectParts, query: SpawnQuery): Promise<Observation> {
  return answerOf(parts, () => parts.runner.observe(query), { kind: "unknown" });
}

async function bind(parts: EffectParts, state: Coordination, stepId: StepId): Promise<void> {
  const envelope = envelopeOf(state, stepId);
  if (envelope) await answerOf(parts, () => parts.runner.bind(envelope), undefined);
}

async function answerOf<T>(
  { clock, logger, stopping }: EffectParts,
  ask: () => Promise<T>,
  otherwise: T,
): Promise<T> {
  const giveUp = Promise.withResolvers<T>();
  const onStop = (): void => giveUp.resolve(otherwise);
  const cancel = clock.wakeAt(addMs(clock.now(), HOST_ANSWER_MS_MAX), onStop);
  stopping.addEventListener("abort", onStop, { once: true });
  if (stopping.aborted) onStop();
  try {
    return await Promise.race([ask(), giveUp.promise]);
  } catch (error) {
    logger.warn({}, `the host could not be asked: ${error instanceof Error ? error.message : String(error)}`);
    return otherwise;
  } finally {
    cancel();
    stopping.removeEventListener("abort", onStop);
  }
}

function queryFor(
  state: Coordination,
  stepId: StepId,
  elsewhere: ReadonlySet<SessionKey>,
): SpawnQuery | undefined {
  if (state.kind !== "open") return undefined;
  const step = state.steps.get(stepId);
  if (!step || step.phase.status === "waiting") return undefined;
  const own = childOf(step.phase)?.childSessionKey;
  const taken = new Set<SessionKey>(elsewhere);
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
    hasOpenChildren: openStepsOf(state).some(({ spec }) => spec.parentStepId === stepId),
  };
}
