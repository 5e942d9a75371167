/**
 * Owns: which places of the configuration take policy packs into use, as a whole or for some sessions, and changing them so that a
 * pack holds for the sessions that it is taken into use for. Does not own: which pack holds for a session (`policy-book.ts`).
 */
import type { PolicyRule } from "../../../agents/coordination/contracts/config/policies-config.ts";
import type { AgentId } from "../../../agents/coordination/contracts/ids.ts";
import { parseHostAgentId } from "../../../agents/coordination/contracts/host-agent-id.ts";
import { ANY_CHARACTERS, isMatchingWildcards } from "../../../agents/coordination/std/fit-wildcards.ts";
import { isRecord } from "../../../agents/coordination/std/is-record.ts";
import {
  listNeededChanges,
  PHASE1,
  readConfigValueAt,
  type ConfigChange,
} from "../../openclaw/host/operator-config.ts";

interface UsedPack {
  readonly name: string;
  readonly version: string;
  readonly settings: object;
}

/** Sessions for whose work a pack holds. Those that functions here take besides the configuration come from `normalizeSelector`. */
export type PolicySelector = Pick<PolicyRule, "agent" | "channel" | "session">;

const POLICIES = `${PHASE1}.policies`;

/**
 * Returns the changes that a configuration needs so that a policy pack holds wherever the configuration says nothing
 * itself; empty where it does already. Changes nothing.
 */
export function planPolicyUse(config: unknown, { name, version, settings }: UsedPack): ConfigChange[] {
  return listNeededChanges(config, [
    [`${POLICIES}.packs.${name}`, { version, settings }],
    [`${POLICIES}.default`, name],
  ]);
}

/**
 * Returns the changes that a configuration needs so that a policy pack holds for the sessions of a selector, by a
 * rule; empty where it does already. Changes nothing.
 */
export function planPolicyRuleUse(
  config: unknown,
  selector: PolicySelector,
  { name, version, settings }: UsedPack,
): ConfigChange[] {
  const { earlier, rule, later } = placeRule(config, selector, name);
  return listNeededChanges(config, [
    [`${POLICIES}.packs.${name}`, { version, settings }],
    [`${POLICIES}.rules`, [...earlier, rule, ...later]],
  ]);
}

/**
 * Returns the change that removes all policy packs and rules from a configuration; empty where it has none. Changes
 * nothing.
 */
export function planPolicyRemoval(config: unknown): ConfigChange[] {
  const from = readConfigValueAt(config, POLICIES);
  return isRecord(from) && Object.keys(from).length > 0 ? [{ path: POLICIES, from, to: {} }] : [];
}

/**
 * Returns the changes that remove the policy rule for just the sessions of a selector, so that other rules or the
 * gateway's pack hold for them; empty without such a rule. Changes nothing.
 */
export function planPolicyRuleRemoval(config: unknown, selector: PolicySelector): ConfigChange[] {
  const before = listPolicyRules(config);
  const rules = before.filter((rule) => !isSameSelector(rule, selector));
  return rules.length === before.length ? [] : listNeededChanges(config, [[`${POLICIES}.rules`, rules]]);
}

/**
 * Returns the rules of a configuration that come before a selector's and cover all its sessions, or without a pattern
 * those whose keys begin with `agent:`, so that a pack taken into use would not hold for them.
 */
export function listShadowingRules(config: unknown, selector: PolicySelector): readonly PolicyRule[] {
  const { earlier } = placeRule(config, selector, "");
  return earlier.filter((rule) => isCoveringSelector(rule, selector, formatKeyPattern(selector)));
}

/**
 * Returns the version of another policy pack of the same name in the configuration, and who else uses it and would get
 * the new one; `undefined` where nobody does.
 */
export function findReplacedPack(
  config: unknown,
  selector: PolicySelector | undefined,
  { name, version, settings }: UsedPack,
): { readonly version: string; readonly users: readonly string[] } | undefined {
  const used = readConfigValueAt(config, `${POLICIES}.packs.${name}`);
  if (!isRecord(used) || JSON.stringify(used) === JSON.stringify({ version, settings })) return undefined;
  const isWhole = selector !== undefined && readConfigValueAt(config, `${POLICIES}.default`) === name;
  const rules = listPolicyRules(config).filter((rule) => rule.pack === name);
  const others = selector ? rules.filter((rule) => !isSameSelector(rule, selector)) : rules;
  const users = [...(isWhole ? ["the gateway"] : []), ...others.map(describePolicyRule)];
  return users.length > 0 ? { version: String(used["version"]), users } : undefined;
}

interface PlacedRule {
  readonly earlier: readonly PolicyRule[];
  readonly rule: PolicyRule;
  readonly later: readonly PolicyRule[];
}

