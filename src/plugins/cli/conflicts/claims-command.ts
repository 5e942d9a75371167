/** Owns: `claims`, and listing what is claimed. Does not own: ending a claim (`release-command.ts`). */
import { OWNER_STEP_ID, type CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { listClaims } from "../../../agents/coordination/runtime/log/read-pages.ts";
import { readUnlessDamaged } from "../../../agents/coordination/runtime/log/read-state.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import { createClaimReport, type ClaimReport } from "../../reports/claim-report.ts";
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { readChangeLog } from "../../reports/conflict-log.ts";
import { nameParty } from "../../reports/step-name.ts";
import { type StepNames } from "../../reports/conflict-outcome.ts";
import { measureUniquePrefix } from "../ledger/list-command.ts";
import { withLedger } from "../ledger/open-ledger.ts";
import { createPaint } from "../terminal/paint.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { renderTable, type Column } from "../terminal/table.ts";
import { formatDuration, formatInstant } from "../../../agents/coordination/std/quantities.ts";
import { addReleaseCommand } from "./release-command.ts";
import { createResourceFilter, describeResource } from "./resource-text.ts";
import {
  assertNotEmpty,
  runCommand,
  parseWholeNumber,
  withExamples,
  withReaderOptions,
  writeJson,
  type ReaderOptions,
} from "../terminal/run-command.ts";

const LIMIT_MAX = 100_000;

interface ClaimsOptions extends ReaderOptions {
  readonly resource?: string;
  readonly all?: boolean;
  readonly limit: string;
}

/** Adds the command `claims`, which lists what steps have claimed, and its subcommand `release`. */
export function addClaimsCommand(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("claims"))
    .description("List what steps have claimed, by token")
    .option("--resource <path>", "only what concerns this file or folder, or this name such as queue:mail")
    .option("--all", "with claims whose lease has ended")
    .option("--limit <n>", "at most this many", "200")
    .action((options: ClaimsOptions) => runCommand(host, options, () => showClaims(host, options)));
  withExamples(command, host, [
    "claims",
    "claims --resource src/report.md",
    "claims --all --json",
    "claims release 17",
  ]);
  addReleaseCommand(command, host);
}

async function showClaims(host: CliHost, options: ClaimsOptions): Promise<void> {
  const limit = parseWholeNumber(options.limit, { option: "--limit", min: 1, max: LIMIT_MAX });
  assertNotEmpty(options.resource, "--resource", "a file, a folder or a name");
  const now = host.now();
  const isConcerned = options.resource === undefined ? () => true : createResourceFilter(options.resource);
  await withLedger(host, options, async (reader) => {
    const listed: ClaimReport[] = [];
    for await (const entry of listClaims(reader)) {
      const claim = createClaimReport(entry, now);
      if (!isConcerned(claim.resource) || (claim.expired && options.all !== true)) continue;
      listed.push(claim);
      if (listed.length > limit) break;
    }
    const shown = listed.slice(0, limit);
    if (options.json) await writeJson(host, shown);
    else {
      const isMore = listed.length > limit;
      const steps = await nameClaimHolders(reader, shown);
      await host.stdout.write(renderClaimTable(shown, { ...host.stdout, steps, now, isMore }));
    }
  });
}

/**
 * Returns each claim's holder: the step id that `cancel` takes, then its name where one can be read; `the owner` where
 * the owner holds it.
 */
async function nameClaimHolders(reader: LedgerReader, listed: readonly ClaimReport[]): Promise<string[]> {
  const names = new Map<CoordinationId, StepNames>();
  for (const id of new Set(listed.map(({ coordinationId }) => coordinationId))) {
    const log = await readUnlessDamaged(() => readChangeLog(reader, id));
    if (log) names.set(id, log.names);
  }
  return listed.map(({ coordinationId, stepId }) => {
    const name = nameParty(names.get(coordinationId) ?? new Map(), { stepId });
    const isNamed = stepId !== OWNER_STEP_ID && name !== (stepId as string);
    return isNamed ? `${stepId} (${name})` : name;
  });
}

/** The names of steps, and the terminal, that a table of claims is drawn with. */
interface ClaimsPage {
  /** The name of each claim's step. */
  readonly steps: readonly string[];
  readonly terminal: Terminal;
  readonly now: number;
  readonly isMore: boolean;
}

function renderClaimTable(listed: readonly ClaimReport[], page: ClaimsPage): string {
  if (listed.length === 0) return "nothing is claimed\n";
  const { terminal, now, isMore } = page;
  const paint = createPaint(terminal);
  const print = (value: string): string => formatPrintable(value, terminal.unicode);
  const idChars = measureUniquePrefix(listed.map(({ coordinationId }) => coordinationId));
  const rows = listed.map((claim, index) => ({ ...claim, step: page.steps[index] ?? "" }));
  const columns: Column<(typeof rows)[number]>[] = [
    { heading: "TOKEN", text: ({ token }) => String(token), isNumber: true },
    { heading: "COORDINATION", text: ({ coordinationId }) => print(coordinationId).slice(0, idChars) },
    { heading: "STEP", text: ({ step }) => print(step), max: 28 },
    { heading: "SINCE", text: ({ acquiredAtMs }) => formatInstant(acquiredAtMs) },
    {
      heading: "UNTIL",
      text: ({ expired, expiresAtMs }) => (expired ? "expired" : `in ${formatDuration(expiresAtMs - now)}`),
      min: 10,
    },
    {
      heading: "RESOURCE",
      text: (claim) => print(describeResource(claim.resource)),
      restMin: 20,
      isPath: true,
    },
  ];
  const [heading = "", ...lines] = renderTable(rows, columns, terminal);
  const painted = lines.map((line, index) => (rows[index]?.expired ? paint.tone("faint", line) : line));
  const more = isMore ? ["and more: raise --limit, or narrow it with --resource"] : [];
  return `${[paint.tone("faint", heading), ...painted, ...more].join("\n")}\n`;
}
