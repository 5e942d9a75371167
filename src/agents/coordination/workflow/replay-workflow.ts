/**
 * Owns: deriving a recorded run again, and telling where what follows from the log is not what was recorded (docs/adr/0013).
 *
 * R1 what follows from the log, the graph and the time of each event is derived and held against the record. R2 what came from
 * outside is taken as it was recorded, where the run could have been told it: an outcome of an effect that a node waits for, an
 * answer to what is asked, a command, a limit that was gone over. Nothing is performed. R3 where neither holds, the replay has
 * diverged. R4 what is handed out ends where one thing is over: asked again from there on, it is the same.
 */
import { epochMsOf, type EpochMs } from "../contracts/ids.ts";
import type { WorkflowDraft, WorkflowEvent } from "../contracts/workflows/workflow-events.ts";
import { draftRunResumption } from "./workflow-commands.ts";
import { evolveWorkflow, isFirstOfFork } from "./state/evolve-workflow.ts";
import { draftRestOfAppend } from "./go-live.ts";
import { SUPERVISOR } from "./state/graph.ts";
import type { NodeEffect, NodeView, WorkflowSettings } from "./node-contract/node-type.ts";
import { findNodeType } from "./nodes/node-types.ts";
import {
  appendNextStep,
  decideNodeStep,
  createNodeView,
  type RunAdvance,
  type RunContext,
} from "./advance-run.ts";
import { findDivergence, isSameDraft, type Divergence } from "./same-draft.ts";
import type { Interrupt, WorkflowRun } from "./state/workflow-state.ts";
import type { Values } from "./state/values.ts";

export type AskEffect = NodeEffect & { readonly kind: "ask_model" };

export interface ReplayContext extends RunContext {
  /** Events before it are as they are in the source. */
  readonly derivesFrom?: number;
  /** The call of a model that was asked again, and whose recorded outcome stands. */
  readonly askedEffectId?: string | undefined;
}

export interface RecordedPart {
  /** Events of the source, from the run's next one on. */
  readonly events: readonly WorkflowEvent[];
  /** Nothing follows them that is replayed. */
  readonly isAll: boolean;
}

export interface ReplayedPart {
  readonly run: WorkflowRun;
  /** The first of the recorded ones, as events of the run. */
  readonly events: readonly WorkflowEvent[];
  readonly then:
    /** More of the record is needed. */
    | { readonly kind: "more" }
    | { readonly kind: "over" }
    /** The next event tells what came of asking a model, which may be asked again. */
    | { readonly kind: "ask"; readonly effect: AskEffect }
    | { readonly kind: "diverged"; readonly divergence: Divergence };
}

/**
 * Takes the next events of a source's record into a fork: copies those before `derivesFrom`, or derives where none is
 * left to copy. Returns the run after them, the events and how to go on.
 */
export function replayPart(run: WorkflowRun, context: ReplayContext, recorded: RecordedPart): ReplayedPart {
  return copyRecorded(run, context.derivesFrom ?? 0, recorded) ?? deriveRecorded(run, context, recorded);
}

/**
 * Copies the next events of a source's record into a fork; `undefined` where there are none to copy. The copy ends
 * before events of one time that may go on beyond `derivesFrom`.
 */
export function copyRecorded(
  run: WorkflowRun,
  derivesFrom: number,
  { events, isAll }: RecordedPart,
): ReplayedPart | undefined {
  const wantedCount = derivesFrom - run.nextSequence;
  const isAllOfIt = wantedCount === Infinity || (isAll && wantedCount >= events.length);
  const count = isAllOfIt ? events.length : countEventsToCopy(events, wantedCount);
  if (count === 0) return undefined;
  const copies = events.slice(0, count).map((event) => ({ ...event, runId: run.runId }));
  const isOver = isAll && count === events.length;
  return {
    run: copies.reduce(evolveWorkflow, run),
    events: copies,
    then: { kind: isOver ? "over" : "more" },
  };
}

