/**
 * Owns: reading a stored coordination for its replay: its log in pieces that end with a decision, and what beside the log is still kept.
 * Does not own: what is derived (`replay/`). Nothing is executed, nothing is written.
 */
import { CoordinationError, InvariantViolation } from "../contracts/errors.ts";
import type { CoordinationId } from "../contracts/ids.ts";
import { parsePlan, type CoordinationPlan } from "../contracts/plan.ts";
import type { ReplayPolicy } from "../contracts/config/replay-policy.ts";
import type { RunEvent } from "../contracts/run-event.ts";
import type { Effect } from "../dispatch/effects/next-effects.ts";
import type { Coordination, OpenCoordination } from "../ledger/state.ts";
import type { Json } from "../plan/step-graph.ts";
import type { ContentReader } from "../ports/content-store.ts";
import type { LogReader } from "../ports/ledger-store.ts";
import { listCriteriaOutputHashes } from "../replay/criteria-again.ts";
import {
  startReplay,
  continueReplay,
  type ReplayedDecision,
  type Difference,
  type ReplayProgress,
} from "../replay/replay-log.ts";
import { listUntestedGates } from "../replay/untested-gates.ts";
import type { DivergencePoint } from "../replay/alternative-history.ts";
import { createCounterfactual, type Counterfactual } from "../replay/what-if.ts";
import { parseJsonOrNothing } from "../std/parse-json.ts";

export type { Difference, DivergencePoint };

export interface ReplayQuery {
  /** Where deciding again begins; events before it are taken as they are recorded. */
  readonly from?: number;
  /** Where it ends; only the rest of the decision that stands there is looked at. */
  readonly to?: number;
  readonly policy?: ReplayPolicy;
}

export interface ReplayedCoordination {
  readonly coordinationId: CoordinationId;
  readonly from: number;
  /** The first event that was not looked at. */
  readonly to: number;
  /** How many were derived. */
  readonly events: number;
  readonly decisions: number;
  readonly difference?: Difference;
  /** With a policy, unless the log differs from what is derived under its own. */
  readonly whatIf?: ReplayedUnder;
}

export interface ReplayedUnder {
  readonly points: readonly DivergencePoint[];
  readonly leftOut: number;
  readonly uncertain: readonly { readonly stepId: string; readonly why: string }[];
  /** How the recorded history ended; `would`: the other one, as far as it is certain. */
  readonly recorded: string;
  readonly would: string;
  readonly next: readonly NextAct[];
  /** Whether the text of the plan was there: what its steps ask for beyond the operator. */
  readonly plan: "kept" | "deleted" | "none";
  /** The policy has a budget and the coordination is a plan, which states its own. */
  readonly isBudgetLeftOut?: true;
  /** Settings of the policy that the log holds too little of to decide by them. */
  readonly untested: readonly string[];
  /** Sentences on what of the policy, or of the plan, was not looked at. */
  readonly limits: readonly string[];
}

export interface NextAct {
  readonly act: Effect["kind"];
  readonly stepId?: string;
  readonly attempt?: number;
  readonly escalationId?: string;
}

type ReplayStore = LogReader & ContentReader;

const PAGE = 1_000;

/**
 * Decides a coordination again from its log, and returns how many decisions that took and the first one that differs
 * from the log; with another policy also what would have gone differently. Writes nothing. @throws CoordinationError
 * `COORDINATION_NOT_FOUND`, `INPUT_INVALID`, and as `LedgerStore.read`
 */
export async function replayCoordination(
  store: ReplayStore,
  coordinationId: CoordinationId,
  query: ReplayQuery = {},
): Promise<ReplayedCoordination> {
  const { from = 0, to = Number.MAX_SAFE_INTEGER } = query;
  const reading: LogReplay = { replaying: startReplay(coordinationId), from, to, outputs: new Map() };
  await replayLogInPieces(store, reading, query);
  const { state, decisions, difference } = reading.replaying;
  if (!difference) assertLogReaches(state, from);
  const whatIf = difference || !reading.under ? undefined : buildWhatIf(reading, state);
  return {
    coordinationId,
    from,
    to: state.nextSequence,
    decisions,
    events: Math.max(0, state.nextSequence - from),
    ...(difference && { difference }),
    ...(whatIf && { whatIf }),
  };
}

