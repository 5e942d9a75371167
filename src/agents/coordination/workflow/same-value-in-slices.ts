/**
 * Owns: whether two JSON values are the same, worked out in slices and without recursion, so that neither the size nor the
 * depth of a value stops the host. Equal texts and equal order of members are no condition: see the rules.
 */
import type { Values } from "./state/values.ts";
import { isRecord } from "../std/is-record.ts";

export type AreSameTexts = (one: string, other: string) => boolean;

export interface SamenessRules {
  readonly areSameTexts: AreSameTexts;
  /** Names of members that are not compared, at any depth. */
  readonly ignored: ReadonlySet<string>;
  /** By the name of a member: the names that are not compared below it, at any depth, in place of `ignored`. */
  readonly ignoredBelow?: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Values of one slice: well below a millisecond. */
const VALUES_PER_SLICE = 1_000;
/** So many characters of a text count as one value. */
const CHARS_PER_VALUE = 256;

/** Two values that are to be compared, and the keys that do not count. */
type ValuePair = readonly [one: unknown, other: unknown, ignored: ReadonlySet<string>];

/**
 * Returns whether two JSON values are the same by the rules, and yields nothing after each slice of the work. A member
 * that is `undefined` is not there.
 */
export function* compareValuesInSlices(
  one: unknown,
  other: unknown,
  rules: SamenessRules,
): Generator<undefined, boolean> {
  const pending: ValuePair[] = [[one, other, rules.ignored]];
  let compared = 0;
  for (let pair = pending.pop(); pair; pair = pending.pop()) {
    const children = pairNestedValues(pair, rules);
    if (!children) return false;
    for (const child of children) pending.push(child);
    compared += countComparedValues(pair[0]);
    if (compared < VALUES_PER_SLICE) continue;
    compared = 0;
    yield;
  }
  return true;
}

/** Returns the nested pairs that must be the same for this pair to be; `undefined` where it differs already. */
function pairNestedValues(pair: ValuePair, rules: SamenessRules): readonly ValuePair[] | undefined {
  const [one, other, ignored] = pair;
  if (one === other) return [];
  if (typeof one === "string" && typeof other === "string")
    return rules.areSameTexts(one, other) ? [] : undefined;
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length
      ? one.map((item, at): ValuePair => [item, other[at], ignored])
      : undefined;
  return isRecord(one) && isRecord(other) ? pairMembers([one, other, ignored], rules) : undefined;
}

type RecordPair = readonly [one: Values, other: Values, ignored: ReadonlySet<string>];

function pairMembers(
  [one, other, ignored]: RecordPair,
  rules: SamenessRules,
): readonly ValuePair[] | undefined {
  const names = listComparedNames(one, ignored);
  if (names.length !== listComparedNames(other, ignored).length) return undefined;
  if (!names.every((name) => Object.hasOwn(other, name) && other[name] !== undefined)) return undefined;
  const ignoredBelow = ignored === rules.ignored ? rules.ignoredBelow : undefined;
  return names.map((name): ValuePair => [one[name], other[name], ignoredBelow?.get(name) ?? ignored]);
}

function listComparedNames(value: Values, ignored: ReadonlySet<string>): string[] {
  return Object.keys(value).filter((name) => !ignored.has(name) && value[name] !== undefined);
}

function countComparedValues(value: unknown): number {
  return typeof value === "string" ? 1 + value.length / CHARS_PER_VALUE : 1;
}
