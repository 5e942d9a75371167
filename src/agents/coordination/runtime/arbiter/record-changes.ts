/** Owns: what is recorded when a call has ended, and what its session knows then. */
import type { Command } from "../../contracts/commands.ts";
import { readErrorCode, type ErrorCode } from "../../contracts/errors.ts";
import { isFile } from "../../contracts/resource-names.ts";
import { createApprovalCheck } from "../../dispatch/conflict-questions.ts";
import type { Arbitration } from "./arbiter-state.ts";
import type { Seen } from "./known-versions.ts";
import type { TextPlace } from "./write-call.ts";
import type { CallUnderWay, ChangeUnderWay, Ending, Looked } from "./writes-under-way.ts";

/** Calls; beyond them the oldest is given up. */
const UNRECORDED_MAX = 1_000;

/** Whatever the host says, what is in the files decides. */
export async function recordChanges(arbiter: Arbitration, call: CallUnderWay, ending: Ending): Promise<void> {
  const { participant, looks, changes, mayTouchAnything } = call;
  const { session, runId } = participant;
  if (mayTouchAnything) arbiter.known.touchAnything(session, arbiter.clock.now());
  const canShowAbsence = call.tool === "read" && !ending.isNotRun;
  for (const look of looks)
    if (!ending.hasFailed || (canShowAbsence && (await isStillAbsent(arbiter, look))))
      seeLooked(arbiter, call, { look, ending });
  const commands: Command[] = [];
  for (const change of changes) commands.push(...(await endOf(arbiter, call, { change, ending })));
  if (commands.length === 0) return;
  arbiter.unrecorded.push({ runId, commands });
  await recordRest(arbiter);
}

/** True where the file that a call looked at was not there and still is not: then a `read` fails, and that shows as much. */
async function isStillAbsent(
  arbiter: Arbitration,
  { resource, version, changedTo }: Looked,
): Promise<boolean> {
  if (version !== ABSENT_VERSION || changedTo !== undefined) return false;
  return (await versionOf(arbiter, resource)) === ABSENT_VERSION;
}

/** Stands for the version of a file that is not there, as in `FileLook`. */
const ABSENT_VERSION = "absent";

/**
 * A version is as old as the newest look at it: a change since then is one that the session does not know, unless it made it. Calls may
 * end in another order than they were allowed: an older look at the same version adds what it showed, at another one it counts no more.
 */
function seeLooked(
  arbiter: Arbitration,
  call: CallUnderWay,
  { look, ending }: { readonly look: Looked; readonly ending: Ending },
): void {
  const { resource, changedTo } = look;
  const { known: knownVersions } = arbiter;
  const { session } = call.participant;
  const version = changedTo ?? look.version;
  const seen = knownVersions.seen(session, resource);
  const newer = hasSeenSince(arbiter, call, resource) ? seen : undefined;
  if (newer && !isSightOf(newer, version)) return;
  const upTo = findSeenUpTo(seen?.version === version ? seen : undefined, look, ending.readUpTo);
  const { atMs, order } = newer ?? placeLook(arbiter, call, look);
  knownVersions.see(session, resource, { version, atMs, ...(upTo && { upTo }) }, order);
}

/** True where the session has seen that version itself, and not what it would be without the changes of others. */
function isSightOf(seen: Seen, version: string): boolean {
  return seen.version === version && !seen.lacksMerged;
}

function placeLook(
  { known: knownVersions }: Arbitration,
  { atMs, seenOrder }: CallUnderWay,
  { changedTo }: Looked,
): Pick<Seen, "atMs" | "order"> {
  return { atMs, order: changedTo === undefined ? seenOrder : knownVersions.takeNextOrder() };
}

/** The beginning of a text. */
const BEGINNING: TextPlace = { line: 1, character: 0 };

/**
 * Returns up to where a session has seen a version without a gap when it has looked at it once more; `undefined` where that is all of it.
 */
function findSeenUpTo(
  before: Seen | undefined,
  { from = BEGINNING }: Pick<Looked, "from">,
  readUpTo: TextPlace | undefined,
): TextPlace | undefined {
  if (before && !before.upTo) return undefined;
  const seenUpTo = before?.upTo ?? BEGINNING;
  if (isBehind(from, seenUpTo)) return seenUpTo;
  return readUpTo && isBehind(seenUpTo, readUpTo) ? seenUpTo : readUpTo;
}

