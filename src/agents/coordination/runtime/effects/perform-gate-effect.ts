/** Owns: what each effect on held results, questions and tellings does. Every one may be cut off at any line and done again. */
import { assertNever } from "../../contracts/errors.ts";
import { isAtWorkForHost } from "../../dispatch/effects/followed-steps.ts";
import type { GateEffect, TellSession } from "../../dispatch/effects/gate-effects.ts";
import type { Effect } from "../../dispatch/effects/plan-dispatch.ts";
import type { Coordination, OpenCoordination } from "../../ledger/state.ts";
import { stepOfChild } from "../log/step-of-child.ts";
import type { EffectDependencies } from "./perform-effect.ts";
import { notifyPeople } from "../questions/notify-people.ts";
import { tellSession } from "../questions/tell-session.ts";
import { verifyResult } from "../held-results/verify-result.ts";

const GATE_EFFECTS: ReadonlySet<Effect["kind"]> = new Set([
  "verifyResult",
  "expireQuestion",
  "notifyPeople",
  "tellSession",
] satisfies GateEffect["kind"][]);

export function isGateEffect(effect: Effect): effect is GateEffect {
  return GATE_EFFECTS.has(effect.kind);
}

export async function performGateEffect(
  dependencies: EffectDependencies,
  state: Coordination,
  effect: GateEffect,
): Promise<void> {
  if (state.kind !== "open") return;
  switch (effect.kind) {
    case "verifyResult":
      return verifyResult(dependencies, state, effect);
    case "notifyPeople":
      return notifyPeople(dependencies, state, effect);
    case "tellSession":
      if (await isAtWork(dependencies, state, effect)) return;
      return tellSession(dependencies, state, effect);
    case "expireQuestion": {
      const { escalationId } = effect;
      await dependencies.runs.submit(state.coordinationId, [{ type: "expireEscalation", escalationId }]);
      return;
    }
    default:
      return assertNever(effect, "effect of a gate");
  }
}

/** True while the session is at work as a child of another coordination. Appends there have this one looked at again. */
async function isAtWork(
  dependencies: EffectDependencies,
  { coordinationId, tellings }: OpenCoordination,
  { tellingId }: TellSession,
): Promise<boolean> {
  const telling = tellings.get(tellingId);
  const found = telling && (await stepOfChild(dependencies, telling.session));
  if (found?.state.kind !== "open" || !isAtWorkForHost(found.step)) return false;
  dependencies.lookAfter(coordinationId, found.state.coordinationId);
  return true;
}
