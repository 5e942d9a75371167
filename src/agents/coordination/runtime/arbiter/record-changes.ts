/** Owns: what is recorded when a call has ended, and what its session knows then. */
import type { Command } from "../../contracts/commands.ts";
import { readErrorCode, type ErrorCode } from "../../contracts/errors.ts";
import { isFileResource } from "../../contracts/resource-names.ts";
import { createUnusedApprovalCheck } from "../../dispatch/conflict-questions.ts";
import type { SubmitResult } from "../log/run-log.ts";
import type { ArbiterState } from "./arbiter-state.ts";
import type { SeenVersion } from "./known-versions.ts";
import type { TextPlace } from "./write-call.ts";
import type { CallUnderWay, ChangeUnderWay, CallEnding, ResourceLook } from "./writes-under-way.ts";

/** Calls; beyond them the oldest is given up. */
const UNRECORDED_MAX = 1_000;

/**
 * Records what a call that has ended changed, and notes which versions its session knows now. Whatever is in the files
 * decides, whatever the host says. Whatever the ledger cannot take is recorded later.
 */
export async function recordChanges(
  arbiter: ArbiterState,
  call: CallUnderWay,
  ending: CallEnding,
): Promise<void> {
  const { participant, looks, changes, mayTouchAnything } = call;
  const { session, runId } = participant;
  if (mayTouchAnything) arbiter.known.touchAnything(session, arbiter.clock.now());
  const canShowAbsence = call.tool === "read" && !ending.isNotRun;
  for (const look of looks)
    if (!ending.hasFailed || (canShowAbsence && (await isStillAbsent(arbiter, look))))
      noteLookedVersion(arbiter, call, { look, ending });
  const commands: Command[] = [];
  for (const change of changes) commands.push(...(await concludeChange(arbiter, call, { change, ending })));
  if (commands.length === 0) return;
  arbiter.unrecorded.push({ runId, commands });
  await recordUnrecorded(arbiter);
}

/**
 * True where the file that a call looked at was not there and still is not: a `read` that failed has then shown the
 * session that there is no file.
 */
async function isStillAbsent(
  arbiter: ArbiterState,
  { resource, version, changedTo }: ResourceLook,
): Promise<boolean> {
  if (version !== ABSENT_VERSION || changedTo !== undefined) return false;
  return (await readFileVersion(arbiter, resource)) === ABSENT_VERSION;
}

/** Stands for the version of a file that is not there, as in `FileLook`. */
const ABSENT_VERSION = "absent";

/**
 * Notes the version that the session knows by a look of the call. It is as old as the newest look at it: a change
 * since then is one that the session does not know, unless it made it. Calls may end in another order than they were
 * allowed: an older look at the same version adds what it showed, at another one it counts no more.
 */
function noteLookedVersion(
  arbiter: ArbiterState,
  call: CallUnderWay,
  { look, ending }: { readonly look: ResourceLook; readonly ending: CallEnding },
): void {
  const { resource, changedTo } = look;
  const { known: knownVersions } = arbiter;
  const { session } = call.participant;
  const version = changedTo ?? look.version;
  const seen = knownVersions.seen(session, resource);
  const newer = hasSeenSince(arbiter, call, resource) ? seen : undefined;
  if (newer && !isSightOfVersion(newer, version)) return;
  const upTo = findSeenUpTo(seen?.version === version ? seen : undefined, look, ending.readUpTo);
  const { atMs, order } = newer ?? findTimeOfLook(arbiter, call, look);
  knownVersions.see(session, resource, { version, atMs, ...(upTo && { upTo }) }, order);
}

/** True where the session has seen that version itself, and not what it would be without the changes of others. */
function isSightOfVersion(seen: SeenVersion, version: string): boolean {
  return seen.version === version && !seen.lacksMerged;
}

/** Returns when the look was, as a time and in the order of all that is seen. */
function findTimeOfLook(
  { known: knownVersions }: ArbiterState,
  { atMs, seenOrder }: CallUnderWay,
  { changedTo }: ResourceLook,
): Pick<SeenVersion, "atMs" | "order"> {
  return { atMs, order: changedTo === undefined ? seenOrder : knownVersions.takeNextOrder() };
}