/** Counts the events to copy. Events of one time tell one thing, so the cut never falls between them. */
function countEventsToCopy(events: readonly WorkflowEvent[], wanted: number): number {
  let count = Math.min(Math.max(0, wanted), events.length);
  const { timestamp } = events[count] ?? events.at(-1) ?? {};
  while (count > 0 && events[count - 1]?.timestamp === timestamp) count -= 1;
  return count;
}

/**
 * Derives a run again and takes the recorded events as far as they are what it would append or be told. Returns the
 * run after them, the events and why it stopped: more, over, diverged or a model to ask.
 */
export function deriveRecorded(
  run: WorkflowRun,
  context: ReplayContext,
  recorded: RecordedPart,
): ReplayedPart {
  const replay = createReplay(run, context, recorded);
  let then: ReplayedPart["then"] | undefined;
  while (!then) then = replayNext(replay);
  const { run: settledRun, takenCount } = replay.settled;
  return { run: settledRun, events: replay.events.slice(0, takenCount), then };
}

/** A run that is being replayed, with the recorded events that were taken so far. */
interface WorkflowReplay {
  readonly advance: RunAdvance;
  /** As events of the run. */
  readonly events: WorkflowEvent[];
  readonly recorded: RecordedPart;
  readonly askedEffectId: string | undefined;
  readonly derivesFrom: number;
  takenCount: number;
  /** The result of the newest derivation. */
  derived: DerivedEvents;
  /** The outcome that is being taken, while more of its events may follow. */
  outcome: OpenOutcome | undefined;
  /** The run where the newest thing was over. */
  settled: SettledRun;
}

interface SettledRun {
  readonly run: WorkflowRun;
  readonly takenCount: number;
}

/** The result of one derivation: nothing, or events to hold against the recorded ones. */
type DerivedEvents =
  | { readonly kind: "nothing" }
  | { readonly kind: "same"; readonly count: number }
  | { readonly kind: "other"; readonly drafts: readonly WorkflowDraft[] };

/** The outcome of one effect is told by events of its node, one behind the other, of one time. */
interface OpenOutcome {
  readonly nodeId: string | undefined;
  readonly timestamp: string;
  readonly isLimit: boolean;
}

const NOTHING: DerivedEvents = { kind: "nothing" };

/** Creates a replay whose advancing compares its drafts with the record instead of appending them. */
function createReplay(
  run: WorkflowRun,
  { askedEffectId, derivesFrom = 0, ...context }: ReplayContext,
  recorded: RecordedPart,
): WorkflowReplay {
  const replay: WorkflowReplay = {
    advance: {
      ...context,
      run,
      now: 0 as EpochMs,
      events: [],
      memory: [],
      settings: liftLimits(context.settings),
      compare: (drafts) => compareDerived(replay, drafts),
    },
    // An event is made for the run where it is taken: most of the record of a page is.
    events: [],
    recorded,
    askedEffectId,
    derivesFrom,
    takenCount: 0,
    derived: NOTHING,
    outcome: undefined,
    settled: { run, takenCount: 0 },
  };
  return replay;
}

/**
 * Returns the settings without the operator's limits, and with an address that nobody calls where none is set.
 * Everything recorded counts, whatever the settings are by now.
 */
function liftLimits(settings: WorkflowSettings): WorkflowSettings {
  return {
    ...settings,
    hostId: settings.hostId,
    nodeExecutionsMax: Infinity,
    loopIterationsMax: Infinity,
    runDurationMsMax: Infinity,
    mcpUrl: settings.mcpUrl ?? NOWHERE,
    a2aUrl: settings.a2aUrl ?? NOWHERE,
  };
}

const NOWHERE = "replay:nowhere";

/** Compares drafts with what is recorded next, as far as the record goes. Returns false where they differ. */
function compareDerived(replay: WorkflowReplay, drafts: readonly WorkflowDraft[]): boolean {
  const { events } = replay.recorded;
  let at = replay.takenCount;
  for (const draft of drafts) {
    const event = events[at];
    if (!event) break;
    at += 1;
    if (isSameDraft(draft, event)) continue;
    replay.derived = { kind: "other", drafts };
    return false;
  }
  replay.derived = { kind: "same", count: drafts.length };
  return true;
}

