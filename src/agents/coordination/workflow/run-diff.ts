/**
 * Owns: how two runs differ (RFC 0054): a pure function of their logs, event by event at the same place, and of the states that
 * they lead to.
 *
 * R1 What is another one in every run, as the ids and times that the host records are, is no difference. R2 The difference of the
 * states names what changed and shows no value; a name that could be one of a credential is not shown either. R3 It is worked out
 * in slices: a run has megabytes of values, and whoever asks for its difference must not stop everybody else.
 */
import { compareValuesInSlices, type AreSameTexts } from "./same-value-in-slices.ts";
import type { Values } from "./state/values.ts";
import { isRecord } from "../std/is-record.ts";

/** An event of any run. */
export interface LoggedEvent {
  readonly eventId: string;
  readonly runId: string;
  readonly sequence: number;
  readonly type: string;
  readonly payload: unknown;
  readonly nodeId?: string;
  readonly causationId?: string;
}

export interface ComparedRun {
  readonly runId: string;
  /** From the first on. */
  readonly events: readonly LoggedEvent[];
  /** Nothing follows them. */
  readonly isComplete: boolean;
}

export interface EventDiff {
  readonly seq: number;
  readonly op: "added" | "removed" | "changed";
  readonly aEvent?: LoggedEvent;
  readonly bEvent?: LoggedEvent;
}

/** run-diff-response.schema.json. */
export interface RunDiff {
  readonly a: string;
  readonly b: string;
  readonly divergedAtSeq: number | null;
  readonly eventDiffs: readonly EventDiff[];
  readonly stateDiff: Values;
  /** Only a prefix was compared, or not every difference is told. */
  readonly truncated?: true;
}

/** One answer has at most so many differences, and characters; the first difference is always in it. */
const DIFFS_MAX = 500;
const CHARS_MAX = 2_000_000;

/**
 * Returns the differences between the events and the states of two runs, without a pause: for who has nothing else to
 * do meanwhile.
 */
export function diffRuns(a: ComparedRun, b: ComparedRun): RunDiff {
  const work = diffRunsInSlices(a, b);
  for (;;) {
    const slice = work.next();
    if (slice.done) return slice.value;
  }
}

/**
 * Compares the events and the states of two runs, yields nothing after each small slice of the work (R3), and returns
 * the differences; `truncated` where they are not all.
 */
export function* diffRunsInSlices(a: ComparedRun, b: ComparedRun): Generator<undefined, RunDiff> {
  const length = countEventsToCompare(a, b);
  const runIds = [a.runId, b.runId];
  const [one, other] = [indexRunEvents(a, runIds), indexRunEvents(b, runIds)];
  const eventDiffs: EventDiff[] = [];
  let isCut = !a.isComplete || !b.isComplete;
  let chars = 0;
  for (let seq = 0; seq < length; seq += 1) {
    const diff = yield* diffEventsAt(seq, one, other);
    if (!diff) continue;
    chars += JSON.stringify(diff).length;
    yield;
    if (isDiffFull(eventDiffs.length, chars)) {
      isCut = true;
      break;
    }
    eventDiffs.push(diff);
  }
  return {
    a: a.runId,
    b: b.runId,
    eventDiffs,
    divergedAtSeq: eventDiffs[0]?.seq ?? null,
    stateDiff: yield* diffStates(
      foldDiffState(one, length),
      foldDiffState(other, length),
      createTextComparison(runIds),
    ),
    ...(isCut && { truncated: true }),
  };
}

/** True when no more differences fit. The first one is always reported. */
function isDiffFull(diffs: number, chars: number): boolean {
  return diffs >= DIFFS_MAX || (diffs > 0 && chars > CHARS_MAX);
}

/** Counts the events to compare. Events that one run has not reached yet are no difference. */
function countEventsToCompare(a: ComparedRun, b: ComparedRun): number {
  const knownLengths = [a, b].flatMap(({ isComplete, events }) => (isComplete ? [] : [events.length]));
  return Math.min(Math.max(a.events.length, b.events.length), ...knownLengths);
}

