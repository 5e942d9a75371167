/**
 * Owns: what would have been decided under another policy, from recorded decisions and what is known of what happened.
 *
 * 1. At each recorded decision the same inputs are decided under the policy. 2. Where that changes what work there is, the recorded
 * results of that work, and of all that builds on it, are no evidence any more: they are left out, and counted. 3. Where something
 * would have to be known and is not recorded, that is said, and taken as it was. 4. Nothing is executed and nothing is written.
 */
import type { Command } from "../contracts/commands.ts";
import { assertInvariant } from "../contracts/errors.ts";
import { epochMsOf, OWNER_STEP_ID, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { FactDraft, FactEvent } from "../contracts/run-event.ts";
import { decide } from "../dispatch/decide.ts";
import { planDispatch, type Effect } from "../dispatch/effects/next-effects.ts";
import { recordFacts } from "../dispatch/record.ts";
import type { Coordination, Step } from "../ledger/state.ts";
import {
  createAlternativeHistory,
  notePoint,
  splitSession,
  splitStep,
  type AlternativeHistory,
  type DivergencePoint,
} from "./alternative-history.ts";
import { explainLostEvidence } from "./built-on-another.ts";
import { listDecidedFacts, type DetectedConflict } from "./decide-again.ts";
import { explainPolicyDifference, formatDecisionTime, describeDecisions } from "./decision-text.ts";
import { explainReachedBudget, isAlsoStopped } from "./policy-budget.ts";
import {
  checkConfidenceEvidence,
  weighDrafts,
  withKeptGate,
  applyPolicyToCommand,
  type EvidenceCheck,
  type WeighedDrafts,
} from "./policy-command.ts";
import type { ReplayedDecision } from "./replay-log.ts";
import { ruleOnConflictUnderPolicy } from "./policy-conflict.ts";
import { isSameValue } from "./same-value.ts";
import {
  isMootWithoutSubject,
  isFactTransferable,
  listTouchedSteps,
  findStepSpec,
  findSubjectStepId,
  withRecordedNames,
} from "./decision-subject.ts";
import { restoreDraft } from "./told-fact.ts";
import type { AppliedPolicy } from "./under-policy.ts";

export interface WhatIf {
  readonly points: readonly DivergencePoint[];
  /** Recorded decisions about work that would not have been the recorded work. */
  readonly leftOut: number;
  /** The steps of which nothing more is certain, with the reason. */
  readonly uncertain: readonly { readonly stepId: StepId; readonly why: string }[];
  /** How far it came, on what is certain. */
  readonly state: Coordination;
  /** Effects that would be next, or would be waited for. */
  readonly next: readonly Effect[];
}

export interface Counterfactual {
  take(decided: ReplayedDecision): void;
  result(): WhatIf;
}

export function createCounterfactual(under: AppliedPolicy): Counterfactual {
  let world: AlternativeHistory | undefined;
  return {
    take: (decided) => {
      world ??= createAlternativeHistory(decided.before, under);
      world.now = epochMsOf(decided.facts[0].timestamp);
      takeDecision(world, decided, under);
    },
    result: () => {
      assertInvariant(world !== undefined, "a counterfactual history has decisions");
      const { points, leftOut, parted, state, now } = world;
      const uncertain = [...parted].map(([stepId, { why }]) => ({ stepId, why }));
      return { points, leftOut, uncertain, state, next: planDispatch(state, now) };
    },
  };
}

function takeDecision(world: AlternativeHistory, decided: ReplayedDecision, under: AppliedPolicy): void {
  expireQuestionsSooner(world, decided);
  const { state: before } = world;
  const [lead] = decided.facts;
  if (lead.type === "conflict.detected" && lead.payload.contest) takeConflict(world, decided, under);
  else if (decided.command) takeCommand(world, { ...decided, command: decided.command }, under);
  else takeToldFact(world, decided);
  noteReachedBudget(world, before, decided);
  compareFates(world, decided, listTouchedSteps(decided.before, decided.facts));
}

/** Notes a child whose model calls reached the budget of the policy: it may have come to nothing. */
function noteReachedBudget(world: AlternativeHistory, before: Coordination, decided: ReplayedDecision): void {
  const [stepId] = listTouchedSteps(decided.before, decided.facts);
  const why = explainReachedBudget({ before, state: world.state }, decided);
  if (!stepId || why === undefined || world.parted.has(stepId)) return;
  const would = "the budget stops its next call";
  notePoint(world, decided, { stepId, decided: "its calls go on", would, why, certainty: "unknown" });
  splitStep(world, stepId, { why: "the budget may have stopped it", byFate: false });
}

/** Closes questions that the policy's deadlines end before now, although they were still open then. */
function expireQuestionsSooner(world: AlternativeHistory, decided: ReplayedDecision): void {
  for (const { escalationId, deadlineAtMs, stepId } of listOverdueQuestions(world, decided)) {
    const drafts = listDecidedFacts(
      decide(world.state, { type: "expireEscalation", escalationId }, deadlineAtMs),
    );
    applyFacts(world, drafts, deadlineAtMs);
    notePoint(world, decided, {
      ...(stepId && { stepId }),
      decided: "the question stays open",
      would: `the question is closed: expired at ${formatDecisionTime(deadlineAtMs)}`,
      why: "nobody had answered by then",
      certainty: "differs",
    });
    if (stepId) compareFates(world, decided, [stepId]);
  }
}

function listOverdueQuestions({ state, parted, now }: AlternativeHistory, { before }: ReplayedDecision) {
  if (state.kind !== "open" || before.kind !== "open") return [];
  return [...state.openQuestions].flatMap(([escalationId, deadlineAtMs]) => {
    const recorded = before.openQuestions.get(escalationId);
    const stepId = state.escalations.get(escalationId)?.stepId;
    if (recorded === undefined || deadlineAtMs >= recorded || deadlineAtMs > now) return [];
    return stepId && parted.has(stepId) ? [] : [{ escalationId, deadlineAtMs, stepId }];
  });
}

/** Takes over a fact that we were told, if the work is still the recorded work; else it is left out. */
function takeToldFact(world: AlternativeHistory, { before, facts: [fact] }: ReplayedDecision): void {
  const [stepId] = listTouchedSteps(before, [fact]);
  if ((stepId && world.parted.has(stepId)) || !isFactTransferable(world.state, before, fact))
    world.leftOut += 1;
  else applyFacts(world, [restoreDraft(fact)]);
}

function takeConflict(world: AlternativeHistory, decided: ReplayedDecision, under: AppliedPolicy): void {
  const { state } = world;
  const { facts } = decided;
  const [fact] = facts;
  if (state.kind !== "open" || fact.type !== "conflict.detected") return;
  const { resource, contest } = fact.payload;
  const requester = contest?.requester;
  if (!requester || splitContestedRequester(world, fact.payload, requester)) {
    world.leftOut += 1;
    return;
  }
  const ruled = ruleOnConflictUnderPolicy(state, { detected: fact.payload, facts, under, now: world.now });
  applyFacts(world, giveRecordedNames(world, facts, ruled.drafts));
  if (ruled.kind === "same") return;
  const { decided: was, would, why } = ruled;
  const certainty = ruled.kind === "unknown" ? "unknown" : "differs";
  notePoint(world, decided, { stepId: requester, resource, decided: was, would, why, certainty });
  if (ruled.kind === "unknown") return;
  for (const stepId of ruled.concerned)
    splitStep(world, stepId, { why: `${resource} would have gone to another`, byFate: false });
}

/** Parts a requester from the record if the work that it contends with has parted, and returns whether it has. */
function splitContestedRequester(
  world: AlternativeHistory,
  { claims }: DetectedConflict,
  requester: StepId,
): boolean {
  if (world.parted.has(requester)) return true;
  const changed = claims.find(({ stepId, coordinationId }) => !coordinationId && world.parted.has(stepId));
  if (changed) splitStep(world, requester, { why: `contends with ${changed.stepId}`, byFate: false });
  return changed !== undefined;
}

type CommandedDecision = ReplayedDecision & { readonly command: Command };

function takeCommand(world: AlternativeHistory, decided: CommandedDecision, under: AppliedPolicy): void {
  const { before, command, facts } = decided;
  const subject = findSubjectStepId(before, decided);
  if (subject !== undefined && world.parted.has(subject)) {
    world.leftOut += 1;
    return;
  }
  const broken = explainLostEvidence(world, decided, subject);
  if (broken !== undefined && subject !== undefined) {
    leaveRecordedStep(world, decided, { stepId: subject, why: broken });
    return;
  }
  const evidence = checkConfidenceEvidence({ before, after: world.state, command, facts });
  const policyCommand = applyPolicyToCommand({ state: world.state, command, facts, under, evidence });
  const decision = decide(world.state, policyCommand, world.now);
  const drafts = giveRecordedNames(world, facts, listDecidedFacts(decision));
  const recorded = facts.map(restoreDraft);
  const decideOn = (state: Coordination): readonly FactDraft[] =>
    giveRecordedNames(world, facts, listDecidedFacts(decide(state, policyCommand, world.now)));
  const weighed = weighDrafts(subject, { before, after: world.state, recorded, drafts, under, decideOn });
  applyFacts(world, weighed.applied);
  if (evidence.kind === "unknown") noteUnknownConfidence(world, decided, evidence);
  if (isSameValue(recorded, drafts)) return;
  const reason = decision.kind === "refused" ? decision.reason : undefined;
  if (drafts.length === 0 || isRefusedSpawn(command, reason)) noteDecisionNotTaken(world, decided, reason);
  else compareDecisions(world, decided, weighed);
  world.state = withKeptGate(world.state, weighed);
}

/** True when a budget refused the spawn: that leaves a fact about the budget, and no step. */
function isRefusedSpawn({ type }: Command, reason: string | undefined): boolean {
  return type === "admitSpawn" && reason !== undefined;
}

function noteUnknownConfidence(
  world: AlternativeHistory,
  decided: CommandedDecision,
  { would, why }: EvidenceCheck & { readonly kind: "unknown" },
): void {
  const stepId = findSubjectStepId(decided.before, decided);
  notePoint(world, decided, {
    ...(stepId && { stepId }),
    decided: "the result counts",
    would,
    why,
    certainty: "unknown",
  });
}

function giveRecordedNames(
  world: AlternativeHistory,
  facts: readonly FactEvent[],
  drafts: readonly FactDraft[],
): FactDraft[] {
  return withRecordedNames(facts, drafts, () => {
    world.asked += 1;
    return `policy-question-${world.asked}`;
  });
}

/** Notes a decision that was taken, and would not have been taken under the policy. */
function noteDecisionNotTaken(
  world: AlternativeHistory,
  decided: CommandedDecision,
  reason: string | undefined,
): void {
  const { command } = decided;
  if (isMootWithoutSubject(command) || isAlsoStopped(world.state, command)) world.leftOut += 1;
  else if (command.type === "stopAtBudget") noteSessionNotStopped(world, decided, command.stepId);
  else noteStepsNotDecided(world, decided, reason);
}

function noteStepsNotDecided(
  world: AlternativeHistory,
  decided: CommandedDecision,
  reason: string | undefined,
): void {
  const { command, facts } = decided;
  const stepIds = new Set(listTouchedSteps(decided.before, facts));
  const certainty = world.parted.size > 0 ? "follows" : "differs";
  const would = command.type === "admitSpawn" ? "the spawn is refused" : "not decided";
  const why = reason ?? "there is nothing to do about it";
  for (const stepId of stepIds.size > 0 ? stepIds : [undefined]) {
    const factsOfStep = facts
      .filter((fact) => stepId === undefined || findStepInFact(decided, fact) === stepId)
      .map(restoreDraft);
    const recordedWords = describeDecisions(factsOfStep);
    if (recordedWords === "") continue;
    notePoint(world, decided, { ...(stepId && { stepId }), decided: recordedWords, would, why, certainty });
    if (stepId) splitStep(world, stepId, { why, byFate: true });
  }
}

/** Notes a session that the budget of the policy does not stop. It goes on in another way from there. */
function noteSessionNotStopped(world: AlternativeHistory, decided: CommandedDecision, stepId: StepId): void {
  const { state } = world;
  const isOwner = stepId === OWNER_STEP_ID && state.kind !== "unopened";
  const session = isOwner ? state.created.ownerSession : undefined;
  if (session !== undefined && world.sessions.has(session)) {
    world.leftOut += 1;
    return;
  }
  notePoint(world, decided, {
    ...(session === undefined && { stepId }),
    decided: describeDecisions(decided.facts.map(restoreDraft)),
    would: "the budget allows it",
    why: "the budget is not reached",
    certainty: world.parted.size > 0 ? "follows" : "differs",
  });
  if (session !== undefined) world.sessions.add(session);
  else splitStep(world, stepId, { why: "the budget would not have stopped it", byFate: false });
}

function findStepInFact({ before }: ReplayedDecision, fact: FactEvent): StepId | undefined {
  return listTouchedSteps(before, [fact])[0];
}

/** Notes for each step where the words for what was decided differ from those for what would have been. */
function compareDecisions(
  world: AlternativeHistory,
  decided: CommandedDecision,
  { drafts, certainty, because }: WeighedDrafts,
): void {
  const recorded = Map.groupBy(decided.facts, (fact) => findStepInFact(decided, fact));
  const derived = Map.groupBy(drafts, (draft) => listTouchedSteps(world.state, [draft])[0]);
  for (const stepId of new Set([...recorded.keys(), ...derived.keys()])) {
    const recordedFacts = (recorded.get(stepId) ?? []).map(restoreDraft);
    const would = derived.get(stepId) ?? [];
    if (describeDecisions(recordedFacts) === describeDecisions(would)) continue;
    const spec = stepId && findStepSpec(world.state, stepId);
    notePoint(world, decided, {
      ...(stepId && { stepId }),
      decided: describeDecisions(recordedFacts) || "nothing",
      would: describeDecisions(would) || "nothing",
      why: `${explainPolicyDifference({ recorded: recordedFacts, derived: would, spec })}${because}`,
      certainty,
    });
  }
}

/** Leaves the recorded history of a step: what was recorded of it from here on is no evidence. */
function leaveRecordedStep(
  world: AlternativeHistory,
  decided: CommandedDecision,
  { stepId, why }: { readonly stepId: StepId; readonly why: string },
): void {
  const was = describeDecisions(decided.facts.map(restoreDraft));
  world.leftOut += 1;
  notePoint(world, decided, {
    stepId,
    decided: was || "recorded",
    would: "no longer certain",
    why,
    certainty: "follows",
  });
  splitStep(world, stepId, { why, byFate: false });
}

/** Parts steps from the record whose fate is another now; those parted by fate alone return with the same one. */
function compareFates(
  world: AlternativeHistory,
  { before, after }: ReplayedDecision,
  stepIds: readonly StepId[],
): void {
  const { state, parted } = world;
  if (after.kind === "unopened" || state.kind === "unopened") return;
  for (const stepId of stepIds) {
    const isSame = formatFate(after.steps.get(stepId)) === formatFate(state.steps.get(stepId));
    const recordedParting = parted.get(stepId);
    if (isSame && recordedParting?.byFate) parted.delete(stepId);
    if (isSame || recordedParting) continue;
    splitStep(world, stepId, { why: "its fate would be another", byFate: true });
    splitSession(world, before, after.steps.get(stepId));
  }
}

function formatFate(step: Step | undefined): string {
  if (!step) return "unknown";
  const { status, attempt } = step.phase;
  const { output } = "output" in step.phase ? step.phase : {};
  return JSON.stringify([status, attempt, output?.sha256]);
}

function applyFacts(world: AlternativeHistory, drafts: readonly FactDraft[], at: EpochMs = world.now): void {
  if (drafts.length > 0) world.state = recordFacts(world.state, drafts, at).state;
}
