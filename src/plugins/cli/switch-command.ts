/** Owns: `enable` and `disable`. */
import type { Command } from "commander";
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import { agentIdSchema } from "../../agents/coordination/contracts/ids.ts";
import {
  planDisable,
  planEnable,
  listWarningsAfterEnable,
  type ConfigChange,
  type EnableOptions,
} from "../openclaw/host/operator-config.ts";
import type { CliHost, CommandGroup } from "./terminal/cli-host.ts";
import { paintFor } from "./terminal/paint.ts";
import { formatPrintable } from "./terminal/printable.ts";
import {
  runCommand,
  withExamples,
  withJson,
  writeJson,
  writeLines,
  type JsonOption,
} from "./terminal/run-command.ts";

/** The host logs that a reload failed while a plugin works, and does not try again by itself. */
const TAKEN_UP = [
  "A running gateway takes this up by itself within seconds; there is nothing to restart.",
  "One that is busy may not: `openclaw plugins reload coordination` makes it try again.",
] as const;

interface SwitchOptions extends JsonOption {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly strict?: boolean;
  readonly agents?: string;
}

interface Switch {
  readonly options: SwitchOptions;
  readonly plan: (config: unknown) => ConfigChange[];
  readonly warnings: (config: unknown) => string[];
  readonly already: string;
  readonly next: readonly string[];
}

export function addEnable(parent: CommandGroup, host: CliHost): void {
  const command = withSwitchOptions(parent.command("enable"))
    .description("Coordinate subagent spawns from now on")
    .option("--strict", "refuse a spawn that cannot be recorded, instead of letting it go on")
    .option("--agents <ids>", "only coordinate spawns of these agents, separated by commas")
    .action((options: SwitchOptions) => runCommand(host, options, () => enable(host, options)));
  withExamples(command, host, ["enable", "enable --dry-run", "enable --strict --agents main,research --yes"]);
}

export function addDisable(parent: CommandGroup, host: CliHost): void {
  const command = withSwitchOptions(parent.command("disable"))
    .description("Stop coordinating subagent spawns; the ledger is kept")
    .action((options: SwitchOptions) => runCommand(host, options, () => disable(host, options)));
  withExamples(command, host, ["disable", "disable --dry-run", "disable --yes --json"]);
}

function withSwitchOptions(command: Command): Command {
  return withJson(command)
    .option("-y, --yes", "do not ask")
    .option("--dry-run", "show what would change and change nothing");
}

async function enable(host: CliHost, options: SwitchOptions): Promise<void> {
  const { strict, agents } = options;
  const wanted: EnableOptions = {
    ...(strict && { strict }),
    ...(agents !== undefined && { agents: agentsOf(agents) }),
  };
  await apply(host, {
    options,
    plan: (config) => planEnable(config, wanted),
    warnings: listWarningsAfterEnable,
    already: "coordination is already enabled",
    next: [...TAKEN_UP, `Next: let an agent spawn a subagent, then run \`${host.program} timeline\`.`],
  });
}

async function disable(host: CliHost, options: SwitchOptions): Promise<void> {
  await apply(host, {
    options,
    plan: planDisable,
    warnings: () => [],
    already: "coordination is already disabled",
    next: [...TAKEN_UP, `The ledger is kept: \`${host.program} list\` still reads it.`],
  });
}

/** @throws CoordinationError `INPUT_INVALID` */
function agentsOf(text: string): string[] {
  const agents = text.split(",").map((agent) => agent.trim());
  const invalid = agents.find((agent) => !agentIdSchema.safeParse(agent).success);
  if (invalid === undefined) return [...new Set(agents)];
  throw new CoordinationError(
    "INPUT_INVALID",
    `--agents: expected agent ids separated by commas, got ${JSON.stringify(invalid.slice(0, 40))} among them`,
  );
}

async function apply(host: CliHost, toggle: Switch): Promise<void> {
  const { plan } = toggle;
  const before = await host.config.read();
  if (!before) {
    throw new CoordinationError(
      "CONFIG_NOT_WRITABLE",
      "OpenClaw is not installed beside this command, so its configuration cannot be found",
    );
  }
  const planned = plan(before.config);
  await explain(host, toggle, { planned, config: before.config });
  const outcome = await outcomeOf(host, toggle, planned);
  if (outcome === "refused") host.failWith(1);
  const result = outcome === "change" ? await host.config.change(plan) : { ...before, changed: [] };
  const changed = outcome === "dry-run" ? planned : result.changed;
  await tell(host, toggle, { outcome, changed, path: result.path });
}

type Outcome = "already" | "dry-run" | "refused" | "change";

async function outcomeOf(
  host: CliHost,
  { options }: Switch,
  planned: readonly ConfigChange[],
): Promise<Outcome> {
  if (options.dryRun) return "dry-run";
  if (planned.length === 0) return "already";
  return (await isWanted(host, options)) ? "change" : "refused";
}

interface Done {
  readonly outcome: Outcome;
  readonly changed: readonly ConfigChange[];
  readonly path: string | undefined;
}

async function tell(host: CliHost, toggle: Switch, result: Done): Promise<void> {
  const { outcome, changed, path } = result;
  if (toggle.options.json)
    await writeJson(host, { changed, dryRun: outcome === "dry-run", ...(path && { configPath: path }) });
  else await writeLines(host, listClosingLines(toggle, result));
}

async function isWanted({ confirm }: CliHost, { yes }: SwitchOptions): Promise<boolean> {
  return yes === true || confirm === undefined || confirm("Change the configuration?");
}

/** Explains the changes on stderr. With `--json`, stdout belongs to the program that reads it. */
async function explain(
  host: CliHost,
  { options, warnings }: Switch,
  { planned, config }: { readonly planned: readonly ConfigChange[]; readonly config: unknown },
): Promise<void> {
  const output = options.json ? host.stderr : host.stdout;
  const paint = paintFor(output.terminal);
  const arrow = output.terminal.unicode ? "→" : "->";
  const formatValue = (of: unknown): string =>
    of === null ? "(unset)" : formatPrintable(JSON.stringify(of), output.terminal.unicode);
  const isAsked = host.confirm !== undefined && !options.yes;
  const shown = options.json && !isAsked ? [] : planned;
  const lines = shown.map(({ path, from, to }) => {
    return `  ${path}: ${paint.tone("faint", formatValue(from))} ${arrow} ${paint.tone("strong", formatValue(to))}`;
  });
  const warned = warnings(config).map((warning) => `${paint.tone("warning", "warning")} ${warning}`);
  if (lines.length + warned.length > 0) await output.write(`${[...lines, ...warned].join("\n")}\n`);
}

function listClosingLines({ already, next }: Switch, { outcome, changed, path }: Done): string[] {
  if (outcome === "refused") return ["nothing was changed"];
  if (changed.length === 0) return [already];
  const where = path === undefined ? "" : ` in ${path}`;
  return outcome === "dry-run" ? [`dry run: nothing was changed${where}`] : [`changed${where}`, ...next];
}
