/** Owns: `policy show`: all settings of a pack, and which pack of those that it extends said each. */
import { listEffective } from "../../../agents/coordination/policies/compare-policies.ts";
import { isLocked, type PolicyPack } from "../../../agents/coordination/policies/combine-packs.ts";
import { loadPolicyPack } from "../files/policy-pack-file.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { paintFor } from "../terminal/paint.ts";
import { cellsOf, fit, formatPrintable } from "../terminal/printable.ts";
import { runCommand, withExamples, withJson, writeJson, type JsonOption } from "../terminal/run-command.ts";
import { describeChain, formatSetting, PACK, describePack } from "./policy-text.ts";

interface ShowOptions extends JsonOption {
  readonly all?: boolean;
}

export function addPolicyShow(policy: CommandGroup, host: CliHost): void {
  const command = withJson(policy.command("show"))
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
  const lines = listLines(pack, all === true);
  if (json) await writeJson(host, { ...describePack(pack), settings: pack.settings, effective: lines });
  else await host.stdout.write(renderPack(host, pack, lines));
}

interface SettingLine {
  readonly path: string;
  readonly value: unknown;
  readonly from: string;
  readonly locked: boolean;
}

function listLines(pack: PolicyPack, isAll: boolean): SettingLine[] {
  const { settings, origins } = pack;
  return [...listEffective(settings)].flatMap(([path, value]) => {
    const from = origins.get(path) ?? "default";
    const locked = isLocked(pack, path);
    return isAll || origins.has(path) || locked ? [{ path, value, from, locked }] : [];
  });
}

function renderPack(host: CliHost, pack: PolicyPack, lines: readonly SettingLine[]): string {
  const { terminal } = host.stdout;
  const paint = paintFor(terminal);
  const print = (text: string): string => formatPrintable(text, terminal.unicode);
  const width = Math.max(0, ...lines.map(({ path }) => cellsOf(print(path))));
  const described = pack.description === undefined ? [] : [print(pack.description)];
  const settings = lines.map(({ path, value, from, locked }) => {
    const lock = locked ? "  locked" : "";
    return `  ${fit(print(path), width, terminal.unicode)}  ${paint.tone("strong", formatSetting(value, terminal.unicode))}  ${paint.tone("faint", `${from}${lock}`)}`;
  });
  return `${[describeChain(pack, host), ...described, "", ...settings].join("\n")}\n`;
}
