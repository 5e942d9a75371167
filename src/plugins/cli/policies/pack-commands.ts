/** Owns: `policy` with its subcommands, and of them `list` and `validate`. */
import { listShippedPacks, loadPolicyPack } from "../files/policy-pack-file.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { createPaint } from "../terminal/paint.ts";
import {
  runCommand,
  withExamples,
  withJsonOption,
  writeJson,
  writeLines,
  type JsonOption,
} from "../terminal/run-command.ts";
import { addPolicyDiffCommand } from "./diff-policies.ts";
import { describeChain, PACK, createPackJson } from "./policy-text.ts";
import { addPolicyShowCommand } from "./show-policy.ts";
import { addPolicyTestCommand } from "./test-policy.ts";
import { addPolicyDropCommand, addPolicyUseCommand } from "./use-policy.ts";

/** Adds the group of commands `policy`: list, validate, show, diff, test, use and drop. */
export function addPolicyCommands(parent: CommandGroup, host: CliHost): void {
  const policy = parent
    .command("policy")
    .description("Look at policy packs, test them on what the ledger has, and take one into use");
  const list = withJsonOption(policy.command("list"))
    .description("List the packs that ship")
    .action((options: JsonOption) => runCommand(host, options, () => showShippedPacks(host, options)));
  withExamples(list, host, ["policy list"]);
  const validate = withJsonOption(policy.command("validate"))
    .description(
      "Say what is wrong with a pack and with those that it extends; exit code 1 when something is",
    )
    .argument("<pack>", PACK)
    .action((pack: string, options: JsonOption) =>
      runCommand(host, options, () => validatePack(host, pack, options)),
    );
  withExamples(validate, host, ["policy validate ./release.yaml", "policy validate ./release.yaml --json"]);
  addPolicyShowCommand(policy, host);
  addPolicyDiffCommand(policy, host);
  addPolicyTestCommand(policy, host);
  addPolicyUseCommand(policy, host);
  addPolicyDropCommand(policy, host);
  withExamples(policy, host, ["policy list", "policy test careful", "policy use careful --dry-run"]);
}

async function showShippedPacks(host: CliHost, options: JsonOption): Promise<void> {
  const packs = await Promise.all(listShippedPacks().map(loadPolicyPack));
  if (options.json) {
    await writeJson(host, packs.map(createPackJson));
    return;
  }
  const paint = createPaint(host.stdout.terminal);
  const lines = packs.map(
    ({ name, version, description = "" }) =>
      `${paint.tone("strong", name.padEnd(10))} ${version}  ${description}`,
  );
  await writeLines(host, lines);
}

async function validatePack(host: CliHost, pack: string, options: JsonOption): Promise<void> {
  const loaded = await loadPolicyPack(pack);
  if (options.json) await writeJson(host, { ok: true, ...createPackJson(loaded) });
  else {
    const paint = createPaint(host.stdout.terminal);
    const settings = `${loaded.origins.size} settings`;
    await writeLines(host, [`${paint.tone("good", "ok")}  ${describeChain(loaded, host)}: ${settings}`]);
  }
}
