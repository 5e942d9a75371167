/** Owns: holding the log against the invariants after every move, event by event, without any code of the product. */
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { createClaimCheck } from "./check-claims.ts";
import { createConfigurationCheck } from "./check-configurations.ts";
import { createGateCheck } from "./check-gates.ts";
import { createLaneCheck } from "./check-lanes.ts";
import { createQuestionCheck } from "./check-questions.ts";
import { createResultCheck } from "./check-results.ts";
import { createStepCheck } from "./check-steps.ts";
import { createTextCheck } from "./check-texts.ts";
import type { World } from "./world.ts";

/** Looks at events in the order of their run, and at all of them together when they are through. */
export interface EventCheck {
  readonly see: (event: RunEvent) => readonly string[];
  /** Looks at the state that the events of a move left. */
  readonly rest?: () => readonly string[];
}

export function createLogCheck(world: World): () => void {
  const checks = [
    createPlaceCheck(),
    createStepCheck(world),
    createLaneCheck(world),
    createClaimCheck(world),
    createQuestionCheck(world),
    createOwnerCheck(world),
    createResultCheck(),
    createGateCheck(),
    createConfigurationCheck(world),
    createTextCheck(),
  ];
  return () => {
    for (const event of world.journal.takeNew(world.problems))
      for (const { see } of checks)
        world.problems.push(...see(event).map((problem) => `${problem} (${event.eventId})`));
    for (const { rest } of checks) if (rest) world.problems.push(...rest());
  };
}

/** O4: while nothing is disturbed, no coordination changes hands. */
function createOwnerCheck(world: World): EventCheck {
  const owners = new Map<string, string>();
  return {
    see: () => [],
    rest: () => {
      // Who is at work is told by counting: clocks that differ, or are set, make nobody seem to be gone.
      const isSteady = world.gateways.every(({ life, processes }) => !life.isDisturbed && processes === 1);
      return [...world.ledger.runs].flatMap(([runId, { owner, summary }]) => {
        const before = owners.get(runId);
        owners.set(runId, owner.owner_id);
        const isTaken = before !== undefined && before !== owner.owner_id && summary.status === "running";
        return isTaken && isSteady ? [`O4: ${runId} went from ${before} to ${owner.owner_id}`] : [];
      });
    },
  };
}

/** L2, L3: everything but the first event has a cause, which is an earlier event of its own log. */
function createPlaceCheck(): EventCheck {
  const lengths = new Map<string, number>();
  const runIds = new Map<string, string>();
  return {
    see: ({ runId, sequence, eventId, causationId }) => {
      const expected = lengths.get(runId) ?? 0;
      lengths.set(runId, expected + 1);
      const problems: string[] = [];
      if (sequence !== expected) problems.push(`L2: sequence ${sequence} where ${expected} comes next`);
      if (runIds.has(eventId)) problems.push("L2: an event is there twice");
      if (causationId === undefined && expected > 0) problems.push("L3: no cause");
      if (causationId !== undefined && runIds.get(causationId) !== runId)
        problems.push(`L3: no earlier ${causationId}`);
      runIds.set(eventId, runId);
      return problems;
    },
  };
}
