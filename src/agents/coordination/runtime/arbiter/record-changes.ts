/** Owns: what is recorded when a call has ended, and what its session knows then. */
import type { Command } from "../../contracts/commands.ts";
import { readErrorCode, type ErrorCode } from "../../contracts/errors.ts";
import { isFile } from "../../contracts/resource-names.ts";
import { createApprovalCheck } from "../../dispatch/conflict-questions.ts";
import type { Arbitration } from "./arbiter-state.ts";
import type { CallUnderWay, ChangeUnderWay, Ending, Looked } from "./writes-under-way.ts";

/** Calls; beyond them the oldest is given up. */
const UNRECORDED_MAX = 1_000;

/** Whatever the host says, what is in the files decides. */
export async function recordChanges(arbiter: Arbitration, call: CallUnderWay, ending: Ending): Promise<void> {
  const { participant, looks, changes, mayTouchAnything } = call;
  const { session, runId } = participant;
  if (mayTouchAnything) arbiter.known.touchAnything(session, arbiter.clock.now());
  if (!ending.hasFailed) for (const look of looks) seeLooked(arbiter, call, look);
  const commands: Command[] = [];
  for (const change of changes) commands.push(...(await endOf(arbiter, call, { change, ending })));
  if (commands.length === 0) return;
  arbiter.unrecorded.push({ runId, commands });
  await recordRest(arbiter);
}

/** A version is as old as the look at it: a change since then is one that the session does not know, unless it made it. */
function seeLooked(arbiter: Arbitration, call: CallUnderWay, { resource, version, changedTo }: Looked): void {
  if (hasSeenSince(arbiter, call, resource)) return;
  const { session } = call.participant;
  const order = changedTo === undefined ? call.seenOrder : arbiter.known.takeNextOrder();
  arbiter.known.see(session, resource, { version: changedTo ?? version, atMs: call.atMs }, order);
}

/** Draws the consequences of one change, made or not. */
async function endOf(
  arbiter: Arbitration,
  call: CallUnderWay,
  { change, ending }: { readonly change: ChangeUnderWay; readonly ending: Ending },
): Promise<Command[]> {
  const { resource, token, before } = change;
  const { stepId } = call.participant;
  const version = await versionOf(arbiter, resource);
  if (version !== undefined && version !== before) {
    see(arbiter, call, { change, version });
    return [{ type: "recordChange", stepId, resource, version, tool: toolOf(call), token }];
  }
  if (ending.hasFailed) return releaseUnusedClaim(arbiter, call, change);
  if (version !== undefined) see(arbiter, call, { change, version });
  else if (isOfApproval(call, change))
    return [{ type: "recordChange", stepId, resource, version: UNKNOWN_VERSION, tool: toolOf(call), token }];
  return [];
}

/** Stands for the version of what nobody can look at, such as a queue. */
export const UNKNOWN_VERSION = "unknown";

function toolOf({ tool }: CallUnderWay): string {
  return tool || "unnamed";
}

/** True where people let the change happen by an answer to a question: they let it happen once, also where nobody can see it. */
function isOfApproval(
  { participant: { state, stepId } }: CallUnderWay,
  { resource, token }: ChangeUnderWay,
): boolean {
  const claim = state.claims.get(token);
  return (
    claim !== undefined && createApprovalCheck(state)({ stepId, resource, acquiredAtMs: claim.acquiredAtMs })
  );
}

/** A claim that nothing was done under keeps nobody out. */
function releaseUnusedClaim(
  { underWay }: Arbitration,
  call: CallUnderWay,
  { token, isNew }: ChangeUnderWay,
): Command[] {
  if (!isNew || underWay.isUsed(token, call)) return [];
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
  const { resource, before, replaces, knownAs } = change;
  const seen = knownVersions.seen(session, resource);
  const isKnown = seen?.version === before || (!seen?.lacksMerged && hasSeenSince(arbiter, call, resource));
  if (!replaces && !isKnown) {
    underWay.noteForLooks(session, change, version);
    return;
  }
  const lacksMerged = knownAs !== undefined && knownAs !== version;
  knownVersions.see(session, resource, { version: knownAs ?? version, atMs: clock.now(), lacksMerged });
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
