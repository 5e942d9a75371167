/** Owns: `doctor`: looking at the installation and saying what is wrong with it. It changes nothing. */
import { existsSync, statfsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { isCoordinationError, type CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import {
  readCoordinationView,
  type CoordinationView,
} from "../../agents/coordination/runtime/log/coordination-view.ts";
import { findFileFault } from "../../platform/plain-file.ts";
import {
  readCoordinationSwitches,
  type ReadConfig,
  type CoordinationSwitches,
} from "../openclaw/host/operator-config.ts";
import type { CliHost, CommandGroup, Terminal } from "./terminal/cli-host.ts";
import {
  checkBackupAge,
  checkConfig,
  checkDiskSpace,
  checkFileSystem,
  checkHealth,
  checkLedgerOpened,
  checkNodeVersion,
  checkOverdueSteps,
  checkPlainFile,
  checkOwnerAndMode,
  checkQuestions,
  createInaccessibleCheck,
  checkWebhookSecrets,
  lowerToWarning,
  type DoctorCheck,
} from "./doctor-checks.ts";
import {
  KEY_FILES,
  describeLedgerPath,
  isFileLedger,
  importLedgerReader,
  resolveSidecarPath,
  withLedger,
} from "./ledger/open-ledger.ts";
import { checkOpenWop } from "./openwop-service.ts";
import {
  checkGateway,
  checkTakenUp,
  findGatewayPresence,
  isSwitchedOff,
  isConfigTakenUp,
} from "./taken-up.ts";
import { checkWritable, findNearestExistingPath, findUnwritableFile } from "./unwritable-files.ts";
import { attachLedgerAdvice } from "./terminal/named-ledger.ts";
import { createPaint, type Tone } from "./terminal/paint.ts";
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

/** Adds the command `doctor`, which looks for what keeps coordination from working, and says what to do. */
export function addDoctorCommand(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("doctor"))
    .description("Look for what keeps coordination from working, and say what to do")
    .action((options: ReaderOptions) => runCommand(host, options, () => runDoctor(host, options)));
  withExamples(command, host, ["doctor", "doctor --json"]);
}

async function runDoctor(host: CliHost, options: ReaderOptions): Promise<void> {
  const checks = await runAllChecks(host, options);
  const ok = checks.every(({ status }) => status !== "fail");
  if (!ok) host.failWith(1);
  if (options.json) await writeJson(host, { ok, checks });
  else await host.stdout.write(renderChecks(checks, host.stdout.terminal));
}

async function runAllChecks(host: CliHost, options: ReaderOptions): Promise<DoctorCheck[]> {
  const read = await readConfigOrError(host);
  const path = await describeLedgerPath(host, options);
  const { readHealthBeside } = await importLedgerReader();
  const setting = isCoordinationError(read) ? read : read && readCoordinationSwitches(read.config);
  const switches = isCoordinationError(setting) ? undefined : setting;
  const takenUp = await isConfigTakenUp(host, options, isCoordinationError(read) ? undefined : read?.config);
  const beside = await resolveSidecarPath(host, options);
  return [
    checkNodeVersion(host.nodeVersion),
    ...checkConfig(setting, host.program),
    ...checkGateway(await findGatewayPresence(host, options, switches)),
    ...checkTakenUp(takenUp),
    ...checkWebhookSecrets(await findWebhooksWithoutSecret(switches)),
    ...(await checkOpenWop(switches, { stateDir: await host.stateDir(), env: process.env })),
    ...((await isFileLedger(beside)) ? checkFiles(beside, options, await isFileLedger(path)) : []),
    ...checkWritable(await findUnwritableFile(host, options)),
    ...(await checkLedgerContent(host, options)),
    ...(await checkLastBackup(host, path)),
    checkHealth(readHealthBeside(beside), isSwitchedOff(switches, takenUp, options)),
  ];
}

/**
 * Reads OpenClaw's configuration; returns the CoordinationError of a file that cannot be read, and `undefined` where
 * none is found or reading fails in any other way.
 */
async function readConfigOrError(host: CliHost): Promise<ReadConfig | CoordinationError | undefined> {
  return host.config.read().catch((error: unknown) => (isCoordinationError(error) ? error : undefined));
}

/** Lists the webhooks that have no secret under the variables of this process. */
async function findWebhooksWithoutSecret(switches: CoordinationSwitches | undefined): Promise<string[]> {
  const phase1 = switches?.phase1;
  if (!phase1 || isCoordinationError(phase1)) return [];
  const { listWebhooksOff } = await import("../channels.ts");
  return listWebhooksOff(phase1.escalations.webhooks, (name) => process.env[name]);
}

/**
 * Checks the folder of the path, its keys, the ledger there and the disk. `hasLedger` is false where it is on a
 * server.
 */
function checkFiles(path: string, { ledger }: ReaderOptions, hasLedger: boolean): DoctorCheck[] {
  const uid = process.getuid?.();
  const folder = dirname(path);
  const listPrivacy = (name: string, file: string, mode: number) =>
    tryFileCheck(name, file, () => [
      checkOwnerAndMode(name, statSync(file, { throwIfNoEntry: false }), { path: file, mode, uid }),
    ]);
  const folderChecks = listPrivacy("ledger-folder", folder, 0o700);
  return [
    ...(ledger === undefined ? folderChecks : folderChecks.map(lowerToWarning)),
    ...(hasLedger ? listPrivacy("ledger-file", path, 0o600) : []),
    ...KEY_FILES.flatMap((name) => listPrivacy(name, join(folder, name), 0o600)),
    ...[
      ...(hasLedger ? [path, `${path}-wal`, `${path}-shm`] : []),
      ...KEY_FILES.map((name) => join(folder, name)),
    ].flatMap((file) =>
      tryFileCheck("plain-files", file, () => checkPlainFile("plain-files", file, findFileFault(file))),
    ),
    ...tryFileCheck("disk", folder, () => {
      const { type, bavail, bsize } = statfsSync(findNearestExistingPath(folder));
      const disk = checkDiskSpace(bavail * bsize);
      return hasLedger ? [checkFileSystem(type), disk] : [lowerToWarning(disk)];
    }),
  ];
}

/** Runs checks of a file; an error of the file system, such as a lack of rights, becomes a failed check. */
function tryFileCheck(name: string, path: string, look: () => DoctorCheck[]): DoctorCheck[] {
  try {
    return look();
  } catch (error) {
    const code = error instanceof Error && "syscall" in error && "code" in error ? error.code : undefined;
    if (typeof code !== "string") throw error;
    return [createInaccessibleCheck(name, path, code)];
  }
}

/**
 * Checks OpenClaw's last backup. Empty unless the ledger is the file in the state folder, and exists: the host backs
 * up no other.
 */
async function checkLastBackup(host: CliHost, path: string): Promise<DoctorCheck[]> {
  const { readLastBackup } = await importLedgerReader();
  const { joinLedgerPath } = await import("../ledger-setting.ts");
  const stateDir = await host.stateDir();
  if (resolve(path) !== resolve(joinLedgerPath(stateDir)) || !existsSync(path)) return [];
  return [checkBackupAge(await readLastBackup(stateDir), host.now())];
}

/**
 * Opens the ledger and checks the steps and questions of at most 1,000 running coordinations; an error on opening or
 * reading becomes the only check.
 */
async function checkLedgerContent(host: CliHost, options: ReaderOptions): Promise<DoctorCheck[]> {
  try {
    return await withLedger(host, options, async (reader) => {
      const views: CoordinationView[] = [];
      for await (const { runId } of listRuns(reader, { status: "running" })) {
        const view = await readCoordinationView(reader, runId);
        if (view) views.push(view);
        if (views.length >= RUNNING_MAX) break;
      }
      const now = host.now();
      const path = await describeLedgerPath(host, options);
      const server = (await isFileLedger(path)) ? undefined : path;
      return [
        checkLedgerOpened("opened", server),
        checkOverdueSteps(views, now),
        ...checkQuestions(views, now),
      ];
    });
  } catch (error) {
    const { program } = host;
    const failure = attachLedgerAdvice(asCoordinationError(error), { program, ledger: options.ledger });
    const isAbsent = failure.code === "LEDGER_NOT_FOUND" && options.ledger === undefined;
    return [checkLedgerOpened(isAbsent ? "absent" : failure)];
  }
}

const LOOKS: Readonly<Record<DoctorCheck["status"], { sign: string; ascii: string; tone: Tone }>> = {
  ok: { sign: "✓", ascii: "+", tone: "good" },
  warn: { sign: "!", ascii: "!", tone: "warning" },
  fail: { sign: "✗", ascii: "x", tone: "bad" },
};

function renderChecks(checks: readonly DoctorCheck[], terminal: Terminal): string {
  const paint = createPaint(terminal);
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
