/**
 * Owns: which places of the configuration take policy packs into use, as a whole or for some sessions, and changing them so that a
 * pack holds for the sessions that it is taken into use for. Does not own: which pack holds for a session (`policy-book.ts`).
 */
import type { PolicyRule } from "../../../agents/coordination/contracts/config/policies-config.ts";
import type { AgentId } from "../../../agents/coordination/contracts/ids.ts";
import { parseHostAgentId } from "../../../agents/coordination/contracts/host-agent-id.ts";
import { ANY_CHARACTERS, isFittingAll } from "../../../agents/coordination/std/fit-wildcards.ts";
import { isRecord } from "../../../agents/coordination/std/is-record.ts";
import {
  listDifferences,
  PHASE1,
  readValueAt,
  type ConfigChange,
} from "../../openclaw/host/operator-config.ts";

interface UsedPack {
  readonly name: string;
  readonly version: string;
  readonly settings: object;
}

/** Sessions for whose work a pack holds. Those that functions here take besides the configuration come from `formatSelector`. */
export type PolicySelector = Pick<PolicyRule, "agent" | "channel" | "session">;

const POLICIES = `${PHASE1}.policies`;

/** Plans to take a policy pack into use for everything that the configuration itself says nothing of. */
export function planPolicy(config: unknown, { name, version, settings }: UsedPack): ConfigChange[] {
  return listDifferences(config, [
    [`${POLICIES}.packs.${name}`, { version, settings }],
    [`${POLICIES}.default`, name],
  ]);
}

/** Plans to take a policy pack into use for some sessions. */
export function planPolicyRule(
  config: unknown,
  selector: PolicySelector,
  { name, version, settings }: UsedPack,
): ConfigChange[] {
  const { earlier, rule, later } = placeRule(config, selector, name);
  return listDifferences(config, [
    [`${POLICIES}.packs.${name}`, { version, settings }],
    [`${POLICIES}.rules`, [...earlier, rule, ...later]],
  ]);
}

/** Plans to take no policy pack into use any more. */
export function planNoPolicy(config: unknown): ConfigChange[] {
  const from = readValueAt(config, POLICIES);
  return isRecord(from) && Object.keys(from).length > 0 ? [{ path: POLICIES, from, to: {} }] : [];
}

/** Plans to let the rules of the gateway hold again for some sessions. */
export function planNoPolicyRule(config: unknown, selector: PolicySelector): ConfigChange[] {
  const before = listPolicyRules(config);
  const rules = before.filter((rule) => !isSameSelector(rule, selector));
  return rules.length === before.length ? [] : listDifferences(config, [[`${POLICIES}.rules`, rules]]);
}

/** Lists the rules for sessions because of which a pack will not hold for the sessions that it is taken into use for. */
export function listShadowingRules(config: unknown, selector: PolicySelector): readonly PolicyRule[] {
  const { earlier } = placeRule(config, selector, "");
  return earlier.filter((rule) => isFittingSessions(rule, selector, describeKeys(selector)));
}

/** Lists who goes by another pack of the same name, besides those that it is taken into use for; with the version of that pack. */
export function listReplaced(
  config: unknown,
  selector: PolicySelector | undefined,
  { name, version, settings }: UsedPack,
): { readonly version: string; readonly users: readonly string[] } | undefined {
  const used = readValueAt(config, `${POLICIES}.packs.${name}`);
  if (!isRecord(used) || JSON.stringify(used) === JSON.stringify({ version, settings })) return undefined;
  const isWhole = selector !== undefined && readValueAt(config, `${POLICIES}.default`) === name;
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
    .some((rule) => isFittingSessions(rule, selector, selector.session));
  if (before === -1 || isShadowed) return placeByKind(others, selector, pack);
  return {
    earlier: others.slice(0, before),
    rule: { ...selector, pack },
    later: others.slice(before),
  };
}

function placeByKind(unsorted: readonly PolicyRule[], selector: PolicySelector, pack: string): PlacedRule {
  const others = unsorted.toSorted((a, b) => rankRule(a) - rankRule(b));
  const wider = others.findIndex((rule) => isFittingSessions(rule, selector, selector.session));
  const next = others.findIndex((rule) => rankRule(rule) > rankRule(selector));
  const places = [wider, next].filter((place) => place !== -1);
  const place = Math.min(others.length, ...places);
  return { earlier: others.slice(0, place), rule: { ...selector, pack }, later: others.slice(place) };
}

/** As they are written; what is no rule is found when the configuration is read. */
function listPolicyRules(config: unknown): readonly PolicyRule[] {
  const rules = readValueAt(config, `${POLICIES}.rules`);
  return Array.isArray(rules) ? rules.filter((rule): rule is PolicyRule => isRecord(rule)) : [];
}

function isSameSelector(rule: PolicySelector, other: PolicySelector): boolean {
  return describePolicyRule(formatSelector(rule)) === describePolicyRule(other);
}

function rankRule({ session, channel }: PolicySelector): number {
  if (session !== undefined) return 0;
  return channel === undefined ? 2 : 1;
}

/** True where a rule fits every session that a selector fits; `keys` is a pattern of the keys of those sessions. */
function isFittingSessions(
  rule: PolicySelector,
  selector: PolicySelector,
  keys: string | undefined,
): boolean {
  const { agent, channel } = readNamed(selector);
  const wanted = formatSelector(rule);
  if (wanted.agent !== undefined && wanted.agent !== agent) return false;
  if (wanted.channel !== undefined && wanted.channel !== channel) return false;
  const { session } = wanted;
  if (session === undefined) return true;
  // A star within the keys is met by a star of the rule alone.
  return keys !== undefined && isFittingAll(Array.from(keys), Array.from(session), ANY_CHARACTERS);
}

/** `agent:scout:telegram:` at the beginning of a pattern of keys, where no star stands for a part of it. */
const NAMED_IN_KEYS = /^agent:(?<agent>[^:*]+):(?:(?<channel>[^:*]+):)?/u;

/** Returns the agent and the channel of all sessions that a selector fits, which the pattern of their keys may name, too. */
function readNamed({ agent, channel, session = "" }: PolicySelector): PolicySelector {
  const named = NAMED_IN_KEYS.exec(session)?.groups ?? {};
  return formatSelector({
    agent: agent ?? (named["agent"] as AgentId | undefined),
    channel: channel ?? named["channel"],
  });
}

/** Describes the keys of the sessions that a selector fits: `agent:scout:*`. */
function describeKeys({ agent, channel, session }: PolicySelector): string {
  if (session !== undefined) return session;
  const place = channel === undefined ? "*" : `${channel}:*`;
  return `agent:${agent ?? "*"}:${place}`;
}

/** Returns a selector with agent and channel as OpenClaw writes them, without what is no text. */
export function formatSelector({ agent, channel, session }: PolicySelector): PolicySelector {
  return {
    ...(typeof agent === "string" && { agent: parseHostAgentId(agent) }),
    ...(typeof channel === "string" && { channel: channel.toLowerCase() }),
    ...(typeof session === "string" && { session }),
  };
}

/** Names the sessions of a rule: `agent writer, channel telegram`. */
export function describePolicyRule({ agent, channel, session }: PolicySelector): string {
  return [
    ...(agent === undefined ? [] : [`agent ${agent}`]),
    ...(channel === undefined ? [] : [`channel ${channel}`]),
    ...(session === undefined ? [] : [`session ${session}`]),
  ].join(", ");
}
