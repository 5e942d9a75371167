/** Owns: `policy use` and `policy drop`: which pack the gateway goes by, as a whole or for single sessions. */
import {
  normalizeAgentIds,
  TUNABLE,
} from "../../../agents/coordination/contracts/config/written-settings.ts";
import type { PolicyPack } from "../../../agents/coordination/policies/combine-packs.ts";
import { listSettings } from "../../../agents/coordination/policies/list-settings.ts";
import { formatShellArguments } from "../../../agents/coordination/std/shell-arguments.ts";
import {
  assertChangesValid,
  assertNoNewProblem,
  readWrittenPhase1,
} from "../../openclaw/host/operator-config.ts";
import { loadPolicyPack } from "../files/policy-pack-file.ts";
import { changeConfig, TAKEN_UP, withChangeOptions, type ChangeOptions } from "../terminal/change-config.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { assertNotEmpty, runCommand, withExamples } from "../terminal/run-command.ts";
import {
  describePolicyRule,
  normalizeSelector,
  findReplacedPack,
  listShadowingRules,
  planPolicyRemoval,
  planPolicyRuleRemoval,
  planPolicyUse,
  planPolicyRuleUse,
  type PolicySelector,
} from "./plan-policy.ts";
import { formatSetting, PACK } from "./policy-text.ts";

type PolicyOptions = ChangeOptions & PolicySelector;

/** Adds the command `policy use`, which writes a pack into the gateway's configuration after asking. */
export function addPolicyUseCommand(policy: CommandGroup, host: CliHost): void {
  const command = withSelectorOptions(policy.command("use"))
    .description("Let the gateway go by a pack wherever its configuration says nothing itself")
    .argument("<pack>", PACK)
    .action((pack: string, options: PolicyOptions) =>
      runCommand(host, options, () => usePack(host, pack, options)),
    );
  withExamples(command, host, [
    "policy use careful --dry-run",
    "policy use ./release.yaml --session 'agent:*:release-*'",
    "policy use careful --channel telegram",
    "policy use fast --agent scout --yes --json",
  ]);
}

/** Adds the command `policy drop`, which takes packs out of the gateway's configuration after asking. */
export function addPolicyDropCommand(policy: CommandGroup, host: CliHost): void {
  const command = withSelectorOptions(policy.command("drop"))
    .description("Let the gateway go by its configuration and the defaults alone")
    .action((options: PolicyOptions) => runCommand(host, options, () => dropPack(host, options)));
  withExamples(command, host, ["policy drop --dry-run", "policy drop --yes", "policy drop --agent scout"]);
}

function withSelectorOptions(
  command: ReturnType<CommandGroup["command"]>,
): ReturnType<CommandGroup["command"]> {
  return withChangeOptions(command)
    .option("--agent <id>", "for the work of this agent's sessions only")
    .option("--channel <name>", "for the work of sessions whose key names this channel only")
    .option("--session <pattern>", "for the work of these sessions only; * stands for any characters");
}

/**
 * Returns the sessions that the options name; `undefined` for the gateway as a whole. @throws CoordinationError
 * `INPUT_INVALID` for an option with nothing, which would stand for the main agent
 */
function readSelector(options: PolicyOptions): PolicySelector | undefined {
  assertNotEmpty(options.agent, "--agent", "the id of an agent");
  assertNotEmpty(options.channel, "--channel", "the name of a channel");
  assertNotEmpty(options.session, "--session", "the key of a session, or a pattern of keys");
  const selector = normalizeSelector(options);
  return Object.keys(selector).length > 0 ? selector : undefined;
}

