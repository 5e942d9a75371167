/**
 * Owns: a coordination as tools and gateway methods tell it: short, bounded, and without the texts of any session but the
 * outputs that are asked for.
 */
import { z } from "zod";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import {
  coordinationIdSchema,
  DELIVERY_STEP_ID,
  formatTimestamp,
  stepIdSchema,
  type CoordinationId,
  type StepId,
} from "../../../agents/coordination/contracts/ids.ts";
import { parseTextOutput } from "../../../agents/coordination/plan/read-outputs.ts";
import { createReadOn } from "../../../agents/coordination/results/read-on.ts";
import { shortenValue, type JsonValue } from "../../../agents/coordination/results/shorten-json.ts";
import type {
  CoordinationView,
  StepView,
} from "../../../agents/coordination/runtime/log/coordination-view.ts";
import {
  readProgressLines,
  type ProgressLines,
} from "../../../agents/coordination/runtime/log/read-progress.ts";
import type { PlanReads } from "../runtime-access/plan-access.ts";

/** Where there are more steps, those that need attention are told. */
const STEPS_MAX = 50;
/** So many conflicts, and so many claims. */
const NEWEST_MAX = 5;
const RESOURCE_CHARS_MAX = 200;
const OUTPUTS_CHARS_MAX = BOUNDS.deliveryCharsMax;

/** Which coordination is told, and the outputs of which of its steps; without an id the newest ones. */
export const statusParams = z.strictObject({
  coordinationId: coordinationIdSchema.optional(),
  outputsOf: stepIdSchema.optional(),
});

const text = z.string();
const stepSchema = z.object({
  stepId: text,
  status: text,
  attempt: z.int(),
  /** Attempts of a step of a plan; people may grant more. */
  attemptsMax: z.int().optional(),
  agent: text,
  under: text.optional(),
  error: z.object({ code: text, message: text }).optional(),
  nextTryAt: text.optional(),
  answerBy: text.optional(),
  skippedBecause: text.optional(),
  /** How far its agent says it is: a claim. No line where it is withheld, or not kept any more. */
  progress: z.object({ percent: z.int().optional(), line: text.optional(), toldAt: text }).optional(),
  /** The event of the source that completed a fork's step, which was not run. */
  carriedFrom: text.optional(),
});

const conflictSchema = z.object({
  conflictId: text,
  resource: text,
  detectedAt: text.optional(),
  /** Who asked for what others wanted; absent where the ledger does not say, or the session may not see that step. */
  requester: text.optional(),
  status: z.enum(["open", "resolved"]),
  /** Until when people may answer. */
  openUntil: text.optional(),
  /** The step that got the resource; absent where it is of another coordination or may not be seen, or nobody did. */
  winner: text.optional(),
  because: text.optional(),
});

const claimSchema = z.object({ token: z.int(), resource: text, stepId: text, since: text, until: text });

/** One coordination as it is told. */
export const coordinationStatusSchema = z.object({
  coordinationId: text,
  status: text,
  startedAt: text,
  endedAt: text.optional(),
  /** A fork's source, and the first event there that it took nothing from. */
  forkedFrom: z.object({ coordinationId: text, sequence: z.int() }).optional(),
  /** Without the step by which the owner is told. `carried`: those of the completed that a fork has from its source. */
  counts: z.object({
    total: z.int(),
    ended: z.int(),
    byStatus: z.record(text, z.int()),
    carried: z.int().optional(),
  }),
  steps: z.array(stepSchema),
  stepsLeftOut: z.int().optional(),
  /** Counts, and the newest ones; absent where there were none. */
  conflicts: z.object({ total: z.int(), open: z.int(), newest: z.array(conflictSchema) }).optional(),
  /** Questions that people are to answer; absent where there are none. */
  openQuestions: z.int().optional(),
  /** Present claims, ended leases included; absent where there are none. */
  claims: z.object({ total: z.int(), newest: z.array(claimSchema) }).optional(),
  /** How far a plan reached what it is for; absent before that is judged, and where nothing is stated. */
  successCriteria: z.array(z.object({ key: text, met: z.boolean() })).optional(),
  /** One of them is not met. */
  gaveUp: z.literal(true).optional(),
  /** How far the owner is told the result; absent before that begins. */
  delivery: text.optional(),
});
export type CoordinationStatusReport = z.infer<typeof coordinationStatusSchema>;
export type StepReport = z.infer<typeof stepSchema>;

