/** Owns: `conflicts`. */
import { describeResource } from "./resource-text.ts";
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { describeOutcome, OUTCOME_TONES, nameRequester, describeStrategy } from "./conflict-text.ts";
import { numberOf, outcomeOf } from "../../reports/conflict-outcome.ts";
import { renderConflict } from "./conflict-story.ts";
import {
  selectConflicts,
  findNamed,
  findNewestConflicts,
  type FoundConflict,
} from "../../reports/find-conflicts.ts";
import { measureUniqueChars } from "../ledger/list-command.ts";
import { warnOfUnreadable, withLedger } from "../ledger/open-ledger.ts";
import { paintFor } from "../terminal/paint.ts";
import { cellsOf, fit, formatPrintable, shorten, shortenStart } from "../terminal/printable.ts";
import { formatInstant } from "../../../agents/coordination/std/quantities.ts";
import {
  runCommand,
  parseWholeNumber,
  withExamples,
  withReaderOptions,
  writeJson,
  type ReaderOptions,
} from "../terminal/run-command.ts";

const LIMIT_MAX = 10_000;

interface ConflictsOptions extends ReaderOptions {
  readonly open?: boolean;
  readonly limit: string;
}

export function addConflicts(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("conflicts"))
    .description("List conflicts, newest first, or tell all about one")
    .argument(
      "[id]",
      "a coordination or one of its conflicts; a unique prefix of the coordination's id is enough",
    )
    .option("--open", "only those that people may still answer")
    .option("--limit <n>", "at most this many", "50")
    .action((id: string | undefined, options: ConflictsOptions) =>
      runCommand(host, options, () => showConflicts(host, id, options)),
    );
  withExamples(command, host, [
    "conflicts",
    "conflicts --open",
    "conflicts co-1f0c",
    "conflicts co-1f0c:conflict-3",
    "conflicts --limit 500 --json",
  ]);
}

async function showConflicts(
  host: CliHost,
  id: string | undefined,
  options: ConflictsOptions,
): Promise<void> {
  const limit = parseWholeNumber(options.limit, { option: "--limit", min: 1, max: LIMIT_MAX });
  const isOpen = options.open === true;
  await withLedger(host, options, async (reader) => {
    if (id === undefined) {
      const { conflicts, unreadable } = await findNewestConflicts(reader, { limit, isOpen });
      await warnOfUnreadable(host, "conflicts of at least", unreadable);
      await tellAll(host, options, conflicts);
      return;
    }
    const named = await findNamed(reader, id);
    if (named.kind === "coordination")
      await tellAll(host, options, selectConflicts(named.log, { isOpen }).slice(0, limit));
    else if (options.json) await writeJson(host, named.found.conflict);
    else await host.stdout.write(renderConflict(named.found, host.stdout.terminal));
  });
}

async function tellAll(
  host: CliHost,
  { json }: ConflictsOptions,
  found: readonly FoundConflict[],
): Promise<void> {
  if (json)
    await writeJson(
      host,
      found.map(({ conflict }) => conflict),
    );
  else await host.stdout.write(renderConflicts(found, host.stdout.terminal));
}

const RESOURCE_CELLS_MIN = 24;
const STRATEGY_CELLS_MAX = 27;
const ASKED_CELLS_MAX = 20;
const OUTCOME_CELLS_MAX = 60;

function renderConflicts(found: readonly FoundConflict[], terminal: Terminal): string {
  if (found.length === 0) return "no conflicts\n";
  const { unicode, columns } = terminal;
  const paint = paintFor(terminal);
  const print = (value: string): string => formatPrintable(value, unicode);
  const idChars = measureUniqueChars(found.map(({ conflict }) => conflict.coordinationId));
  const rows = found.map(({ conflict, names }) => ({
    id: print(`${conflict.coordinationId.slice(0, idChars)}:${numberOf(conflict)}`),
    resource: print(describeResource(conflict.resource)),
    strategy: print(describeStrategy(conflict)),
    asked: print(nameRequester(names, conflict)),
    outcome: shorten(print(describeOutcome(names, conflict)), OUTCOME_CELLS_MAX, unicode),
    tone: OUTCOME_TONES[outcomeOf(conflict)],
    time: formatInstant(conflict.detectedAtMs),
  }));
  const measureWidest = (
    of: "id" | "resource" | "strategy" | "asked" | "outcome",
    min: number,
    max = 200,
  ): number =>
    Math.min(
      max,
      rows.reduce((cells, row) => Math.max(cells, cellsOf(row[of])), min),
    );
  const [id, strategy] = [measureWidest("id", 8), measureWidest("strategy", 8, STRATEGY_CELLS_MAX)];
  const [askedCells, outcome] = [measureWidest("asked", 5, ASKED_CELLS_MAX), measureWidest("outcome", 7)];
  const rest = columns - formatInstant(0).length - id - strategy - askedCells - outcome - 10;
  const resource = Math.min(Math.max(RESOURCE_CELLS_MIN, rest), measureWidest("resource", 8));
  const heading = `${"TIME".padEnd(formatInstant(0).length)}  ${"CONFLICT".padEnd(id)}  ${"RESOURCE".padEnd(resource)}  ${"STRATEGY".padEnd(strategy)}  ${"ASKED".padEnd(askedCells)}  OUTCOME`;
  const lines = rows.map((row) =>
    [
      row.time,
      fit(row.id, id, unicode),
      fit(shortenStart(row.resource, resource, unicode), resource, unicode),
      fit(row.strategy, strategy, unicode),
      fit(row.asked, askedCells, unicode),
      paint.tone(row.tone, row.outcome),
    ].join("  "),
  );
  return `${[paint.tone("faint", heading), ...lines].join("\n")}\n`;
}
