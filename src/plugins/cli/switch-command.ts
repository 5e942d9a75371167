/** Owns: `enable` and `disable`. */
import { CoordinationError, isCoordinationError } from "../../agents/coordination/contracts/errors.ts";
import { agentIdSchema } from "../../agents/coordination/contracts/ids.ts";
import {
  assertChangesValid,
  listDisableChanges,
  listEnableChanges,
  listWarningsAfterDisable,
  listWarningsAfterEnable,
  readCoordinationSwitches,
  type EnableOptions,
} from "../openclaw/host/operator-config.ts";
import { importLedgerReader, resolveSidecarPath } from "./ledger/open-ledger.ts";
import type { CliHost, CommandGroup } from "./terminal/cli-host.ts";
import { changeConfig, TAKEN_UP, withChangeOptions, type ChangeOptions } from "./terminal/change-config.ts";
import { runCommand, withExamples } from "./terminal/run-command.ts";

interface SwitchOptions extends ChangeOptions {
  readonly strict?: boolean;
  readonly agents?: string;
  readonly allAgents?: boolean;
}

/** Adds the command `enable`, which switches coordination on in the configuration after asking. */
export function addEnableCommand(parent: CommandGroup, host: CliHost): void {
  const command = withChangeOptions(parent.command("enable"))
    .description("Coordinate subagent spawns from now on")
    .option("--strict", "refuse a spawn that cannot be recorded, instead of letting it go on")
    .option("--no-strict", "let a spawn that cannot be recorded go on again")
    .option("--agents <ids>", "only coordinate spawns of these agents, separated by commas")
    .option("--all-agents", "coordinate spawns of all agents again")
    .action((options: SwitchOptions) => runCommand(host, options, () => enableCoordination(host, options)));
  withExamples(command, host, ["enable", "enable --dry-run", "enable --strict --agents main,research --yes"]);
}

/**
 * Adds the command `disable`, which switches coordination off in the configuration after asking; the ledger is kept.
 */
export function addDisableCommand(parent: CommandGroup, host: CliHost): void {
  const command = withChangeOptions(parent.command("disable"))
    .description("Stop coordinating subagent spawns; the ledger is kept")
    .action((options: SwitchOptions) => runCommand(host, options, () => disableCoordination(host, options)));
  withExamples(command, host, ["disable", "disable --dry-run", "disable --yes --json"]);
}

async function enableCoordination(host: CliHost, options: SwitchOptions): Promise<void> {
  const { strict } = options;
  const agents = parseAgentsOption(options);
  const wanted: EnableOptions = { ...(strict !== undefined && { strict }), ...(agents && { agents }) };
  await changeConfig(host, {
    options,
    plan: (config) => assertChangesValid(config, listEnableChanges(config, wanted)),
    warnings: listWarningsAfterEnable,
    already: describeAlreadyEnabled,
    next: [
      ...TAKEN_UP,
      ...(await warnOfMissingPlugin(host)),
      `Next: let an agent spawn a subagent, then run \`${host.program} timeline\`.`,
    ],
  });
}

/** Returns a line where it cannot be told that OpenClaw has the plugin: it runs no command of it, and left no report. */
async function warnOfMissingPlugin(host: CliHost): Promise<string[]> {
  if (host.config.known !== undefined) return [];
  const { readHealthBeside } = await importLedgerReader();
  if (readHealthBeside(await resolveSidecarPath(host, {}))) return [];
  return [
    "The plugin must also be installed in OpenClaw: see `openclaw plugins list`; `openclaw plugins install` adds it.",
  ];
}

async function disableCoordination(host: CliHost, options: SwitchOptions): Promise<void> {
  await changeConfig(host, {
    options,
    plan: listDisableChanges,
    warnings: listWarningsAfterDisable,
    already: () => "coordination is already disabled",
    next: [...TAKEN_UP, `The ledger is kept: \`${host.program} list\` still reads it.`],
  });
}

/** Says in which way coordination is enabled already, so that nobody takes it for all agents where it is for some. */
function describeAlreadyEnabled(config: unknown): string {
  const { phase1 } = readCoordinationSwitches(config);
  const enabled = "coordination is already enabled";
  if (isCoordinationError(phase1)) return enabled;
  const { strict, agents } = phase1;
  return [
    enabled,
    ...(strict ? ["strict"] : []),
    ...(agents
      ? [`for the agents ${agents.join(", ") || "(none)"} only; --all-agents takes in the others`]
      : []),
  ].join(", ");
}

/** @throws CoordinationError `INPUT_INVALID` */
function parseAgentsOption({ agents: text, allAgents }: SwitchOptions): string[] | "all" | undefined {
  if (text === undefined) return allAgents ? "all" : undefined;
  if (allAgents) throw new CoordinationError("INPUT_INVALID", "give --agents or --all-agents, not both");
  const agents = text.split(",").map((agent) => agent.trim());
  const invalid = agents.find((agent) => !agentIdSchema.safeParse(agent).success);
  if (invalid === undefined) return [...new Set(agents)];
  throw new CoordinationError(
    "INPUT_INVALID",
    `--agents: expected agent ids separated by commas, got ${JSON.stringify(invalid.slice(0, 40))} among them`,
  );
}