const ENDED: ReadonlySet<string> = new Set(["completed", "failed", "timed_out", "cancelled", "skipped"]);

/** States that people look for first. */
const ATTENTION: readonly StepView["status"][] = [
  "held",
  "blocked",
  "failed",
  "timed_out",
  "backoff",
  "running",
  "dispatched",
  "waiting",
  "cancelled",
  "skipped",
  "completed",
];

/**
 * Returns a coordination's status report with the progress that agents last told; where `canSee` lets only some steps
 * through, it counts all and shows these alone. @throws CoordinationError as `PlanReads.getMany`
 */
export async function readStatusReport(
  reads: Pick<PlanReads, "getMany">,
  view: CoordinationView,
  canSee: (step: StepView) => boolean = () => true,
): Promise<CoordinationStatusReport> {
  const visibleSteps = view.steps.filter(canSee);
  const lines = await readProgressLines(reads, { ...view, steps: visibleSteps });
  return visibleSteps.length === view.steps.length
    ? buildStatusReport(view, lines)
    : buildPartialReport(view, visibleSteps, lines);
}

/** Counts all steps, but tells only of those that are seen, and of their conflicts, claims and questions. */
function buildPartialReport(
  view: CoordinationView,
  seen: readonly StepView[],
  lines: ProgressLines,
): CoordinationStatusReport {
  const names = new Set<string>(seen.map(({ stepId }) => stepId));
  const isSeen = ({ stepId, coordinationId }: { stepId: string; coordinationId?: string | undefined }) =>
    coordinationId === undefined && names.has(stepId);
  const conflicts = view.conflicts.filter((conflict) => conflict.claims.some(isSeen));
  const claims = view.claims?.filter(isSeen) ?? [];
  const escalations = view.escalations.filter(({ stepId }) => stepId !== undefined && names.has(stepId));
  const { counts, delivery } = buildStatusReport(view);
  const report = buildStatusReport({ ...view, steps: seen, conflicts, claims, escalations }, lines);
  const newest = report.conflicts?.newest.map((conflict) => hideUnseenSteps(conflict, names));
  return {
    ...report,
    counts,
    ...(report.conflicts && newest && { conflicts: { ...report.conflicts, newest } }),
    ...(delivery !== undefined && { delivery }),
  };
}

type ConflictReport = z.infer<typeof conflictSchema>;

/** Leaves out who wanted a resource, or got it, where that step may not be seen. */
function hideUnseenSteps(
  { requester, winner, ...conflict }: ConflictReport,
  names: ReadonlySet<string>,
): ConflictReport {
  return {
    ...conflict,
    ...(requester !== undefined && names.has(requester) && { requester }),
    ...(winner !== undefined && names.has(winner) && { winner }),
  };
}

/**
 * Returns the status report of a coordination for agents, with counts, the notable steps, conflicts, questions and
 * claims; `lines` has the progress of steps at work.
 */
