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
import { resumeRun } from "./workflow-commands.ts";
import { evolveWorkflow, isFirstOfFork } from "./state/evolve-workflow.ts";
import { restOf } from "./go-live.ts";
import { SUPERVISOR } from "./state/graph.ts";
import type { NodeEffect, NodeView, WorkflowSettings } from "./node-contract/node-type.ts";
import { nodeTypeOf } from "./nodes/node-types.ts";
import { goOn, stepOf, viewOf, type Going, type ProgressParts } from "./progress.ts";
import { differenceOf, isSameDraft, type Divergence } from "./same-draft.ts";
import type { Interrupt, WorkflowRun } from "./state/workflow-state.ts";
import type { Values } from "./state/values.ts";

export type AskEffect = NodeEffect & { readonly kind: "ask_model" };

export interface ReplayParts extends Omit<ProgressParts, "now"> {
  /** Events before it are as they are in the source. */
  readonly derivesFrom?: number;
  /** The call of a model that was asked again, and whose recorded outcome stands. */
  readonly asked?: string;
}

export interface Recorded {
  /** Of the source, from the run's next one on. */
  readonly events: readonly WorkflowEvent[];
  /** Nothing follows them that is replayed. */
  readonly isAll: boolean;
}

export interface Replayed {
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

/** Events as they are in the source, up to where something begins that may reach behind `derivesFrom`. */
export function copied(
  run: WorkflowRun,
  derivesFrom: number,
  { events, isAll }: Recorded,
): Replayed | undefined {
  const wanted = derivesFrom - run.nextSequence;
  const isAllOfIt = wanted === Infinity || (isAll && wanted >= events.length);
  const count = isAllOfIt ? events.length : beforeMoment(events, wanted);
  if (count === 0) return undefined;
  const own = events.slice(0, count).map((event) => ({ ...event, runId: run.runId }));
  const isOver = isAll && count === events.length;
  return { run: own.reduce(evolveWorkflow, run), events: own, then: { kind: isOver ? "over" : "more" } };
}

/** What came from outside is told by events of one time: none is cut off from those before it. */
function beforeMoment(events: readonly WorkflowEvent[], wanted: number): number {
  let count = Math.min(Math.max(0, wanted), events.length);
  const { timestamp } = events[count] ?? events.at(-1) ?? {};
  while (count > 0 && events[count - 1]?.timestamp === timestamp) count -= 1;
  return count;
}

/** The run goes on from its own state; what it appends is what is recorded. */
export function replayed(run: WorkflowRun, parts: ReplayParts, recorded: Recorded): Replayed {
  const it = replaying(run, parts, recorded);
  let then: Replayed["then"] | undefined;
  while (!then) then = goFurther(it);
  const isOver = then.kind === "over";
  const { run: sure, taken } = isOver ? { run: it.going.run, taken: it.taken } : it.sure;
  return { run: sure, events: it.events.slice(0, taken), then };
}

interface Replaying {
  readonly going: Going;
  /** As events of the run. */
  readonly events: WorkflowEvent[];
  readonly recorded: Recorded;
  readonly asked: string | undefined;
  readonly derivesFrom: number;
  taken: number;
  /** What the newest derivation came to. */
  held: Held;
  /** What came from outside, while it may not be over. */
  open: Open | undefined;
  /** Where the newest thing was over. */
  sure: { readonly run: WorkflowRun; readonly taken: number };
}

type Held =
  | { readonly kind: "nothing" }
  | { readonly kind: "same"; readonly count: number }
  | { readonly kind: "cut" }
  | { readonly kind: "other"; readonly drafts: readonly WorkflowDraft[] };

/** The outcome of one effect is told by events of its node, one behind the other, of one time. */
interface Open {
  readonly nodeId: string | undefined;
  readonly timestamp: string;
  readonly isLimit: boolean;
}

const NOTHING: Held = { kind: "nothing" };

function replaying(
  run: WorkflowRun,
  { asked, derivesFrom = 0, ...parts }: ReplayParts,
  recorded: Recorded,
): Replaying {
  const it: Replaying = {
    going: {
      ...parts,
      run,
      now: 0 as EpochMs,
      events: [],
      memory: [],
      settings: withoutLimits(parts.settings),
      compare: (drafts) => hold(it, drafts),
    },
    // An event is made for the run where it is taken: most of the record of a page is.
    events: [],
    recorded,
    asked,
    derivesFrom,
    taken: 0,
    held: NOTHING,
    open: undefined,
    sure: { run, taken: 0 },
  };
  return it;
}

/** Limits of the operator, and addresses that nobody calls: what was recorded counts, whatever they are by now. */
function withoutLimits(settings: WorkflowSettings): WorkflowSettings {
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

function hold(it: Replaying, drafts: readonly WorkflowDraft[]): boolean {
  const { events, isAll } = it.recorded;
  const left = events.length - it.taken;
  let at = it.taken;
  for (const draft of drafts) {
    const event = events[at];
    if (!event) break;
    at += 1;
    if (isSameDraft(draft, event)) continue;
    it.held = { kind: "other", drafts };
    return false;
  }
  if (drafts.length <= left) it.held = { kind: "same", count: drafts.length };
  else it.held = isAll ? { kind: "same", count: left } : { kind: "cut" };
  return true;
}

function take(it: Replaying, count: number): void {
  const { going } = it;
  for (const recorded of it.recorded.events.slice(it.taken, it.taken + count)) {
    const event = { ...recorded, runId: going.run.runId };
    going.run = evolveWorkflow(going.run, event);
    it.events.push(event);
  }
  it.taken += count;
}

/** One thing at a time; what it returns ends the replay, or this part of it. */
function goFurther(it: Replaying): Replayed["then"] | undefined {
  const { events, isAll } = it.recorded;
  const event = events[it.taken];
  // Whether the last of a page is over is seen by what follows.
  if (!event) {
    if (isAll) it.sure = { run: it.going.run, taken: it.taken };
    return { kind: isAll ? "over" : "more" };
  }
  if (!isOpen(it, event)) {
    it.open = undefined;
    it.sure = { run: it.going.run, taken: it.taken };
  }
  derive(it, event);
  const { held } = it;
  switch (held.kind) {
    case "cut":
      return { kind: "more" };
    case "same":
      take(it, held.count);
      return undefined;
    default:
      return fromOutside(it, event);
  }
}

function isOpen({ open }: Replaying, { nodeId, timestamp, type }: WorkflowEvent): boolean {
  if (open?.timestamp !== timestamp) return false;
  return open.isLimit ? ENDS_AT_LIMIT.has(type) : open.nodeId === nodeId && !BEGINS.has(type);
}

/** What ends a run that has gone over a limit. */
const ENDS_AT_LIMIT: ReadonlySet<WorkflowEvent["type"]> = new Set([
  "agent.invocation.completed",
  "node.failed",
  "node.cancelled",
  "run.failed",
]);

/** Nothing of these tells what came of an effect, unless the node is tried again. */
const BEGINS: ReadonlySet<WorkflowEvent["type"]> = new Set(["node.skipped", "run.completed", "run.failed"]);

/** What follows now, held against the record. */
function derive(it: Replaying, event: WorkflowEvent): void {
  it.held = NOTHING;
  it.going.now = epochMsOf(event.timestamp);
  const { going } = it;
  if (event.type === "run.resumed") hold(it, resumeRun(going.run, going));
  else if (event.type === "run.resuming" && isFirstOfFork(going.run)) hold(it, [event, ...restAt(it)]);
  else goOn(going);
}

/** Where the source itself went live as a fork. */
function restAt({ going }: Replaying): WorkflowDraft[] {
  return restOf(going.run, { ...going, now: going.run.changedAtMs });
}

function fromOutside(it: Replaying, event: WorkflowEvent): Replayed["then"] | undefined {
  const { nodeId, timestamp } = event;
  if (it.open && (it.open.isLimit || !isAnother(it.held, event))) {
    take(it, 1);
    if (CLOSES.has(event.type)) it.open = undefined;
    return undefined;
  }
  const told = toldFromOutside(it, event);
  if (event.sequence >= it.derivesFrom) {
    if (told === undefined) return diverged(it, event);
    if (told.ask) return { kind: "ask", effect: told.ask };
  }
  it.open = { nodeId, timestamp, isLimit: event.type === "cap.breached" };
  take(it, 1);
  if (CLOSES.has(event.type)) it.open = undefined;
  return undefined;
}

/** Behind these, the node goes on by itself. */
const CLOSES: ReadonlySet<WorkflowEvent["type"]> = new Set([
  "node.started",
  "interrupt.requested",
  "interrupt.resolved",
]);

/** What the node would tell is of the same kind, and is another: then it is no more of what came from outside. */
function isAnother(held: Held, { type, nodeId, payload }: WorkflowEvent): boolean {
  const [draft] = held.kind === "other" ? held.drafts : [];
  if (!draft || draft.type !== type || draft.nodeId !== nodeId || type === "variable.changed") return false;
  return (
    draft.type !== "core.workflowChain.event" ||
    draft.payload.phase === (payload as { phase?: unknown }).phase
  );
}

interface Told {
  readonly ask?: AskEffect;
}

/** R2: whether the run could have been told this. */
function toldFromOutside(it: Replaying, event: WorkflowEvent): Told | undefined {
  const { type, nodeId } = event;
  if (type === "cap.breached") return {};
  if (nodeId === undefined) return COMMANDS.has(type) ? {} : undefined;
  const own = it.going.run.nodes.get(nodeId);
  if (type === "interrupt.resolved" || type === "approval.received")
    return isAnswerTo(own?.interrupt, event) ? {} : undefined;
  return own?.status === "running" ? outcomeAt(it, nodeId, event) : undefined;
}

/** Who did not answer in time was asked in vain; that follows from the log. */
function isAnswerTo(interrupt: Interrupt | undefined, { payload }: WorkflowEvent): boolean {
  const { interruptId, resolvedBy, decidedBy } = payload as Values;
  return interrupt?.interruptId === interruptId && (resolvedBy ?? decidedBy) !== undefined;
}

/** What people, other systems and the host itself do to a run. */
const COMMANDS: ReadonlySet<WorkflowEvent["type"]> = new Set([
  "run.paused",
  "run.resuming",
  "coordination.pause_requested",
  "variable.changed",
  "workspace.updated",
]);

function outcomeAt(it: Replaying, nodeId: string, { type }: WorkflowEvent): Told | undefined {
  const view = viewOf(it.going, nodeId);
  if (!view || type === "node.started" || type === "node.skipped") return undefined;
  const step = stepOf(view);
  if (step.kind === "act") return asksAgain(it, step.effect);
  return isRecorded(view, type) ? {} : undefined;
}

function asksAgain({ asked }: Replaying, effect: NodeEffect): Told {
  return effect.kind === "ask_model" && effect.id !== asked ? { ask: effect } : {};
}

/** What is not worked out again though it could be. */
function isRecorded({ node: { node } }: NodeView, type: WorkflowEvent["type"]): boolean {
  // A supervisor is not asked again, and what is declared to be another each time is not done again.
  if (node.config["nondeterministic"] === true) return true;
  if (node.typeId === SUPERVISOR) return !AT_ONCE.has(type);
  // What cannot be done fails at once, by what the host was then.
  const hasOutcomes = nodeTypeOf(node.typeId)?.settle !== undefined;
  return hasOutcomes && (type === "node.failed" || type === "node.retried");
}

const AT_ONCE: ReadonlySet<WorkflowEvent["type"]> = new Set(["node.suspended", "interrupt.requested"]);

function diverged(it: Replaying, event: WorkflowEvent): Replayed["then"] {
  const drafts = it.held.kind === "other" ? it.held.drafts : [];
  const next = it.recorded.events[it.taken + 1];
  it.sure = { run: it.going.run, taken: it.taken };
  return { kind: "diverged", divergence: differenceOf(drafts, event, next) };
}
