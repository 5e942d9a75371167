/** Owns: ruling on everything that one call would change, as it is now. Records nothing. */
import { arbitrate, type Ruling } from "../arbitration/arbitrate.ts";
import { strategyFor, type Policies } from "../arbitration/strategy-for.ts";
import type { ResourceRequest } from "../contracts/commands.ts";
import type { ClaimEntry } from "../contracts/claim-entry.ts";
import { addMs, type EpochMs } from "../contracts/ids.ts";
import { contestOf } from "../dispatch/decide-claims.ts";
import type { ContentInput } from "../ports/content-store.ts";
import type { FileLook } from "../ports/resource-files.ts";
import type { ArbiterParts } from "./arbiter-parts.ts";
import { findOpposition, type Opposition, type OppositionParts } from "./find-opposition.ts";
import { mergeChange, type MergedChange } from "./merge-change.ts";
import { canBeAskedAbout, type Participant } from "./participants.ts";
import type { MergedFile, Proposed, WriteTarget } from "./write-call.ts";
import type { CallUnderWay, ChangeUnderWay, WritesUnderWay } from "./writes-under-way.ts";

/** A target that is known by its resource, with its place in the call. */
export interface LocatedTarget {
  readonly resource: string;
  readonly index: number;
  readonly propose: WriteTarget["propose"];
  readonly replaces: boolean;
}

export interface Assessed {
  readonly target: LocatedTarget;
  readonly request: ResourceRequest;
  readonly ruling: Ruling | undefined;
  readonly holders: readonly ClaimEntry[];
  /** Claims of those that the requester works for, which end when it is granted. */
  readonly delegated: readonly ClaimEntry[];
  readonly merged?: MergedFile;
  /** What the call leaves in the file, where that is known. */
  readonly text?: string;
  readonly look: FileLook | undefined;
  /** Somebody else's call that changes it and has not ended. */
  readonly underWay?: CallUnderWay;
  /** Kept so that later changes can be merged with it. */
  readonly content?: ContentInput;
}

export interface AssessParts extends ArbiterParts, OppositionParts {
  readonly underWay: WritesUnderWay;
  /** Sessions for which nobody could be asked. */
  readonly unanswerable: { has(session: string): boolean };
}

export async function assessCall(
  parts: AssessParts,
  participant: Participant,
  targets: readonly LocatedTarget[],
): Promise<Assessed[]> {
  const policies = await policiesOf(parts, participant);
  const assessed: Assessed[] = [];
  for (const target of targets) {
    const fresh = assessed.filter(({ request }) => request.held === undefined).length;
    assessed.push(await assess(parts, { participant, target, policies, fresh }));
  }
  return assessed;
}

/** The tool cannot be made to write the merged texts: then there is no merge. */
export function withoutMerges(
  parts: AssessParts,
  participant: Participant,
  assessed: readonly Assessed[],
): Assessed[] {
  return assessed.map((one) => {
    const { merged: _, text: _text, ...rest } = one;
    const { contest } = one.request;
    if (!one.merged || !contest) return one;
    const unmerged = { ...contest, merge: { kind: "obstacle", obstacle: "does_not_apply" } } as const;
    const ruling = arbitrate(contestOf(participant.stepId, unmerged));
    const reviewed = reviewable(parts, participant, { ruling, now: parts.clock.now() });
    return { ...rest, ruling, request: { ...one.request, contest: { ...unmerged, ...reviewed } } };
  });
}

async function policiesOf(parts: AssessParts, { state }: Participant): Promise<Policies> {
  const operator = parts.conflicts;
  if (!state.plan) return { operator };
  return { operator, plan: (await parts.plans.graphOf(state)).graph.conflictPolicy };
}

interface About {
  readonly participant: Participant;
  readonly target: LocatedTarget;
  readonly policies: Policies;
  /** Claims that the call gets before this one. */
  readonly fresh: number;
}

async function assess(parts: AssessParts, about: About): Promise<Assessed> {
  const { participant, target, policies, fresh } = about;
  const { resource, replaces, propose } = target;
  const now = parts.clock.now();
  const look = resource.startsWith("file:") ? await parts.files.look(resource) : undefined;
  const own = parts.underWay.ofOwn(participant.session, resource, now);
  const underWay = parts.underWay.ofOthers(participant.session, resource, now);
  const isUnderWay = own !== undefined || underWay !== undefined;
  const wanted = { participant, resource, look, replaces, isUnderWay, now };
  const found = await findOpposition(parts, wanted);
  const applied = strategyFor(resource, policies);
  const { holders, delegated } = found;
  const common = { target, look, holders, delegated, ...(underWay && { underWay }) };
  const request = requestOf(parts, { participant, resource, found, look, fresh, now });
  const kept = applied.strategy === "merge_if_safe" ? contentOf(parts, look) : {};
  if (!found.contest) {
    const proposed = textOf(own?.text ?? (look?.kind === "text" ? look.text : undefined), propose);
    return { ...common, ...kept, request, ruling: undefined, ...proposed };
  }
  const contest = { ...found.contest, ...applied };
  const ruling = arbitrate(contestOf(participant.stepId, contest));
  if (ruling.kind === "merge")
    return merged(parts, { about, found, common: { ...common, ...kept }, request });
  const reviewed = reviewable(parts, participant, { ruling, now });
  return { ...common, ...kept, request: { ...request, contest: { ...contest, ...reviewed } }, ruling };
}