async function usePack(host: CliHost, name: string, options: PolicyOptions): Promise<void> {
  const pack = await loadPolicyPack(name);
  const { unicode } = host.stdout.terminal;
  const selector = readSelector(options);
  const whose = selector ? `the work of ${describePolicyRule(selector)}` : "the gateway";
  await changeConfig(host, {
    options,
    plan: (config) => assertChangesValid(config, planPackUse(config, selector, pack)),
    warnings: (config) => [
      ...describeOverrides(config, pack, unicode),
      ...describeReplacedPack(config, selector, pack),
      ...(selector ? [...describeUnheldSections(pack), ...describeShadowingRules(config, selector)] : []),
    ],
    already: () => `${whose} goes by ${pack.name} ${pack.version} already`,
    next: [
      ...TAKEN_UP,
      `Next: \`${host.program} policy test ${formatShellArguments(name)}\` says what it would have changed.`,
    ],
  });
}

function planPackUse(
  config: unknown,
  selector: PolicySelector | undefined,
  pack: PolicyPack,
): ReturnType<typeof planPolicyUse> {
  return selector ? planPolicyRuleUse(config, selector, pack) : planPolicyUse(config, pack);
}

async function dropPack(host: CliHost, options: PolicyOptions): Promise<void> {
  const selector = readSelector(options);
  await changeConfig(host, {
    options,
    plan: (config) => planPackDrop(config, selector),
    warnings: () => [],
    already: () =>
      selector
        ? `the work of ${describePolicyRule(selector)} goes by no policy pack of its own`
        : "the gateway goes by no policy pack",
    next: TAKEN_UP,
  });
}

/**
 * Plans to drop a pack, also from a configuration that is not valid, because of the pack or of anything else.
 * @throws CoordinationError `CONFIG_INVALID` where that would make something else wrong, as where a check of the pack is named
 */
function planPackDrop(
  config: unknown,
  selector: PolicySelector | undefined,
): ReturnType<typeof planPolicyUse> {
  return assertNoNewProblem(
    config,
    selector ? planPolicyRuleRemoval(config, selector) : planPolicyRemoval(config),
  );
}

/** Sections of a pack that can only hold for a gateway as a whole. */
const WHOLE = ["lanes", "conflicts", "truth", "results", "chat", "compaction"];

/** Warns of sections of the pack that hold for a gateway as a whole only; empty where it has none. */
function describeUnheldSections({ settings }: PolicyPack): string[] {
  const sections = WHOLE.filter((section) => settings[section] !== undefined);
  return sections.length === 0
    ? []
    : [`${sections.join(", ")} of the pack hold for a gateway as a whole only, and not for single sessions`];
}

/** Warns of others who go by a pack of this name and get this one, too; empty where nobody does. */
function describeReplacedPack(
  config: unknown,
  selector: PolicySelector | undefined,
  pack: PolicyPack,
): string[] {
  const replaced = findReplacedPack(config, selector, pack);
  if (!replaced) return [];
  const { name, version } = pack;
  const users = replaced.users.join(" and ");
  return [
    `${name} ${version} replaces ${name} ${replaced.version} also for ${users}, which go by that name; another pack needs another \`name\``,
  ];
}

function describeShadowingRules(config: unknown, selector: PolicySelector): string[] {
  return listShadowingRules(config, selector).map(
    (rule) =>
      `the rule for ${describePolicyRule(rule)} (pack ${rule.pack}) comes first and fits the same sessions, so that this one holds for none whose key begins with \`agent:\`; give a --session, or drop that rule`,
  );
}

/** Returns a sentence for each setting of the configuration that holds in place of what the pack says. */
function describeOverrides(config: unknown, { settings }: PolicyPack, isUnicode: boolean): string[] {
  const written = normalizeAgentIds(readWrittenPhase1(config));
  const tunable = Object.fromEntries(TUNABLE.map((name) => [name, written[name]]));
  const ofPack = listSettings(settings);
  return [...listSettings(tunable)].flatMap(([path, value]) => {
    const wish = ofPack.get(path);
    if (wish === undefined || JSON.stringify(wish) === JSON.stringify(value)) return [];
    return [
      `${path} stays ${formatSetting(value, isUnicode)}, as the configuration has it; the pack says ${formatSetting(wish, isUnicode)}`,
    ];
  });
}
