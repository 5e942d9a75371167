/** Owns: `policy diff`: where two packs differ, and which of them is the stricter there. */
import {
  comparePolicies,
  type ChangedSetting,
} from "../../../agents/coordination/policies/compare-policies.ts";
import { loadPolicyPack } from "../files/policy-pack-file.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { createPaint } from "../terminal/paint.ts";
import { countCells, fitToCells, formatPrintable } from "../terminal/printable.ts";
import {
  runCommand,
  withExamples,
  withJsonOption,
  writeJson,
  writeLines,
  type JsonOption,
} from "../terminal/run-command.ts";
import { describeChain, formatSetting, PACK, createPackJson } from "./policy-text.ts";

const TONES = { stricter: "good", laxer: "warning", other: "faint" } as const;

/** Adds the command `policy diff`, which prints the settings in which two policy packs differ. */
export function addPolicyDiffCommand(policy: CommandGroup, host: CliHost): void {
  const command = withJsonOption(policy.command("diff"))
    .description("Print the settings in which two packs differ, and whether the second is stricter there")
    .argument("<from>", PACK)
    .argument("<to>", PACK)
    .action((from: string, to: string, options: JsonOption) =>
      runCommand(host, options, () => showPackChanges(host, { from, to }, options)),
    );
  withExamples(command, host, [
    "policy diff balanced careful",
    "policy diff careful ./release.yaml",
    "policy diff balanced fast --json",
  ]);
}

async function showPackChanges(
  host: CliHost,
  names: { readonly from: string; readonly to: string },
  { json }: JsonOption,
): Promise<void> {
  const from = await loadPolicyPack(names.from);
  const to = await loadPolicyPack(names.to);
  const changes = comparePolicies(from.settings, to.settings);
  if (json) await writeJson(host, { from: createPackJson(from), to: createPackJson(to), changes });
  else if (changes.length === 0) await writeLines(host, ["The same settings hold under both."]);
  else {
    const title = `From ${describeChain(from, host)} to ${describeChain(to, host)}:`;
    await writeLines(host, [title, ...renderChangedSettings(host, changes)]);
  }
}

function renderChangedSettings(host: CliHost, changes: readonly ChangedSetting[]): string[] {
  const { terminal } = host.stdout;
  const { unicode } = terminal;
  const paint = createPaint(terminal);
  const arrow = unicode ? "→" : "->";
  const print = (text: string): string => formatPrintable(text, unicode);
  const width = Math.max(...changes.map(({ path }) => countCells(print(path))));
  return changes.map(({ path, from, to, change }) => {
    const values = `${formatSetting(from, unicode)} ${arrow} ${paint.tone("strong", formatSetting(to, unicode))}`;
    return `  ${fitToCells(print(path), width, unicode)}  ${paint.tone(TONES[change], change.padEnd(8))}  ${values}`;
  });
}
