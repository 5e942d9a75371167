/** Owns: what would have been decided under a policy, in coordinations that commands made. */
import { expect } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { ReplayPolicy } from "../../src/agents/coordination/contracts/config/replay-policy.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import { record } from "../../src/agents/coordination/dispatch/record.ts";
import { createUnopened, type Coordination } from "../../src/agents/coordination/ledger/state.ts";
import { factsOf } from "../../src/agents/coordination/replay/decide-again.ts";
import {
  replayCoordination,
  type ReplayedUnder,
} from "../../src/agents/coordination/runtime/replay-coordination.ts";
import { RUN, timeAt } from "./scene.ts";

/** A second passes with each of them. */
function logOf(commands: readonly Command[]): RunEvent[] {
  let state: Coordination = createUnopened(RUN);
  return commands.flatMap((command, index) => {
    const now = timeAt(index * 1_000);
    const facts = factsOf(decide(state, command, now));
    expect(facts, JSON.stringify(command)).not.toEqual([]);
    const recorded = record(state, facts, now);
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
