/** Owns: a recorded conflict ruled on by another strategy (A1). */
import type { AppliedStrategy } from "../contracts/arbitration.ts";
import { addMs, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { FactDraft, FactEvent } from "../contracts/run-event.ts";
import type { OpenCoordination } from "../ledger/state.ts";
import { isAskedByOurQuestion, draftRulingFacts, type DetectedConflict } from "./decide-again.ts";
import { describeDecision } from "./decision-text.ts";
import {
  chooseStrategyUnderPolicy,
  findStrategyBelowHome,
  isOfDeletedPlan,
  isOfUnrecordedDefault,
  isOfUnrecordedException,
  mayMatchUnknownHome,
} from "./strategy-under-policy.ts";
import type { AppliedPolicy } from "./under-policy.ts";

/** The host's own limit where nothing else is said. */
const REVIEW_MS = 120_000;

/** The ruling of a policy on a conflict, beside the recorded one. */
export type PolicyRuling = { readonly drafts: readonly FactDraft[] } & (
  | { readonly kind: "same" }
  | {
      readonly kind: "differs" | "unknown";
      readonly decided: string;
      readonly would: string;
      readonly why: string;
      /** Steps that would have had the resource, or not. */
      readonly concerned: readonly StepId[];
    }
);

/** A conflict of the recorded history, and the policy that is to rule on it. */
interface RecordedConflict {
  readonly detected: DetectedConflict;
  /** The conflict, and what became of it. */
  readonly facts: readonly FactEvent[];
  readonly under: AppliedPolicy;
  readonly now: EpochMs;
}

/**
 * Returns the ruling on a recorded conflict by the strategy of the policy: the same as recorded, another one with its
 * facts, or unknown with the reason.
 */
export function ruleOnConflictUnderPolicy(
  state: OpenCoordination,
  { detected, facts, under, now }: RecordedConflict,
): PolicyRuling {
  const recorded = facts.map(({ type, payload }) => ({ type, payload }) as FactDraft);
  const { contest } = detected;
  const applied = contest && chooseStrategyUnderPolicy(detected.resource, contest, under);
  if (!contest || !applied) return { kind: "same", drafts: recorded };
  const instead = `in place of ${contest.strategy} (${contest.from})`;
  const unknown = explainUnknownRuling({ resource: detected.resource, contest, applied, state }, under);
  if (unknown)
    return {
      kind: "unknown",
      drafts: recorded,
      concerned: [],
      decided: describeRulingInFacts(recorded),
      would: unknown.would,
      why: `${unknown.rule} ${instead}; ${unknown.because}`,
    };
  if (isSameStrategy(applied, contest)) return { kind: "same", drafts: recorded };
  const { merge, reviewByMs: askedByMs = addMs(now, REVIEW_MS), ...contestFields } = contest;
  const isMerge = applied.strategy === "merge_if_safe" && merge !== undefined;
  const contestUnderPolicy: DetectedConflict = {
    ...detected,
    contest: { ...contestFields, ...applied, ...(isMerge && { merge }) },
  };
  const drafts = draftRulingOrReview(state, contestUnderPolicy, { asked: askedByMs, facts, now });
  if (describeRulingInFacts(drafts) === describeRulingInFacts(recorded)) return { kind: "same", drafts };
  const concerned = [...new Set([contest.requester, ...listLosers(recorded), ...listLosers(drafts)])];
  return {
    kind: "differs",
    drafts,
    decided: describeRulingInFacts(recorded),
    would: describeRulingInFacts(drafts),
    why: `${describeRule(applied)} ${instead}`,
    concerned,
  };
}

function isSameStrategy(one: AppliedStrategy, other: AppliedStrategy): boolean {
  return one.strategy === other.strategy && one.from === other.from;
}

function describeRule({ strategy, from }: AppliedStrategy): string {
  return `${strategy} (${from})`;
}

interface RuledAgain {
  readonly resource: string;
  readonly contest: NonNullable<DetectedConflict["contest"]>;
  readonly applied: AppliedStrategy;
  readonly state: OpenCoordination;
}

interface UnknownRuling {
  /** The rule that takes the place of the recorded one. */
  readonly rule: string;
  readonly would: string;
  readonly because: string;
}

const DEFAULT_RULE = "the operator's strategy for all other resources";

/** Explains why it is not known how the conflict would have been ruled on; `undefined` where it is known. */
function explainUnknownRuling(again: RuledAgain, under: AppliedPolicy): UnknownRuling | undefined {
  const { resource, contest, applied } = again;
  const unrecorded = isSameStrategy(applied, contest) ? undefined : explainUnrecordedRule(again, under);
  if (unrecorded) return unrecorded;
  const below = findStrategyBelowHome(resource, { recorded: contest, ruled: applied }, under);
  return below && createHomeUnknown(below);
}

/** Says that a strategy may decide, by a pattern with a `~` that stands for a folder that is not known. */
function createHomeUnknown(applied: AppliedStrategy): UnknownRuling {
  return {
    rule: describeRule(applied),
    would: `${applied.strategy} decides`,
    because: "which folder `~` of a pattern stands for is not recorded",
  };
}

/** Explains which rule in place of the one that decided then is not recorded; `undefined` where all are. */
function explainUnrecordedRule(
  { resource, contest, applied, state }: RuledAgain,
  under: AppliedPolicy,
): UnknownRuling | undefined {
  const rule = describeRule(applied);
  const would = `${applied.strategy} decides`;
  if (isOfDeletedPlan(contest, applied, { state, under }))
    return { rule, would, because: "its plan may have a rule for it, and its text is not kept any more" };
  if (isOfUnrecordedDefault(contest, applied, under)) {
    const because = `${DEFAULT_RULE} is not recorded`;
    return applied.from === "plan"
      ? { rule, would, because: `${because}, and manual_review outranks a plan` }
      : { rule: DEFAULT_RULE, would: `${DEFAULT_RULE} decides`, because };
  }
  if (isOfUnrecordedException(contest, applied, under))
    return { rule, would, because: "whether the operator had an exception for it is not recorded" };
  if (needsUnrecordedMerge(contest, applied))
    return {
      rule,
      would: "a three-way merge is tried",
      because: "what would have come of a merge is not recorded",
    };
  const rulings = { recorded: contest, ruled: applied };
  return mayMatchUnknownHome(resource, rulings, under) ? createHomeUnknown(applied) : undefined;
}

/**
 * True when a merge would rule that was not tried then. A plugin's ruling takes the place of the strategy, but for
 * what is high-risk.
 */
function needsUnrecordedMerge(
  { merge, hook }: NonNullable<DetectedConflict["contest"]>,
  applied: AppliedStrategy,
): boolean {
  const isRuledByPlugin = hook !== undefined && applied.from !== "high_risk";
  return applied.strategy === "merge_if_safe" && !merge && !isRuledByPlugin;
}

/** Drafts the ruling, or the review where the rules leave it to people, who are asked in the same way as then. */
function draftRulingOrReview(
  state: OpenCoordination,
  detected: DetectedConflict,
  {
    asked: askedByMs,
    facts,
    now,
  }: { readonly asked: EpochMs; readonly facts: readonly FactEvent[]; readonly now: EpochMs },
): FactDraft[] {
  const drafts = draftRulingFacts(state, detected, { isAsked: false, now });
  const isForPeople = drafts.some(
    (fact) => fact.type === "conflict.resolved" && fact.payload.winner === undefined,
  );
  if (!isForPeople || !detected.contest) return drafts;
  const contest = { ...detected.contest, reviewByMs: askedByMs };
  return draftRulingFacts(
    state,
    { ...detected, contest },
    { isAsked: isAskedByOurQuestion(facts, detected), now },
  );
}

function describeRulingInFacts(facts: readonly FactDraft[]): string {
  const ruling = facts.find(({ type }) => type === "conflict.resolved");
  return ruling ? describeDecision(ruling) : "people are asked";
}

function listLosers(facts: readonly FactDraft[]): StepId[] {
  const rulings = facts.flatMap((fact) => (fact.type === "conflict.resolved" ? [fact.payload] : []));
  return rulings.flatMap(({ losers }) => losers);
}