/** Replays the log piece by piece, up to `to` of the reading, the end of the log or the first difference. */
async function replayLogInPieces(
  store: ReplayStore,
  reading: LogReplay,
  { policy }: ReplayQuery,
): Promise<void> {
  for await (const piece of readPiecesOfLog(store, reading.replaying.state.coordinationId, reading.to)) {
    if (policy) reading.under ??= await prepareCounterfactual(store, piece[0], policy);
    for (const part of splitBeforeJudgement(piece, reading.from)) await replayPart(store, reading, part);
    if (reading.replaying.difference) return;
  }
}

/** Throws where the coordination does not exist or its log ends before `from`. */
function assertLogReaches({ kind, coordinationId, nextSequence }: Coordination, from: number): void {
  if (kind === "unopened")
    throw new CoordinationError(
      "COORDINATION_NOT_FOUND",
      `no coordination ${JSON.stringify(coordinationId)}`,
    );
  if (from > nextSequence)
    throw new CoordinationError("INPUT_INVALID", `the log ends before ${from}, at ${nextSequence}`);
}

/** The replay of a log under another policy, as far as it has come. */
interface CounterfactualReplay {
  readonly about: Pick<ReplayedUnder, "plan" | "isBudgetLeftOut">;
  readonly policy: ReplayPolicy;
  readonly other: Counterfactual;
  decisions: number;
}

/** The replay of a log, as far as it has come, and the range that is replayed. */
interface LogReplay {
  replaying: ReplayProgress;
  readonly from: number;
  readonly to: number;
  /** Texts that criteria look into. */
  readonly outputs: Map<string, Json>;
  under?: CounterfactualReplay;
}

/** Yields the log in pieces that end where the time changes, because no decision reaches over that. */
async function* readPiecesOfLog(
  store: ReplayStore,
  coordinationId: CoordinationId,
  to: number,
): AsyncGenerator<RunEvent[]> {
  let pending: RunEvent[] = [];
  for (let next = 0; ;) {
    const page = await store.read(coordinationId, { from: next, limit: PAGE });
    next += page.length;
    const events = pending.concat(page);
    const isLast = page.length < PAGE;
    const end = isLast || next >= to ? findEndOfDecision(events, to, isLast) : findStartOfNewestTime(events);
    if (end > 0) yield events.slice(0, end);
    pending = events.slice(end);
    const isOver = pending.length > 0 && (pending[0]?.sequence ?? 0) >= to;
    if (isLast || isOver) return;
  }
}

/** Returns the index of the first event of the newest time; everything before it is complete. */
function findStartOfNewestTime(events: readonly RunEvent[]): number {
  let at = events.length - 1;
  while (at > 0 && events[at - 1]?.timestamp === events[at]?.timestamp) at -= 1;
  return Math.max(at, 0);
}

/**
 * Returns the index after the decision that the last wanted event belongs to; where that is not among the events or
 * may go on after them, the index of the first event of the newest time.
 */
function findEndOfDecision(events: readonly RunEvent[], to: number, isAll: boolean): number {
  const at = events.findIndex(({ sequence }) => sequence >= to);
  if (at === -1) return isAll ? events.length : findStartOfNewestTime(events);
  if (at === 0) return 0;
  const end = events.findIndex(
    ({ timestamp }, index) => index >= at && timestamp !== events[at - 1]?.timestamp,
  );
  if (end !== -1) return end;
  return isAll ? events.length : findStartOfNewestTime(events);
}

/** Splits a piece before the decision that judges the plan: its outputs are known once all before it was read. */
function splitBeforeJudgement(piece: readonly RunEvent[], from: number): (readonly RunEvent[])[] {
  const at = piece.findIndex(({ type, sequence }) => type === "plan.judged" && sequence >= from);
  if (at === -1) return [piece];
  const begin = piece.findIndex(({ timestamp }) => timestamp === piece[at]?.timestamp);
  return [piece.slice(0, begin), piece.slice(begin)].filter(({ length }) => length > 0);
}

async function replayPart(store: ReplayStore, reading: LogReplay, part: readonly RunEvent[]): Promise<void> {
  const { state, difference } = reading.replaying;
  if (difference) return;
  if (state.kind === "open") await readOutputsToJudge(store, reading, { state, part });
  const { from, to, outputs, under } = reading;
  const decisions: ReplayedDecision[] = [];
  const onDecided = under && { onDecided: (decided: ReplayedDecision) => decisions.push(decided) };
  try {
    reading.replaying = continueReplay(reading.replaying, part, { from, to, outputs, ...onDecided });
  } catch (error) {
    if (!(error instanceof InvariantViolation)) throw error;
    reading.replaying = { ...reading.replaying, difference: createUnfoldableDifference(part, error.message) };
  }
  if (!under || reading.replaying.difference) return;
  under.decisions += decisions.length;
  for (const decided of decisions) under.other.take(decided);
}