export function buildStatusReport(
  view: CoordinationView,
  lines: ProgressLines = new Map(),
): CoordinationStatusReport {
  const steps = view.steps.filter(({ stepId }) => stepId !== DELIVERY_STEP_ID);
  const delivery = view.steps.find(({ stepId }) => stepId === DELIVERY_STEP_ID);
  const shown = pickNotableSteps(steps);
  const leftOut = steps.length - shown.length;
  const { coordinationId, status, createdAtMs, endedAtMs, forkedFrom } = view;
  return {
    coordinationId,
    status,
    startedAt: formatTimestamp(createdAtMs),
    ...(endedAtMs !== undefined && { endedAt: formatTimestamp(endedAtMs) }),
    ...(forkedFrom && { forkedFrom }),
    counts: countSteps(steps, view.plan?.steps ?? 0),
    steps: shown.map((step) => buildStepReport(step, lines)),
    ...(leftOut > 0 && { stepsLeftOut: leftOut }),
    ...buildConflictsReport(view),
    ...countOpenQuestions(view),
    ...buildClaimsReport(view),
    ...(view.successCriteria && { successCriteria: [...view.successCriteria] }),
    ...(view.gaveUp && { gaveUp: view.gaveUp }),
    ...(delivery && { delivery: delivery.status }),
  };
}

function buildConflictsReport({ conflicts }: CoordinationView): Partial<CoordinationStatusReport> {
  if (conflicts.length === 0) return {};
  const newest = conflicts.slice(-NEWEST_MAX).toReversed().map(buildConflictReport);
  const open = conflicts.filter(({ resolution }) => !resolution).length;
  return { conflicts: { total: conflicts.length, open, newest } };
}

/** Counts the open questions without those that the parent of an agent is still asked. */
function countOpenQuestions({ escalations }: CoordinationView): Partial<CoordinationStatusReport> {
  const open = escalations.filter(
    ({ closed, askedOf, forwardedAtMs }) => !closed && (askedOf === undefined || forwardedAtMs !== undefined),
  );
  return open.length === 0 ? {} : { openQuestions: open.length };
}

/** A conflict in the view of a coordination. */
type ViewedConflict = CoordinationView["conflicts"][number];

function buildConflictReport({ conflictId, resource, contest, resolution }: ViewedConflict): ConflictReport {
  return {
    conflictId,
    resource: shortenResource(resource),
    ...(contest && { detectedAt: formatTimestamp(contest.atMs), requester: contest.requester }),
    ...(resolution ? buildRulingReport(resolution) : buildOpenReport(contest)),
  };
}

function buildRulingReport({
  winner,
  winnerCoordinationId,
  because,
}: NonNullable<ViewedConflict["resolution"]>) {
  const isOwn = winner !== undefined && winnerCoordinationId === undefined;
  return { status: "resolved" as const, ...(isOwn && { winner }), because };
}

/** Says that a conflict is open, and until when people may answer. */
function buildOpenReport(contest: ViewedConflict["contest"]) {
  const untilMs = contest?.reviewByMs;
  return { status: "open" as const, ...(untilMs !== undefined && { openUntil: formatTimestamp(untilMs) }) };
}

function buildClaimsReport({ claims = [] }: CoordinationView): Partial<CoordinationStatusReport> {
  if (claims.length === 0) return {};
  const newest = claims.slice(-NEWEST_MAX).toReversed();
  return {
    claims: {
      total: claims.length,
      newest: newest.map(({ token, resource, stepId, acquiredAtMs, expiresAtMs }) => ({
        token,
        resource: shortenResource(resource),
        stepId,
        since: formatTimestamp(acquiredAtMs),
        until: formatTimestamp(expiresAtMs),
      })),
    },
  };
}

/** Keeps the end of a long resource: the end of a path tells more than its beginning. */
function shortenResource(resource: string): string {
  if (resource.length <= RESOURCE_CHARS_MAX) return resource;
  return `…${resource.slice(1 - RESOURCE_CHARS_MAX)}`.toWellFormed();
}

/**
 * Counts all steps, those that ended, those of each status and those carried over by a fork. A large plan is admitted
 * bit by bit: it has more steps than are there yet.
 */
