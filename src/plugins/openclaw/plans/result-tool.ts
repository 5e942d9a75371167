/**
 * Owns: what the tool `coordination_result` does: it lists the results that a session may read, and reads and searches them bit by bit,
 * so that none of them floods a context.
 */
import { z } from "zod";
import {
  coordinationIdSchema,
  stepIdSchema,
  type CoordinationId,
} from "../../../agents/coordination/contracts/ids.ts";
import {
  describeProblems,
  ENVELOPE_BOUNDS,
  parseBounded,
} from "../../../agents/coordination/contracts/validation.ts";
import type { ReadableResult } from "../../../agents/coordination/ledger/readable-results.ts";
import { isOwnedBy } from "../../../agents/coordination/contracts/coordination-summary.ts";
import { parseTextOutput } from "../../../agents/coordination/plan/read-outputs.ts";
import { findOccurrences, cutTextPage } from "../../../agents/coordination/results/cut-text.ts";
import type {
  CoordinationView,
  StepView,
} from "../../../agents/coordination/runtime/log/coordination-view.ts";
import { listRuns } from "../../../agents/coordination/runtime/log/read-pages.ts";
import { readUnlessDamaged } from "../../../agents/coordination/runtime/log/read-state.ts";
import {
  createToolError,
  type ToolCallScope,
  type ToolAnswer,
  type ToolCallRunner,
} from "../runtime-access/tool-call.ts";
import { maySeeStep, findSessionPlace } from "./place-in.ts";
import { PAGE_CHARS, PAGE_CHARS_MAX, WANTED_CHARS_MAX } from "../declarations/result-declaration.ts";

const resultParams = z.strictObject({
  coordinationId: coordinationIdSchema.optional(),
  stepId: stepIdSchema.optional(),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/u)
    .optional(),
  from: z.int().min(0).optional(),
  chars: z.int().min(1).max(PAGE_CHARS_MAX).default(PAGE_CHARS),
  find: z.string().min(1).max(WANTED_CHARS_MAX).optional(),
});
type ResultParams = z.output<typeof resultParams>;

/**
 * Returns, for the tool that reads results, a list of the newest that the session may read, or with a step a part of
 * that step's result or what a search in it finds; a wrong call is answered by an error.
 */
export async function readResults(use: ToolCallRunner, params: unknown): Promise<ToolAnswer> {
  const parsed = parseBounded(resultParams, params ?? {}, ENVELOPE_BOUNDS);
  if (!parsed.ok) return createToolError(describeProblems(parsed.problems));
  const wanted = parsed.value;
  if (wanted.stepId === undefined) return use((calling) => listResults(calling, wanted.coordinationId));
  if (wanted.coordinationId === undefined) return createToolError("stepId needs the coordinationId");
  return use((calling) => readOneResult(calling, wanted));
}

/** So many of the newest coordinations, and of their results, are looked at. */
const LOOKED_MAX = 2_000;
const COORDINATIONS_MAX = 20;
const LISTED_MAX = 50;

async function listResults(
  calling: ToolCallScope,
  coordinationId: CoordinationId | undefined,
): Promise<ToolAnswer> {
  if (coordinationId) return formatResultList(await listResultsIn(calling, coordinationId));
  const { ids, unreadable } = await findOwnCoordinations(calling);
  const readable: object[][] = [];
  for (const id of ids) {
    const inOne = await readUnlessDamaged(() => listResultsIn(calling, id));
    if (inOne) readable.push(inOne);
  }
  const damaged = unreadable + ids.length - readable.length;
  return { ...formatResultList(readable.flat()), ...(damaged > 0 && { unreadable: damaged }) };
}

/** Lists the results in a coordination that the session may read; none where it has no part in it. */
async function listResultsIn(calling: ToolCallScope, id: CoordinationId): Promise<object[]> {
  const { steps = [] } = (await readVisibleSteps(calling, id)) ?? {};
  return steps.flatMap((step) => (step.results ?? []).map((result) => formatResult(id, step, result)));
}

function formatResultList(results: readonly object[]): ToolAnswer {
  const leftOut = results.length - LISTED_MAX;
  return {
    status: "ok",
    results: results.slice(-LISTED_MAX),
    ...(leftOut > 0 && { leftOut }),
    note: "Read one with its coordinationId, stepId and sha256. What is not listed was told as a whole, or is not let through yet.",
  };
}

interface OwnCoordinations {
  readonly ids: readonly CoordinationId[];
  /** How many could not be found, because their logs are damaged. */
  readonly unreadable: number;
}

