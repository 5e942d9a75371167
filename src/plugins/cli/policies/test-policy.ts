/** Owns: `policy test`: which recorded decisions would have been others under a pack. */
import { parsePluginConfig } from "../../../agents/coordination/contracts/config/config.ts";
import {
  toReplayPolicy,
  type ReplayPolicy,
} from "../../../agents/coordination/contracts/config/replay-policy.ts";
import {
  normalizeAgentIds,
  readSection,
} from "../../../agents/coordination/contracts/config/written-settings.ts";
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import type { PolicyPack } from "../../../agents/coordination/policies/combine-packs.ts";
import { listFoundRuns } from "../../../agents/coordination/runtime/log/read-found.ts";
import { readUnlessDamaged } from "../../../agents/coordination/runtime/log/read-state.ts";
import {
  BUDGET_OF_PLANS,
  DEMANDS_OF_PLANS,
  replayCoordination,
  type DivergencePoint,
  type ReplayedCoordination,
} from "../../../agents/coordination/runtime/replay-coordination.ts";
import { mergeObjects } from "../../../agents/coordination/std/merge-objects.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";
import { readWrittenPhase1 } from "../../openclaw/host/operator-config.ts";
import { isRecord, type UnknownRecord } from "../../../agents/coordination/std/is-record.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import { loadPolicyPack } from "../files/policy-pack-file.ts";
import { renderChangedDecision } from "../ledger/replay-text.ts";
import { withLedger } from "../ledger/open-ledger.ts";
import {
  describeQuery,
  resolveFilter,
  withQueryOptions,
  type QueryOptions,
} from "../ledger/query-options.ts";
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { createPaint } from "../terminal/paint.ts";
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
import { describeChain, PACK, createPackJson } from "./policy-text.ts";

const LIMIT_MAX = 100_000;
/** Further decisions are counted, and not printed. */
const SHOWN_MAX = 200;

interface TestOptions extends ReaderOptions, QueryOptions {
  readonly limit: string;
}

/** Adds the command `policy test`, which says which recorded decisions would have been others under a pack. */
export function addPolicyTestCommand(policy: CommandGroup, host: CliHost): void {
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
  /** Whether the configuration of the ledger's gateway could be read, which counts in place of the pack. */
  readonly isConfigurationRead: boolean;
  /** Says why the configuration, which was read, is left out: with the pack it is not valid. */
  readonly configurationFault?: string;
  /** Settings of the pack that the log cannot say anything of. */
  readonly leftOut: readonly string[];
  /** Plans on which the pack's budget was not tested, because a plan states its own. */
  readonly plansWithoutBudget: number;
  /** Plans whose text is not kept any more: what their steps ask for beyond the operator is not known. */
  readonly plansWithoutText: number;
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
  readonly points: readonly DivergencePoint[];
}

async function testPack(host: CliHost, name: string, options: TestOptions): Promise<void> {
  const limit = parseWholeNumber(options.limit, { option: "--limit", min: 1, max: LIMIT_MAX });
  const pack = await loadPolicyPack(name);
  await withLedger(host, options, async (reader) => {
    const tested = await testOnLedger(host, reader, { pack, limit, options });
    if (options.json) {
      const { pack: _, ...rest } = tested;
      await writeJson(host, { pack: createPackJson(pack), ...rest });
    } else await writeLines(host, renderTestOutcome(host, tested, options));
  });
}

/** A pack that is to be tested, and how many coordinations at most. */
interface PolicyTest {
  readonly pack: PolicyPack;
  readonly limit: number;
  readonly options: TestOptions;
}

/** The findings of a test so far. */
interface PolicyFindings {
  coordinations: number;
  decisions: number;
  plansWithoutBudget: number;
  plansWithoutText: number;
  readonly untested: Set<string>;
  readonly changed: ChangedCoordination[];
  readonly unreadable: CoordinationId[];
}

