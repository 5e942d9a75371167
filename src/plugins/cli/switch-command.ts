/** Owns: `enable` and `disable`. */
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import { agentIdSchema } from "../../agents/coordination/contracts/ids.ts";
import {
  checkChanges,
  planDisable,
  planEnable,
  listWarningsAfterDisable,
  listWarningsAfterEnable,
  type EnableOptions,
} from "../openclaw/host/operator-config.ts";
import type { CliHost, CommandGroup } from "./terminal/cli-host.ts";
import { changeConfig, TAKEN_UP, withChangeOptions, type ChangeOptions } from "./terminal/change-config.ts";
import { runCommand, withExamples } from "./terminal/run-command.ts";

interface SwitchOptions extends ChangeOptions {
  readonly strict?: boolean;
  readonly agents?: string;
}

export function addEnable(parent: CommandGroup, host: CliHost): void {
  const command = withChangeOptions(parent.command("enable"))
    .description("Coordinate subagent spawns from now on")
    .option("--strict", "refuse a spawn that cannot be recorded, instead of letting it go on")
    .option("--agents <ids>", "only coordinate spawns of these agents, separated by commas")
    .action((options: SwitchOptions) => runCommand(host, options, () => enable(host, options)));
  withExamples(command, host, ["enable", "enable --dry-run", "enable --strict --agents main,research --yes"]);
}

export function addDisable(parent: CommandGroup, host: CliHost): void {
  const command = withChangeOptions(parent.command("disable"))
    .description("Stop coordinating subagent spawns; the ledger is kept")
    .action((options: SwitchOptions) => runCommand(host, options, () => disable(host, options)));
  withExamples(command, host, ["disable", "disable --dry-run", "disable --yes --json"]);
}

async function enable(host: CliHost, options: SwitchOptions): Promise<void> {
  const { strict, agents } = options;
  const wanted: EnableOptions = {
    ...(strict && { strict }),
    ...(agents !== undefined && { agents: agentsOf(agents) }),
  };
  await changeConfig(host, {
    options,
    plan: (config) => checkChanges(config, planEnable(config, wanted)),
    warnings: listWarningsAfterEnable,
    already: "coordination is already enabled",
    next: [...TAKEN_UP, `Next: let an agent spawn a subagent, then run \`${host.program} timeline\`.`],
  });
}

async function disable(host: CliHost, options: SwitchOptions): Promise<void> {
  await changeConfig(host, {
    options,
    plan: planDisable,
    warnings: listWarningsAfterDisable,
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
