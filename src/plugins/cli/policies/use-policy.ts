/** Owns: `policy use` and `policy drop`: which pack the gateway goes by, as a whole or for single sessions. */
import { nameAgents, TUNABLE } from "../../../agents/coordination/contracts/config/written-settings.ts";
import type { PolicyPack } from "../../../agents/coordination/policies/combine-packs.ts";
import { listSettings } from "../../../agents/coordination/policies/list-settings.ts";
import { formatShellArguments } from "../../../agents/coordination/std/shell-arguments.ts";
import { checkChanges, checkNoNewProblem, readWritten } from "../../openclaw/host/operator-config.ts";
import { loadPolicyPack } from "../files/policy-pack-file.ts";
import { changeConfig, TAKEN_UP, withChangeOptions, type ChangeOptions } from "../terminal/change-config.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { runCommand, withExamples } from "../terminal/run-command.ts";
import {
  describePolicyRule,
  formatSelector,
  listReplaced,
  listShadowingRules,
  planNoPolicy,
  planNoPolicyRule,
  planPolicy,
  planPolicyRule,
  type PolicySelector,
} from "./plan-policy.ts";
import { formatSetting, PACK } from "./policy-text.ts";

type PolicyOptions = ChangeOptions & PolicySelector;

export function addPolicyUse(policy: CommandGroup, host: CliHost): void {
  const command = withSelector(policy.command("use"))
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

export function addPolicyDrop(policy: CommandGroup, host: CliHost): void {
  const command = withSelector(policy.command("drop"))
    .description("Let the gateway go by its configuration and the defaults alone")
    .action((options: PolicyOptions) => runCommand(host, options, () => dropPack(host, options)));
  withExamples(command, host, ["policy drop --dry-run", "policy drop --yes", "policy drop --agent scout"]);
}

function withSelector(command: ReturnType<CommandGroup["command"]>): ReturnType<CommandGroup["command"]> {
  return withChangeOptions(command)
    .option("--agent <id>", "for the work of this agent's sessions only")
    .option("--channel <name>", "for the work of sessions whose key names this channel only")
    .option("--session <pattern>", "for the work of these sessions only; * stands for any characters");
}

/** `undefined`: the gateway as a whole. */
function readSelector(options: PolicyOptions): PolicySelector | undefined {
  const selector = formatSelector(options);
  return Object.keys(selector).length > 0 ? selector : undefined;
}

async function usePack(host: CliHost, name: string, options: PolicyOptions): Promise<void> {
  const pack = await loadPolicyPack(name);
  const { unicode } = host.stdout.terminal;
  const selector = readSelector(options);
  const whose = selector ? `the work of ${describePolicyRule(selector)}` : "the gateway";
  await changeConfig(host, {
    options,
    plan: (config) => checkChanges(config, planPack(config, selector, pack)),
    warnings: (config) => [
      ...listOverrides(config, pack, unicode),
      ...describeReplaced(config, selector, pack),
      ...(selector ? [...listUnheld(pack), ...describeShadowing(config, selector)] : []),
    ],
    already: () => `${whose} goes by ${pack.name} ${pack.version} already`,
    next: [
      ...TAKEN_UP,
      `Next: \`${host.program} policy test ${formatShellArguments(name)}\` says what it would have changed.`,
    ],
  });
}

function planPack(
  config: unknown,
  selector: PolicySelector | undefined,
  pack: PolicyPack,
): ReturnType<typeof planPolicy> {
  return selector ? planPolicyRule(config, selector, pack) : planPolicy(config, pack);
}

async function dropPack(host: CliHost, options: PolicyOptions): Promise<void> {
  const selector = readSelector(options);
  await changeConfig(host, {
    options,
    plan: (config) => planDrop(config, selector),
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
function planDrop(config: unknown, selector: PolicySelector | undefined): ReturnType<typeof planPolicy> {
  return checkNoNewProblem(config, selector ? planNoPolicyRule(config, selector) : planNoPolicy(config));
}

/** Sections of a pack that can only hold for a gateway as a whole. */
const WHOLE = ["lanes", "conflicts", "truth", "results", "chat", "compaction"];

function listUnheld({ settings }: PolicyPack): string[] {
  const sections = WHOLE.filter((section) => settings[section] !== undefined);
  return sections.length === 0
    ? []
    : [`${sections.join(", ")} of the pack hold for a gateway as a whole only, and not for single sessions`];
}

function describeReplaced(config: unknown, selector: PolicySelector | undefined, pack: PolicyPack): string[] {
  const replaced = listReplaced(config, selector, pack);
  if (!replaced) return [];
  const { name, version } = pack;
  const users = replaced.users.join(" and ");
  return [
    `${name} ${version} replaces ${name} ${replaced.version} also for ${users}, which go by that name; another pack needs another \`name\``,
  ];
}

function describeShadowing(config: unknown, selector: PolicySelector): string[] {
  return listShadowingRules(config, selector).map(
    (rule) =>
      `the rule for ${describePolicyRule(rule)} (pack ${rule.pack}) comes first and fits the same sessions, so that this one holds for none whose key begins with \`agent:\`; give a --session, or drop that rule`,
  );
}

/** Lists the settings of the configuration that hold in place of what the pack says. */
function listOverrides(config: unknown, { settings }: PolicyPack, isUnicode: boolean): string[] {
  const written = nameAgents(readWritten(config));
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
