/**
 * Owns: forking a plan: running it again from a place in its log. Steps that had completed by then are carried over, by the hashes of
 * their results; everything else is done anew, in sessions and under idempotency keys of the fork's own.
 *
 * The files that agents wrote are no part of the ledger: they are as they are now.
 */
import { formatCanonicalJson } from "../../std/canonical-json.ts";
import { CoordinationError, createInputError } from "../../contracts/errors.ts";
import type { ForkedFrom } from "../../contracts/fact-fields.ts";
import type { CoordinationId, StepId } from "../../contracts/ids.ts";
import { parsePlan, type CoordinationPlan } from "../../contracts/plan.ts";
import { isDelivery } from "../../ledger/plan-progress.ts";
import type { KnownCoordination, Step } from "../../ledger/state.ts";
import { rewritePlanUnderPolicy, type OperatorRules } from "../../replay/plan-under-policy.ts";
import { chooseRules, withRules } from "../environment/policy-rules.ts";
import { findStepOfChild } from "../log/step-of-child.ts";
import type { ForkRequest, PlanForked, PlanSubmission, PlanSubmitted } from "./plan-requests.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

export interface ForkDependencies extends Pick<
  RuntimeDependencies,
  | "content"
  | "escalations"
  | "forks"
  | "gates"
  | "policies"
  | "refOf"
  | "runs"
  | "settings"
  | "store"
  | "truth"
> {
  readonly newCoordinationId: () => CoordinationId;
}

/** Texts that are looked for at once. */
const TEXTS_MAX = 100;
/** Steps that are named in a sentence. */
const NAMED_MAX = 5;

/** Ways to run the plan of a fork. */
export interface PlanRunning {
  /** Tells what would become of it, without asking anybody. */
  readonly preview: (submission: PlanSubmission) => Promise<PlanSubmitted>;
  readonly submit: (submission: PlanSubmission) => Promise<PlanSubmitted>;
}

/**
 * Submits a plan anew, or previews that, with the results that steps had by a place in its source's log. Returns the
 * fork, an earlier one of the same request, or the refusal; throws where it cannot be forked.
 */
export async function forkPlan(
  dependencies: ForkDependencies,
  request: ForkRequest,
  { preview, submit }: PlanRunning,
): Promise<PlanForked> {
  const earlierFork = await findEarlierFork(dependencies, request);
  if (earlierFork) return earlierFork;
  const { isPreview } = request;
  const { state, place } = await readSourceAt(dependencies, request);
  await assertSourceUndamaged(dependencies, place);
  const plan = await readPlanToFork(dependencies, state);
  const parted = await splitStepsAt(dependencies, plan, { state, place });
  const coordinationId = request.coordinationId ?? dependencies.newCoordinationId();
  const submission: PlanSubmission = {
    plan: rewritePlanUnderPolicy(
      { plan: { ...plan, coordinationId }, anew: new Set(parted.anew) },
      request.policy ?? {},
      await readOperatorRules(dependencies, state),
    ),
    ownerAgent: state.created.ownerAgent,
    forkedFrom: place,
  };
  const submitted = await (isPreview ? preview(submission) : submit(submission));
  // Another one for the same fork may have come first, and taken its source at another place.
  if (submitted.kind === "refused") return (await findEarlierFork(dependencies, request)) ?? submitted;
  const kind = isPreview && submitted.kind === "accepted" ? "preview" : submitted.kind;
  return { kind, coordinationId, from: place, ...parted };
}

/** Reads the operator's rules for a fork: those that it will be submitted under, as work that its owner begins now. */
async function readOperatorRules(
  dependencies: ForkDependencies,
  { created: { ownerAgent: agent, ownerSession: session } }: KnownCoordination,
): Promise<OperatorRules> {
  const around = await findStepOfChild(dependencies, session);
  const rules = chooseRules(dependencies.policies, around, { agent, session });
  const { gates, settings, escalations } = withRules(dependencies, rules);
  const { requireDifferentApprover } = escalations;
  return { gates, escalateMs: settings.escalateMs, requireDifferentApprover };
}

/**
 * Finds the same fork in the ledger (D2). It is told from its own log, whatever is kept of its source, or was
 * configured since.
 */
async function findEarlierFork(
  dependencies: ForkDependencies,
  request: ForkRequest,
): Promise<UnrefusedFork | undefined> {
  const { coordinationId, source, from } = request;
  const state = coordinationId && (await dependencies.runs.state(coordinationId));
  if (!state || state.kind === "unopened") return undefined;
  const { forkedFrom } = state.created;
  if (forkedFrom?.coordinationId !== source || forkedFrom.policySha256 !== hashPolicy(dependencies, request))
    return undefined;
  if (from !== undefined && from !== forkedFrom.sequence) return undefined;
  const ofPlan = [...state.steps.values()].filter((step) => step.spec.planned && !isDelivery(step));
  const idsOf = (steps: readonly Step[]): StepId[] => steps.map(({ spec }) => spec.stepId);
  return {
    kind: "replay",
    coordinationId,
    from: forkedFrom,
    carried: idsOf(ofPlan.filter(({ spec }) => spec.carried)),
    anew: idsOf(ofPlan.filter(({ spec }) => !spec.carried)),
  };
}

function hashPolicy({ refOf }: ForkDependencies, { policy }: ForkRequest): string | undefined {
  return policy && refOf(formatCanonicalJson(policy)).sha256;
}