/**
 * Places a rule among the others. One that is there already stays in its place, unless a rule before it fits all its sessions. Any other
 * is placed by its kind: rules for sessions come before those for channels, and those before rules for agents alone; among its like it
 * comes before the first that fits all its sessions.
 */
function placeRule(config: unknown, selector: PolicySelector, pack: string): PlacedRule {
  const written = listPolicyRules(config);
  const others = written.filter((rule) => !isSameSelector(rule, selector));
  const before = written.findIndex((rule) => isSameSelector(rule, selector));
  const isShadowed = written
    .slice(0, Math.max(0, before))
    .some((rule) => isCoveringSelector(rule, selector, selector.session));
  if (before === -1 || isShadowed) return placeRuleByKind(others, selector, pack);
  return {
    earlier: others.slice(0, before),
    rule: { ...selector, pack },
    later: others.slice(before),
  };
}

function placeRuleByKind(
  unsorted: readonly PolicyRule[],
  selector: PolicySelector,
  pack: string,
): PlacedRule {
  const others = unsorted.toSorted((a, b) => rankSelectorKind(a) - rankSelectorKind(b));
  const wider = others.findIndex((rule) => isCoveringSelector(rule, selector, selector.session));
  const next = others.findIndex((rule) => rankSelectorKind(rule) > rankSelectorKind(selector));
  const places = [wider, next].filter((place) => place !== -1);
  const place = Math.min(others.length, ...places);
  return { earlier: others.slice(0, place), rule: { ...selector, pack }, later: others.slice(place) };
}

/**
 * Lists the rules as they are written. Whatever is no rule is left out here, and found when the configuration is read.
 */
function listPolicyRules(config: unknown): readonly PolicyRule[] {
  const rules = readConfigValueAt(config, `${POLICIES}.rules`);
  return Array.isArray(rules) ? rules.filter((rule): rule is PolicyRule => isRecord(rule)) : [];
}

function isSameSelector(rule: PolicySelector, other: PolicySelector): boolean {
  return describePolicyRule(normalizeSelector(rule)) === describePolicyRule(other);
}

/** Returns 0 for a selector of sessions, 1 for one of a channel, 2 for one of an agent alone: the order of rules. */
function rankSelectorKind({ session, channel }: PolicySelector): number {
  if (session !== undefined) return 0;
  return channel === undefined ? 2 : 1;
}

/** True where a rule fits every session that a selector fits; `keys` is a pattern of the keys of those sessions. */
function isCoveringSelector(
  rule: PolicySelector,
  selector: PolicySelector,
  keys: string | undefined,
): boolean {
  const { agent, channel } = extractAgentAndChannel(selector);
  const wanted = normalizeSelector(rule);
  if (wanted.agent !== undefined && wanted.agent !== agent) return false;
  if (wanted.channel !== undefined && wanted.channel !== channel) return false;
  const { session } = wanted;
  if (session === undefined) return true;
  // A star within the keys is met by a star of the rule alone.
  return keys !== undefined && isMatchingWildcards(Array.from(keys), Array.from(session), ANY_CHARACTERS);
}

/** `agent:scout:telegram:` at the beginning of a pattern of keys, where no star stands for a part of it. */
const NAMED_IN_KEYS = /^agent:(?<agent>[^:*]+):(?:(?<channel>[^:*]+):)?/u;

/** Returns the agent and the channel of all sessions that a selector fits, which the pattern of their keys may name, too. */
function extractAgentAndChannel({ agent, channel, session = "" }: PolicySelector): PolicySelector {
  const named = NAMED_IN_KEYS.exec(session)?.groups ?? {};
  return normalizeSelector({
    agent: agent ?? (named["agent"] as AgentId | undefined),
    channel: channel ?? named["channel"],
  });
}

/** Returns the pattern of the keys of the sessions that a selector fits, like `agent:scout:*`. */
function formatKeyPattern({ agent, channel, session }: PolicySelector): string {
  if (session !== undefined) return session;
  const place = channel === undefined ? "*" : `${channel}:*`;
  return `agent:${agent ?? "*"}:${place}`;
}

/**
 * Returns a selector of sessions with agent and channel spelled as OpenClaw spells them; members that are no text are
 * left out.
 */
export function normalizeSelector({ agent, channel, session }: PolicySelector): PolicySelector {
  return {
    ...(typeof agent === "string" && { agent: parseHostAgentId(agent) }),
    ...(typeof channel === "string" && { channel: channel.toLowerCase() }),
    ...(typeof session === "string" && { session }),
  };
}

/** Returns the sessions of a policy rule in words, like `agent writer, channel telegram`. */
export function describePolicyRule({ agent, channel, session }: PolicySelector): string {
  return [
    ...(agent === undefined ? [] : [`agent ${agent}`]),
    ...(channel === undefined ? [] : [`channel ${channel}`]),
    ...(session === undefined ? [] : [`session ${session}`]),
  ].join(", ");
}
