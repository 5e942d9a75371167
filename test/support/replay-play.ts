/** Owns: replaying a record in the pure core, as the runtime does it with pages of a log. */
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunOrigin } from "../../src/agents/coordination/contracts/workflows/run-origin.ts";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { beginWorkflow } from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import type { NodeGraph } from "../../src/agents/coordination/workflow/state/node-graph.ts";
import type { WorkflowSettings } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import {
  copyRecorded,
  deriveRecorded,
  type ReplayedPart,
} from "../../src/agents/coordination/workflow/replay-workflow.ts";
import type { WorkflowRun } from "../../src/agents/coordination/workflow/state/workflow-state.ts";

export const FORK = "run-fork" as CoordinationId;

export function originOf(
  [first]: readonly WorkflowEvent[],
  input: Pick<RunOrigin, "mode" | "fromSeq" | "until">,
): RunOrigin {
  if (!first) throw new Error("there is no event");
  const { mode, until } = input;
  return {
    ...input,
    sourceRunId: first.runId,
    identity: mode === "replay" ? first.runId : FORK,
    ids: until > 0 ? [{ before: until, runId: first.runId }] : [],
  };
}

export interface Replay {
  readonly run: WorkflowRun;
  readonly events: readonly WorkflowEvent[];
  readonly then: Exclude<ReplayedPart["then"], { kind: "more" | "ask" }>;
  readonly requests: readonly string[];
}

interface ReplaySource {
  readonly graph: NodeGraph;
  readonly settings: WorkflowSettings;
  readonly fromSeq?: number;
  readonly until?: number;
  readonly page?: number;
}

/** A log as it is read again. */
export function readBack(events: readonly WorkflowEvent[]): WorkflowEvent[] {
  return JSON.parse(JSON.stringify(events)) as WorkflowEvent[];
}

export function replayIn(
  recorded: readonly WorkflowEvent[],
  { graph, settings, fromSeq = 0, until = recorded.length, page: first = 1_000 }: ReplaySource,
): Replay {
  const origin = originOf(recorded, { mode: "replay", fromSeq, until });
  const events: WorkflowEvent[] = [{ ...recorded[0]!, runId: FORK }];
  let run = beginWorkflow(events[0]!, origin);
  const requests: string[] = [];
  for (let size = first; ;) {
    const from = run.nextSequence;
    const next = recorded.slice(from, Math.min(until, from + size));
    const page = { events: next, isAll: from + next.length >= until };
    const context = {
      graph,
      settings,
      derivesFrom: fromSeq,
      ...(requests.length > 0 && { askedEffectId: requests.at(-1)! }),
    };
    const result = copyRecorded(run, fromSeq, page) ?? deriveRecorded(run, context, page);
    run = result.run;
    events.push(...result.events);
    size = result.events.length === 0 ? size * 2 : first;
    if (result.then.kind === "ask") requests.push(result.then.effect.id);
    else if (result.then.kind !== "more") return { run, events, then: result.then, requests: requests };
  }
}
