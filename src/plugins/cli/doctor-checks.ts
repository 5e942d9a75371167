/** Owns: what a healthy installation looks like. Each check is a function of what was found; finding it is `doctor`'s part. */
import { HOST_TOOLS, type Phase1Config } from "../../agents/coordination/contracts/config/config.ts";
import {
  ERROR_CODES,
  isCoordinationError,
  type CoordinationError,
} from "../../agents/coordination/contracts/errors.ts";
import type { CoordinationView } from "../../agents/coordination/runtime/log/coordination-view.ts";
import type { CoordinationSwitches } from "../openclaw/host/operator-config.ts";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatInstant,
} from "../../agents/coordination/std/quantities.ts";

/** The result of one check of the installation, with advice where it is not good. */
export interface DoctorCheck {
  readonly name: string;
  readonly status: "ok" | "warn" | "fail";
  readonly message: string;
  readonly advice?: string;
}

/** The version that OpenClaw itself asks for. */
const NODE_WANTED = [24, 16] as const;
/** Below it the database driver crashes the process. */
const NODE_MAJOR_MIN = 22;

const DISK_BYTES = { fail: 64_000_000, warn: 1_000_000_000 } as const;

/**
 * Returns the check of the Node.js version: `fail` where it cannot run the ledger, `warn` where it is older than
 * OpenClaw asks for.
 */
export function checkNodeVersion(version: string): DoctorCheck {
  const name = "node";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const { advice } = ERROR_CODES.RUNTIME_UNSUPPORTED;
  if (major < NODE_MAJOR_MIN)
    return { name, status: "fail", message: `Node.js ${version} cannot run the ledger`, advice };
  const [wantedMajor, wantedMinor] = NODE_WANTED;
  const isOld = major < wantedMajor || (major === wantedMajor && minor < wantedMinor);
  return isOld
    ? { name, status: "warn", message: `Node.js ${version} is older than OpenClaw asks for`, advice }
    : { name, status: "ok", message: `Node.js ${version}` };
}

/**
 * Returns the checks that the configuration lets coordination work, such as that it is switched on. `switches`: an
 * error for a file that cannot be read, a failure; `undefined` where none is found, a warning.
 */
export function checkConfig(
  switches: CoordinationSwitches | CoordinationError | undefined,
  program: string,
): DoctorCheck[] {
  const enable = `Run \`${program} enable\`.`;
  if (!switches) {
    const message = "OpenClaw's configuration cannot be read from here";
    return [
      {
        name: "config",
        status: "warn",
        message,
        advice: "Run this command as `openclaw coordination doctor`.",
      },
    ];
  }
  if (isCoordinationError(switches)) return [createFailedCheck("config", switches)];
  const { phase1, pluginEnabled, conversationAccess, excluded } = switches;
  if (isCoordinationError(phase1)) return [createFailedCheck("config", phase1)];
  const isWanted = phase1.enabled;
  const createCheck = (
    name: string,
    isGood: boolean,
    texts: { readonly good: string; readonly bad: string; readonly advice?: string },
  ): DoctorCheck => {
    if (isGood) return { name, status: "ok", message: texts.good };
    // A missing part matters only to somebody who wants coordination.
    return { name, status: isWanted ? "fail" : "warn", message: texts.bad, advice: texts.advice ?? enable };
  };
  return [
    isWanted
      ? { name: "flag", status: "ok", message: "coordination.phase1.enabled is true" }
      : { name: "flag", status: "warn", message: "coordination is off", advice: enable },
    createCheck("plugin", pluginEnabled, {
      good: "plugins.entries.coordination.enabled is true",
      bad: "plugins.entries.coordination.enabled is not true",
    }),
    createCheck("conversation-access", conversationAccess, {
      good: "hooks.allowConversationAccess is true",
      bad: "without hooks.allowConversationAccess a child never sees its envelope, and turns are not followed",
    }),
    createCheck("plugin-lists", excluded === undefined, {
      good: "plugins.allow and plugins.deny let the plugin load",
      bad: excluded ?? "",
      advice: "Change plugins.allow or plugins.deny in OpenClaw's configuration.",
    }),
    ...checkIgnoredToolSettings(phase1),
    ...checkNotifyChannels(phase1),
  ];
}

