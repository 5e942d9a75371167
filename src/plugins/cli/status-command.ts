/** Owns: `status`. It changes and creates nothing, and answers also where there is no ledger or no readable one. */
import type { Phase1Config } from "../../agents/coordination/contracts/config/config.ts";
import { isCoordinationError } from "../../agents/coordination/contracts/errors.ts";
import {
  isCoordinating,
  readCoordinationSwitches,
  type CoordinationSwitches,
} from "../openclaw/host/operator-config.ts";
import type { CliHost, CommandGroup, Terminal } from "./terminal/cli-host.ts";
import { findErrorAdvice } from "./doctor-checks.ts";
import { describeUsage } from "./timeline/budget-text.ts";
import {
  describeLedgerPath,
  isFileLedger,
  importLedgerReader,
  resolveLedgerPath,
  resolveSidecarPath,
  withLedger,
} from "./ledger/open-ledger.ts";
import { readOpenWopStatus } from "./openwop-service.ts";
import {
  ABSENCES,
  findGatewayPresence,
  isSwitchedOff,
  isConfigTakenUp,
  NOT_TAKEN_UP,
  TAKE_UP_ADVICE,
} from "./taken-up.ts";
import { describePolicyRule } from "./policies/plan-policy.ts";
import { findUnwritableFile } from "./unwritable-files.ts";
import { attachLedgerAdvice } from "./terminal/named-ledger.ts";
import { createPaint, type Paint } from "./terminal/paint.ts";
import { formatPrintable } from "./terminal/printable.ts";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatInstant,
} from "../../agents/coordination/std/quantities.ts";
import { describeProgress } from "./ledger/progress-text.ts";
import { countLedgerContents, type ContentsCounts, type ContentsReport } from "../reports/contents-report.ts";
import { describeGateways } from "../reports/gateway-report.ts";
import { nameStep } from "../reports/step-name.ts";
import {
  createErrorJson,
  runCommand,
  withExamples,
  withReaderOptions,
  writeJson,
  type ReaderOptions,
} from "./terminal/run-command.ts";

/** Everything that `status` shows. */
type CollectedStatus = Awaited<ReturnType<typeof collectStatus>>;

/** Adds the command `status`, which shows whether spawns are coordinated, and how the ledger is doing. */
export function addStatusCommand(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("status"))
    .description("Show whether spawns are coordinated, and how the ledger is doing")
    .action((options: ReaderOptions) =>
      runCommand(host, options, async () => {
        const status = await collectStatus(host, options);
        if (options.json) await writeJson(host, status);
        else await host.stdout.write(renderStatus(status, host.stdout.terminal, host.now()));
      }),
    );
  withExamples(command, host, ["status", "status --json"]);
}

async function collectStatus(host: CliHost, options: ReaderOptions) {
  const read = await host.config.read().catch(() => undefined);
  const { readHealthBeside } = await importLedgerReader();
  const health = readHealthBeside(await resolveSidecarPath(host, options)) ?? {
    state: "ok" as const,
    uncoordinatedSpawns: 0,
  };
  const { exists, bytes, coordinations, error, ...open } = await readLedgerContents(host, options);
  const switches = read && readCoordinationSwitches(read.config);
  const takenUp = await isConfigTakenUp(host, options, read?.config);
  const gateway = await findGatewayPresence(host, options, switches);
  const unwritable = await findUnwritableFile(host, options);
  return {
    ...createSwitchStatus(switches),
    ...(takenUp !== undefined && { takenUp }),
    ...(gateway !== undefined && { gateway }),
    openwop: readOpenWopStatus(read, switches, process.env),
    ledger: {
      path: await describeLedgerPath(host, options),
      exists,
      bytes,
      coordinations,
      ...(error && { error }),
    },
    ...open,
    health,
    ...markOldHealth(health.state, isSwitchedOff(switches, takenUp, options)),
    ...(unwritable !== undefined && { unwritable }),
    ...(read?.path !== undefined && { configPath: read.path }),
  };
}

/** Returns a mark for a failure that is from before coordination was switched off, else nothing. */
function markOldHealth(state: string, isOff: boolean): { readonly oldHealth?: true } {
  return state === "degraded" && isOff ? { oldHealth: true } : {};
}

interface SwitchStatus {
  /** `null`: the configuration cannot be read from here. */
  readonly enabled: boolean | null;
  readonly strict: boolean | null;
  readonly agents?: readonly string[];
  /** The policy pack that the gateway goes by, such as `careful 1.0.0`. */
  readonly policy?: string;
  /** The packs of single agents, channels or sessions, such as `careful 1.0.0 for agent writer`. */
  readonly policyRules?: readonly string[];
  /** Why coordination is off although its flag is on. */
  readonly problem?: string;
}

function createSwitchStatus(switches: CoordinationSwitches | undefined): SwitchStatus {
  if (!switches) return { enabled: null, strict: null };
  const { phase1 } = switches;
  if (isCoordinationError(phase1)) return { enabled: false, strict: null, problem: phase1.message };
  const problem = phase1.enabled ? findLoadBlocker(switches) : undefined;
  return {
    enabled: isCoordinating(switches),
    strict: phase1.strict,
    ...(phase1.agents && { agents: phase1.agents }),
    ...createPolicyStatus(phase1),
    ...(problem !== undefined && { problem }),
  };
}