/** Replays the newest coordinations under the pack, and collects which decisions would have been others. */
async function testOnLedger(host: CliHost, reader: LedgerReader, test: PolicyTest): Promise<TestedPack> {
  const { pack, limit, options } = test;
  const written = await readConfiguration(host, options);
  const { policy, leftOut, ...readings } = createPolicyOfPack(pack, written);
  const filter = await resolveFilter(reader, options, host.now());
  const progress = createProgressLine(host);
  const findings: PolicyFindings = {
    coordinations: 0,
    decisions: 0,
    plansWithoutBudget: 0,
    plansWithoutText: 0,
    untested: new Set(),
    changed: [],
    unreadable: [],
  };
  try {
    for await (const { runId } of listFoundRuns(reader, { filter })) {
      const replayed = await readUnlessDamaged(() => replayCoordination(reader, runId, { policy }));
      addReplayFindings(findings, runId, replayed);
      const { coordinations, changed } = findings;
      progress.show(
        () => `tested ${formatCount(coordinations, "coordination")}, ${changed.length} with other decisions`,
      );
      if (coordinations === limit) break;
    }
  } finally {
    await progress.clear();
  }
  const { untested, ...rest } = findings;
  return {
    pack,
    ...readings,
    leftOut: [...leftOut, ...untested],
    ...rest,
  };
}

/** Adds a replayed coordination to the findings; one that could not be replayed counts as unreadable. */
function addReplayFindings(
  findings: PolicyFindings,
  coordinationId: CoordinationId,
  replayed: ReplayedCoordination | undefined,
): void {
  findings.coordinations += 1;
  if (replayed) findings.decisions += replayed.decisions;
  const whatIf = replayed?.whatIf;
  if (!whatIf) {
    findings.unreadable.push(coordinationId);
    return;
  }
  const { recorded, would, points, untested, isBudgetLeftOut, plan } = whatIf;
  if (isBudgetLeftOut) findings.plansWithoutBudget += 1;
  if (plan === "deleted") findings.plansWithoutText += 1;
  for (const setting of untested) findings.untested.add(setting);
  if (points.length > 0) findings.changed.push({ coordinationId, recorded, would, points });
}

/** Returns the configuration as it is written; `undefined` where it cannot be read from here, and for another ledger. */
async function readConfiguration(
  { config }: CliHost,
  { ledger }: ReaderOptions,
): Promise<UnknownRecord | undefined> {
  if (ledger !== undefined) return undefined;
  try {
    const read = await config.read();
    return read && !read.isMissing ? normalizeAgentIds(readWrittenPhase1(read.config)) : undefined;
  } catch (error) {
    if (isCoordinationError(error)) return undefined;
    throw error;
  }
}

type PolicyOfPack = ReturnType<typeof toReplayPolicy> &
  Pick<TestedPack, "isConfigurationRead" | "configurationFault">;

/**
 * Returns the policy that would hold if the pack was taken into use: what the configuration says of its settings stays. Where the
 * two together are not valid it is that of the pack alone.
 */
function createPolicyOfPack({ settings }: PolicyPack, written: UnknownRecord | undefined): PolicyOfPack {
  const ofPack = toReplayPolicy(settings);
  if (!written) return { ...ofPack, isConfigurationRead: false };
  const writtenSections = Object.fromEntries(
    Object.keys(settings).map((section) => [section, written[section]]),
  );
  const merged = mergeObjects(settings, writtenSections);
  const { gates: _, ...otherSettings } = settings;
  try {
    const { gates, conflicts } = toReplayPolicy(merged).policy;
    const { policy } = toReplayPolicy(pickPackSettings(merged, otherSettings));
    const { strategy = parsePluginConfig({}).conflicts.strategy, overrides = [] } = conflicts ?? {};
    return {
      ...ofPack,
      policy: {
        ...policy,
        ...(gates && { gates: pickPackGates(gates, settings) }),
        configured: { strategy, overrides, ...(gates && { gates }) },
      },
      isConfigurationRead: true,
    };
  } catch (error) {
    if (!isCoordinationError(error) || error.code !== "INPUT_INVALID") throw error;
    return { ...ofPack, isConfigurationRead: false, configurationFault: error.message };
  }
}

/** Keeps the settings that the pack has, at every depth, and leaves out what the configuration alone says. */
function pickPackSettings(merged: UnknownRecord, ofPack: UnknownRecord): UnknownRecord {
  const named = Object.entries(ofPack).map(([key, value]) => {
    const setting = merged[key];
    return [key, isRecord(value) && isRecord(setting) ? pickPackSettings(setting, value) : setting] as const;
  });
  return Object.fromEntries(named);
}

/** The gates of a policy. */
type PolicyGates = NonNullable<ReplayPolicy["gates"]>;

