/** Owns: `conflicts`. */
import { describeResource } from "./resource-text.ts";
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { describeConflictOutcome, OUTCOME_TONES, nameRequester, describeStrategy } from "./conflict-text.ts";
import { shortenConflictId, classifyOutcome } from "../../reports/conflict-outcome.ts";
import { renderConflictStory } from "./conflict-story.ts";
import {
  selectConflicts,
  findCoordinationOrConflict,
  findNewestConflicts,
  type FoundConflict,
} from "../../reports/find-conflicts.ts";
import { measureUniquePrefix } from "../ledger/list-command.ts";
import { warnOfUnreadable, withLedger } from "../ledger/open-ledger.ts";
import { createPaint } from "../terminal/paint.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { renderTable, type Column } from "../terminal/table.ts";
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

/** Adds the command `conflicts`, which lists conflicts or tells all about one. */
export function addConflictsCommand(parent: CommandGroup, host: CliHost): void {
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
      await printConflicts(host, options, conflicts);
      return;
    }
    const named = await findCoordinationOrConflict(reader, id);
    if (named.kind === "coordination")
      await printConflicts(host, options, selectConflicts(named.log, { isOpen }).slice(0, limit));
    else if (options.json) await writeJson(host, named.found.conflict);
    else await host.stdout.write(renderConflictStory(named.found, host.stdout.terminal));
  });
}

async function printConflicts(
  host: CliHost,
  { json }: ConflictsOptions,
  found: readonly FoundConflict[],
): Promise<void> {
  if (json)
    await writeJson(
      host,
      found.map(({ conflict }) => conflict),
    );
  else await host.stdout.write(renderConflictTable(found, host.stdout.terminal));
}

function renderConflictTable(found: readonly FoundConflict[], terminal: Terminal): string {
  if (found.length === 0) return "no conflicts\n";
  const paint = createPaint(terminal);
  const print = (value: string): string => formatPrintable(value, terminal.unicode);
  const idChars = measureUniquePrefix(found.map(({ conflict }) => conflict.coordinationId));
  const nameConflict = ({ conflict }: FoundConflict): string =>
    `${conflict.coordinationId.slice(0, idChars)}:${shortenConflictId(conflict)}`;
  const columns: Column<FoundConflict>[] = [
    { heading: "TIME", text: ({ conflict }) => formatInstant(conflict.detectedAtMs) },
    { heading: "CONFLICT", text: (row) => print(nameConflict(row)) },
    {
      heading: "RESOURCE",
      text: ({ conflict }) => print(describeResource(conflict.resource)),
      restMin: 24,
      isPath: true,
    },
    { heading: "STRATEGY", text: ({ conflict }) => print(describeStrategy(conflict)), max: 27 },
    { heading: "ASKED", text: ({ conflict, names }) => print(nameRequester(names, conflict)), max: 20 },
    {
      heading: "OUTCOME",
      text: ({ conflict, names }) => print(describeConflictOutcome(names, conflict)),
      max: 60,
      paint: (cell, { conflict }) => paint.tone(OUTCOME_TONES[classifyOutcome(conflict)], cell),
    },
  ];
  const [heading = "", ...lines] = renderTable(found, columns, terminal);
  return `${[paint.tone("faint", heading), ...lines].join("\n")}\n`;
}
