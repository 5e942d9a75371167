/** Owns: that every log can be decided again from what is in it alone, whatever configuration its gateways have now. */
import { replayCoordination } from "../../src/agents/coordination/runtime/replay-coordination.ts";
import type { World } from "./world.ts";

export async function checkReplay({ ledger, clock }: World): Promise<string[]> {
  const store = ledger.open(clock);
  const problems: string[] = [];
  for (const runId of ledger.runs.keys()) {
    const { difference } = await replayCoordination(store, runId);
    if (difference) {
      const { sequence, type, why } = difference;
      problems.push(`replay: another decision on ${type}: ${why} (${runId}:${sequence})`);
    }
  }
  return problems;
}