/**
 * Keeps the gates that the pack has, `enabled`, and the configuration's rules for agents. An empty record stands for
 * no such rules, because these hold under the pack, too.
 */
function pickPackGates(
  { agents = {}, ...gates }: PolicyGates,
  settings: PolicyPack["settings"],
): PolicyGates {
  const ofPack = readSection(settings, "gates");
  const verifiers = Object.entries(gates.verifiers ?? {}).filter(([key]) =>
    Object.hasOwn(readSection(ofPack, "verifiers"), key),
  );
  const named = Object.entries(gates).filter(([key]) => key === "enabled" || Object.hasOwn(ofPack, key));
  return {
    ...(Object.fromEntries(named) as PolicyGates),
    ...(Object.hasOwn(ofPack, "verifiers") && { verifiers: Object.fromEntries(verifiers) }),
    agents,
  };
}

function renderTestOutcome(host: CliHost, tested: TestedPack, options: TestOptions): string[] {
  const { pack, leftOut, coordinations, decisions, changed } = tested;
  const points = changed.reduce((sum, coordination) => sum + coordination.points.length, 0);
  const extent = `${formatCount(coordinations, "coordination")}, ${formatCount(decisions, "decision")}`;
  const { terminal } = host.stdout;
  const query = describeQuery(options, terminal);
  return [
    `${describeChain(pack, host)}, on ${extent}${query === "" ? "" : ` (${query})`}:`,
    points === 0
      ? "The same would have been decided."
      : `${formatCount(points, "decision")} of ${formatCount(changed.length, "coordination")} would have been others:`,
    ...renderChangedCoordinations(changed, terminal),
    ...(points > SHOWN_MAX ? ["", `and ${points - SHOWN_MAX} more; --json has them all`] : []),
    "",
    `Not tested, because the log does not hold what they decide on: ${formatPrintable(leftOut.join(", ") || "nothing", terminal.unicode)}.`,
    ...describeConfigurationLimit(tested, options, terminal),
    ...describeTestLimits(tested, terminal),
  ];
}

/** Returns a sentence for each kind of work that was not, or not fully, tested. */
function describeTestLimits(tested: TestedPack, terminal: Terminal): string[] {
  const { plansWithoutBudget, plansWithoutText, unreadable } = tested;
  return [
    ...(plansWithoutBudget > 0
      ? [`budget: not tested on ${formatCount(plansWithoutBudget, "plan")}. ${BUDGET_OF_PLANS}`]
      : []),
    ...(plansWithoutText > 0
      ? [`The text of ${formatCount(plansWithoutText, "plan")} is not kept any more. ${DEMANDS_OF_PLANS}`]
      : []),
    ...(unreadable.length > 0
      ? [
          `Left out, because their logs are damaged or \`replay\` says that they differ: ${formatPrintable(unreadable.join(", "), terminal.unicode)}.`,
        ]
      : []),
  ];
}

function describeConfigurationLimit(
  { isConfigurationRead, configurationFault }: TestedPack,
  { ledger }: ReaderOptions,
  { unicode }: Terminal,
): string[] {
  if (isConfigurationRead) return [];
  if (ledger !== undefined)
    return [
      "OpenClaw's configuration is left out, because the ledger of `--ledger` may be another gateway's: what " +
        "that gateway's configuration says in place of the pack is not known.",
    ];
  return [
    configurationFault === undefined
      ? "OpenClaw's configuration cannot be read from here: what it says in place of the pack is not known."
      : `OpenClaw's configuration is left out, because with the pack ${formatPrintable(configurationFault, unicode)}`,
  ];
}

function renderChangedCoordinations(changed: readonly ChangedCoordination[], terminal: Terminal): string[] {
  const lines: string[] = [];
  let shown = 0;
  for (const { coordinationId, recorded, would, points } of changed) {
    const some = points.slice(0, SHOWN_MAX - shown);
    if (some.length === 0) break;
    shown += some.length;
    const paint = createPaint(terminal);
    const end = recorded === would ? recorded : `${recorded}, and would be ${would}`;
    lines.push("", `${paint.tone("strong", formatPrintable(coordinationId, terminal.unicode))}  ${end}`);
    for (const point of some) lines.push(...renderChangedDecision(point, terminal));
  }
  return lines;
}
