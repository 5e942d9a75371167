/** Owns: that what is recorded of the operator's settings is what some process had at that time, and that it is kept to. */
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { isSameValue } from "../../src/agents/coordination/replay/same-value.ts";
import type { EventCheck } from "./check-log.ts";
import type { FactOf } from "./journal.ts";
import type { Configuration } from "./moves.ts";
import { limitsOf, NOTICES_AFTER_MS, VERIFY_MS } from "./simulated-gateway.ts";
import type { World } from "./world.ts";

interface Books {
  readonly world: World;
  /** By run: how many spawns a coordination of spawns may have, and has. */
  readonly spawns: Map<string, { readonly max: number; readonly counted: Set<string> }>;
}

export function createConfigurationCheck(world: World): EventCheck {
  const books: Books = { world, spawns: new Map() };
  return { see: (event) => seeEvent(books, event) };
}

function seeEvent(books: Books, event: RunEvent): string[] {
  if (event.type === "coordination.created") return seeCreated(books, event);
  // A spawn that the host refused or never made does not count.
  if (event.type === "step.failed" && event.payload.unspawned)
    books.spawns.get(event.runId)?.counted.delete(event.payload.stepId);
  if (event.type === "result.verified" && event.payload.check === "lint") return seeVerdict(books, event);
  return event.type === "step.admitted" ? seeAdmitted(books, event) : [];
}

/** Only operators of these gateways define that check. */
function seeVerdict({ world }: Books, event: FactOf<"result.verified">): string[] {
  const isDefined = wasInForce(world, event, ({ gates }) => gates?.hasLint !== false);
  return isDefined ? [] : [`P3: ${event.payload.stepId} was checked, and nobody defines the check`];
}

function seeCreated({ world, spawns }: Books, event: FactOf<"coordination.created">): string[] {
  const { payload, runId } = event;
  const { settleMs, acknowledgeMs, questions, budget, origin, parent } = payload;
  const { answerMs, notify = [], requireDifferentApprover = false } = questions ?? {};
  spawns.set(runId, { max: budget?.spawns ?? Infinity, counted: new Set() });
  const isSo = (configuration: Configuration): boolean => {
    const limits = limitsOf(configuration);
    return isSameValue(
      {
        settleMs,
        acknowledgeMs,
        answerMs,
        notify: notify.map(({ afterMs }) => afterMs),
        // An agent's plan is under the rule of the plans around it, too.
        requireDifferentApprover: parent ? "as around it" : requireDifferentApprover,
        spawnsMax: origin === "plan" ? "stated" : (budget?.spawns ?? "any"),
      },
      {
        settleMs: limits.settleMs,
        acknowledgeMs: limits.acknowledgeMs,
        answerMs: limits.escalateMs,
        notify: configuration.noticesAfterMs ?? NOTICES_AFTER_MS,
        requireDifferentApprover: parent ? "as around it" : configuration.requireDifferentApprover,
        spawnsMax: origin === "plan" ? "stated" : (configuration.spawnsMax ?? "any"),
      },
    );
  };
  return wasInForce(world, event, isSo) ? [] : [`P1: ${runId} is opened with settings that nobody had`];
}

function seeAdmitted({ world, spawns }: Books, event: FactOf<"step.admitted">): string[] {
  const { payload, runId } = event;
  if (payload.planned) return [];
  const run = spawns.get(runId);
  run?.counted.add(payload.stepId);
  const isOver = run !== undefined && run.counted.size > run.max;
  const isSo = (configuration: Configuration): boolean =>
    payload.timeoutMs === limitsOf(configuration).stepTimeoutMs &&
    isSameValue(payload.gate, gateOf(configuration, payload.agentId));
  return [
    ...(isOver ? [`P2: ${runId} has ${run.counted.size} spawns, and may have ${run.max}`] : []),
    ...(wasInForce(world, event, isSo) ? [] : [`P1: ${payload.stepId} is held to settings that nobody had`]),
  ];
}

/** A process may record something in the moment in which it ends or begins. */
function wasInForce(world: World, { timestamp }: RunEvent, isSo: (configuration: Configuration) => boolean) {
  const atMs = Date.parse(timestamp);
  return world.configured.some(
    ({ setup, fromMs, untilMs }) => (world.hasGoneBack || (fromMs <= atMs && atMs <= untilMs)) && isSo(setup),
  );
}

const BASIS_POINTS = 10_000;

const GATES: NonNullable<Configuration["gates"]> = {
  confidenceThreshold: 0.7,
  criticThreshold: 0.7,
  revisionsMax: 1,
  verifyMs: VERIFY_MS,
  hasLint: true,
};

/** The gate of a spawn of the agent, by the operator alone. */
function gateOf({ gates = GATES, isGated }: Configuration, agentId: string): object {
  const { confidenceThreshold, criticThreshold, revisionsMax, verifyMs, hasLint } = gates;
  const isChecked = isGated && hasLint && agentId === "checked";
  const critic = { criticThreshold: Math.round(criticThreshold * BASIS_POINTS), revisionsMax, verifyMs };
  return {
    threshold: Math.round(confidenceThreshold * BASIS_POINTS),
    ...(isGated && agentId === "careful" && { requireConfidence: true }),
    ...(isChecked && { checks: ["lint"], ...critic }),
  };
}
