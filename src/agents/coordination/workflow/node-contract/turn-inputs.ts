/**
 * Owns: what a supervisor knows when it decides (RFC 0061): the run, its memory, its workspace and the end of its log, as they
 * were when it entered its turn. All of it is data that others wrote, bounded, and without what nobody may see.
 *
 * T1 the same log, memory and workspace as of the same event are the same text, whenever and by whomever it is asked for.
 */
import type { EpochMs } from "../../contracts/ids.ts";
import type { WorkflowEvent } from "../../contracts/workflows/workflow-events.ts";
import type { NodeGraph } from "../state/node-graph.ts";
import { SUBRUN_ARTIFACT } from "../state/answer-interrupt.ts";
import { summarizeReviews } from "../state/review.ts";
import { MASK, maskSensitiveVariables } from "../state/run-view.ts";
import { cleanNestedTexts, collectSensitiveTexts, maskTexts } from "../state/sensitive-texts.ts";
import type { WorkflowRun } from "../state/workflow-state.ts";
import { readVariables, type Values } from "../state/values.ts";
import { isRecord } from "../../std/is-record.ts";

/** A request for inputs, with the event of the run's log before which they are read. */
export interface TurnAsk {
  readonly sequence: number;
  /** The time of the turn; entries that have expired by then are not there. */
  readonly atMs: EpochMs;
  /** Absent: the supervisor wants none. */
  readonly memory?: { readonly scope: string; readonly tags: readonly string[]; readonly limit: number };
  /** Paths, and beginnings of paths that end with a slash; none: all. */
  readonly workspace?: { readonly paths: readonly string[] };
  /** Events at most. */
  readonly transcript: number;
}

export interface TurnFile {
  readonly path: string;
  readonly version: number;
  /** Absent where there are more files than are told with their contents. */
  readonly content?: string;
}

export interface TurnInputs {
  /** As it was when the turn began. */
  readonly run: WorkflowRun;
  readonly graph: NodeGraph;
  readonly memory?: readonly Values[];
  readonly workspace?: readonly TurnFile[];
  /** The oldest first. */
  readonly transcript: readonly WorkflowEvent[];
}

/** Files that are told with their contents; of others there is the name. */
export const TURN_FILES = 50;

/** The size of each part, in UTF-16 code units of JSON, besides its braces and names. */
export const TURN_CHARS = {
  variables: 12_000,
  memory: 16_000,
  workspace: 24_000,
  transcript: 32_000,
} as const;

/**
 * Formats as JSON what a supervisor's model is told for its turn: variables, memory, workspace and transcript cut to
 * their bounds, sensitive texts masked. `clean` takes out of a text what no model may see.
 */
export function formatTurnInputs(inputs: TurnInputs, clean: (text: string) => string): string {
  const { run, graph, memory, workspace, transcript } = inputs;
  const hidden = collectSensitiveTexts([inputs]);
  const sanitize = (value: unknown): unknown =>
    cleanNestedTexts(value ?? null, (text) => clean(maskTexts(text, hidden)));
  const shown = maskSensitiveVariables(readVariables(run, graph), graph);
  const state = {
    turn: run.orchestrator.decided + 1,
    variables: Object.fromEntries(
      fitValues(
        Object.entries(shown).map(([name, value]) => [name, sanitize(value)] as const),
        TURN_CHARS.variables,
      ),
    ),
    workers: sanitize(listWorkerEnds(run)),
    ...(run.reviews.size > 0 && { reviews: sanitize(summarizeReviews(run)) }),
    ...(memory && { memory: fitItems(memory.map(createMemoryItem), sanitize, TURN_CHARS.memory) }),
    ...(workspace && { workspace: fitItems(workspace.map(createFileItem), sanitize, TURN_CHARS.workspace) }),
    transcript: fitItems(
      transcript.map((event) => createEventItem(event, graph)),
      sanitize,
      TURN_CHARS.transcript,
    ),
  };
  return JSON.stringify(state);
}

/**
 * Lists the workers of the run, each with how it ended or the phase that it is in; of a dispatch those of its newest
 * decision.
 */
