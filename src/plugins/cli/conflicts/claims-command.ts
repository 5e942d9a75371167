/** Owns: `claims`, and listing what is claimed. Does not own: ending a claim (`release-command.ts`). */
import { OWNER_STEP_ID, type CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { listClaims } from "../../../agents/coordination/runtime/log/read-pages.ts";
import { readUnlessDamaged } from "../../../agents/coordination/runtime/log/read-state.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import { createClaimReport, type ClaimReport } from "../../reports/claim-report.ts";
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { readChangeLog } from "../../reports/conflict-log.ts";
import { nameParty } from "./conflict-text.ts";
import { type Names } from "../../reports/conflict-outcome.ts";
import { measureUniqueChars } from "../ledger/list-command.ts";
import { withLedger } from "../ledger/open-ledger.ts";
import { paintFor } from "../terminal/paint.ts";
import { cellsOf, fit, formatPrintable, shortenStart } from "../terminal/printable.ts";
import { formatDuration, formatInstant } from "../../../agents/coordination/std/quantities.ts";
import { addRelease } from "./release-command.ts";
import { createResourceFilter, describeResource } from "./resource-text.ts";
import {
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

export function addClaims(parent: CommandGroup, host: CliHost): void {
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
  addRelease(command, host);
}

async function showClaims(host: CliHost, options: ClaimsOptions): Promise<void> {
  const limit = parseWholeNumber(options.limit, { option: "--limit", min: 1, max: LIMIT_MAX });
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
      const steps = await stepTexts(reader, shown);
      await host.stdout.write(renderClaims(shown, { ...host.stdout, steps, now, isMore }));
    }
  });
}

/** Names what holds each claim: the id that `cancel` takes, then the name where there is one that can be read. */
async function stepTexts(reader: LedgerReader, listed: readonly ClaimReport[]): Promise<string[]> {
  const names = new Map<CoordinationId, Names>();
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

interface Page {
  /** The name of each claim's step. */
  readonly steps: readonly string[];
  readonly terminal: Terminal;
  readonly now: number;
  readonly isMore: boolean;
}

const RESOURCE_CELLS_MIN = 20;
const STEP_CELLS_MAX = 28;
const UNTIL_CELLS = 10;

function renderClaims(listed: readonly ClaimReport[], page: Page): string {
  if (listed.length === 0) return "nothing is claimed\n";
  const { terminal, now, isMore } = page;
  const { unicode, columns } = terminal;
  const paint = paintFor(terminal);
  const print = (value: string): string => formatPrintable(value, unicode);
  const idChars = measureUniqueChars(listed.map(({ coordinationId }) => coordinationId));
  const id = Math.max("COORDINATION".length, idChars);
  const token = String(listed.at(-1)?.token ?? "").length;
  const steps = page.steps.map(print);
  const step = Math.min(STEP_CELLS_MAX, Math.max(4, ...steps.map(cellsOf)));
  const since = formatInstant(0).length;
  const tokenCells = Math.max(5, token);
  const resource = Math.max(RESOURCE_CELLS_MIN, columns - tokenCells - id - step - since - UNTIL_CELLS - 10);
  const heading = `${"TOKEN".padStart(tokenCells)}  ${"COORDINATION".padEnd(id)}  ${"STEP".padEnd(step)}  ${"SINCE".padEnd(since)}  ${"UNTIL".padEnd(UNTIL_CELLS)}  RESOURCE`;
  const lines = listed.map((claim, index) => {
    const until = claim.expired ? "expired" : `in ${formatDuration(claim.expiresAtMs - now)}`;
    const line = [
      String(claim.token).padStart(tokenCells),
      fit(print(claim.coordinationId).slice(0, idChars), id, unicode),
      fit(steps[index] ?? "", step, unicode),
      formatInstant(claim.acquiredAtMs),
      until.padEnd(UNTIL_CELLS),
      shortenStart(print(describeResource(claim.resource)), resource, unicode),
    ].join("  ");
    return claim.expired ? paint.tone("faint", line) : line;
  });
  const more = isMore ? ["and more: raise --limit, or narrow it with --resource"] : [];
  return `${[paint.tone("faint", heading), ...lines, ...more].join("\n")}\n`;
}