/** Returns the difference that says why the part of the log cannot be folded. */
function createUnfoldableDifference([first]: readonly RunEvent[], why: string): Difference {
  return {
    sequence: first?.sequence ?? 0,
    type: first?.type ?? "coordination.created",
    kind: "projection",
    why,
  };
}

/** A part of a log in which the plan may be judged, and the state before it. */
interface JudgedPart {
  readonly state: OpenCoordination;
  readonly part: readonly RunEvent[];
}

/** Reads the outputs that the plan's criteria look into, where the plan is judged in this part. */
async function readOutputsToJudge(
  store: ReplayStore,
  { outputs }: LogReplay,
  { state, part }: JudgedPart,
): Promise<void> {
  if (!part.some(({ type }) => type === "plan.judged")) return;
  for (const sha256 of listCriteriaOutputHashes(state)) {
    const text = outputs.has(sha256) ? undefined : await store.get(sha256);
    const output = text === undefined ? undefined : parseJsonOrNothing(text);
    if (output !== undefined) outputs.set(sha256, output as Json);
  }
}

/** Prepares to decide the coordination again under another policy, with the text of its plan where that is kept. */
async function prepareCounterfactual(
  store: ReplayStore,
  first: RunEvent | undefined,
  policy: ReplayPolicy,
): Promise<CounterfactualReplay> {
  const content = first?.type === "coordination.created" ? first.payload.plan?.content : undefined;
  const plan = content && (await readKeptPlan(store, content.sha256));
  const isBudgetLeftOut = content !== undefined && policy.budget !== undefined;
  return {
    about: {
      plan: plan ? "kept" : content ? "deleted" : "none",
      ...(isBudgetLeftOut && { isBudgetLeftOut }),
    },
    policy,
    other: createCounterfactual({ policy, ...(plan && { plan }) }),
    decisions: 0,
  };
}

async function readKeptPlan(store: ReplayStore, sha256: string): Promise<CoordinationPlan | undefined> {
  const text = await store.get(sha256);
  if (text === undefined) return undefined;
  const parsed = parsePlan(parseJsonOrNothing(text));
  return parsed.ok ? parsed.value : undefined;
}

/** Builds what the other policy would have led to; `undefined` where none was given. */
function buildWhatIf({ under }: LogReplay, recorded: Coordination): ReplayedUnder | undefined {
  if (!under) return undefined;
  const untested = listUntestedGates(under.policy, recorded);
  const about = { ...under.about, untested, limits: describeLimits({ ...under.about, untested }) };
  const status = nameStatus(recorded);
  if (under.decisions === 0)
    return { ...about, points: [], leftOut: 0, uncertain: [], recorded: status, would: status, next: [] };
  const { points, leftOut, uncertain, state, next } = under.other.result();
  return {
    ...about,
    points,
    leftOut,
    uncertain,
    recorded: status,
    would: nameStatus(state),
    next: next.map(createNextAct),
  };
}

/** Says why the budget of a policy is not tested on a plan. */
export const BUDGET_OF_PLANS = "It bounds coordinations that spawns open; a plan states its own.";

/** Says how much is known of a plan whose text is not kept any more. */
export const DEMANDS_OF_PLANS =
  "What the steps of such a plan ask for beyond the operator is known only as far as the ledger says.";

function describeLimits({
  plan,
  isBudgetLeftOut,
  untested,
}: Pick<ReplayedUnder, "plan" | "isBudgetLeftOut" | "untested">): string[] {
  return [
    ...(isBudgetLeftOut ? [`Left out: budget. ${BUDGET_OF_PLANS}`] : []),
    ...(untested.length > 0
      ? [`Not tested, because the log does not hold what they decide on: ${untested.join(", ")}.`]
      : []),
    ...(plan === "deleted" ? [`The text of the plan is not kept any more. ${DEMANDS_OF_PLANS}`] : []),
  ];
}

function nameStatus(state: Coordination): string {
  return state.kind === "ended" ? state.status : "open";
}

function createNextAct(effect: Effect): NextAct {
  return {
    act: effect.kind,
    ...("stepId" in effect && { stepId: effect.stepId }),
    ...("attempt" in effect && { attempt: effect.attempt }),
    ...("escalationId" in effect && { escalationId: effect.escalationId }),
  };
}
