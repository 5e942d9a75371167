/** Owns: changing the host's configuration from a command: what would change, whether a person wants it, what was changed. */
import type { Command } from "commander";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { ConfigChange } from "../../openclaw/host/operator-config.ts";
import type { CliHost } from "./cli-host.ts";
import { createPaint } from "./paint.ts";
import { formatPrintable } from "./printable.ts";
import {
  assertQuestionVisible,
  withJsonOption,
  writeJson,
  writeLines,
  type JsonOption,
} from "./run-command.ts";

/** The host logs that a reload failed while a plugin works, and does not try again by itself. */
export const TAKEN_UP = [
  "A running gateway takes this up by itself within seconds; there is nothing to restart.",
  "One that is busy may not: `openclaw plugins reload coordination` makes it try again.",
] as const;

export interface ChangeOptions extends JsonOption {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

/** A change that a command makes to the configuration, and its words. */
export interface ChangeRequest {
  readonly options: ChangeOptions;
  readonly plan: (config: unknown) => ConfigChange[];
  readonly warnings: (config: unknown) => string[];
  /** Returns the line that is printed where nothing has to change. */
  readonly already: (config: unknown) => string;
  /** Printed after a change. */
  readonly next: readonly string[];
}

/**
 * Adds the options of commands that change the configuration (`--yes`, `--dry-run`, `--json`) to a command and returns
 * it.
 */
export function withChangeOptions(command: Command): Command {
  return withJsonOption(command)
    .option("-y, --yes", "do not ask")
    .option("--dry-run", "show what would change and change nothing");
}

/**
 * Plans changes of the gateway's configuration, shows them, asks unless `--yes`, writes them unless `--dry-run`, and
 * prints the outcome; sets exit code 1 where the person refuses. @throws CoordinationError `CONFIG_NOT_WRITABLE`,
 * `CONFIG_INVALID`, `INPUT_INVALID`
 */
export async function changeConfig(host: CliHost, request: ChangeRequest): Promise<void> {
  const { plan } = request;
  const before = await host.config.read();
  if (!before) {
    throw new CoordinationError(
      "CONFIG_NOT_WRITABLE",
      "OpenClaw is not installed beside this command, so its configuration cannot be found",
    );
  }
  const planned = plan(before.config);
  if (planned.length > 0 && !request.options.dryRun) assertQuestionVisible(host, request.options);
  await explainChanges(host, request, { planned, config: before.config });
  const outcome = await decideOutcome(host, request, planned);
  if (outcome === "refused") host.failWith(1);
  const result = outcome === "change" ? await host.config.change(plan) : { ...before, changed: [] };
  const changed = outcome === "dry-run" ? planned : result.changed;
  await printOutcome(host, request, { outcome, changed, path: result.path, config: before.config });
}

/** How a change of the configuration ended. */
type ChangeOutcome = "already" | "dry-run" | "refused" | "change";

/** Decides what becomes of the planned changes, after asking a person where one has to be asked. */
async function decideOutcome(
  host: CliHost,
  { options }: ChangeRequest,
  planned: readonly ConfigChange[],
): Promise<ChangeOutcome> {
  if (options.dryRun) return "dry-run";
  if (planned.length === 0) return "already";
  return (await confirmChange(host, options)) ? "change" : "refused";
}

interface ChangeResult {
  readonly outcome: ChangeOutcome;
  readonly changed: readonly ConfigChange[];
  readonly path: string | undefined;
  /** As it was before. */
  readonly config: unknown;
}

async function printOutcome(host: CliHost, request: ChangeRequest, result: ChangeResult): Promise<void> {
  const { outcome, changed, path } = result;
  if (request.options.json)
    await writeJson(host, { changed, dryRun: outcome === "dry-run", ...(path && { configPath: path }) });
  else {
    const { unicode } = host.stdout.terminal;
    await writeLines(
      host,
      listClosingLines(request, result).map((line) => formatPrintable(line, unicode)),
    );
  }
}

/** True where a person agrees to the change, or nobody has to be or can be asked. */
async function confirmChange({ confirm }: CliHost, { yes }: ChangeOptions): Promise<boolean> {
  return yes === true || confirm === undefined || confirm("Change the configuration?");
}

/**
 * Prints the planned changes and the warnings. With `--json` it prints to stderr, because stdout belongs to the
 * program that reads it, and the changes only where a person is asked.
 */
async function explainChanges(
  host: CliHost,
  { options, warnings }: ChangeRequest,
  { planned, config }: { readonly planned: readonly ConfigChange[]; readonly config: unknown },
): Promise<void> {
  const output = options.json ? host.stderr : host.stdout;
  const paint = createPaint(output.terminal);
  const arrow = output.terminal.unicode ? "→" : "->";
  const print = (text: string): string => formatPrintable(text, output.terminal.unicode);
  const formatValue = (of: unknown): string => (of === null ? "(unset)" : print(JSON.stringify(of)));
  const isAsked = host.confirm !== undefined && !options.yes;
  const shown = options.json && !isAsked ? [] : planned;
  const lines = shown.map(({ path, from, to }) => {
    return `  ${print(path)}: ${paint.tone("faint", formatValue(from))} ${arrow} ${paint.tone("strong", formatValue(to))}`;
  });
  const warned = warnings(config).map((warning) => `${paint.tone("warning", "warning")} ${print(warning)}`);
  if (lines.length + warned.length > 0) await output.write(`${[...lines, ...warned].join("\n")}\n`);
}

function listClosingLines(
  { already, next }: ChangeRequest,
  { outcome, changed, path, config }: ChangeResult,
): string[] {
  if (outcome === "refused") return ["nothing was changed"];
  if (changed.length === 0) return [already(config)];
  const where = path === undefined ? "" : ` in ${path}`;
  return outcome === "dry-run" ? [`dry run: nothing was changed${where}`] : [`changed${where}`, ...next];
}
