/** Owns: `policy show`: all settings of a pack, and which pack of those that it extends said each. */
import { listEffectiveSettings } from "../../../agents/coordination/policies/compare-policies.ts";
import { isLocked, type PolicyPack } from "../../../agents/coordination/policies/combine-packs.ts";
import { loadPolicyPack } from "../files/policy-pack-file.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { createPaint } from "../terminal/paint.ts";
import { countCells, fitToCells, formatPrintable } from "../terminal/printable.ts";
import {
  runCommand,
  withExamples,
  withJsonOption,
  writeJson,
  type JsonOption,
} from "../terminal/run-command.ts";
import { describeChain, formatSetting, PACK, createPackJson } from "./policy-text.ts";

interface ShowOptions extends JsonOption {
  readonly all?: boolean;
}

/** Adds the command `policy show`, which prints a pack's settings and which pack says each. */
export function addPolicyShowCommand(policy: CommandGroup, host: CliHost): void {
  const command = withJsonOption(policy.command("show"))
    .description("Print the settings of a pack with all that it extends, and which pack says each")
    .argument("<pack>", PACK)
    .option("--all", "also the defaults that no pack says anything of")
    .action((pack: string, options: ShowOptions) =>
      runCommand(host, options, () => showPack(host, pack, options)),
    );
  withExamples(command, host, [
    "policy show careful",
    "policy show ./release.yaml --all",
    "policy show careful --json",
  ]);
}

async function showPack(host: CliHost, name: string, { all, json }: ShowOptions): Promise<void> {
  const pack = await loadPolicyPack(name);
  const lines = listSettingLines(pack, all === true);
  if (json) await writeJson(host, { ...createPackJson(pack), settings: pack.settings, effective: lines });
  else await host.stdout.write(renderPack(host, pack, lines));
}

interface SettingLine {
  readonly path: string;
  readonly value: unknown;
  readonly from: string;
  readonly locked: boolean;
}

/** Lists settings with the pack that says each; `isAll` adds the defaults that no pack says anything of. */
function listSettingLines(pack: PolicyPack, isAll: boolean): SettingLine[] {
  const { settings, origins } = pack;
  return [...listEffectiveSettings(settings)].flatMap(([path, value]) => {
    const from = origins.get(path) ?? "default";
    const locked = isLocked(pack, path);
    return isAll || origins.has(path) || locked ? [{ path, value, from, locked }] : [];
  });
}

function renderPack(host: CliHost, pack: PolicyPack, lines: readonly SettingLine[]): string {
  const { terminal } = host.stdout;
  const paint = createPaint(terminal);
  const print = (text: string): string => formatPrintable(text, terminal.unicode);
  const width = Math.max(0, ...lines.map(({ path }) => countCells(print(path))));
  const described = pack.description === undefined ? [] : [print(pack.description)];
  const settings = lines.map(({ path, value, from, locked }) => {
    const lock = locked ? "  locked" : "";
    return `  ${fitToCells(print(path), width, terminal.unicode)}  ${paint.tone("strong", formatSetting(value, terminal.unicode))}  ${paint.tone("faint", `${from}${lock}`)}`;
  });
  return `${[describeChain(pack, host), ...described, "", ...settings].join("\n")}\n`;
}
