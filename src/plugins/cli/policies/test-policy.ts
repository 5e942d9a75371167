/** Owns: `policy test`: which recorded decisions would have been others under a pack. */
import { toReplayPolicy } from "../../../agents/coordination/contracts/config/replay-policy.ts";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import type { PolicyPack } from "../../../agents/coordination/policies/combine-packs.ts";
import { listFoundRuns } from "../../../agents/coordination/runtime/log/read-found.ts";
import { readUnlessDamaged } from "../../../agents/coordination/runtime/log/read-state.ts";
import { replayCoordination, type Point } from "../../../agents/coordination/runtime/replay-coordination.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import { loadPolicyPack } from "../files/policy-pack-file.ts";
import { BUDGET_OF_PLANS, renderPoint } from "../ledger/replay-text.ts";
import { withLedger } from "../ledger/open-ledger.ts";
import { describeQuery, readFilter, withQueryOptions, type QueryOptions } from "../ledger/query-options.ts";
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { paintFor } from "../terminal/paint.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { createProgressLine } from "../terminal/progress-line.ts";
import {
  parseWholeNumber,
  runCommand,
  withExamples,
  withReaderOptions,
  writeJson,
  writeLines,
  type ReaderOptions,
} from "../terminal/run-command.ts";
import { describeChain, PACK, describePack } from "./policy-text.ts";

const LIMIT_MAX = 100_000;
/** Further decisions are counted, and not printed. */
const SHOWN_MAX = 200;

interface TestOptions extends ReaderOptions, QueryOptions {
  readonly limit: string;
}

export function addPolicyTest(policy: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(policy.command("test"))
    .description("Say which decisions of the ledger would have been others under a pack; nothing is executed")
    .argument("<pack>", PACK)
    .option("--limit <n>", "at most this many coordinations, the newest", "1000");
  withQueryOptions(command, {
    cause:
      "only coordinations that followed from this one (ID), or that have what this event (ID:SEQUENCE) caused",
    session: "only coordinations of this session, or with a step that it asked for",
    agent: "only coordinations of this agent, or with a step that it runs",
    childSession: "only coordinations with a step that runs in this session",
    recorded: "coordinations that were opened",
  }).action((pack: string, options: TestOptions) =>
    runCommand(host, options, () => testPack(host, pack, options)),
  );
  withExamples(command, host, [
    "policy test careful",
    "policy test ./release.yaml --since 7d",
    "policy test fast --agent research --json",
  ]);
}

interface TestedPack {
  readonly pack: PolicyPack;
  /** Settings of the pack that the log cannot say anything of. */
  readonly leftOut: readonly string[];
  /** Plans on which the pack's budget was not tested, because a plan states its own. */
  readonly plansWithoutBudget: number;
  readonly coordinations: number;
  readonly decisions: number;
  readonly changed: readonly ChangedCoordination[];
  /** Coordinations whose log is damaged, or differs from what is derived from it: nothing is said of them. */
  readonly unreadable: readonly CoordinationId[];
}

interface ChangedCoordination {
  readonly coordinationId: CoordinationId;
  readonly recorded: string;
  readonly would: string;
  readonly points: readonly Point[];
}

async function testPack(host: CliHost, name: string, options: TestOptions): Promise<void> {
  const limit = parseWholeNumber(options.limit, { option: "--limit", min: 1, max: LIMIT_MAX });
  const pack = await loadPolicyPack(name);
  await withLedger(host, options, async (reader) => {
    const tested = await testOnLedger(host, reader, { pack, limit, options });
    if (options.json) {
      const { pack: _, ...rest } = tested;
      await writeJson(host, { pack: describePack(pack), ...rest });
    } else await writeLines(host, renderTest(host, tested, options));
  });
}

interface Test {
  readonly pack: PolicyPack;
  readonly limit: number;
  readonly options: TestOptions;
}

async function testOnLedger(host: CliHost, reader: LedgerReader, test: Test): Promise<TestedPack> {
  const { pack, limit, options } = test;
  const { policy, leftOut } = toReplayPolicy(pack.settings);
  const filter = await readFilter(reader, options, host.now());
  const progress = createProgressLine(host);
  const changed: ChangedCoordination[] = [];
  const unreadable: CoordinationId[] = [];
  let coordinations = 0;
  let decisions = 0;
  let plansWithoutBudget = 0;
  try {
    for await (const { runId } of listFoundRuns(reader, { filter })) {
      const replayed = await readUnlessDamaged(() => replayCoordination(reader, runId, { policy }));
      coordinations += 1;
      decisions += replayed?.decisions ?? 0;
      const whatIf = replayed?.whatIf;
      if (whatIf?.isBudgetLeftOut) plansWithoutBudget += 1;
      if (!whatIf) unreadable.push(runId);
      else if (whatIf.points.length > 0) {
        const { recorded, would, points } = whatIf;
        changed.push({ coordinationId: runId, recorded, would, points });
      }
      const soFar = coordinations;
      progress.show(
        () => `tested ${formatCount(soFar, "coordination")}, ${changed.length} with other decisions`,
      );
      if (coordinations === limit) break;
    }
  } finally {
    await progress.clear();
  }
  return { pack, leftOut, plansWithoutBudget, coordinations, decisions, changed, unreadable };
}

function renderTest(host: CliHost, tested: TestedPack, options: TestOptions): string[] {
  const { pack, leftOut, plansWithoutBudget, coordinations, decisions, changed, unreadable } = tested;
  const points = changed.reduce((sum, coordination) => sum + coordination.points.length, 0);
  const extent = `${formatCount(coordinations, "coordination")}, ${formatCount(decisions, "decision")}`;
  const { terminal } = host.stdout;
  const query = describeQuery(options, terminal);
  return [
    `${describeChain(pack, host)}, on ${extent}${query === "" ? "" : ` (${query})`}:`,
    points === 0
      ? "The same would have been decided."
      : `${formatCount(points, "decision")} of ${formatCount(changed.length, "coordination")} would have been others:`,
    ...listChanges(changed, terminal),
    ...(points > SHOWN_MAX ? ["", `and ${points - SHOWN_MAX} more; --json has them all`] : []),
    "",
    `Not tested, because the log does not hold what they decide on: ${leftOut.join(", ") || "nothing"}.`,
    ...(plansWithoutBudget > 0
      ? [`budget: not tested on ${formatCount(plansWithoutBudget, "plan")}. ${BUDGET_OF_PLANS}`]
      : []),
    ...(unreadable.length > 0
      ? [
          `Left out, because their logs are damaged or \`replay\` says that they differ: ${formatPrintable(unreadable.join(", "), terminal.unicode)}.`,
        ]
      : []),
  ];
}

function listChanges(changed: readonly ChangedCoordination[], terminal: Terminal): string[] {
  const lines: string[] = [];
  let shown = 0;
  for (const { coordinationId, recorded, would, points } of changed) {
    const some = points.slice(0, SHOWN_MAX - shown);
    if (some.length === 0) break;
    shown += some.length;
    const paint = paintFor(terminal);
    const end = recorded === would ? recorded : `${recorded}, and would be ${would}`;
    lines.push("", `${paint.tone("strong", formatPrintable(coordinationId, terminal.unicode))}  ${end}`);
    for (const point of some) lines.push(...renderPoint(point, terminal));
  }
  return lines;
}