/** Checks for settings of tools that the host's own handling overrides; empty when every entry has an effect. */
function checkIgnoredToolSettings({ conflicts }: Phase1Config): DoctorCheck[] {
  const ignored = HOST_TOOLS.filter((tool) => Object.hasOwn(conflicts.tools, tool));
  if (ignored.length === 0) return [];
  return [
    {
      name: "conflicts-tools",
      status: "warn",
      message: `coordination.phase1.conflicts.tools has no effect on ${ignored.join(", ")}: what they change is known without it`,
      advice: "Remove these entries; `tools` is for the tools of plugins.",
    },
  ];
}

/** Warns where notices go to the host alone, which carries approvals but no questions in words. Empty otherwise. */
function checkNotifyChannels({ escalations: { notify } }: Phase1Config): DoctorCheck[] {
  if (notify.length === 0 || notify.some(({ channel }) => channel !== "host")) return [];
  return [
    {
      name: "notify",
      status: "warn",
      message:
        "coordination.phase1.escalations.notify names only `host`, which carries approvals: nobody is told of a question that takes words or a choice",
      advice: "Name `chat` or a webhook beside it.",
    },
  ];
}

/**
 * Returns a warning about the webhooks in `names`, which are off because their secret is missing or too short: it
 * names the first three. Empty where there is none.
 */
export function checkWebhookSecrets(names: readonly string[]): DoctorCheck[] {
  if (names.length === 0) return [];
  return [
    {
      name: "webhooks",
      status: "warn",
      message: `without a secret in this environment (its variable is not set or has fewer than 16 characters): ${joinFirstIds(names)}`,
      advice: "Set the variable for the gateway's process; this command sees its own environment only.",
    },
  ];
}

/** A file or folder as `stat` tells it. */
interface FileFacts {
  readonly mode: number;
  readonly uid: number;
}

/**
 * Returns the check that a file or folder is this user's, unless that is root, and private: `fail` where it is not, or
 * others may write it, `warn` where they may only read or run it; `ok` where it does not exist.
 */
export function checkOwnerAndMode(
  name: string,
  found: FileFacts | undefined,
  wanted: { readonly path: string; readonly mode: number; readonly uid: number | undefined },
): DoctorCheck {
  const { path, uid } = wanted;
  if (!found) return { name, status: "ok", message: `${path} does not exist yet` };
  // Root reads everything; the gateway may well be another user.
  if (uid !== undefined && uid !== 0 && found.uid !== uid) {
    const message = `${path} belongs to user ${found.uid}, and this is user ${uid}`;
    return { name, status: "fail", message, advice: `Run \`chown -R ${uid}\` on it, or use its owner.` };
  }
  const mode = (found.mode & 0o777).toString(8);
  if ((found.mode & 0o022) !== 0) {
    const message = `${path} may be written by other users (mode ${mode})`;
    return { name, status: "fail", message, advice: `Run \`chmod ${wanted.mode.toString(8)} ${path}\`.` };
  }
  if ((found.mode & 0o077) === 0) return { name, status: "ok", message: `${path} is private (mode ${mode})` };
  const message = `${path} is open to other users (mode ${mode})`;
  return { name, status: "warn", message, advice: `Run \`chmod ${wanted.mode.toString(8)} ${path}\`.` };
}

/**
 * Returns the check with a failure lowered to a warning, and without its advice: a folder around a named file, such as
 * /tmp, may have to be so.
 */
export function lowerToWarning({ name, status, message }: DoctorCheck): DoctorCheck {
  return { name, status: status === "fail" ? "warn" : status, message };
}

/**
 * Returns the failed check of a file that is no plain one, as a list; empty where there is no fault. `fault`: what is
 * wrong, as the end of a sentence.
 */
export function checkPlainFile(name: string, path: string, fault: string | undefined): DoctorCheck[] {
  if (fault === undefined) return [];
  const advice = "Put a plain file of your own in its place, or remove it.";
  return [{ name, status: "fail", message: `${path} ${fault}`, advice }];
}

