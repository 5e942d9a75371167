/**
 * Owns: who stands against a change of one resource: those who hold a claim on it, those at work whose plan names it as theirs, and
 * who changed it since the requester saw it last. All of it is recorded; no content and no memory of this process decides alone.
 */
import type { Contestant } from "../../contracts/arbitration.ts";
import type { ClaimEntry } from "../../contracts/claim-entry.ts";
import { BOUNDS } from "../../contracts/bounds.ts";
import { isOwnedBy } from "../../contracts/coordination-summary.ts";
import { PRIORITIES } from "../../contracts/envelope.ts";
import { OUTSIDE_STEP_ID, OWNER_STEP_ID, type EpochMs } from "../../contracts/ids.ts";
import { isFileResource, listResourceAndAbove } from "../../contracts/resource-names.ts";
import {
  formatHoldingKey,
  type OpenCoordination,
  type ResourceChange,
  type Step,
} from "../../ledger/state.ts";
import { nameChangeReference } from "../../ledger/summary.ts";
import type { FileLook } from "../../ports/resource-files.ts";
import { ignoreDamage } from "../log/ignore-damage.ts";
import type { ArbiterDependencies } from "./arbiter-dependencies.ts";
import type { DeclaredResources } from "./declared-resources.ts";
import type { KnownVersions, SeenVersion } from "./known-versions.ts";
import type { Participant } from "./participants.ts";
import { splitClaims, type SuperiorDependencies } from "./split-claims.ts";

/** More steps that hold something below one folder are not looked at. */
const HOLDERS_MAX = 1_024;

/** More coordinations that changed one file are not looked at. */
const CHANGERS_MAX = 32;

/** A change of a resource that a participant wants to make. */
export interface WantedChange {
  readonly participant: Participant;
  readonly resource: string;
  readonly look: FileLook | undefined;
  /** The whole content is replaced. */
  readonly replaces: boolean;
  /** A call that changes it has not ended, the session's own or another's: what it is now, nobody has recorded yet. */
  readonly isUnderWay: boolean;
  readonly now: EpochMs;
}

export interface Opposition {
  /** The requester's own claim that covers the resource. */
  readonly held?: ClaimEntry;
  readonly lastToken: number;
  /** The earliest active claim of each other step, the earliest first. */
  readonly holders: readonly ClaimEntry[];
  /** Active claims of those that the requester works for: what they hold, they had it work on. */
  readonly delegated: readonly ClaimEntry[];
  /** The version that the requester's change is based on. */
  readonly base?: string;
  /** Absent where nobody stands against it. */
  readonly contest?: { readonly cause: "overlap" | "stale_base"; readonly claims: readonly Contestant[] };
}

/** Lists the claims against a participant's change of a resource: not its own, nor of those that it works for. */
export async function findHolders(
  dependencies: OppositionDependencies,
  participant: Participant,
  { resource, now }: { readonly resource: string; readonly now: EpochMs },
): Promise<readonly ClaimEntry[]> {
  const { claims } = await dependencies.store.overlapping({ resource, atMs: now, limit: HOLDERS_MAX });
  return (await splitClaims(dependencies, participant, claims)).holders;
}

/** True when a step that is not the requester, nor has it work, holds the resource or declares it while at work. */
export async function isHeldByOthers(
  dependencies: OppositionDependencies & ArbiterDependencies,
  { state, stepId }: Pick<Participant, "state" | "stepId">,
  resource: string,
): Promise<boolean> {
  const { coordinationId: runId, created } = state;
  const priority = state.steps.get(stepId)?.spec.priority ?? "normal";
  const participant: Participant = { runId, stepId, session: created.ownerSession, state, priority };
  const holders = await findHolders(dependencies, participant, { resource, now: dependencies.clock.now() });
  if (holders.length > 0) return true;
  return (await dependencies.declared.declarersOf(participant, resource)).length > 0;
}

export interface OppositionDependencies
  extends Pick<ArbiterDependencies, "store" | "runs" | "settings">, SuperiorDependencies {
  readonly declared: DeclaredResources;
  readonly known: KnownVersions;
}