function isBehind(a: TextPlace, b: TextPlace): boolean {
  return a.line > b.line || (a.line === b.line && a.character > b.character);
}

/** Draws the consequences of one change, made or not. */
async function endOf(
  arbiter: Arbitration,
  call: CallUnderWay,
  { change, ending }: { readonly change: ChangeUnderWay; readonly ending: Ending },
): Promise<Command[]> {
  const { resource, before } = change;
  const version = await versionOf(arbiter, resource);
  change.hasEnded = true;
  const isMade = version !== undefined && version !== before;
  const released = endUseOfClaim(arbiter, call, { change, isUsed: isMade || !ending.hasFailed });
  if (isMade) {
    see(arbiter, call, { change, version });
    return [draftChange(call, change, version)];
  }
  if (ending.hasFailed) return released;
  if (version !== undefined) see(arbiter, call, { change, version });
  else if (isOfApproval(call, change)) return [draftChange(call, change, UNKNOWN_VERSION)];
  return [];
}

/** Stands for the version of what nobody can look at, such as a queue. */
export const UNKNOWN_VERSION = "unknown";

function draftChange(
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
function isOfApproval(
  { participant: { state, stepId } }: CallUnderWay,
  { resource, token }: ChangeUnderWay,
): boolean {
  const claim = token === undefined ? undefined : state.claims.get(token);
  return (
    claim !== undefined && createApprovalCheck(state)({ stepId, resource, acquiredAtMs: claim.acquiredAtMs })
  );
}

/**
 * Releases a new claim that nothing was done under: it keeps nobody out. While other calls are under way under it, the last of them to
 * fail releases it, unless one of them uses it.
 */
function endUseOfClaim(
  { underWay }: Arbitration,
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

/** Returns the version of what is in a file now; `undefined` for a folder, and for what cannot be read. */
export async function versionOf({ files }: Arbitration, resource: string): Promise<string | undefined> {
  const look = isFile(resource) ? await files.look(resource) : undefined;
  return look && "version" in look && look.kind !== "folder" ? look.version : undefined;
}

/**
 * Notes what a session has seen. Whoever changed a part of an unseen file knows that part alone, unless it looks at the file in the same
 * message; and so does who changed a part of what others' changes were merged into.
 */
function see(
  arbiter: Arbitration,
  call: CallUnderWay,
  { change, version }: { readonly change: ChangeUnderWay; readonly version: string },
): void {
  const { known: knownVersions, clock, underWay } = arbiter;
  const { session } = call.participant;
  const { resource, replaces, knownAs } = change;
  const seen = knownVersions.seen(session, resource);
  if (!replaces && !isChangeOfKnown(arbiter, call, change)) {
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

function isChangeOfKnown(
  arbiter: Arbitration,
  call: CallUnderWay,
  { resource, before }: ChangeUnderWay,
): boolean {
  const seen = arbiter.known.seen(call.participant.session, resource);
  return seen?.version === before || (!seen?.lacksMerged && hasSeenSince(arbiter, call, resource));
}

/** True where the session has seen the resource, or written it, since the call was allowed. */
function hasSeenSince(
  { known: knownVersions }: Arbitration,
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
 * Records what could not be recorded before, such as while the ledger was busy. One of two concurrent calls does it.
 */
export async function recordRest(arbiter: Recording): Promise<void> {
  await arbiter.inRecordingTurn(() => recordAll(arbiter));
}

type Recording = Pick<Arbitration, "unrecorded" | "inRecordingTurn" | "runs" | "logger">;

async function recordAll({ unrecorded, runs, logger }: Recording): Promise<void> {
  unrecorded.splice(0, Math.max(0, unrecorded.length - UNRECORDED_MAX));
  for (const rest of [...unrecorded]) {
    try {
      await runs.submit(rest.runId, rest.commands);
    } catch (error) {
      const code = readErrorCode(error);
      const isTriedAgain = TRIED_AGAIN.has(code);
      logger[isTriedAgain ? "warn" : "error"](
        { runId: rest.runId, code },
        "what a call changed could not be recorded",
      );
      if (isTriedAgain) return;
    }
    unrecorded.splice(unrecorded.indexOf(rest), 1);
  }
}