/** The beginning of a text. */
const BEGINNING: TextPlace = { line: 1, character: 0 };

/**
 * Returns up to where a session has seen a version without a gap when it has looked at it once more; `undefined` where that is all of it.
 */
function findSeenUpTo(
  before: SeenVersion | undefined,
  { from = BEGINNING }: Pick<ResourceLook, "from">,
  readUpTo: TextPlace | undefined,
): TextPlace | undefined {
  if (before && !before.upTo) return undefined;
  const seenUpTo = before?.upTo ?? BEGINNING;
  if (isLaterPlace(from, seenUpTo)) return seenUpTo;
  return readUpTo && isLaterPlace(seenUpTo, readUpTo) ? seenUpTo : readUpTo;
}

function isLaterPlace(a: TextPlace, b: TextPlace): boolean {
  return a.line > b.line || (a.line === b.line && a.character > b.character);
}

/** Notes how one change ended, and returns the commands for it: its record, or the release of an unused claim. */
async function concludeChange(
  arbiter: ArbiterState,
  call: CallUnderWay,
  { change, ending }: { readonly change: ChangeUnderWay; readonly ending: CallEnding },
): Promise<Command[]> {
  const { resource, before } = change;
  const version = await readFileVersion(arbiter, resource);
  change.hasEnded = true;
  const isMade = version !== undefined && version !== before;
  const released = draftReleaseIfUnused(arbiter, call, { change, isUsed: isMade || !ending.hasFailed });
  if (isMade) {
    noteVersionAfterChange(arbiter, call, { change, version });
    return [draftChangeRecord(call, change, version)];
  }
  if (ending.hasFailed) return released;
  if (version !== undefined) noteVersionAfterChange(arbiter, call, { change, version });
  else if (isUnderApproval(call, change)) return [draftChangeRecord(call, change, UNKNOWN_VERSION)];
  return [];
}

/** Stands for the version of what nobody can look at, such as a queue. */
export const UNKNOWN_VERSION = "unknown";

function draftChangeRecord(
  { participant: { stepId }, tool }: CallUnderWay,
  { resource, token }: ChangeUnderWay,
  version: string,
): Command {
  return {
    type: "recordChange",
    stepId,
    resource,
    version,
    tool: tool || "unnamed",
    ...(token !== undefined && { token }),
  };
}

/** True where people let the change happen by an answer to a question: they let it happen once, also where nobody can see it. */
function isUnderApproval(
  { participant: { state, stepId } }: CallUnderWay,
  { resource, token }: ChangeUnderWay,
): boolean {
  const claim = token === undefined ? undefined : state.claims.get(token);
  return (
    claim !== undefined &&
    createUnusedApprovalCheck(state)({ stepId, resource, acquiredAtMs: claim.acquiredAtMs })
  );
}

/**
 * Drafts the release of a new claim that nothing was done under: it keeps nobody out. While other calls are under way
 * under it, the last of them to fail releases it, unless one of them uses it.
 */
function draftReleaseIfUnused(
  { underWay }: ArbiterState,
  call: CallUnderWay,
  { change, isUsed }: { readonly change: ChangeUnderWay; readonly isUsed: boolean },
): Command[] {
  const { token } = change;
  if (token === undefined) return [];
  const others = underWay.listChangesUnder(token, call);
  if (isUsed || change.isNew) for (const other of others) other.isNew = !isUsed;
  if (isUsed || !change.isNew || others.length > 0) return [];
  return [{ type: "releaseClaims", because: "unused", tokens: [token] }];
}

/**
 * Returns the version of a file's content now; `undefined` for a folder, for a resource that is no file, and for what
 * cannot be read.
 */
export async function readFileVersion(
  { files }: ArbiterState,
  resource: string,
): Promise<string | undefined> {
  const look = isFileResource(resource) ? await files.look(resource) : undefined;
  return look && "version" in look && look.kind !== "folder" ? look.version : undefined;
}

