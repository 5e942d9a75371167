/**
 * Owns: what a command changed without saying so: files that others hold, and, where the operator wants it, all files below its
 * folder. It is found when the command has ended, by what is different then; nothing is prevented.
 *
 * A change that the ledger knows of another, or that a call of another may be making just now, is taken for theirs. So is one that
 * may be of a command of the holder's, or of a step that works for the holder, that ran at the same time.
 */
import type { Contestant } from "../../contracts/arbitration.ts";
import { BOUNDS } from "../../contracts/bounds.ts";
import type { ClaimEntry } from "../../contracts/claim-entry.ts";
import type { Command } from "../../contracts/commands.ts";
import { addMs } from "../../contracts/ids.ts";
import { isCovering, isFile } from "../../contracts/resource-names.ts";
import type { Arbitration } from "./arbiter-state.ts";
import { findHolders, findLastChange } from "./find-opposition.ts";
import type { Participant } from "./participants.ts";
import { recordRest, versionOf } from "./record-changes.ts";
import { ruleAgainAfterRace } from "./ruling-again.ts";
import type { CallUnderWay, HeldFile } from "./writes-under-way.ts";

/** Files of others that are compared. */
const HELD_MAX = 256;
/** Changes of one command that are recorded by name; of more it is recorded that there were more. */
const RECORDED_MAX = 64;
const CLAIMS_MAX = 1_024;

/** Notes what others hold below a folder before a command works there. */
export async function stampHeldFiles(
  arbiter: Arbitration,
  participant: Participant,
  folder: string | undefined,
): Promise<readonly HeldFile[]> {
  if (folder === undefined || arbiter.conflicts.afterCommands === "off") return [];
  const below = await arbiter.files.locate(folder, folder);
  if (below === undefined) return [];
  const heldFiles: HeldFile[] = [];
  for (const claim of await listClaimsBelow(arbiter, participant, below)) {
    if (heldFiles.length >= HELD_MAX) break;
    const stamp = await arbiter.files.stamp(claim.resource);
    if (stamp !== undefined) heldFiles.push({ claim, stamp });
  }
  return heldFiles;
}

/** Lists every claim that others have on files below a folder. The index of claims has only the earliest of each holder. */
async function listClaimsBelow(
  arbiter: Arbitration,
  participant: Participant,
  below: string,
): Promise<readonly ClaimEntry[]> {
  const now = arbiter.clock.now();
  const holders = await findHolders(arbiter, participant, { resource: below, now });
  const claims: ClaimEntry[] = [];
  for (const { runId, stepId } of holders) {
    const state = await arbiter.runs.state(runId);
    if (state.kind !== "open") continue;
    for (const claim of state.claims.values())
      if (claim.stepId === stepId && claim.expiresAtMs > now && isFileBelow(claim.resource, below))
        claims.push({ ...claim, runId });
  }
  return claims;
}

function isFileBelow(resource: string, below: string): boolean {
  return isFile(resource) && isCovering(below, resource);
}

interface FoundChange {
  readonly resource: string;
  readonly version: string;
  /** The claim of another step over which the change was made. */
  readonly over?: ClaimEntry;
}

/** Records what a command that has ended changed, and opens a conflict for people about what it overwrote. */
export async function recordCommandChanges(arbiter: Arbitration, call: CallUnderWay): Promise<void> {
  if (!call.mayTouchAnything || arbiter.conflicts.afterCommands === "off") return;
  const overwritten = await findOverwrites(arbiter, call);
  const { changes, isWhole } = await findOtherChanges(arbiter, call, overwritten);
  const found = [...overwritten, ...changes];
  if (found.length === 0 && isWhole) return;
  const { runId } = call.participant;
  arbiter.unrecorded.push({ runId, commands: draftChanges(call, found, isWhole) });
  await recordRest(arbiter);
  for (const { resource, version, over } of found)
    if (over) await openConflict(arbiter, call, { resource, version, over });
}

function draftChanges(
  { participant: { stepId }, tool }: CallUnderWay,
  found: readonly FoundChange[],
  isWhole: boolean,
): Command[] {
  const commands: Command[] = found.slice(0, RECORDED_MAX).map(({ resource, version }) => ({
    type: "recordChange",
    stepId,
    resource,
    version,
    tool: tool || "unnamed",
  }));
  if (isWhole && found.length <= RECORDED_MAX) return commands;
  return [
    ...commands,
    {
      type: "recordUndetermined",
      stepId,
      tool: (tool || "unnamed").slice(0, BOUNDS.nameCharsMax),
      because: "too_many",
      action: "allowed",
    },
  ];
}