/** Makes the next recorded events those of the run, or as many as there are. */
function takeRecorded(replay: WorkflowReplay, count: number): void {
  const { advance } = replay;
  for (const recorded of replay.recorded.events.slice(replay.takenCount, replay.takenCount + count)) {
    const event = { ...recorded, runId: advance.run.runId };
    advance.run = evolveWorkflow(advance.run, event);
    replay.events.push(event);
  }
  replay.takenCount = replay.events.length;
}

/** Remembers that the newest thing is over: a replay may be cut here. */
function markSettled(replay: WorkflowReplay): void {
  replay.settled = { run: replay.advance.run, takenCount: replay.takenCount };
}

/** Replays the next thing in the record. A returned value ends the replay, or this part of it. */
function replayNext(replay: WorkflowReplay): ReplayedPart["then"] | undefined {
  const { events, isAll } = replay.recorded;
  const event = events[replay.takenCount];
  // Whether the last of a page is over is seen by what follows.
  if (!event) {
    if (isAll) markSettled(replay);
    return { kind: isAll ? "over" : "more" };
  }
  if (!isPartOfOutcome(replay, event)) {
    replay.outcome = undefined;
    markSettled(replay);
  }
  deriveNext(replay, event);
  const { derived } = replay;
  if (derived.kind !== "same") return takeOutsideEvent(replay, event);
  takeRecorded(replay, derived.count);
  return undefined;
}

/** True for a further event of the outcome that is being taken. */
function isPartOfOutcome({ outcome }: WorkflowReplay, { nodeId, timestamp, type }: WorkflowEvent): boolean {
  if (outcome?.timestamp !== timestamp) return false;
  return outcome.isLimit ? ENDS_AT_LIMIT.has(type) : outcome.nodeId === nodeId && !NO_OUTCOMES.has(type);
}

/** Events that end a run which has gone over a limit. */
const ENDS_AT_LIMIT: ReadonlySet<WorkflowEvent["type"]> = new Set([
  "agent.invocation.completed",
  "node.failed",
  "node.cancelled",
  "run.failed",
]);

/** Nothing of these tells what came of an effect, unless the node is tried again. */
const NO_OUTCOMES: ReadonlySet<WorkflowEvent["type"]> = new Set([
  "node.skipped",
  "run.completed",
  "run.failed",
]);

/** Derives what follows now and compares it with the record. */
function deriveNext(replay: WorkflowReplay, event: WorkflowEvent): void {
  replay.derived = NOTHING;
  replay.advance.now = epochMsOf(event.timestamp);
  const { advance } = replay;
  if (event.type === "run.resumed") compareDerived(replay, draftRunResumption(advance.run, advance));
  else if (event.type === "run.resuming" && isFirstOfFork(advance.run))
    compareDerived(replay, [event, ...draftRestOfSource(replay)]);
  else appendNextStep(advance);
}

/** Drafts what follows where the source itself went live as a fork. */
function draftRestOfSource({ advance }: WorkflowReplay): WorkflowDraft[] {
  return draftRestOfAppend(advance.run, { ...advance, now: advance.run.changedAtMs });
}

/**
 * Takes an event that does not follow from the log. A returned value asks its model again, or tells that the replay
 * has diverged.
 */
function takeOutsideEvent(replay: WorkflowReplay, event: WorkflowEvent): ReplayedPart["then"] | undefined {
  const { nodeId, timestamp } = event;
  if (replay.outcome && (replay.outcome.isLimit || !isOtherThanRecorded(replay.derived, event))) {
    takeRecorded(replay, 1);
    if (LAST_OF_OUTCOME.has(event.type)) replay.outcome = undefined;
    return undefined;
  }
  const outside = classifyOutsideEvent(replay, event);
  if (event.sequence >= replay.derivesFrom) {
    if (outside === undefined) return endInDivergence(replay);
    if (outside.ask) return { kind: "ask", effect: outside.ask };
  }
  replay.outcome = { nodeId, timestamp, isLimit: event.type === "cap.breached" };
  takeRecorded(replay, 1);
  if (LAST_OF_OUTCOME.has(event.type)) replay.outcome = undefined;
  return undefined;
}