function createPolicyStatus({ policies }: Phase1Config): Partial<SwitchStatus> {
  const { default: name = "", packs, rules } = policies;
  const pack = packs[name];
  const policyRules = rules.map(
    (rule) => `${rule.pack} ${packs[rule.pack]?.version ?? "?"} for ${describePolicyRule(rule)}`,
  );
  return {
    ...(pack && { policy: `${name} ${pack.version}` }),
    ...(policyRules.length > 0 && { policyRules }),
  };
}

/** Returns why the plugin does not load although coordination is switched on; `undefined` where it does. */
function findLoadBlocker({ pluginEnabled, excluded }: CoordinationSwitches): string | undefined {
  return excluded ?? (pluginEnabled ? undefined : "plugins.entries.coordination.enabled is not true");
}

/** The contents of a ledger, or why they are not known. */
type LedgerContents = LedgerProblem & (ContentsReport | UnknownContents);

interface LedgerProblem {
  /** `null`: nobody can tell, as of one on a server that does not answer. */
  readonly exists: boolean | null;
  /** `null`: it cannot be read. */
  readonly bytes: number | null;
  readonly error?: ReturnType<typeof createErrorJson>;
}

type UnknownContents = Readonly<Record<keyof ContentsCounts, null>> &
  Partial<Record<Exclude<keyof ContentsReport, keyof ContentsCounts>, undefined>>;

const NOTHING: ContentsCounts = {
  coordinations: 0,
  running: 0,
  openSteps: 0,
  openConflicts: 0,
  openQuestions: 0,
  mismatches: 0,
  refusedCalls: 0,
};
const UNKNOWN = {
  coordinations: null,
  running: null,
  openSteps: null,
  openConflicts: null,
  openQuestions: null,
  mismatches: null,
  refusedCalls: null,
} as const;

/** Counts what the ledger holds; zero where there is none, `null` with the error where it cannot be read. */
async function readLedgerContents(host: CliHost, options: ReaderOptions): Promise<LedgerContents> {
  try {
    return await withLedger(host, options, async (reader) => ({
      exists: true,
      bytes: await reader.measureBytes(),
      ...(await countLedgerContents(reader)),
    }));
  } catch (error) {
    if (!isCoordinationError(error)) throw error;
    if (error.code === "LEDGER_NOT_FOUND") return { exists: false, bytes: 0, ...NOTHING };
    const path = await resolveLedgerPath(host, options).catch(() => undefined);
    const exists = path !== undefined && (await isFileLedger(path)) ? true : null;
    const failure = attachLedgerAdvice(error, { program: host.program, ledger: options.ledger });
    return { exists, bytes: null, ...UNKNOWN, error: createErrorJson(failure) };
  }
}

function renderStatus(status: CollectedStatus, terminal: Terminal, now: number): string {
  const paint = createPaint(terminal);
  const { configPath } = status;
  const contents = describeRunningWork(status, paint);
  const questions = describeWaitingQuestions(status, paint, now);
  const mismatches = describeMismatches(status, paint);
  const gateways = describeGateways(status.gateways);
  const renderField = (name: string, value: string): string =>
    `${paint.tone("faint", name.padEnd(13))} ${value}`;
  const lines = [
    ...renderAlarm(status, paint, terminal),
    renderField("coordination", describeSwitch(status, paint)),
    ...(status.takenUp === false
      ? [renderField("taken up", `${paint.tone("bad", "no")}: ${NOT_TAKEN_UP}. ${TAKE_UP_ADVICE}`)]
      : []),
    ...renderOpenWopLines(status).map((text) => renderField("OpenWOP", text)),
    renderField("ledger", describeLedgerState(status, paint, terminal.unicode)),
    ...(contents === undefined ? [] : [renderField("running", contents)]),
    ...(gateways === "" ? [] : [renderField("gateways", formatPrintable(gateways, terminal.unicode))]),
    ...renderNewestProgress(status, terminal, now).map((line) => renderField("progress", line)),
    ...(questions === undefined ? [] : [renderField("questions", questions)]),
    ...(mismatches === undefined ? [] : [renderField("truth", mismatches)]),
    renderField("health", describeHealth(status, paint, terminal.unicode)),
    ...(configPath === undefined
      ? []
      : [renderField("config", formatPrintable(configPath, terminal.unicode))]),
  ];
  return `${lines.join("\n")}\n`;
}

/** Renders where OpenWOP is served and for how many tenants; empty when it is not. */
function renderOpenWopLines({ openwop: { served, url = "", tenants = 0 } }: CollectedStatus): string[] {
  return served ? [`${url} for ${formatCount(tenants, "tenant")}`] : [];
}