function countSteps(steps: readonly StepView[], planned: number): CoordinationStatusReport["counts"] {
  const byStatus: Record<string, number> = {};
  for (const { status } of steps) byStatus[status] = (byStatus[status] ?? 0) + 1;
  const ended = steps.filter(({ status }) => ENDED.has(status)).length;
  const carried = steps.filter(({ carriedFrom }) => carriedFrom !== undefined).length;
  const total = Math.max(steps.length, planned);
  return { total, ended, byStatus, ...(carried > 0 && { carried }) };
}

/** Picks at most 50 steps, those first that need attention, and keeps the order of the coordination. */
function pickNotableSteps(steps: readonly StepView[]): StepView[] {
  if (steps.length <= STEPS_MAX) return [...steps];
  const rank = (step: StepView): number => ATTENTION.indexOf(step.status);
  const chosen = new Set(steps.toSorted((a, b) => rank(a) - rank(b)).slice(0, STEPS_MAX));
  return steps.filter((step) => chosen.has(step));
}

function buildStepReport(step: StepView, lines: ProgressLines): StepReport {
  const { stepId, status, attempt, agentId, parentStepId, error, skippedBecause } = step;
  const { retryBudget, retryAtMs, answerByMs, carriedFrom } = step;
  const isTried = retryBudget !== undefined && carriedFrom === undefined;
  return {
    stepId,
    status,
    attempt,
    agent: agentId,
    ...(isTried && { attemptsMax: Math.max(attempt, retryBudget + 1) }),
    ...(parentStepId && { under: parentStepId }),
    ...(error && { error: { code: error.code, message: error.message } }),
    ...(retryAtMs !== undefined && { nextTryAt: formatTimestamp(retryAtMs) }),
    ...(answerByMs !== undefined && { answerBy: formatTimestamp(answerByMs) }),
    ...(skippedBecause && { skippedBecause }),
    ...buildProgressReport(step, lines),
    ...(carriedFrom && { carriedFrom }),
  };
}

function buildProgressReport({ stepId, progress }: StepView, lines: ProgressLines): Partial<StepReport> {
  if (!progress) return {};
  const { percent, atMs } = progress;
  const line = lines.get(stepId);
  return {
    progress: {
      ...(percent !== undefined && { percent }),
      ...(line !== undefined && { line }),
      toldAt: formatTimestamp(atMs),
    },
  };
}

export type OutputsReport =
  | { readonly kind: "outputs"; readonly stepId: StepId; readonly outputs: unknown }
  /**
   * Outputs that are too long to tell: long texts lost their middle, and members are left out. `chars`: how many characters
   * `coordination_result` reads.
   */
  | { readonly kind: "shortened"; readonly stepId: StepId; readonly outputs: unknown; readonly chars: number }
  | { readonly kind: "none"; readonly reason: string };

/**
 * Returns the outputs of a completed step, or those by which the agent of a failed one said why, shortened with how to
 * read on where they are long; or the reason why there are none.
 */
export async function readOutputsReport(
  reads: PlanReads,
  coordinationId: CoordinationId,
  step: StepView,
): Promise<OutputsReport> {
  const { stepId, status } = step;
  const output = step.results?.findLast(({ kind }) => kind === "outputs")?.content;
  if (status !== "completed" && !output)
    return { kind: "none", reason: `step ${stepId} is ${status}, not completed` };
  if (!output) return { kind: "none", reason: `step ${stepId} completed without outputs` };
  const { sha256 } = output;
  const kept = await reads.get(sha256);
  if (kept === undefined) return { kind: "none", reason: `the outputs of step ${stepId} are no longer kept` };
  const outputs = JSON.parse(kept) as JsonValue;
  if (kept.length <= OUTPUTS_CHARS_MAX) return { kind: "outputs", stepId, outputs };
  const chars = parseTextOutput(kept).length;
  const readOn = createReadOn({ sha256, chars, of: { coordinationId, stepId } });
  const shortened = shortenValue(outputs, { charsMax: OUTPUTS_CHARS_MAX, readOn });
  return { kind: "shortened", stepId, outputs: shortened, chars };
}
