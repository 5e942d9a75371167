/** Owns: which strategy would have ruled on a contested resource under a policy, and whether the log holds enough to know. */
import { chooseStrategy } from "../arbitration/strategy-for.ts";
import type { AppliedStrategy } from "../contracts/arbitration.ts";
import type { ReplayPolicy } from "../contracts/config/replay-policy.ts";
import type { ArbiterPolicy, ConflictStrategy } from "../contracts/plan.ts";
import { expandHome, isBelowHome, isFileResource, readResourceKind } from "../contracts/resource-names.ts";
import type { OpenCoordination } from "../ledger/state.ts";
import { isTextOfPlanDeleted, type AppliedPolicy } from "./under-policy.ts";

/** Returns the strategy for a contested resource under the policy. Where the policy says nothing of it, it stays. */
export function chooseStrategyUnderPolicy(
  resource: string,
  applied: AppliedStrategy,
  { policy, plan }: AppliedPolicy,
): AppliedStrategy {
  const { conflicts } = policy;
  if (!conflicts || isChosenByUnrecordedName(resource, applied)) return applied;
  const { strategy = "owner_wins", ...lists } = readOperatorRules(policy, applied);
  const ruled = chooseStrategy(resource, {
    operator: { ...lists, strategy },
    ...(plan && { plan: plan.conflictPolicy }),
  });
  return isDecidedByNewRule(applied, ruled, { conflicts, plan, strategy }) ? ruled : applied;
}

/**
 * Returns the operator's rules that count under the policy, with those of the configuration that the policy does not name. The log
 * says whether there was an exception for a resource, unless it was high-risk: only then do those of the configuration count.
 */
function readOperatorRules(
  { conflicts = {}, configured }: ReplayPolicy,
  { from }: AppliedStrategy,
): ArbiterPolicy {
  if (!configured) return conflicts;
  const strategy = conflicts.strategy ?? configured.strategy;
  const overrides = conflicts.overrides ?? (from === "high_risk" ? configured.overrides : undefined);
  return { ...conflicts, strategy, overrides };
}

interface NewRules {
  readonly conflicts: ArbiterPolicy;
  readonly plan: AppliedPolicy["plan"];
  readonly strategy: ConflictStrategy;
}

/** True where the policy's rules decide about a resource in place of the rule that was applied then. */
function isDecidedByNewRule(
  applied: AppliedStrategy,
  ruled: AppliedStrategy,
  { conflicts, plan, strategy }: NewRules,
): boolean {
  if (isDecidedByKeptList(applied, ruled, conflicts)) return false;
  if (isChosenByPattern(ruled) || isChosenByPattern(applied)) return true;
  // Where a plan's text is not kept, the applied strategy tells its rule.
  const isPlans = !plan && isRuleOfPlan(applied, strategy);
  return conflicts.strategy !== undefined && !isPlans;
}

function isRuleOfPlan({ from }: AppliedStrategy, strategy: ConflictStrategy): boolean {
  return from === "plan" && strategy !== "manual_review";
}

/** Rules in the order in which they count. */
const RULES: readonly AppliedStrategy["from"][] = ["high_risk", "operator", "plan", "default"];

/**
 * True when a pattern with `~` may decide about the file, and the log does not say which folder that is. It is in the place of the
 * list that decided then, or counts between that list and the rule under the policy. A plan loosens no `manual_review`.
 */
export function mayMatchUnknownHome(
  resource: string,
  { recorded, ruled }: { readonly recorded: AppliedStrategy; readonly ruled: AppliedStrategy },
  { policy, plan }: AppliedPolicy,
): boolean {
  if (!isFileResource(resource) || ruled.from === "high_risk") return false;
  const operator = readOperatorRules(policy, recorded);
  const ofPlan = plan?.conflictPolicy ?? {};
  const lists = [
    [...(operator.highRisk ?? []), ...(ofPlan.highRisk ?? [])],
    listOverridePatterns(operator),
    operator.strategy === "manual_review" ? [] : listOverridePatterns(ofPlan),
  ];
  return lists
    .slice(RULES.indexOf(recorded.from), RULES.indexOf(ruled.from) + 1)
    .flat()
    .some(isBelowHome);
}