/** The events of a run that is compared, with their places by id. */
interface IndexedRun {
  readonly events: readonly LoggedEvent[];
  /** The place of an event in the log, by its id. */
  readonly places: ReadonlyMap<string, number>;
  readonly selves: readonly string[];
}

function indexRunEvents({ events }: ComparedRun, selves: readonly string[]): IndexedRun {
  return { events, selves, places: new Map(events.map(({ eventId, sequence }) => [eventId, sequence])) };
}

function* diffEventsAt(
  seq: number,
  one: IndexedRun,
  other: IndexedRun,
): Generator<undefined, EventDiff | undefined> {
  const [aEvent, bEvent] = [one.events[seq], other.events[seq]];
  if (!aEvent) return bEvent && { seq, op: "added", bEvent };
  if (!bEvent) return { seq, op: "removed", aEvent };
  const isSame = yield* isSameEvent([aEvent, one], [bEvent, other]);
  return isSame ? undefined : { seq, op: "changed", aEvent, bEvent };
}

type EventOfRun = readonly [event: LoggedEvent, reading: IndexedRun];

function* isSameEvent([aEvent, one]: EventOfRun, [bEvent, other]: EventOfRun): Generator<undefined, boolean> {
  if (aEvent.type !== bEvent.type || aEvent.nodeId !== bEvent.nodeId) return false;
  if (locateCause(aEvent, one) !== locateCause(bEvent, other)) return false;
  const rules = {
    areSameTexts: createTextComparison(one.selves),
    ignored: VOLATILE,
    ignoredBelow: IGNORED_IN_VALUES,
  };
  return yield* compareValuesInSlices(aEvent.payload, bEvent.payload, rules);
}

/** Returns the place of an event's cause in its own log, or the id of a cause outside of it. */
function locateCause({ causationId }: LoggedEvent, { places }: IndexedRun): number | string | undefined {
  return causationId === undefined ? undefined : (places.get(causationId) ?? causationId);
}

/** R1. Those of RFC 0041, and what only times and ids of runs are. */
const VOLATILE: ReadonlySet<string> = new Set([
  ...["eventId", "runId", "observedAt", "timestamp", "occurredAt", "emittedAt", "id"],
  ...["durationMs", "childRunId", "traceparent", "tracestate"],
]);

const NO_NAMES: ReadonlySet<string> = new Set();

/** A node that begins a child names it in its outputs; all else in them is the run's own. */
const VOLATILE_IN_OUTPUTS: ReadonlySet<string> = new Set(["childRunId"]);

/** Fields with values of callers, workflows, models and tools: an id or a time in them is a value like any other. */
const VALUE_FIELDS = [
  ...["inputs", "configurable", "metadata", "next", "previous", "resumeValue"],
  ...["args", "outcome", "result", "task", "decision"],
];

const IGNORED_IN_VALUES = new Map<string, ReadonlySet<string>>([
  ...VALUE_FIELDS.map((field) => [field, NO_NAMES] as const),
  ["outputs", VOLATILE_IN_OUTPUTS],
]);

/** Creates the comparison of texts in which the ids of the two runs are not told apart. */
function createTextComparison(selves: readonly string[]): AreSameTexts {
  // The longer one first, which may begin with the other.
  const longestFirst = selves.toSorted((one, other) => other.length - one.length);
  const stabilize = (text: string): string =>
    longestFirst.reduce((left, runId) => left.replaceAll(runId, "@run"), text);
  return (one, other) => stabilize(one) === stabilize(other);
}

/** The state of a run as far as a comparison shows it. */
interface ComparedState {
  status: string;
  error?: string;
  outputs?: unknown;
  readonly variables: Map<string, unknown>;
  readonly nodes: Map<string, string>;
}

