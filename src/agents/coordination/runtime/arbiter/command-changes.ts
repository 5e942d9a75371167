/**
 * Owns: what a command changed without saying so: files that others hold, and, where the operator wants it, all files below its
 * folder. It is found when the command has ended, by what is different then; nothing is prevented.
 *
 * A change that the ledger knows of another, or that a call of another may be making just now, is taken for theirs. So is one that
 * may be of a command of the holder's, or of a step that works for the holder, that ran at the same time.
 */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { ClaimEntry } from "../../contracts/claim-entry.ts";
import type { Command } from "../../contracts/commands.ts";
import { addMs } from "../../contracts/ids.ts";
import { isClaimCovering, isFileResource } from "../../contracts/resource-names.ts";
import { ignoreDamage } from "../log/ignore-damage.ts";
import type { ArbiterState } from "./arbiter-state.ts";
import { createContestantFromClaim, findHolders, findLastChange } from "./find-opposition.ts";
import type { Participant } from "./participants.ts";
import { recordUnrecorded, readFileVersion } from "./record-changes.ts";
import { ruleAgainAfterRace } from "../log/ruling-again.ts";
import type { CallUnderWay, HeldFile } from "./writes-under-way.ts";

/** Files of others that are compared. */
const HELD_MAX = 256;
/** Changes of one command that are recorded by name; of more it is recorded that there were more. */
const RECORDED_MAX = 64;
const CLAIMS_MAX = 1_024;

/**
 * Returns the files below a folder that others hold, at most `HELD_MAX` of them, each with a stamp from before a
 * command works there; none where the folder is unknown or commands are not watched.
 */
export async function stampHeldFiles(
  arbiter: ArbiterState,
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
  arbiter: ArbiterState,
  participant: Participant,
  below: string,
): Promise<readonly ClaimEntry[]> {
  const now = arbiter.clock.now();
  const holders = await findHolders(arbiter, participant, { resource: below, now });
  const claims: ClaimEntry[] = [];
  for (const { runId, stepId } of holders) {
    const state = await arbiter.runs.state(runId).catch(ignoreDamage);
    if (state?.kind !== "open") continue;
    for (const claim of state.claims.values())
      if (claim.stepId === stepId && claim.expiresAtMs > now && isFileBelow(claim.resource, below))
        claims.push({ ...claim, runId });
  }
  return claims;
}

function isFileBelow(resource: string, below: string): boolean {
  return isFileResource(resource) && isClaimCovering(below, resource);
}

interface FoundChange {
  readonly resource: string;
  readonly version: string;
  /** The claim of another step over which the change was made. */
  readonly over?: ClaimEntry;
}

/**
 * Records the changes that a command made which has ended, and opens a conflict for people about each file of others
 * that it overwrote. Does nothing for a call that cannot touch anything, or where commands are not watched.
 */
export async function recordCommandChanges(arbiter: ArbiterState, call: CallUnderWay): Promise<void> {
  if (!call.mayTouchAnything || arbiter.conflicts.afterCommands === "off") return;
  const overwritten = await findOverwrittenFiles(arbiter, call);
  const { changes, isWhole } = await findOtherChanges(arbiter, call, overwritten);
  const foundChanges = [...overwritten, ...changes];
  if (foundChanges.length === 0 && isWhole) return;
  const { runId } = call.participant;
  arbiter.unrecorded.push({ runId, commands: draftChangeRecords(call, foundChanges, isWhole) });
  await recordUnrecorded(arbiter);
  for (const { resource, version, over } of foundChanges)
    if (over) await openOverwriteConflict(arbiter, call, { resource, version, over });
}

/** Drafts a record of each change by name, and of there being more where they are too many. */
function draftChangeRecords(
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

/** Finds the files held by others that are different now, and that no other step may have changed. */
async function findOverwrittenFiles(arbiter: ArbiterState, call: CallUnderWay): Promise<FoundChange[]> {
  const overwrittenFiles: FoundChange[] = [];
  for (const { claim, stamp } of call.held ?? []) {
    const { resource } = claim;
    const now = await arbiter.files.stamp(resource);
    if (now === undefined || now === stamp || (await mayBeChangedByOthers(arbiter, call, resource))) continue;
    const version = await readFileVersion(arbiter, resource);
    if (version !== undefined) overwrittenFiles.push({ resource, version, over: claim });
  }
  return overwrittenFiles;
}

/** Finds the other files below the folder that changed meanwhile, where the operator wants all of them recorded. */
async function findOtherChanges(
  arbiter: ArbiterState,
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
    if (
      resource === undefined ||
      named.has(resource) ||
      (await mayBeChangedByOthers(arbiter, call, resource))
    )
      continue;
    const version = await readFileVersion(arbiter, resource);
    if (version === undefined) continue;
    const [over] = await findHolders(arbiter, participant, { resource, now: arbiter.clock.now() });
    changes.push({ resource, version, ...(over && { over }) });
  }
  return { changes, isWhole };
}

/** True where another step changed the resource meanwhile, or may have. */
async function mayBeChangedByOthers(
  arbiter: ArbiterState,
  call: CallUnderWay,
  resource: string,
): Promise<boolean> {
  const {
    participant: { session, runId, stepId },
    atMs,
  } = call;
  const callOfOther = arbiter.underWay.ofOthers(session, resource, arbiter.clock.now());
  if (callOfOther && !callOfOther.isReserved) return true;
  const last = await findLastChange(arbiter, resource);
  const isLater = last !== undefined && last.change.atMs >= atMs;
  if (isLater && (last.runId !== runId || last.change.stepId !== stepId)) return true;
  return mayBeChangedByHolder(arbiter, call, resource);
}

/**
 * True where a command of a holder, or of a step that works for one, ran at the same time. No log has what such a command changes of
 * the holder's files.
 */
async function mayBeChangedByHolder(
  arbiter: ArbiterState,
  call: CallUnderWay,
  resource: string,
): Promise<boolean> {
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

/** Opens a conflict for people about an overwritten file. A claim that ended meanwhile was not in the way any more. */
async function openOverwriteConflict(
  arbiter: ArbiterState,
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
                claims: [
                  createContestantFromClaim(holder, { participant }),
                  { stepId, priority, claimedSequence: token },
                ],
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