interface Requested {
  readonly participant: Participant;
  readonly resource: string;
  readonly found: Opposition;
  readonly look: FileLook | undefined;
  readonly fresh: number;
  readonly now: EpochMs;
}

function requestOf(
  { conflicts }: AssessParts,
  { participant, resource, found, look, fresh, now }: Requested,
): ResourceRequest {
  const { held, lastToken, base } = found;
  const ended = found.delegated.filter(({ runId }) => runId === participant.runId);
  const leaseEnd = addMs(now, conflicts.leaseMs);
  // A renewal for every write would be an event for every write.
  const isFresh = held !== undefined && held.expiresAtMs - now > conflicts.leaseMs / 2;
  return {
    resource,
    ...(held && { held: held.token }),
    token: held?.token ?? lastToken + fresh + 1,
    expiresAtMs: isFresh ? held.expiresAtMs : leaseEnd,
    ...(ended.length > 0 && { delegated: ended.map(({ stepId }) => stepId) }),
    ...(base !== undefined && { base }),
    ...(look && "version" in look && { current: look.version }),
  };
}

async function merged(
  parts: AssessParts,
  given: {
    readonly about: About;
    readonly found: Opposition;
    readonly common: Omit<Assessed, "request" | "ruling">;
    readonly request: ResourceRequest;
  },
): Promise<Assessed> {
  const { about, found, common, request } = given;
  const { participant, target, policies } = about;
  const look: FileLook = common.look ?? { kind: "unreadable" };
  const own = parts.underWay.ofOwn(participant.session, target.resource, parts.clock.now());
  const isBeingWritten = common.underWay !== undefined;
  const change =
    own && !isBeingWritten
      ? changeOfOwn(parts, target, own)
      : await mergeChange(parts, {
          ...{ propose: target.propose, look, isBeingWritten },
          base: found.base ?? (await baseOfFirst(parts, found, target.resource)),
        });
  const contest = { ...emptyContest, ...found.contest, ...strategyFor(target.resource, policies) };
  const withEvidence = { ...contest, merge: change.evidence };
  const ruling = arbitrate(contestOf(participant.stepId, withEvidence));
  const reviewed = reviewable(parts, participant, { ruling, now: parts.clock.now() });
  return {
    ...common,
    request: { ...request, contest: { ...withEvidence, ...reviewed } },
    ruling,
    ...(change.text !== undefined && own && { text: change.text }),
    ...(change.text !== undefined && !own && written(target, { look, text: change.text })),
  };
}

/**
 * The host runs all hooks of a message before the first of its calls: an edit is of what the call before it will leave, which
 * the tools do in their order. A whole text knows nothing of what was merged into that.
 */
function changeOfOwn(
  { refOf }: AssessParts,
  { propose, replaces }: LocatedTarget,
  own: ChangeUnderWay,
): MergedChange {
  const proposed = own.text === undefined || replaces ? undefined : propose?.(own.text);
  if (proposed?.kind !== "text" || own.text === undefined)
    return { evidence: { kind: "obstacle", obstacle: "being_written" } };
  const before = `sha256:${refOf(own.text).sha256}`;
  const merged = `sha256:${refOf(proposed.text).sha256}`;
  return { evidence: { kind: "clean", base: before, current: before, merged }, text: proposed.text };
}

const emptyContest = { cause: "overlap", claims: [] } as const;

/** Both sides began from what the resource was when it was claimed first. */
async function baseOfFirst(
  { runs }: AssessParts,
  { holders }: Opposition,
  resource: string,
): Promise<string | undefined> {
  const first = holders.find((claim) => claim.resource === resource);
  const state = first && (await runs.latest(first.runId));
  return state && state.kind !== "unopened" ? state.claims.get(first.token)?.base : undefined;
}

function written(
  { index, propose }: LocatedTarget,
  { look, text }: { readonly look: FileLook; readonly text: string },
): Pick<Assessed, "merged" | "text"> {
  const current = look.kind === "text" ? look.text : undefined;
  const unchanged = propose?.(current);
  if (unchanged?.kind === "text" && unchanged.text === text) return { text };
  return { text, merged: { target: index, current, merged: text } };
}

function textOf(before: string | undefined, propose: LocatedTarget["propose"]): { readonly text?: string } {
  const proposed: Proposed | undefined = propose?.(before);
  return proposed?.kind === "text" ? { text: proposed.text } : {};
}

function contentOf({ refOf }: AssessParts, look: FileLook | undefined): Pick<Assessed, "content"> {
  if (look?.kind !== "text") return {};
  return { content: { ref: refOf(look.text), text: look.text, keepWhileRunning: true } };
}

function reviewable(
  { conflicts, unanswerable }: AssessParts,
  participant: Participant,
  { ruling, now }: { readonly ruling: Ruling; readonly now: EpochMs },
): { readonly reviewByMs?: EpochMs } {
  if (ruling.kind !== "review" || !canBeAskedAbout(participant, unanswerable)) return {};
  return { reviewByMs: addMs(now, conflicts.reviewMs) };
}
