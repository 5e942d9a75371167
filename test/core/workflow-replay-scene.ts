/** Owns: recorded runs for tests of replaying them: what happens to a run, its log as it is read again, and a replay of it. */
import { createEventId, formatTimestamp } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  WorkflowDraft,
  WorkflowEvent,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import {
  advanceRun,
  type RunProgress,
  type ProgressContext,
} from "../../src/agents/coordination/workflow/advance-run.ts";
import type {
  EffectOutcome,
  WorkflowSettings,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import {
  deriveRecorded,
  type ReplayContext,
  type ReplayedPart,
} from "../../src/agents/coordination/workflow/replay-workflow.ts";
import { answerInterrupt } from "../../src/agents/coordination/workflow/state/answer-interrupt.ts";
import {
  beginWorkflow,
  evolveWorkflow,
} from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import type { NodeGraph } from "../../src/agents/coordination/workflow/state/node-graph.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import type { WorkflowRun } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { draftEffectOutcome } from "../../src/agents/coordination/workflow/workflow-commands.ts";
import { FORK, originOf, readBack } from "../support/replay-play.ts";
import { PLAY_SETTINGS } from "../support/workflow-arbitraries.ts";
import type { SmallWorkflow } from "../support/workflow-definitions.ts";
import { FIRST, RUN, STARTED, timeAt } from "./workflow-evolve-scene.ts";
import { createGraph } from "./workflow-view-scene.ts";

/** Returns the drafts of something that happens to a run. */
export type Act = (progress: RunProgress, context: ProgressContext) => readonly WorkflowDraft[];

export const wait: Act = () => [];
export const tell =
  (...drafts: readonly WorkflowDraft[]): Act =>
  () =>
    drafts;
/** Gives the first effect that is under way its outcome. */
export const settle =
  (outcome: EffectOutcome): Act =>
  ({ run, effects: [effect] }, context) => {
    if (!effect) throw new Error("nothing is under way");
    return draftEffectOutcome(run, context, { effect, outcome });
  };
export const answer =
  (nodeId: string, value: unknown): Act =>
  ({ run }) => {
    const node = run.nodes.get(nodeId);
    if (!node?.interrupt) throw new Error(`${nodeId} asks nothing`);
    const answered = answerInterrupt({ node, interrupt: node.interrupt, value, by: "alice" });
    if (!answered.ok) throw new Error(answered.message);
    return answered.drafts;
  };

/** Outcomes of effects: a model, a tool and a run within the run. */
export const SAID: EffectOutcome = {
  kind: "model_answered",
  text: "said",
  model: "m",
  usage: {},
  asked: { provider: "p", model: "m", digest: "0".repeat(64) },
};
export const RETURNED: EffectOutcome = { kind: "tool_answered", ok: true, text: "x", content: null };
export const createChild = (childRunId: string): Act => settle({ kind: "child_created", childRunId });
export const CHILD_ENDED = settle({ kind: "child_ended", status: "completed", variables: { result: 1 } });

/** The log of a run, with the graph and the settings by which it ran. */
export interface RecordedRun {
  readonly graph: NodeGraph;
  readonly settings: WorkflowSettings;
  readonly events: readonly WorkflowEvent[];
}

export type Moments = readonly (readonly [seconds: number, act: Act])[];

interface RunSetup extends Partial<WorkflowSettings> {
  readonly inputs?: Values;
}

/** Records the run of a workflow, to which the acts happen so many seconds after its start. */
export function recordRun(
  small: SmallWorkflow,
  moments: Moments = [],
  { inputs = {}, ...more }: RunSetup = {},
): RecordedRun {
  const graph = createGraph(small);
  const settings: WorkflowSettings = { ...PLAY_SETTINGS, ...more };
  const first: WorkflowEvent = { ...FIRST, type: "run.started", payload: { ...STARTED, inputs } };
  let progress = advanceRun(evolveWorkflow(undefined, first), { graph, settings, now: timeAt(0) });
  const events: WorkflowEvent[] = [first, ...progress.events];
  for (const [seconds, act] of moments) {
    const context = { graph, settings, now: timeAt(seconds) };
    progress = advanceRun(progress.run, context, act(progress, context));
    events.push(...progress.events);
  }
  return { graph, settings, events: readBack(events) };
}

/** Returns the record with another end: its first events, and behind them these drafts at their times. */
export function continueRecord(
  record: RecordedRun,
  count: number,
  ...moments: readonly (readonly [seconds: number, draft: WorkflowDraft])[]
): RecordedRun {
  const added = moments.map(([seconds, draft], index): WorkflowEvent => {
    const sequence = count + index;
    const timestamp = formatTimestamp(timeAt(seconds));
    return { eventId: createEventId(RUN, sequence), runId: RUN, sequence, timestamp, ...draft };
  });
  return { ...record, events: [...record.events.slice(0, count), ...added] };
}

interface Options extends Partial<ReplayContext> {
  /** Events of the record that are there, all of them if absent. */
  readonly count?: number;
  readonly isAll?: boolean;
  /** Where the source went on with events of its own, being a fork itself. */
  readonly livesFrom?: number;
}

/** The run that replays the record, as its first event makes it. */
export function beginReplay({ events }: RecordedRun, livesFrom?: number): WorkflowRun {
  const [first] = events;
  if (!first) throw new Error("there is no event");
  const origin = originOf(events, { mode: "replay", fromSeq: 0, until: 1_000 });
  const ids = [...(livesFrom === undefined ? [] : [{ before: livesFrom, runId: RUN }]), ...origin.ids];
  return beginWorkflow({ ...first, runId: FORK }, { ...origin, ids });
}

/** Replays the record behind its first event. */
export function replay(record: RecordedRun, options: Options = {}): ReplayedPart {
  const { graph, settings, events } = record;
  const { count = events.length, isAll = true, livesFrom, ...context } = options;
  const part = { events: events.slice(1, count), isAll };
  return deriveRecorded(beginReplay(record, livesFrom), { graph, settings, ...context }, part);
}

/** Events as those of the run that replays them. */
export const copyEvents = (events: readonly WorkflowEvent[]): WorkflowEvent[] =>
  events.map((event) => ({ ...event, runId: FORK }));
