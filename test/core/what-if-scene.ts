/** Owns: what would have been decided under a policy, in coordinations that commands made. */
import { expect } from "vitest";
import type { AppliedStrategy } from "../../src/agents/coordination/contracts/arbitration.ts";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { ReplayPolicy } from "../../src/agents/coordination/contracts/config/replay-policy.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import { recordFacts } from "../../src/agents/coordination/dispatch/record.ts";
import { createUnopenedCoordination, type Coordination } from "../../src/agents/coordination/ledger/state.ts";
import { listDecidedFacts } from "../../src/agents/coordination/replay/decide-again.ts";
import {
  replayCoordination,
  type ReplayedUnder,
} from "../../src/agents/coordination/runtime/replay-coordination.ts";
import { acknowledge, OPEN, RUN, spawn, stepId, timeAt } from "./scene.ts";

/** A second passes with each of them. */
function logOf(commands: readonly Command[]): RunEvent[] {
  let state: Coordination = createUnopenedCoordination(RUN);
  return commands.flatMap((command, index) => {
    const now = timeAt(index * 1_000);
    const facts = listDecidedFacts(decide(state, command, now));
    expect(facts, JSON.stringify(command)).not.toEqual([]);
    const recorded = recordFacts(state, facts, now);
    state = recorded.state;
    return recorded.events;
  });
}

/** Replays the coordination that the commands make, as it would have gone under the policy; `plan` is the kept text of its plan. */
export async function replayUnderPolicy(
  policy: ReplayPolicy,
  commands: readonly Command[],
  plan?: object,
): Promise<ReplayedUnder> {
  const log = logOf(commands);
  const store = {
    read: (_: unknown, { from, limit }: { from: number; limit: number }) =>
      Promise.resolve(log.slice(from, from + limit)),
    get: () => Promise.resolve(plan && JSON.stringify(plan)),
  };
  const { whatIf, difference } = await replayCoordination(store, RUN, { policy });
  expect(difference).toBeUndefined();
  if (!whatIf) throw new Error("nothing was told of the policy");
  return whatIf;
}

/** Two steps that run, and how they came to. */
export interface Contenders {
  readonly commands: readonly Command[];
  readonly stepIds: readonly [StepId, StepId];
}

const SPAWNED: Contenders = {
  commands: [
    { ...OPEN, questions: { answerMs: 600_000 } } as Command,
    spawn("one"),
    acknowledge(1),
    spawn("two"),
    acknowledge(2),
  ],
  stepIds: [stepId(1), stepId(2)],
};

/** The second of two steps asks for the resource that the first one has, and the strategy rules. */
export function playConflict(
  resource: string,
  applied: AppliedStrategy,
  { commands, stepIds: [holder, requester] }: Contenders = SPAWNED,
): readonly Command[] {
  const expiresAtMs = timeAt(900_000);
  const claims = [
    { stepId: holder, priority: "normal", claimedSequence: 1, expiresAtMs },
    { stepId: requester, priority: "normal", claimedSequence: 2 },
  ] as const;
  const contest = { cause: "overlap", ...applied, claims } as const;
  return [
    ...commands,
    { type: "requestResources", stepId: holder, requests: [{ resource, token: 1, expiresAtMs }] },
    { type: "requestResources", stepId: requester, requests: [{ resource, token: 2, expiresAtMs, contest }] },
  ];
}