/**
 * Finds at most 20 coordinations: the newest that the session owns, the newest last, and behind them the one that it
 * works in.
 */
async function findOwnCoordinations({ plans, session }: ToolCallScope): Promise<OwnCoordinations> {
  const ids = new Set<CoordinationId>();
  const around = await readUnlessDamaged(async () => ({ envelope: await plans.envelopeForChild(session) }));
  if (around?.envelope) ids.add(around.envelope.coordinationId);
  let looked = 0;
  for await (const { runId, summary } of listRuns(plans.reads)) {
    looked += 1;
    if (isOwnedBy(summary, session, plans.reads)) ids.add(runId);
    if (looked === LOOKED_MAX || ids.size === COORDINATIONS_MAX) break;
  }
  return { ids: [...ids].reverse(), unreadable: around ? 0 : 1 };
}

/** A coordination, and the steps of it that a session may see. */
interface VisibleSteps {
  readonly view: CoordinationView;
  /** Those that the session may see. */
  readonly steps: readonly StepView[];
}

/** Returns a coordination with the steps that the session may see; `undefined` where it has no part in it. */
async function readVisibleSteps(
  calling: ToolCallScope,
  id: CoordinationId,
): Promise<VisibleSteps | undefined> {
  const view = await calling.plans.reads.view(id);
  const place = view && (await findSessionPlace(calling, view));
  return view && place && { view, steps: view.steps.filter((step) => maySeeStep(place, step)) };
}

function formatResult(coordinationId: CoordinationId, step: StepView, result: ReadableResult): object {
  const { stepId, name, agentId, status } = step;
  return {
    coordinationId,
    stepId,
    ...(name !== undefined && { name }),
    agent: agentId,
    stepStatus: status,
    ...pickResultFields(result),
  };
}

function pickResultFields({ kind, attempt, content: { sha256, bytes } }: ReadableResult): object {
  return { kind, attempt, sha256, bytes };
}

/** Answers with a page of one result, or with the places of a text in it. */
async function readOneResult(calling: ToolCallScope, wanted: ResultParams): Promise<ToolAnswer> {
  const { coordinationId, stepId, sha256 } = wanted;
  const visible = coordinationId && (await readVisibleSteps(calling, coordinationId));
  const step = visible && visible.steps.find((each) => each.stepId === stepId);
  // One sentence for what is not there and what is not the caller's: nothing can be learnt from it.
  if (!step) return createToolError(`no result of a step ${JSON.stringify(stepId)} belongs to this session`);
  const result = findResult(step, sha256);
  if (!result) return createToolError(explainMissingResult(step, sha256));
  const kept = await calling.plans.reads.get(result.content.sha256);
  if (kept === undefined)
    return createToolError(`the result of step ${step.stepId} is not kept any more: its time is over`);
  // A session that was told a text reads on in that text, and not in the outputs that hold it.
  const text = result.kind === "outputs" ? parseTextOutput(kept) : kept;
  const head = { status: "ok", coordinationId, stepId, ...pickResultFields(result), chars: text.length };
  const { find, from = 0, chars } = wanted;
  return find === undefined
    ? { ...head, ...cutTextPage(text, from, chars) }
    : { ...head, ...searchResult(text, find, from) };
}

/** Finds the newest result of a step, or the one with this hash. */
function findResult({ results = [] }: StepView, sha256: string | undefined): ReadableResult | undefined {
  if (sha256 === undefined) return results.at(-1);
  return results.find(({ content }) => content.sha256 === sha256);
}

const MATCHES_MAX = 20;

/** Finds at most 20 places of a text; `next` is where to search on. */
function searchResult(text: string, find: string, from: number): object {
  const matches = findOccurrences(text, { wanted: find, from, placesMax: MATCHES_MAX });
  const last = matches.at(-1);
  const isCutOff = matches.length === MATCHES_MAX && last !== undefined;
  return { matches, ...(isCutOff && { next: last.at + find.length }) };
}

function explainMissingResult({ stepId, status }: StepView, sha256: string | undefined): string {
  if (status === "held")
    return `the result of step ${stepId} is held until it is ruled on, and cannot be read before`;
  if (sha256 !== undefined) return `step ${stepId} has no such result that may be read`;
  return status === "completed"
    ? `step ${stepId} left nothing here: what it said was told as a whole`
    : `step ${stepId} is ${status} and has no result that may be read`;
}