async function findOverwrites(arbiter: Arbitration, call: CallUnderWay): Promise<FoundChange[]> {
  const found: FoundChange[] = [];
  for (const { claim, stamp } of call.held ?? []) {
    const { resource } = claim;
    const now = await arbiter.files.stamp(resource);
    if (now === undefined || now === stamp || (await mayBeOfOthers(arbiter, call, resource))) continue;
    const version = await versionOf(arbiter, resource);
    if (version !== undefined) found.push({ resource, version, over: claim });
  }
  return found;
}

async function findOtherChanges(
  arbiter: Arbitration,
  call: CallUnderWay,
  overwritten: readonly FoundChange[],
): Promise<{ readonly changes: readonly FoundChange[]; readonly isWhole: boolean }> {
  const { folder, participant, atMs } = call;
  if (arbiter.conflicts.afterCommands !== "all" || folder === undefined)
    return { changes: [], isWhole: true };
  const named = new Set([...overwritten, ...call.changes].map(({ resource }) => resource));
  const { paths, isWhole } = await arbiter.files.findChanged(folder, atMs);
  const changes: FoundChange[] = [];
  for (const path of paths) {
    const resource = await arbiter.files.locate(path, folder);
    if (resource === undefined || named.has(resource) || (await mayBeOfOthers(arbiter, call, resource)))
      continue;
    const version = await versionOf(arbiter, resource);
    if (version === undefined) continue;
    const [over] = await findHolders(arbiter, participant, { resource, now: arbiter.clock.now() });
    changes.push({ resource, version, ...(over && { over }) });
  }
  return { changes, isWhole };
}

/** True where another step changed it meanwhile, or may have. */
async function mayBeOfOthers(arbiter: Arbitration, call: CallUnderWay, resource: string): Promise<boolean> {
  const {
    participant: { session, runId, stepId },
    atMs,
  } = call;
  const callOfOther = arbiter.underWay.ofOthers(session, resource, arbiter.clock.now());
  if (callOfOther && !callOfOther.isReserved) return true;
  const last = await findLastChange(arbiter, resource);
  const isLater = last !== undefined && last.change.atMs >= atMs;
  if (isLater && (last.runId !== runId || last.change.stepId !== stepId)) return true;
  return mayBeOfHolder(arbiter, call, resource);
}

/**
 * True where a command of a holder, or of a step that works for one, ran at the same time. No log has what such a command changes of
 * the holder's files.
 */
async function mayBeOfHolder(arbiter: Arbitration, call: CallUnderWay, resource: string): Promise<boolean> {
  const now = arbiter.clock.now();
  const claims = (call.held ?? []).map(({ claim }) => claim).filter((claim) => claim.resource === resource);
  const holders = await findHolders(arbiter, call.participant, { resource, now });
  for (const commander of arbiter.underWay.listCommandersBeside(call)) {
    // A claim of its own may have ended since.
    if (claims.some((claim) => claim.runId === commander.runId && claim.stepId === commander.stepId))
      return true;
    const against = await findHolders(arbiter, commander, { resource, now });
    if (holders.some(({ token }) => against.every((other) => other.token !== token))) return true;
  }
  return false;
}

/** A claim that ended meanwhile was not in the way any more. */
async function openConflict(
  arbiter: Arbitration,
  { participant }: CallUnderWay,
  { resource, version, over }: Required<FoundChange>,
): Promise<void> {
  const { runId, stepId, priority } = participant;
  await arbiter.inTurn(() =>
    ruleAgainAfterRace(async () => {
      const now = arbiter.clock.now();
      const { claims, lastToken } = await arbiter.store.overlapping({
        resource,
        atMs: now,
        limit: CLAIMS_MAX,
      });
      const holder = claims.find(({ token }) => token === over.token);
      if (!holder) return;
      const token = lastToken + 1;
      const submitted = await arbiter.runs.submit(runId, [
        {
          type: "requestResources",
          stepId,
          requests: [
            {
              resource,
              token,
              expiresAtMs: addMs(now, arbiter.conflicts.leaseMs),
              current: version,
              contest: {
                cause: "overwritten",
                strategy: "manual_review",
                from: "default",
                claims: [contestantOf(holder, participant), { stepId, priority, claimedSequence: token }],
                asksPeople: true,
              },
            },
          ],
        },
      ]);
      arbiter.logger.warn(
        { runId, stepId, holder: holder.stepId, isRecorded: submitted.kind !== "refused" },
        "a command overwrote a file that another step holds",
      );
    }),
  );
}

function contestantOf(
  { runId, stepId, priority, token, expiresAtMs }: ClaimEntry,
  participant: Participant,
): Contestant {
  return {
    stepId,
    priority,
    claimedSequence: token,
    expiresAtMs,
    ...(runId !== participant.runId && { coordinationId: runId }),
  };
}