/** Returns the failed check of a file that the system does not let this user look at. */
export function createInaccessibleCheck(name: string, path: string, code: string): DoctorCheck {
  const { advice } = ERROR_CODES.LEDGER_UNAVAILABLE;
  return { name, status: "fail", message: `${path} cannot be looked at (${code})`, advice };
}

/**
 * Returns the check of how opening the ledger went: `fail` with the error's advice, else `ok`, also where there is no
 * ledger yet. `server`: where the ledger is, unless it is a file.
 */
export function checkLedgerOpened(
  opened: "absent" | "opened" | CoordinationError,
  server?: string,
): DoctorCheck {
  const name = "ledger";
  if (opened === "absent")
    return { name, status: "ok", message: "no ledger yet; the first spawn creates it" };
  if (opened !== "opened") return createFailedCheck(name, opened);
  const subject = server === undefined ? "" : `${server} `;
  return { name, status: "ok", message: `${subject}opens, with a schema that this release reads` };
}

/** As the host itself counts: then it reminds its operator. */
const BACKUP_MS_MAX = 14 * 24 * 3_600_000;

interface BackupFacts {
  readonly kind: "none" | "unreadable" | "made";
  readonly atMs?: number;
  readonly archive?: string;
}

/**
 * Returns the check of OpenClaw's last backup: `warn` where it is unknown or over 14 days old. Only `openclaw backup
 * create` records any.
 */
export function checkBackupAge({ kind, atMs, archive = "" }: BackupFacts, now: number): DoctorCheck {
  const name = "backup";
  const advice = "Run `openclaw backup create`, or `openclaw coordination ledger backup FILE`.";
  if (kind === "unreadable")
    return { name, status: "warn", message: "OpenClaw's record of its backups cannot be read", advice };
  if (kind === "none" || atMs === undefined)
    return { name, status: "warn", message: "no backup by OpenClaw is known", advice };
  const message = `OpenClaw's last backup was at ${formatInstant(atMs)}, ${formatDuration(Math.max(0, now - atMs))} ago: ${archive}`;
  return now - atMs > BACKUP_MS_MAX
    ? { name, status: "warn", message, advice }
    : { name, status: "ok", message };
}

/** File systems on which SQLite's write-ahead log does not work: NFS, SMB, CIFS, SMB2. */
const NETWORK_FILE_SYSTEMS: ReadonlySet<number> = new Set([0x69_69, 0x51_7b, 0xff_53_4d_42, 0xfe_53_4d_42]);

/**
 * Returns the check that a ledger is not on a network file system, which fails. `fileSystem`: the number of its type
 * that statfs gives.
 */
export function checkFileSystem(fileSystem: number): DoctorCheck {
  const name = "durability";
  if (!NETWORK_FILE_SYSTEMS.has(fileSystem)) {
    const message = "local disk; every writer sets WAL with synchronous=FULL and reads it back";
    return { name, status: "ok", message };
  }
  const message = "the ledger is on a network file system, where its write-ahead log can be lost or damaged";
  return { name, status: "fail", message, advice: "Put OPENCLAW_STATE_DIR on a local disk." };
}

/** Returns the check of the disk's free space, `warn` or `fail` below the two limits. */
export function checkDiskSpace(freeBytes: number): DoctorCheck {
  const name = "disk";
  const message = `${formatBytes(freeBytes)} free`;
  if (freeBytes >= DISK_BYTES.warn) return { name, status: "ok", message };
  return {
    name,
    status: freeBytes < DISK_BYTES.fail ? "fail" : "warn",
    message,
    advice: ERROR_CODES.LEDGER_FULL.advice,
  };
}

interface HealthFacts {
  readonly state: "ok" | "degraded";
  readonly failure?: { readonly code: string; readonly message: string; readonly atMs: number };
  readonly uncoordinatedSpawns: number;
}

/**
 * Checks what the gateway reported last. Degraded is a failure, and only a warning where `isOld`: from before
 * coordination was switched off.
 */