/** Returns the claims on a resource, and the contest where holders, declarers or a later change oppose the request. */
export async function findOpposition(
  dependencies: OppositionDependencies,
  wanted: WantedChange,
): Promise<Opposition> {
  const { participant, resource, now } = wanted;
  const { claims, lastToken } = await dependencies.store.overlapping({
    resource,
    atMs: now,
    limit: HOLDERS_MAX,
  });
  const requesterClaim = await findClaimOfRequester(dependencies, participant, { resource, now });
  const { delegated, holders } = await splitClaims(dependencies, participant, claims);
  const declarers = await dependencies.declared.declarersOf(participant, resource);
  const isDeclarer = declarers.some(({ spec }) => spec.stepId === participant.stepId);
  const base = findSeenBase(dependencies, wanted);
  const changer = await findChangerSinceSeen(dependencies, wanted);
  const against = [
    ...holders.map((claim) => createContestantFromClaim(claim, { participant, declarers })),
    ...(isDeclarer ? [] : listDeclarersWithoutClaim(declarers, { participant, holders })),
  ];
  const stale = changer && !against.some((other) => isSameContestant(other, changer)) ? [changer] : [];
  const opponents = [...against, ...stale];
  const opposition = {
    ...(requesterClaim && { held: requesterClaim }),
    lastToken,
    holders,
    delegated,
    ...(base && { base: base.version }),
  };
  if (opponents.length === 0) return opposition;
  const requester = createRequesterContestant(participant, { held: requesterClaim, lastToken, isDeclarer });
  const cause = against.length > 0 ? "overlap" : "stale_base";
  return { ...opposition, contest: { cause, claims: [...pickStrongest(opponents), requester] } };
}

/**
 * Returns the requester's claim in force on the resource; `undefined` without one, or once another process ended it.
 */
export async function findClaimOfRequester(
  { store }: Pick<OppositionDependencies, "store">,
  { runId, stepId, state }: Pick<Participant, "runId" | "stepId" | "state">,
  { resource, now }: { readonly resource: string; readonly now: EpochMs },
): Promise<ClaimEntry | undefined> {
  const tokens = listResourceAndAbove(resource).map(
    (name) => state.holdings.get(formatHoldingKey(stepId, name)) ?? 0,
  );
  const token = tokens.find((candidate) => (state.claims.get(candidate)?.expiresAtMs ?? 0) > now);
  if (token === undefined) return undefined;
  const [claim] = await store.claims({ runId, after: token - 1, limit: 1 });
  return claim?.token === token && claim.expiresAtMs > now ? claim : undefined;
}

/** Picks as many contestants as a conflict can name: those of the highest priority, and among these the earliest. */
function pickStrongest(against: readonly Contestant[]): Contestant[] {
  if (against.length < BOUNDS.claimsMax) return [...against];
  const rankPriority = ({ priority }: Contestant): number => PRIORITIES.indexOf(priority);
  return against.toSorted((a, b) => rankPriority(b) - rankPriority(a)).slice(0, BOUNDS.claimsMax - 1);
}

function isSameContestant(a: Contestant, b: Contestant): boolean {
  return a.stepId === b.stepId && a.coordinationId === b.coordinationId;
}

function createRequesterContestant(
  { stepId, priority }: Participant,
  standing: {
    readonly held: ClaimEntry | undefined;
    readonly lastToken: number;
    readonly isDeclarer: boolean;
  },
): Contestant {
  const { held: requesterClaim, lastToken, isDeclarer } = standing;
  return {
    stepId,
    priority,
    claimedSequence: requesterClaim?.token ?? lastToken + 1,
    ...(isDeclarer && { declared: true }),
    ...(requesterClaim && { expiresAtMs: requesterClaim.expiresAtMs }),
  };
}

/** The participant that a claim stands against, and the steps that declare the resource. */
interface OpposedParticipant {
  readonly participant: Participant;
  readonly declarers?: readonly Step[];
}

/** Creates the contestant that stands for a claim against the participant; its step may declare the resource, too. */
export function createContestantFromClaim(
  claim: ClaimEntry,
  { participant, declarers = [] }: OpposedParticipant,
): Contestant {
  const { runId, stepId, priority, token, expiresAtMs } = claim;
  const isForeign = runId !== participant.runId;
  const isDeclared = !isForeign && declarers.some(({ spec }) => spec.stepId === stepId);
  return {
    stepId,
    priority,
    claimedSequence: token,
    expiresAtMs,
    ...(isForeign && { coordinationId: runId }),
    ...(isDeclared && { declared: true }),
  };
}

