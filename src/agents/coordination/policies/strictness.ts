/**
 * Owns: which of two values of a setting is the stricter one: it lets less happen without a check, a person or a bound.
 *
 * A setting without a rule here is neither: where it may not become laxer, it may not change.
 */

export type Strictness = "same" | "stricter" | "laxer" | "other";

/**
 * Lists are ordered from lax to strict. For sets `more` means that more entries are stricter. A name that is `kept` is one rule with
 * all below it: only a whole one more is stricter, and a whole one less is laxer.
 */
type StrictnessRule = "higher" | "lower" | "yes" | "no" | "more" | "fewer" | "kept" | readonly string[];

/** `*` stands for any name. */
const RULES: readonly (readonly [string, StrictnessRule])[] = [
  ["gates.enabled", "yes"],
  ["gates.decisionFloor", "higher"],
  ["gates.confidenceThreshold", "higher"],
  ["gates.requireConfidence", "yes"],
  ["gates.criticThreshold", "higher"],
  ["gates.allowSelfVerification", "no"],
  ["gates.agents.*.checks", "more"],
  ["gates.agents.*.confidenceThreshold", "higher"],
  ["gates.agents.*.requireConfidence", "yes"],
  ["gates.verifiers.*", "kept"],
  ["conflicts.enabled", "yes"],
  ["conflicts.highRisk", "more"],
  ["conflicts.unknownWrites", ["allow", "review", "deny"]],
  ["conflicts.afterCommands", ["off", "held", "all"]],
  ["conflicts.tools.*", "kept"],
  ["lanes.control", "lower"],
  ["lanes.data", "lower"],
  ["lanes.escalation", "lower"],
  ["lanes.queueMax", "lower"],
  ["lanes.perSessionMax", "lower"],
  ["lanes.perAgentMax", "lower"],
  ["lanes.spawnsMax", "lower"],
  ["lanes.spawnsPerSessionMax", "lower"],
  ["lanes.providers.enabled", "yes"],
  ["budget.tokens", "lower"],
  ["budget.costUsd", "lower"],
  ["budget.spawns", "lower"],
  ["budget.depth", "lower"],
  ["budget.agents.*.tokens", "lower"],
  ["budget.agents.*.costUsd", "lower"],
  ["budget.agents.*.spawns", "lower"],
  ["budget.agents.*.depth", "lower"],
  ["privileges.default.tools.allow", "fewer"],
  ["privileges.default.tools.deny", "more"],
  ["privileges.default.write", "fewer"],
  ["privileges.agents.*.tools.allow", "fewer"],
  ["privileges.agents.*.tools.deny", "more"],
  ["privileges.agents.*.write", "fewer"],
  ["escalations.requireDifferentApprover", "yes"],
  ["escalations.openMax", "lower"],
  ["stepTimeoutMs", "lower"],
  ["truth.onMismatch", ["record", "hold", "refuse"]],
  ["results.parentCharsMax", "lower"],
  ["chat.childText", ["allow", "block"]],
  ["compaction.repeats", ["allow", "refuse"]],
];

/**
 * Returns whether the setting at a path became stricter or laxer, stayed the same, or changed in a way that is
 * neither. `undefined` stands for a setting that is not there.
 */
export function compareStrictness(path: string, from: unknown, to: unknown): Strictness {
  if (JSON.stringify(from) === JSON.stringify(to)) return "same";
  const rule = RULES.find(([pattern]) => isPathFitting(path, pattern))?.[1];
  if (rule === undefined) return "other";
  if (rule === "kept") return judgePresence(from, to);
  const order = rule === "more" || rule === "fewer" ? judgeSets(rule, from, to) : judgeValues(rule, from, to);
  return order ?? "other";
}

/**
 * Returns the path of the verifier or watched tool that a setting belongs to, which is kept or changed as a whole;
 * `undefined` for any other setting.
 */
export function findKeptSettingPath(path: string): string | undefined {
  const kept = RULES.find(([pattern, rule]) => rule === "kept" && isPathFitting(path, pattern))?.[0];
  return kept === undefined ? undefined : path.split(".").slice(0, kept.split(".").length).join(".");
}

function judgePresence(from: unknown, to: unknown): Strictness {
  if (from === undefined) return "stricter";
  return to === undefined ? "laxer" : "other";
}

/**
 * True when a path fits a pattern. A verifier or a watched tool has settings of its own; all below its name belong to
 * it.
 */
function isPathFitting(path: string, pattern: string): boolean {
  const names = path.split(".");
  const wanted = pattern.split(".");
  const isWhole = pattern.endsWith(".*") ? names.length >= wanted.length : names.length === wanted.length;
  return isWhole && wanted.every((name, index) => name === "*" || name === names[index]);
}

/**
 * Judges two values by their ranks. A bound that is not there bounds nothing; a demand that is not there demands
 * nothing.
 */
function judgeValues(
  rule: Exclude<StrictnessRule, "more" | "fewer" | "kept">,
  from: unknown,
  to: unknown,
): Strictness | undefined {
  const before = rankValue(rule, from);
  const after = rankValue(rule, to);
  if (before === undefined || after === undefined) return undefined;
  return after > before ? "stricter" : "laxer";
}

function rankValue(
  rule: Exclude<StrictnessRule, "more" | "fewer" | "kept">,
  value: unknown,
): number | undefined {
  if (value === undefined) return -Infinity;
  if (rule === "yes") return Number(value === true);
  if (rule === "no") return Number(value !== true);
  if (rule === "higher" || rule === "lower") return rankNumber(rule, value);
  const rank = rule.findIndex((word) => word === value);
  return rank === -1 ? undefined : rank;
}

function rankNumber(rule: "higher" | "lower", value: unknown): number | undefined {
  if (typeof value !== "number") return undefined;
  return rule === "higher" ? value : -value;
}

function judgeSets(rule: "more" | "fewer", from: unknown, to: unknown): Strictness | undefined {
  // No list at all demands nothing under `more`, and allows everything under `fewer`.
  const before = formatEntries(from, rule);
  const after = formatEntries(to, rule);
  if (!before || !after) return before ? "laxer" : "stricter";
  const isWithin = (some: readonly unknown[], others: readonly unknown[]): boolean =>
    some.every((entry) => others.includes(entry));
  const [small, large] = rule === "more" ? [before, after] : [after, before];
  if (isWithin(small, large)) return isWithin(large, small) ? "same" : "stricter";
  return isWithin(large, small) ? "laxer" : undefined;
}

/** Returns entries as texts that can be compared; `undefined` for everything. */
function formatEntries(value: unknown, rule: "more" | "fewer"): readonly string[] | undefined {
  if (Array.isArray(value)) return value.map((entry) => JSON.stringify(entry));
  return rule === "more" ? [] : undefined;
}
