/** Owns: which settings of a policy's gates cannot be tested on a recorded coordination, because its log does not hold enough. */
import { gatesSchema } from "../contracts/config/gates-config.ts";
import type { ReplayPolicy } from "../contracts/config/replay-policy.ts";
import type { Coordination } from "../ledger/state.ts";

const FLOOR_MIN = gatesSchema.parse({}).decisionFloor;

/**
 * Lists the names of the gate settings of a policy that the recorded log cannot test. A recorded gate has the keys of
 * its checks, and not the checks themselves. A doubt of plugins is recorded only where it was below the floor.
 */
export function listUntestedGates({ gates = {} }: ReplayPolicy, recorded: Coordination): string[] {
  const { critic, verifiers = {}, decisionFloor = FLOOR_MIN } = gates;
  const checks = listRecordedChecks(recorded);
  return [
    ...(critic !== undefined && checks.size > 0 ? ["gates.critic"] : []),
    ...Object.keys(verifiers).flatMap((key) => (checks.has(key) ? [`gates.verifiers.${key}`] : [])),
    ...(decisionFloor > FLOOR_MIN
      ? ["gates.decisionFloor for doubts of plugins that the recorded floor let pass"]
      : []),
  ];
}

function listRecordedChecks(recorded: Coordination): ReadonlySet<string> {
  const steps = recorded.kind === "unopened" ? [] : [...recorded.steps.values()];
  return new Set(steps.flatMap(({ spec }) => spec.gate?.checks ?? []));
}