function listDeclarersWithoutClaim(
  declarers: readonly Step[],
  { participant, holders }: { readonly participant: Participant; readonly holders: readonly ClaimEntry[] },
): Contestant[] {
  const hasClaim = (step: Step): boolean =>
    holders.some(({ runId, stepId }) => runId === participant.runId && stepId === step.spec.stepId);
  return declarers
    .filter((step) => !hasClaim(step))
    .map(({ spec: { stepId, priority } }) => ({ stepId, priority, claimedSequence: 0, declared: true }));
}

/**
 * Finds who changed the resource since the requester saw it last (lost update). Where it never saw it, that is who
 * changed it since the requester began, and only a change that replaces everything would lose something.
 */
async function findChangerSinceSeen(
  dependencies: OppositionDependencies,
  wanted: WantedChange,
): Promise<Contestant | undefined> {
  const { participant, resource } = wanted;
  const look = findComparableLook(wanted);
  if (!look) return undefined;
  const seen = findSeenBase(dependencies, wanted);
  const sinceMs = seen ? findSeenTimeIfChanged(seen, look) : findBeginIfReplaced(wanted, look);
  if (sinceMs === undefined) return undefined;
  const missed = await findMissedChange(dependencies, { participant, resource, seen, look, sinceMs });
  if (missed) return createContestantFromChange(participant, missed);
  return seen && wanted.replaces ? findOutsider(dependencies, { participant, seen, look }) : undefined;
}

/** Finds the version seen last that the change is based on: who replaces everything must have seen all of it. */
function findSeenBase(
  { known: knownVersions }: OppositionDependencies,
  { participant: { session }, resource, replaces }: WantedChange,
): SeenVersion | undefined {
  return replaces ? knownVersions.seenWhole(session, resource) : knownVersions.seen(session, resource);
}

/**
 * Returns the look at a file if its version can be compared with others, and no call is about to change it. A folder
 * has no such content: nobody can read it again.
 */
function findComparableLook({ resource, look, isUnderWay }: WantedChange): ComparableLook | undefined {
  if (!isFileResource(resource) || isUnderWay) return undefined;
  return look?.kind === "unreadable" || look?.kind === "folder" ? undefined : look;
}

/** A resource, and since when a participant may have missed changes of it by others. */
interface MissedChangeQuery {
  readonly participant: Participant;
  readonly resource: string;
  readonly seen: SeenVersion | undefined;
  readonly look: ComparableLook;
  readonly sinceMs: EpochMs;
}

/**
 * Finds a change of another that the ledger knows of, where it made what is there now or came later than what was seen. The session
 * may have changed the file itself since, by a part of it or by a command: then it does not know what was there before.
 */
async function findMissedChange(
  dependencies: OppositionDependencies,
  missing: MissedChangeQuery,
): Promise<LastChange | undefined> {
  const { participant, resource, seen, look, sinceMs } = missing;
  const last = await findLastChange(dependencies, resource);
  if (!last || last.change.version === seen?.version) return undefined;
  if (seen && last.change.version === look.version && !isChangeByParticipant(dependencies, last, participant))
    return last;
  if (last.change.atMs < sinceMs) return undefined;
  return isChangeByParticipant(dependencies, last, participant)
    ? findEarlierChange(dependencies, missing)
    : last;
}

/** Finds the newest change by another before the session's own one, where the session does not know it. */
async function findEarlierChange(
  dependencies: OppositionDependencies,
  missing: MissedChangeQuery,
): Promise<LastChange | undefined> {
  const { seen, sinceMs } = missing;
  const changes = await listEarlierChanges(dependencies, missing);
  const [newest] = changes.toSorted((a, b) => b.change.atMs - a.change.atMs);
  if (!newest || newest.change.version === seen?.version) return undefined;
  return newest.change.atMs >= sinceMs ? newest : undefined;
}

