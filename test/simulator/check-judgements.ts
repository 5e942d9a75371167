/** Owns: that a plan is judged by what its agents said, as the log has it (RFC 0090, section C). */
import { createHash } from "node:crypto";
import { DELIVERY_STEP_ID } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { listBroken } from "./list-broken.ts";
import type { World } from "./world.ts";

/** The criterion that all steps have completed; any other is named by the step that is to say "good". */
const ALL = "all";

export function checkJudgements(world: World): string[] {
  const goodOutputs = listGoodOutputs(world);
  return world.journal.filter("coordination.terminal").flatMap(({ runId, payload }) => {
    const events = world.journal.eventsOf(runId);
    const outputs = readOutputs(events);
    const { completed, total } = payload.steps;
    const isMet = (key: string): boolean =>
      key === ALL ? completed === total : goodOutputs.has(outputs.get(key) ?? "");
    const wrong = (payload.successCriteria ?? []).filter(({ key, met }) => met !== isMet(key));
    const isMissing = countCriteria(events) !== (payload.successCriteria ?? []).length;
    return listBroken({
      [`D5: ${runId} ends with ${JSON.stringify(wrong)}`]: wrong.length > 0,
      [`D5: ${runId} ends without being judged`]: isMissing,
    });
  });
}

/** Lists what agents said with "good" in it, by the sha256 of its text. */
function listGoodOutputs({ gateways }: World): ReadonlySet<string> {
  const texts = gateways
    .flatMap(({ agents }) => agents.runs)
    .flatMap(({ ending, reports }) => [
      ...(ending?.outcome === "completed" && ending.reply !== undefined ? [ending.reply] : []),
      ...reports.map(({ outputs }) => JSON.stringify(outputs)),
    ]);
  const good = texts.filter((text) => text.includes('"good":true'));
  return new Set(good.map((text) => createHash("sha256").update(text).digest("hex")));
}

/** Reads the output of each step that completed, here or in the plan that this one is a fork of. */
function readOutputs(events: readonly RunEvent[]): ReadonlyMap<string, string> {
  const outputs = new Map<string, string>();
  for (const { type, payload } of events) {
    if (type !== "step.completed" && type !== "step.admitted") continue;
    const { output } = type === "step.completed" ? payload : (payload.carried ?? {});
    if (output && payload.stepId !== DELIVERY_STEP_ID) outputs.set(payload.stepId, output.sha256);
  }
  return outputs;
}

function countCriteria([created]: readonly RunEvent[]): number {
  return created?.type === "coordination.created" ? (created.payload.plan?.successCriteria ?? []).length : 0;
}