/** Renders an alarm with the failure and what to do where the gateway is degraded; else empty. */
function renderAlarm({ health, oldHealth }: CollectedStatus, paint: Paint, terminal: Terminal): string[] {
  const { state, failure, uncoordinatedSpawns } = health;
  if (state !== "degraded" || oldHealth) return [];
  const failureText = failure
    ? `${failure.code}: ${formatPrintable(failure.message, terminal.unicode)} (${formatInstant(failure.atMs)})`
    : "the gateway did not say why";
  return [
    paint.tone("alarm", " COORDINATION IS DEGRADED "),
    paint.tone("bad", `  ${failureText}`),
    paint.tone("bad", `  ${formatCount(uncoordinatedSpawns, "spawn")} went on without a record.`),
    ...(failure ? [`  ${findErrorAdvice(failure.code) ?? "Upgrade openclaw-coordination."}`] : []),
    "",
  ];
}

/** Describes whether coordination is on, for which agents and under which policy packs, or why it is off. */
function describeSwitch(
  { enabled, strict, agents, policy, policyRules = [], problem }: CollectedStatus,
  paint: Paint,
): string {
  if (enabled === null) return "unknown: OpenClaw's configuration cannot be read from here";
  const details = [
    ...(strict ? ["strict"] : []),
    ...(agents ? [`agents ${agents.join(", ")}`] : []),
    ...(policy === undefined ? [] : [`policy ${policy}`]),
    ...policyRules.map((rule) => `policy ${rule}`),
  ];
  const extra = details.length > 0 ? ` (${details.join("; ")})` : "";
  if (enabled) return paint.tone("good", "on") + extra;
  return problem === undefined ? "off" : `${paint.tone("bad", "off")}: ${problem}`;
}

function describeLedgerState({ ledger }: CollectedStatus, paint: Paint, unicode: boolean): string {
  const path = formatPrintable(ledger.path, unicode);
  if (ledger.exists === false) return `${path} (not created yet)`;
  if (ledger.error) {
    const message = formatPrintable(ledger.error.message, unicode);
    return `${path}, ${paint.tone("bad", "cannot be read")}: ${message}; run \`doctor\``;
  }
  return `${path}, ${formatBytes(ledger.bytes ?? 0)}, ${formatCount(ledger.coordinations ?? 0, "coordination")}`;
}

/** Describes the running coordinations and what is open in them; `undefined` where the ledger cannot be read. */
function describeRunningWork(status: CollectedStatus, paint: Paint): string | undefined {
  const { running, openSteps, openConflicts, refusedCalls } = status;
  if (running === null) return undefined;
  const refused =
    refusedCalls > 0 ? `, ${paint.tone("warning", formatCount(refusedCalls, "refused call"))}` : "";
  const open =
    openConflicts > 0 ? `, ${paint.tone("warning", formatCount(openConflicts, "open conflict"))}` : "";
  const used = status.runningUsage ? `, ${describeUsage(status.runningUsage)}` : "";
  return `${formatCount(running, "coordination")}, ${formatCount(openSteps, "open step")}${open}${refused}${used}`;
}

function renderNewestProgress(status: CollectedStatus, { unicode }: Terminal, now: number): string[] {
  const found = "progress" in status ? (status.progress ?? []) : [];
  return found.map(({ coordinationId, progress, ...step }) =>
    formatPrintable(`${coordinationId} ${nameStep(step)}: ${describeProgress(progress, now)}`, unicode),
  );
}

/** Describes the open questions and when the next is due; `undefined` when there are none. */
function describeWaitingQuestions(status: CollectedStatus, paint: Paint, now: number): string | undefined {
  const { openQuestions } = status;
  if (!openQuestions) return undefined;
  const { answerByMs = now } = status;
  const when =
    answerByMs > now ? `the next is due in ${formatDuration(answerByMs - now)}` : "one is past its time";
  return paint.tone("warning", `${formatCount(openQuestions, "open question")}, ${when}`);
}

/** Describes how many coordinations have children that did not run as asked; `undefined` when there are none. */
function describeMismatches({ mismatches }: CollectedStatus, paint: Paint): string | undefined {
  if (!mismatches) return undefined;
  return paint.tone(
    "warning",
    `children of ${formatCount(mismatches, "coordination")} did not run as asked; \`events --type child.differed\` lists them`,
  );
}

function describeHealth(status: CollectedStatus, paint: Paint, unicode: boolean): string {
  const { health, oldHealth, unwritable, gateway = "running" } = status;
  const { state, failure, uncoordinatedSpawns } = health;
  const since = failure ? `${failure.code} at ${formatInstant(failure.atMs)}` : "a failure";
  const unrecorded = `${formatCount(uncoordinatedSpawns, "spawn")} went unrecorded`;
  if (oldHealth) return paint.tone("warning", `${since}; ${unrecorded} until coordination was switched off`);
  if (state === "degraded") return paint.tone("bad", "degraded");
  // The gateway has nowhere to write that it is not well.
  if (unwritable !== undefined)
    return `${paint.tone("bad", "unknown")}: ${formatPrintable(unwritable, unicode)}`;
  if (gateway !== "running") return paint.tone("warning", ABSENCES[gateway]);
  if (!failure) return paint.tone("good", "ok");
  return `${paint.tone("good", "ok")} again after ${since}; ${unrecorded}`;
}