export function checkHealth(
  health: HealthFacts = { state: "ok", uncoordinatedSpawns: 0 },
  isOld = false,
): DoctorCheck {
  const name = "health";
  const { state, failure, uncoordinatedSpawns } = health;
  if (!failure && state === "ok") return { name, status: "ok", message: "the gateway reported no failure" };
  const failureText = failure
    ? `${failure.code} at ${formatInstant(failure.atMs)}: ${failure.message}`
    : "the gateway did not say why";
  const message = `${failureText}; ${formatCount(uncoordinatedSpawns, "spawn")} went on without a record`;
  const advice = failure && findErrorAdvice(failure.code);
  const more = advice !== undefined && { advice };
  if (state !== "degraded")
    return { name, status: "warn", message: `working again after ${message}`, ...more };
  return isOld
    ? { name, status: "warn", message: `was degraded when it was switched off: ${message}`, ...more }
    : { name, status: "fail", message: `degraded: ${message}`, ...more };
}

/**
 * Returns the advice that belongs to an error code; `undefined` for a code of a newer release, which the health file
 * may have.
 */
export function findErrorAdvice(code: string): string | undefined {
  return Object.entries(ERROR_CODES).find(([name]) => name === code)?.[1].advice;
}

/**
 * Returns the check that no open step of the running coordinations is past its deadline; else `warn` with the first of
 * them.
 */
export function checkOverdueSteps(views: readonly CoordinationView[], now: number): DoctorCheck {
  const name = "overdue-steps";
  const overdue = views.flatMap(({ coordinationId, steps }) =>
    steps
      .filter(({ endedAtMs, deadlineAtMs }) => endedAtMs === undefined && (deadlineAtMs ?? now) < now)
      .map(({ stepId }) => `${coordinationId}/${stepId}`),
  );
  if (overdue.length === 0)
    return { name, status: "ok", message: `none among ${formatCount(views.length, "running coordination")}` };
  const some = joinFirstIds(overdue);
  return {
    name,
    status: "warn",
    message: `${formatCount(overdue.length, "open step")} past the deadline: ${some}`,
    advice: "Start the gateway: it looks at open steps at once and then every `sweepMs` (15 s by default).",
  };
}

/**
 * Returns two checks of the open questions: that none has waited more than half of its time, and that no notice of one
 * of them failed.
 */
export function checkQuestions(views: readonly CoordinationView[], now: number): DoctorCheck[] {
  const open = views.flatMap(({ coordinationId, escalations }) =>
    escalations
      .filter(({ closed }) => !closed)
      .map((question) => ({ id: `${coordinationId}:${question.escalationId}`, question })),
  );
  const late = open.filter(({ question }) => now - question.askedAtMs > question.deadlineAtMs - now);
  const untold = open.filter(({ question }) => Object.values(question.notified ?? {}).includes("failed"));
  return [
    createQuestionCheck("questions", late, {
      good:
        open.length === 0
          ? "nobody is asked anything"
          : `${formatCount(open.length, "open question")} in good time`,
      bad: "past half of the time to answer",
      advice: "Run `openclaw coordination questions`, then `approve`, `deny` or `answer`.",
    }),
    createQuestionCheck("question-notices", untold, {
      good: "nobody missed a question",
      bad: "of which somebody could not be told",
      advice:
        "Look at coordination.phase1.escalations; `openclaw coordination questions --undelivered` lists them.",
    }),
  ];
}

/** Returns a warning with the first ids where questions were found, else a good check. */
function createQuestionCheck(
  name: string,
  found: readonly { readonly id: string }[],
  { good, bad, advice }: { readonly good: string; readonly bad: string; readonly advice: string },
): DoctorCheck {
  if (found.length === 0) return { name, status: "ok", message: good };
  const message = `${formatCount(found.length, "open question")} ${bad}: ${joinFirstIds(found.map(({ id }) => id))}`;
  return { name, status: "warn", message, advice };
}

/** Joins the first three ids; `...` stands for more. */
function joinFirstIds(ids: readonly string[]): string {
  return ids.slice(0, 3).join(", ") + (ids.length > 3 ? ", ..." : "");
}

function createFailedCheck(name: string, { code, message, advice }: CoordinationError): DoctorCheck {
  return { name, status: "fail", message: `${code}: ${message}`, advice };
}
