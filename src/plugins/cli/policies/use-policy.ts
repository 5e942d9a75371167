/** Owns: `policy use` and `policy drop`: which pack the gateway goes by. */
import { TUNABLE } from "../../../agents/coordination/contracts/config/written-settings.ts";
import type { PolicyPack } from "../../../agents/coordination/policies/combine-packs.ts";
import { listSettings } from "../../../agents/coordination/policies/list-settings.ts";
import { planNoPolicy, planPolicy, readWritten } from "../../openclaw/host/operator-config.ts";
import { loadPolicyPack } from "../files/policy-pack-file.ts";
import { changeConfig, TAKEN_UP, withChangeOptions, type ChangeOptions } from "../terminal/change-config.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { runCommand, withExamples } from "../terminal/run-command.ts";
import { formatSetting, PACK } from "./policy-text.ts";

export function addPolicyUse(policy: CommandGroup, host: CliHost): void {
  const command = withChangeOptions(policy.command("use"))
    .description("Let the gateway go by a pack wherever its configuration says nothing itself")
    .argument("<pack>", PACK)
    .action((pack: string, options: ChangeOptions) =>
      runCommand(host, options, () => usePack(host, pack, options)),
    );
  withExamples(command, host, [
    "policy use careful --dry-run",
    "policy use ./release.yaml",
    "policy use fast --yes --json",
  ]);
}

export function addPolicyDrop(policy: CommandGroup, host: CliHost): void {
  const command = withChangeOptions(policy.command("drop"))
    .description("Let the gateway go by its configuration and the defaults alone")
    .action((options: ChangeOptions) => runCommand(host, options, () => dropPack(host, options)));
  withExamples(command, host, ["policy drop --dry-run", "policy drop --yes"]);
}

async function usePack(host: CliHost, name: string, options: ChangeOptions): Promise<void> {
  const pack = await loadPolicyPack(name);
  const { unicode } = host.stdout.terminal;
  await changeConfig(host, {
    options,
    plan: (config) => planPolicy(config, pack),
    warnings: (config) => listOverrides(config, pack, unicode),
    already: `the gateway goes by ${pack.name} ${pack.version} already`,
    next: [...TAKEN_UP, `Next: \`${host.program} policy test ${name}\` says what it would have changed.`],
  });
}

async function dropPack(host: CliHost, options: ChangeOptions): Promise<void> {
  await changeConfig(host, {
    options,
    plan: planNoPolicy,
    warnings: () => [],
    already: "the gateway goes by no policy pack",
    next: TAKEN_UP,
  });
}

/** Lists the settings of the configuration that hold in place of what the pack says. */
function listOverrides(config: unknown, { settings }: PolicyPack, isUnicode: boolean): string[] {
  const written = readWritten(config);
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