/**
 * Notes the version that a session knows by its own change. Whoever changed a part of an unseen file knows that part
 * alone, unless it looks at the file in the same message; and so does who changed a part of what others' changes were
 * merged into.
 */
function noteVersionAfterChange(
  arbiter: ArbiterState,
  call: CallUnderWay,
  { change, version }: { readonly change: ChangeUnderWay; readonly version: string },
): void {
  const { known: knownVersions, clock, underWay } = arbiter;
  const { session } = call.participant;
  const { resource, replaces, knownAs } = change;
  const seen = knownVersions.seen(session, resource);
  if (!replaces && !isChangeOfKnownVersion(arbiter, call, change)) {
    underWay.noteForLooks(session, change, version);
    return;
  }
  const lacksMerged = knownAs !== undefined && knownAs !== version;
  const isPart = !replaces && seen?.upTo !== undefined;
  knownVersions.see(session, resource, {
    version: knownAs ?? version,
    atMs: clock.now(),
    lacksMerged,
    ...(isPart && { upTo: BEGINNING }),
  });
}

function isChangeOfKnownVersion(
  arbiter: ArbiterState,
  call: CallUnderWay,
  { resource, before }: ChangeUnderWay,
): boolean {
  const seen = arbiter.known.seen(call.participant.session, resource);
  return seen?.version === before || (!seen?.lacksMerged && hasSeenSince(arbiter, call, resource));
}

/** True where the session has seen the resource, or written it, since the call was allowed. */
function hasSeenSince(
  { known: knownVersions }: ArbiterState,
  { participant: { session }, seenOrder }: CallUnderWay,
  resource: string,
): boolean {
  return (knownVersions.seen(session, resource)?.order ?? 0) > seenOrder;
}

/** Errors after which a later try may record the change. */
const TRIED_AGAIN: ReadonlySet<string> = new Set([
  "LEDGER_BUSY",
  "LEDGER_CONFLICT",
  "LEDGER_FULL",
  "LEDGER_UNAVAILABLE",
] satisfies ErrorCode[]);

/**
 * Submits in a turn the changes that could not be recorded before, so that each is recorded once. While the ledger is
 * busy they go on waiting, up to a bound; one that fails for good or is refused is logged and dropped.
 */
export async function recordUnrecorded(arbiter: RecordingDependencies): Promise<void> {
  await arbiter.inRecordingTurn(() => submitUnrecorded(arbiter));
}

type RecordingDependencies = Pick<ArbiterState, "unrecorded" | "inRecordingTurn" | "runs" | "logger">;

async function submitUnrecorded({ unrecorded, runs, logger }: RecordingDependencies): Promise<void> {
  unrecorded.splice(0, Math.max(0, unrecorded.length - UNRECORDED_MAX));
  for (const unrecordedChange of [...unrecorded]) {
    const { runId, commands } = unrecordedChange;
    try {
      logRefusedChange(logger, unrecordedChange, await runs.submit(runId, commands));
    } catch (error) {
      const code = readErrorCode(error);
      const isTriedAgain = TRIED_AGAIN.has(code);
      logger[isTriedAgain ? "warn" : "error"]({ runId, code }, "what a call changed could not be recorded");
      if (isTriedAgain) return;
    }
    unrecorded.splice(unrecorded.indexOf(unrecordedChange), 1);
  }
}

/**
 * Logs that a record of changes was refused, as one whose coordination has ended. Claims that it does not release are
 * over anyway.
 */
function logRefusedChange(
  logger: RecordingDependencies["logger"],
  { runId, commands }: RecordingDependencies["unrecorded"][number],
  submitted: SubmitResult,
): void {
  if (submitted.kind !== "refused" || commands.every(({ type }) => type === "releaseClaims")) return;
  const { code, reason } = submitted;
  logger.warn({ runId, code }, `the ledger lacks what a call changed: ${reason}`);
}