const RUN_STATUS: Readonly<Record<string, string>> = {
  "run.completed": "completed",
  "run.failed": "failed",
  "run.cancelled": "cancelled",
  "run.paused": "paused",
  "run.resumed": "running",
};

const NODE_STATUS: Readonly<Record<string, string>> = {
  "node.started": "running",
  "node.suspended": "suspended",
  "interrupt.resolved": "running",
  "node.completed": "completed",
  "node.failed": "failed",
  "node.skipped": "skipped",
  "node.cancelled": "cancelled",
};

function foldDiffState(reading: IndexedRun, length: number): ComparedState {
  const state: ComparedState = { status: "running", variables: new Map(), nodes: new Map() };
  for (const { type, nodeId, payload } of reading.events.slice(0, length)) {
    state.status = RUN_STATUS[type] ?? state.status;
    const node = NODE_STATUS[type];
    if (nodeId !== undefined && node !== undefined) state.nodes.set(nodeId, node);
    if (isRecord(payload)) applyPayload(state, type, payload);
  }
  return state;
}

function applyPayload(state: ComparedState, type: string, payload: Values): void {
  const { inputs, outputs, error, name, next } = payload;
  switch (type) {
    case "run.started":
      if (isRecord(inputs))
        for (const [key, value] of Object.entries(inputs)) state.variables.set(key, value);
      return;
    case "variable.changed":
      if (typeof name === "string") state.variables.set(name, next ?? null);
      return;
    case "run.completed":
      state.outputs = outputs ?? null;
      return;
    case "run.failed":
      state.error = isRecord(error) && typeof error["code"] === "string" ? error["code"] : "unknown";
      return;
    default:
  }
}

function* diffStates(
  a: ComparedState,
  b: ComparedState,
  areSame: AreSameTexts,
): Generator<undefined, Values> {
  const rules = { areSameTexts: areSame, ignored: NO_NAMES };
  const variables: Values[] = [];
  for (const [name, one, other] of pairByKey(a.variables, b.variables)) {
    const isSame = yield* compareValuesInSlices(one, other, rules);
    const op = one === undefined ? "added" : other === undefined ? "removed" : "changed";
    if (!isSame) variables.push({ name: maskCredential(name), op });
  }
  const nodes = pairByKey(a.nodes, b.nodes)
    .filter(([, one, other]) => one !== other)
    .map(([nodeId, one = null, other = null]) => ({ nodeId: maskCredential(nodeId), a: one, b: other }));
  const outputRules = { areSameTexts: areSame, ignored: VOLATILE_IN_OUTPUTS };
  const hasSameOutputs = yield* compareValuesInSlices(a.outputs, b.outputs, outputRules);
  return {
    ...(a.status !== b.status && { status: { a: a.status, b: b.status } }),
    ...(a.error !== b.error && { error: { a: maskErrorCode(a), b: maskErrorCode(b) } }),
    ...(!hasSameOutputs && { outputs: "changed" }),
    ...(variables.length > 0 && { variables }),
    ...(nodes.length > 0 && { nodes }),
  };
}

function maskErrorCode({ error }: ComparedState): string | null {
  return error === undefined ? null : maskCredential(error);
}

/** The values of two runs under one key. */
type KeyedPair<T> = readonly [key: string, one: T | undefined, other: T | undefined];

/** Pairs what two maps have under every key of either. */
function pairByKey<T>(one: ReadonlyMap<string, T>, other: ReadonlyMap<string, T>): KeyedPair<T>[] {
  const keys = [...new Set([...one.keys(), ...other.keys()])].toSorted();
  return keys.map((key): KeyedPair<T> => [key, one.get(key), other.get(key)]);
}

/** R2. */
const CREDENTIAL = /sk-|api[_-]?key|secret|bearer|token|password/i;

function maskCredential(name: string): string {
  return CREDENTIAL.test(name) ? "[masked]" : name;
}