/** Behind these, the node goes on by itself. */
const LAST_OF_OUTCOME: ReadonlySet<WorkflowEvent["type"]> = new Set([
  "node.started",
  "interrupt.requested",
  "interrupt.resolved",
]);

/** True when the node derives another event of the same kind, so that the recorded one did not come from outside. */
function isOtherThanRecorded(derived: DerivedEvents, { type, nodeId, payload }: WorkflowEvent): boolean {
  const [draft] = derived.kind === "other" ? derived.drafts : [];
  if (!draft || draft.type !== type || draft.nodeId !== nodeId) return false;
  return (
    draft.type !== "core.workflowChain.event" ||
    draft.payload.phase === (payload as { phase?: unknown }).phase
  );
}

interface FromOutside {
  readonly ask?: AskEffect;
}

/** Returns how the run could have been told this from outside; `undefined` where it could not (R2). */
function classifyOutsideEvent(replay: WorkflowReplay, event: WorkflowEvent): FromOutside | undefined {
  const { type, nodeId } = event;
  if (type === "cap.breached") return {};
  if (nodeId === undefined) return COMMANDS.has(type) ? {} : undefined;
  const nodeRun = replay.advance.run.nodes.get(nodeId);
  if (type === "interrupt.resolved" || type === "approval.received")
    return isAnswerByPerson(nodeRun?.interrupt, event) ? {} : undefined;
  return nodeRun?.status === "running" ? classifyNodeEvent(replay, nodeId, event) : undefined;
}

/**
 * True when an event is somebody's answer to the question. An expired question follows from the log and was answered
 * by nobody.
 */
function isAnswerByPerson(interrupt: Interrupt | undefined, { payload }: WorkflowEvent): boolean {
  const { interruptId, resolvedBy, decidedBy } = payload as Values;
  return interrupt?.interruptId === interruptId && (resolvedBy ?? decidedBy) !== undefined;
}

/** Acts of people, other systems and the host itself on a run. */
const COMMANDS: ReadonlySet<WorkflowEvent["type"]> = new Set([
  "run.paused",
  "run.resuming",
  "coordination.pause_requested",
  "variable.changed",
  "workspace.updated",
]);

/** Returns how an event of a node could tell an outcome that the node waits for; `undefined` where it cannot. */
function classifyNodeEvent(
  replay: WorkflowReplay,
  nodeId: string,
  { type }: WorkflowEvent,
): FromOutside | undefined {
  const view = createNodeView(replay.advance, nodeId);
  if (!view || type === "node.started" || type === "node.skipped") return undefined;
  const step = decideNodeStep(view);
  if (step.kind === "act") return offerAskingAgain(replay, step.effect);
  return isTakenFromRecord(view, type) ? {} : undefined;
}

/** Offers to ask the model again, unless that was done and its recorded outcome stands. */
function offerAskingAgain({ askedEffectId }: WorkflowReplay, effect: NodeEffect): FromOutside {
  return effect.kind === "ask_model" && effect.id !== askedEffectId ? { ask: effect } : {};
}

/** True for outcomes that are taken from the record although they could be computed again. */
function isTakenFromRecord({ node: { node }, settings }: NodeView, type: WorkflowEvent["type"]): boolean {
  // A supervisor is not asked again, and what is declared to be another each time is not done again.
  if (node.config["nondeterministic"] === true) return true;
  if (node.typeId === SUPERVISOR) return !AT_ONCE.has(type);
  // An effect that cannot be done fails at once, by the settings of the host then.
  const hasOutcomes = findNodeType(node.typeId, settings)?.settle !== undefined;
  return hasOutcomes && (type === "node.failed" || type === "node.retried");
}

const AT_ONCE: ReadonlySet<WorkflowEvent["type"]> = new Set(["node.suspended", "interrupt.requested"]);

function endInDivergence(replay: WorkflowReplay): ReplayedPart["then"] {
  const drafts = replay.derived.kind === "other" ? replay.derived.drafts : [];
  const events = replay.recorded.events.slice(replay.takenCount);
  markSettled(replay);
  return { kind: "diverged", divergence: findDivergence(drafts, events) };
}