/** Lists changes by others, with the newest that there is since a time. */
async function listEarlierChanges(
  dependencies: OppositionDependencies,
  { participant, resource, sinceMs }: MissedChangeQuery,
): Promise<LastChange[]> {
  const runIds = await dependencies.store.holders(nameChangeReference(resource), CHANGERS_MAX);
  const found: LastChange[] = [];
  for (const runId of runIds) {
    const changes = await listLastChanges(dependencies, runId, resource);
    found.push(...changes.filter((change) => !isChangeByParticipant(dependencies, change, participant)));
    const [last] = changes;
    // Its log is damaged: the changes before it are still to be found.
    if (!last) continue;
    // Coordinations come in the order of their last changes, the newest first.
    if (!isChangeByParticipant(dependencies, last, participant) || last.change.atMs < sinceMs) break;
  }
  return found;
}

/** A look at a file whose version can be compared with others. */
type ComparableLook = Exclude<FileLook, { kind: "unreadable" | "folder" }>;

/** Returns when the version was seen, where the resource has another one now: later changes were missed. */
function findSeenTimeIfChanged({ version, atMs }: SeenVersion, look: ComparableLook): EpochMs | undefined {
  return version === look.version ? undefined : atMs;
}

/** Returns when the requester began, where it replaces a file that it never saw: later changes were missed. */
function findBeginIfReplaced(
  { replaces, participant }: WantedChange,
  look: ComparableLook,
): EpochMs | undefined {
  return replaces && look.kind !== "absent" ? participant.beganAtMs : undefined;
}

/** True where the participant made the change. An owner is the same one in each coordination that it opened. */
function isChangeByParticipant(
  { settings }: Pick<OppositionDependencies, "settings">,
  { runId, change, created }: LastChange,
  participant: Participant,
): boolean {
  if (change.stepId !== participant.stepId) return false;
  if (runId === participant.runId) return true;
  return change.stepId === OWNER_STEP_ID && isOwnedBy(created, participant.session, settings);
}

export interface LastChange {
  readonly runId: Participant["runId"];
  readonly created: OpenCoordination["created"];
  readonly change: ResourceChange;
  readonly step: Step | undefined;
}

/** Returns the newest recorded change of a resource in any coordination; `undefined` where none is known. */
export async function findLastChange(
  dependencies: OppositionDependencies,
  resource: string,
): Promise<LastChange | undefined> {
  const found = await dependencies.store.find(nameChangeReference(resource));
  const [last] = found ? await listLastChanges(dependencies, found.runId, resource) : [];
  return last;
}

/**
 * Lists the last change of a resource in one coordination, and the last one before it by another step. None where its log is
 * damaged.
 */
async function listLastChanges(
  { runs }: OppositionDependencies,
  runId: Participant["runId"],
  resource: string,
): Promise<LastChange[]> {
  const state = await runs.latest(runId).catch(ignoreDamage);
  if (!state || state.kind === "unopened") return [];
  const { created, steps } = state;
  const change = state.changes.get(resource);
  return [change, change?.other]
    .filter((found) => found !== undefined)
    .map((found) => ({ runId, created, change: found, step: steps.get(found.stepId) }));
}

function createContestantFromChange(
  participant: Participant,
  { runId, change, step }: LastChange,
): Contestant {
  return {
    stepId: change.stepId,
    priority: step?.spec.priority ?? "normal",
    claimedSequence: change.token ?? 0,
    changedAtMs: change.atMs,
    ...(runId !== participant.runId && { coordinationId: runId }),
  };
}

/**
 * Returns an outsider as contestant where nobody known made the change; `undefined` where the file is gone, or where
 * the session may have changed it itself by a command and no changes of others were merged.
 */
function findOutsider(
  { known: knownVersions }: OppositionDependencies,
  sighting: { readonly participant: Participant; readonly seen: SeenVersion; readonly look: FileLook },
): Contestant | undefined {
  const { participant, seen, look } = sighting;
  const { atMs: changedAtMs } = seen;
  const touchedAtMs = knownVersions.touchedAtMs(participant.session);
  const mayBeItsOwn = !seen.lacksMerged && touchedAtMs !== undefined && touchedAtMs >= changedAtMs;
  if (look.kind === "absent" || mayBeItsOwn) return undefined;
  return { stepId: OUTSIDE_STEP_ID, priority: "normal", claimedSequence: 0, changedAtMs };
}
