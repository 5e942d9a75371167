/** Owns: `doctor`: looking at the installation and saying what is wrong with it. It changes nothing. */
import { existsSync, statfsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { isCoordinationError, type CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import {
  readCoordination,
  type CoordinationView,
} from "../../agents/coordination/runtime/log/coordination-view.ts";
import { findFileFault } from "../../platform/plain-file.ts";
import { readSwitches, type ReadConfig, type Switches } from "../openclaw/host/operator-config.ts";
import type { CliHost, CommandGroup, Terminal } from "./terminal/cli-host.ts";
import {
  checkBackup,
  checkConfig,
  checkDisk,
  checkDurability,
  checkHealth,
  checkLedger,
  checkNode,
  checkOverdue,
  checkPlainFile,
  checkPrivacy,
  checkQuestions,
  checkUnseen,
  checkWebhooks,
  dropAdvice,
  type Check,
} from "./doctor-checks.ts";
import {
  KEY_FILES,
  describeLedgerPath,
  isLedgerFile,
  loadLedgerReader,
  resolvePathBeside,
  withLedger,
} from "./ledger/open-ledger.ts";
import { openWopChecks } from "./openwop-service.ts";
import { checkGateway, checkTakenUp, findGateway, isSwitchedOff, isTakenUp } from "./taken-up.ts";
import { checkWritable, findExisting, findUnwritable } from "./unwritable-files.ts";
import { attachLedgerAdvice } from "./terminal/named-ledger.ts";
import { paintFor, type Tone } from "./terminal/paint.ts";
import { formatPrintable } from "./terminal/printable.ts";
import { listRuns } from "../../agents/coordination/runtime/log/read-pages.ts";
import {
  asCoordinationError,
  runCommand,
  withExamples,
  withReaderOptions,
  writeJson,
  type ReaderOptions,
} from "./terminal/run-command.ts";

/** Enough to see that something hangs. */
const RUNNING_MAX = 1_000;

export function addDoctor(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("doctor"))
    .description("Look for what keeps coordination from working, and say what to do")
    .action((options: ReaderOptions) => runCommand(host, options, () => runDoctor(host, options)));
  withExamples(command, host, ["doctor", "doctor --json"]);
}

async function runDoctor(host: CliHost, options: ReaderOptions): Promise<void> {
  const checks = await checksOf(host, options);
  const ok = checks.every(({ status }) => status !== "fail");
  if (!ok) host.failWith(1);
  if (options.json) await writeJson(host, { ok, checks });
  else await host.stdout.write(render(checks, host.stdout.terminal));
}

async function checksOf(host: CliHost, options: ReaderOptions): Promise<Check[]> {
  const read = await readConfig(host);
  const path = await describeLedgerPath(host, options);
  const { readHealthBeside } = await loadLedgerReader();
  const setting = isCoordinationError(read) ? read : read && readSwitches(read.config);
  const switches = isCoordinationError(setting) ? undefined : setting;
  const takenUp = await isTakenUp(host, options, isCoordinationError(read) ? undefined : read?.config);
  const beside = await resolvePathBeside(host, options);
  return [
    checkNode(host.nodeVersion),
    ...checkConfig(setting, host.program),
    ...checkGateway(await findGateway(host, options, switches)),
    ...checkTakenUp(takenUp),
    ...checkWebhooks(await findWebhooksOff(switches)),
    ...(await openWopChecks(switches, { stateDir: await host.stateDir(), env: process.env })),
    ...((await isLedgerFile(beside)) ? checkFiles(beside, options, await isLedgerFile(path)) : []),
    ...checkWritable(await findUnwritable(host, options)),
    ...(await checkLedgerContent(host, options)),
    ...(await checkLastBackup(host, path)),
    checkHealth(readHealthBeside(beside), isSwitchedOff(switches, takenUp, options)),
  ];
}

/** The configuration, or why the file that is there cannot be read; `undefined` where none is found from here. */
async function readConfig(host: CliHost): Promise<ReadConfig | CoordinationError | undefined> {
  return host.config.read().catch((error: unknown) => (isCoordinationError(error) ? error : undefined));
}

/** Lists the webhooks that have no secret under the variables of this process. */
async function findWebhooksOff(switches: Switches | undefined): Promise<string[]> {
  const phase1 = switches?.phase1;
  if (!phase1 || isCoordinationError(phase1)) return [];
  const { listWebhooksOff } = await import("../channels.ts");
  return listWebhooksOff(phase1.escalations.webhooks, (name) => process.env[name]);
}

/** Checks the folder of the path with the keys in it, and the ledger there; `hasLedger` is false where that is on a server. */
function checkFiles(path: string, { ledger }: ReaderOptions, hasLedger: boolean): Check[] {
  const uid = process.getuid?.();
  const folder = dirname(path);
  const listPrivacy = (name: string, file: string, mode: number) =>
    lookAt(name, file, () => [
      checkPrivacy(name, statSync(file, { throwIfNoEntry: false }), { path: file, mode, uid }),
    ]);
  const folderChecks = listPrivacy("ledger-folder", folder, 0o700);
  return [
    ...(ledger === undefined ? folderChecks : folderChecks.map(dropAdvice)),
    ...(hasLedger ? listPrivacy("ledger-file", path, 0o600) : []),
    ...KEY_FILES.flatMap((name) => listPrivacy(name, join(folder, name), 0o600)),
    ...[
      ...(hasLedger ? [path, `${path}-wal`, `${path}-shm`] : []),
      ...KEY_FILES.map((name) => join(folder, name)),
    ].flatMap((file) =>
      lookAt("plain-files", file, () => checkPlainFile("plain-files", file, findFileFault(file))),
    ),
    ...lookAt("disk", folder, () => {
      const { type, bavail, bsize } = statfsSync(findExisting(folder));
      const disk = checkDisk(bavail * bsize);
      return hasLedger ? [checkDurability(type), disk] : [dropAdvice(disk)];
    }),
  ];
}

/** Looks at a file; where this user may not, or its links lead in a circle, that is the check, and a failed one. */
function lookAt(name: string, path: string, look: () => Check[]): Check[] {
  try {
    return look();
  } catch (error) {
    const code = error instanceof Error && "syscall" in error && "code" in error ? error.code : undefined;
    if (typeof code !== "string") throw error;
    return [checkUnseen(name, path, code)];
  }
}

/** Nothing where there is no ledger, or one that is not in the state folder: the host has no backup of that. */
async function checkLastBackup(host: CliHost, path: string): Promise<Check[]> {
  const { readLastBackup } = await loadLedgerReader();
  const { joinLedgerPath } = await import("../ledger-setting.ts");
  const stateDir = await host.stateDir();
  if (resolve(path) !== resolve(joinLedgerPath(stateDir)) || !existsSync(path)) return [];
  return [checkBackup(await readLastBackup(stateDir), host.now())];
}

async function checkLedgerContent(host: CliHost, options: ReaderOptions): Promise<Check[]> {
  try {
    return await withLedger(host, options, async (reader) => {
      const views: CoordinationView[] = [];
      for await (const { runId } of listRuns(reader, { status: "running" })) {
        const view = await readCoordination(reader, runId);
        if (view) views.push(view);
        if (views.length >= RUNNING_MAX) break;
      }
      const now = host.now();
      const path = await describeLedgerPath(host, options);
      const server = (await isLedgerFile(path)) ? undefined : path;
      return [checkLedger("opened", server), checkOverdue(views, now), ...checkQuestions(views, now)];
    });
  } catch (error) {
    const { program } = host;
    const failure = attachLedgerAdvice(asCoordinationError(error), { program, ledger: options.ledger });
    const isAbsent = failure.code === "LEDGER_NOT_FOUND" && options.ledger === undefined;
    return [checkLedger(isAbsent ? "absent" : failure)];
  }
}

const LOOKS: Readonly<Record<Check["status"], { sign: string; ascii: string; tone: Tone }>> = {
  ok: { sign: "✓", ascii: "+", tone: "good" },
  warn: { sign: "!", ascii: "!", tone: "warning" },
  fail: { sign: "✗", ascii: "x", tone: "bad" },
};

function render(checks: readonly Check[], terminal: Terminal): string {
  const paint = paintFor(terminal);
  const lines = checks.flatMap(({ name, status, message, advice }) => {
    const { sign, ascii, tone } = LOOKS[status];
    const text = formatPrintable(message, terminal.unicode);
    const line = `${paint.tone(tone, terminal.unicode ? sign : ascii)} ${name.padEnd(20)} ${text}`;
    return advice === undefined
      ? [line]
      : [line, `${" ".repeat(23)}${formatPrintable(advice, terminal.unicode)}`];
  });
  return `${lines.join("\n")}\n`;
}