/** Stands for any folder in which a home folder may be. */
const ANYWHERE = "**";

/**
 * Returns the strategy that would rule on a file if each `~` of the policy's own patterns stood for the folder by which its pattern
 * fits; `undefined` where that is the one that rules as the patterns are written.
 */
export function findStrategyBelowHome(
  resource: string,
  { recorded, ruled }: { readonly recorded: AppliedStrategy; readonly ruled: AppliedStrategy },
  { policy, plan }: AppliedPolicy,
): AppliedStrategy | undefined {
  const { conflicts } = policy;
  if (!isFileResource(resource) || !conflicts) return undefined;
  const below = chooseStrategyUnderPolicy(resource, recorded, {
    policy: { ...policy, conflicts: replaceHomes(conflicts) },
    ...(plan && { plan }),
  });
  return below.strategy === ruled.strategy ? undefined : below;
}

/** Returns the rules with any folder in the place of each `~`. */
function replaceHomes({ highRisk, overrides, ...others }: ArbiterPolicy): ArbiterPolicy {
  const replaceHome = (pattern: string): string => expandHome(pattern, ANYWHERE);
  return {
    ...others,
    highRisk: highRisk?.map(replaceHome),
    overrides: overrides?.map((override) => ({ ...override, resource: replaceHome(override.resource) })),
  };
}

function listOverridePatterns({ overrides = [] }: ArbiterPolicy): string[] {
  return overrides.map(({ resource }) => resource);
}

function isDecidedByKeptList(
  { from }: AppliedStrategy,
  ruled: AppliedStrategy,
  { highRisk, overrides }: ArbiterPolicy,
): boolean {
  if (from === "high_risk") return highRisk === undefined;
  return from === "operator" && overrides === undefined && ruled.from !== "high_risk";
}

function isChosenByUnrecordedName(resource: string, applied: AppliedStrategy): boolean {
  return readResourceKind(resource) === "hardlink" && isChosenByPattern(applied);
}

function isChosenByPattern({ from }: AppliedStrategy): boolean {
  return from === "high_risk" || from === "operator";
}

/**
 * True where a list decided then that the policy takes away, and what decides now depends on the operator's strategy of then for all
 * other resources. Only a conflict that this strategy ruled on records it.
 */
export function isOfUnrecordedDefault(
  recorded: AppliedStrategy,
  ruled: AppliedStrategy,
  { policy }: AppliedPolicy,
): boolean {
  const isTakenAway = isChosenByPattern(recorded) && !isChosenByPattern(ruled);
  return isTakenAway && readOperatorRules(policy, recorded).strategy === undefined;
}

/**
 * True where the policy takes away that a resource was high-risk, and neither the policy nor a configuration says whether the
 * operator has an exception for it.
 */
export function isOfUnrecordedException(
  recorded: AppliedStrategy,
  ruled: AppliedStrategy,
  { policy }: AppliedPolicy,
): boolean {
  const isTakenAway = recorded.from === "high_risk" && ruled.from !== "high_risk";
  return isTakenAway && readOperatorRules(policy, recorded).overrides === undefined;
}

/**
 * True where the policy takes away a list that decided then, or the operator's `manual_review` for all other resources, and a plan
 * whose text is not kept may have a rule that counts now.
 */
export function isOfDeletedPlan(
  recorded: AppliedStrategy,
  ruled: AppliedStrategy,
  { state, under }: { readonly state: OpenCoordination; readonly under: AppliedPolicy },
): boolean {
  if (ruled.from === "high_risk" || !isTextOfPlanDeleted(state, under)) return false;
  // Patterns of the plan for what is high-risk count before the operator's exceptions.
  if (recorded.from === "high_risk") return true;
  return ruled.from !== "operator" && (recorded.from === "operator" || isManualDefault(recorded));
}

/** True for the operator's strategy for all other resources that no plan loosens: the log says nothing of a plan's rule. */
function isManualDefault({ strategy, from }: AppliedStrategy): boolean {
  return from === "default" && strategy === "manual_review";
}