function listWorkerEnds(run: WorkflowRun): readonly Values[] {
  return [...run.nodes.values()].flatMap(({ handoff }) =>
    handoff
      ? [...(handoff.earlier ?? []), handoff].map(({ workerId, childStatus, phase, gaveUp }) => ({
          worker: workerId,
          status: childStatus ?? phase,
          ...(gaveUp && { goalSatisfied: false }),
        }))
      : [],
  );
}

/** A name, and content that may be cut. */
interface CuttableItem {
  readonly head: Values;
  readonly field: string;
  readonly value: unknown;
}

function createMemoryItem({ id, tags, createdAt, content }: Values): CuttableItem {
  return { head: { id, tags, createdAt }, field: "content", value: content };
}

function createFileItem({ path, version, content }: TurnFile): CuttableItem {
  return { head: { path, version }, field: "content", value: content };
}

function createEventItem({ sequence, type, nodeId, payload }: WorkflowEvent, graph: NodeGraph): CuttableItem {
  const head = { sequence, type, ...(nodeId !== undefined && { nodeId }) };
  return { head, field: "payload", value: selectShownPayload(type, payload, graph) };
}

/**
 * Cuts the longest contents of items so that the contents fit into a number of characters, heads not counted, and
 * makes all texts safe.
 */
function fitItems(
  items: readonly CuttableItem[],
  safe: (value: unknown) => unknown,
  charsMax: number,
): readonly Values[] {
  const values = items.map(({ value }, index) => [String(index), safe(value)] as const);
  const room = fitValues(values, charsMax);
  return items.map(({ head, field, value }, index) => {
    const safeHead = safe(head) as Values;
    return value === undefined ? safeHead : { ...safeHead, [field]: room[index]?.[1] };
  });
}

/**
 * Returns the named values with the longest cut so that together they take about `charsMax` characters of JSON. A
 * value that is cut becomes a text, with a note behind it of how long it was.
 */
export function fitValues(
  values: readonly (readonly [name: string, value: unknown])[],
  charsMax: number,
): readonly (readonly [name: string, value: unknown])[] {
  const texts = values.map(([, value]) => JSON.stringify(value));
  const cutLength = computeCutLength(
    texts.map(({ length }) => length),
    charsMax,
  );
  return values.map(([name, value], index) => {
    const text = texts[index] ?? "";
    if (text.length <= cutLength) return [name, value];
    // A text stands for itself, anything else for its JSON.
    const shownText = typeof value === "string" ? value : text;
    return [name, `${cutToJsonLength(shownText, cutLength)}… (${shownText.length} characters)`];
  });
}

/** Cuts a text so that in JSON, without its quotes, it takes at most `charsMax` characters. */
function cutToJsonLength(text: string, charsMax: number): string {
  let jsonLength = 0;
  let end = 0;
  for (const character of text) {
    jsonLength += JSON.stringify(character).length - 2;
    if (jsonLength > charsMax) break;
    end += character.length;
  }
  return text.slice(0, end);
}

/** Returns the greatest length to which all can be cut so that their sum is at most `most`. */
function computeCutLength(lengths: readonly number[], most: number): number {
  let room = most;
  let left = lengths.length;
  for (const length of lengths.toSorted((one, other) => one - other)) {
    if (length * left > room) return Math.floor(room / left);
    room -= length;
    left -= 1;
  }
  return most;
}

/** Returns an event's payload without sensitive variables, and without results that people did not let through. */
function selectShownPayload(type: WorkflowEvent["type"], payload: Values, graph: NodeGraph): unknown {
  const { inputs, name, data } = payload;
  if (type === "run.started" && isRecord(inputs))
    return { ...payload, inputs: maskSensitiveVariables(inputs, graph) };
  // A result that people did not let through is no more the supervisor's than the run's.
  if (type === "interrupt.requested" && isRecord(data) && data["artifactType"] === SUBRUN_ARTIFACT) {
    const { artifactData: _, ...shownData } = data;
    return { ...payload, data: shownData };
  }
  const isSensitive = graph.variables.some((each) => each.sensitive && each.name === name);
  return type === "variable.changed" && isSensitive ? { name, next: MASK } : payload;
}