/** Splits the steps, in the order of the plan, into those that already have a result and those that are to be done. */
async function splitStepsAt(
  dependencies: ForkDependencies,
  { steps }: CoordinationPlan,
  { state, place }: SourceSnapshot,
): Promise<Pick<UnrefusedFork, "carried" | "anew">> {
  const { coordinationId: source, sequence } = place;
  const results = await dependencies.forks.readCarriedResults(place, state);
  const stepIds = steps.map(({ stepId }) => stepId);
  const carried = stepIds.filter((stepId) => results.has(stepId));
  const anew = stepIds.filter((stepId) => !results.has(stepId));
  if (anew.length === 0)
    throw createInputError(
      `every step of ${source} had completed before ${sequence}: nothing is left to do; fork it at an earlier event`,
    );
  await assertResultsKept(
    dependencies,
    source,
    new Map(carried.map((stepId) => [stepId, results.get(stepId)?.output?.sha256])),
  );
  return { carried, anew };
}

/** A fork that was made, previewed or found again, and not refused. */
type UnrefusedFork = Exclude<PlanForked, { kind: "refused" }>;

/** The source of a fork, in the state that it had at the place of the fork. */
interface SourceSnapshot {
  readonly state: KnownCoordination;
  readonly place: ForkedFrom;
}

/** Reads the source as it was at the place of the fork; throws where there is no such place. */
async function readSourceAt(dependencies: ForkDependencies, request: ForkRequest): Promise<SourceSnapshot> {
  const { source: coordinationId, from } = request;
  const state = await dependencies.forks.stateAt({
    coordinationId,
    sequence: from ?? Number.MAX_SAFE_INTEGER,
  });
  if (state.kind === "unopened")
    throw new CoordinationError(
      "COORDINATION_NOT_FOUND",
      `no coordination ${JSON.stringify(coordinationId)}`,
    );
  const { nextSequence } = state;
  if (from !== undefined && from > nextSequence)
    throw createInputError(
      `from: the log of ${coordinationId} has ${nextSequence} events, so ${nextSequence} is the last place`,
    );
  const policy = hashPolicy(dependencies, request);
  const place = { coordinationId, sequence: from ?? nextSequence, ...(policy && { policySha256: policy }) };
  return { state, place };
}

/** Throws where the source is damaged: its results would be carried on under new hashes and count for good. */
async function assertSourceUndamaged(
  { store }: ForkDependencies,
  { coordinationId, sequence: before }: ForkedFrom,
): Promise<void> {
  const damage = await store.damage(coordinationId, { before });
  if (!damage) return;
  const damageKind = damage.problem.replace("event_", "");
  throw new CoordinationError(
    "LEDGER_CORRUPT",
    `the log of ${coordinationId} cannot be forked: event ${damage.sequence} is ${damageKind}`,
  );
}

/**
 * Reads the plan of a coordination; throws where it has none that can be forked. Spawns of a model follow no plan, so
 * nobody could tell what is left to do.
 */
async function readPlanToFork(
  dependencies: ForkDependencies,
  { created, coordinationId }: KnownCoordination,
): Promise<CoordinationPlan> {
  if (!created.plan)
    throw createInputError(
      `${coordinationId} runs no plan: its agents spawned by themselves, and their sessions cannot go back to an earlier state`,
    );
  const { parent } = created;
  if (parent) {
    const parentState = await dependencies.runs.state(parent.coordinationId);
    const runsPlan = parentState.kind !== "unopened" && parentState.created.plan;
    throw createInputError(
      `${coordinationId} was submitted by the agent of step ${parent.stepId} of ${parent.coordinationId}, and its result is told to that agent's session; ${runsPlan ? "fork that plan" : "submit it again from that session"}`,
    );
  }
  const text = await dependencies.content.get(created.plan.content.sha256);
  const parsed = text === undefined ? undefined : parsePlan(JSON.parse(text));
  if (parsed?.ok) return parsed.value;
  throw createInputError(
    parsed
      ? `the plan of ${coordinationId} is none for this release; run it anew with \`plan run\``
      : `the text of the plan of ${coordinationId} is not kept any more; run it anew with \`plan run\``,
  );
}

/** Throws where results of carried steps are not kept any more: the agents of what is done anew read them. */
async function assertResultsKept(
  { content }: ForkDependencies,
  source: CoordinationId,
  outputs: ReadonlyMap<StepId, string | undefined>,
): Promise<void> {
  const lostSteps: StepId[] = [];
  const kept = [...outputs].flatMap(([stepId, sha256]) => (sha256 ? [{ stepId, sha256 }] : []));
  for (let at = 0; at < kept.length; at += TEXTS_MAX) {
    const some = kept.slice(at, at + TEXTS_MAX);
    const texts = await content.getMany([...new Set(some.map(({ sha256 }) => sha256))]);
    lostSteps.push(...some.filter(({ sha256 }) => !texts.has(sha256)).map(({ stepId }) => stepId));
  }
  if (lostSteps.length === 0) return;
  const named = lostSteps.slice(0, NAMED_MAX).join(", ");
  const more = lostSteps.length > NAMED_MAX ? `, and ${lostSteps.length - NAMED_MAX} more` : "";
  throw createInputError(
    `what these steps of ${source} came to is not kept any more: ${named}${more}; fork it before they completed, so that they run again`,
  );
}
