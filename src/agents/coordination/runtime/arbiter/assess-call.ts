/** Owns: ruling on everything that one call would change, as it is now. Records nothing. */
import { arbitrate, type ArbitrationRuling } from "../../arbitration/arbitrate.ts";
import { chooseStrategyForNames, type ConflictPolicies } from "../../arbitration/strategy-for.ts";
import { BOUNDS } from "../../contracts/bounds.ts";
import type { AppliedStrategy } from "../../contracts/arbitration.ts";
import type { ResourceContest, ResourceRequest } from "../../contracts/commands.ts";
import { addMs, type EpochMs } from "../../contracts/ids.ts";
import { createArbitrationInput } from "../../dispatch/conflict-facts.ts";
import { isChangeApproved } from "../../dispatch/conflict-questions.ts";
import type { ContentInput } from "../../ports/content-store.ts";
import type { FileLook } from "../../ports/resource-files.ts";
import type { ArbiterDependencies } from "./arbiter-dependencies.ts";
import { findDeletableFolders, lookAtTarget, readCurrentText } from "./deletable-folders.ts";
import { isReasonForPeople } from "./conflict-sentence.ts";
import { findOpposition, type Opposition, type OppositionDependencies } from "./find-opposition.ts";
import type { PolicyLocator } from "./locate-policies.ts";
import { listClaimedLinks } from "./locate-targets.ts";
import { mergeTarget, type MergeOutcome } from "./rule-on-merge.ts";
import { canAskPeopleAbout, type Participant } from "./participants.ts";
import type { UnruledContest, PluginRulings } from "./plugin-rulings.ts";
import type { ChangeProposal } from "./write-call.ts";
import type { UnanswerableSessions } from "./unanswerable-sessions.ts";
import type { ChangeUnderWay, WritesUnderWay } from "./writes-under-way.ts";
import type { AssessedTarget, LocatedTarget } from "./assessed-target.ts";

export interface AssessDependencies extends ArbiterDependencies, OppositionDependencies {
  readonly underWay: WritesUnderWay;
  /** Sessions for which nobody could be asked. */
  readonly unanswerable: UnanswerableSessions;
  readonly policyLocator: PolicyLocator;
}

/**
 * Returns, for each target of a tool call as it is now, who stands against the change and how that is ruled; nothing
 * is recorded. Folders that the tool cannot write are left out.
 */
export async function assessCall(
  dependencies: AssessDependencies,
  participant: Participant,
  { targets, plugins }: { readonly targets: readonly LocatedTarget[]; readonly plugins: PluginRulings },
): Promise<AssessedTarget[]> {
  if (targets.length === 0) return [];
  const policies = dependencies.policyLocator.locate(await readPolicies(dependencies, participant));
  const looked = await Promise.all(targets.map((target) => lookAtTarget(dependencies.files, target)));
  const deletable = await findDeletableFolders(dependencies.files, looked);
  const assessed: AssessedTarget[] = [];
  for (const { target, look } of looked) {
    // The tool itself can only fail at it, and a claim would keep others out of all that is in it.
    if (look?.kind === "folder" && target.propose && !deletable.has(target.resource)) continue;
    const fresh = assessed.filter(({ request }) => request.held === undefined).length;
    const about = { participant, target, look, policies, fresh, plugins, before: assessed };
    assessed.push(await assessTarget(dependencies, about));
  }
  return assessed;
}

/**
 * Returns the assessed targets of a call with those that were to be merged ruled without it, because the tool cannot
 * be made to write the merged texts.
 */
export function withoutMerges(
  dependencies: AssessDependencies,
  participant: Participant,
  assessed: readonly AssessedTarget[],
): AssessedTarget[] {
  return assessed.map((one) => (one.merged ? withoutMerge(dependencies, participant, one) : one));
}

/**
 * Returns the assessed targets of a call with what could be merged left to people, too, where they are asked about
 * something else of the call: minutes may pass until they answer, and a merge would be of what was there before.
 */
export function withoutMergesBesideReviews(
  dependencies: AssessDependencies,
  participant: Participant,
  assessed: readonly AssessedTarget[],
): readonly AssessedTarget[] {
  const isAsked = assessed.some(({ request: { contest } }) => contest?.reviewByMs !== undefined);
  if (!isAsked || assessed.some(({ ruling }) => ruling?.kind === "refused")) return assessed;
  return assessed.map((one) =>
    one.request.contest?.merge?.kind === "clean" ? withoutMerge(dependencies, participant, one) : one,
  );
}

function withoutMerge(
  dependencies: AssessDependencies,
  participant: Participant,
  one: AssessedTarget,
): AssessedTarget {
  const { merged: _, text: _text, proposed: _proposed, ...common } = one;
  const { request } = one;
  const { contest } = request;
  if (!contest) return one;
  const evidence = { kind: "obstacle", obstacle: "does_not_apply" } as const;
  return ruleOnContest(dependencies, participant, { common, request, contest, change: { evidence } });
}

/**
 * Returns the conflict policies that hold for the calls of a participant, the operator's and that of its plan, with
 * their patterns as they are written.
 */
export async function readPolicies(
  { conflicts: operator, plans }: ArbiterDependencies,
  { state }: Participant,
): Promise<ConflictPolicies> {
  if (!state.plan) return { operator };
  const { graph } = await plans.graphOf(state);
  return { operator, plan: graph.conflictPolicy };
}

/** A target of a call, with everything that its assessment depends on. */
interface TargetToAssess {
  readonly participant: Participant;
  readonly target: LocatedTarget;
  readonly look: FileLook | undefined;
  readonly policies: ConflictPolicies;
  /** Claims that the call gets before this one. */
  readonly fresh: number;
  readonly plugins: PluginRulings;
  /** Targets of the call that are ruled on already: the paths of files come before what their hard links share. */
  readonly before: readonly AssessedTarget[];
}

async function assessTarget(
  dependencies: AssessDependencies,
  about: TargetToAssess,
): Promise<AssessedTarget> {
  const { participant, target, look, policies, fresh } = about;
  const { resource, replaces } = target;
  const now = dependencies.clock.now();
  const ownChanges = dependencies.underWay.listOwn(participant.session, resource, now);
  const ownChange = ownChanges.at(-1);
  const underWay =
    dependencies.underWay.findReservation(participant.session, resource, now) ??
    dependencies.underWay.ofOthers(participant.session, resource, now);
  // A whole text knows nothing of what is being merged into the session's text before it.
  const lacksMerged = replaces && ownChanges.some(({ knownAs }) => knownAs !== undefined);
  const isUnderWay = !lacksMerged && (ownChange ?? underWay) !== undefined;
  const found = await findOpposition(dependencies, {
    participant,
    resource,
    look,
    replaces,
    isUnderWay,
    now,
  });
  const { holders, delegated } = found;
  const links = await Promise.all(holders.map((holder) => listClaimedLinks(dependencies, resource, holder)));
  const aliases = [...target.aliases, ...links.flat()];
  const applied = chooseStrategyForNames({ names: target.names, aliases }, policies);
  const request = createResourceRequest(dependencies, { participant, resource, found, look, fresh, now });
  const common = {
    target,
    look,
    holders,
    delegated,
    ...(underWay && { underWay }),
    ...createBaseOfMerge(dependencies, applied, look),
  };
  const plain = { ...common, request, ruling: undefined, ...computeTextLeft(about, applied, ownChange) };
  if (!found.contest || (!ownChange && isApprovedByPeople(participant, request, found))) return plain;
  const opposed = { ...found.contest, ...applied };
  return assessOpposedTarget(dependencies, about, { common, request, plain, found, own: ownChange, opposed });
}

/** An assessed call before it is ruled on. */
type UnruledCall = Omit<AssessedTarget, "request" | "ruling">;

/** A target of a call that others stand against, as far as it is assessed. */
interface OpposedTarget {
  readonly common: UnruledCall;
  readonly request: ResourceRequest;
  /** As if nobody stood against it. */
  readonly plain: AssessedTarget;
  readonly found: Opposition;
  readonly own: ChangeUnderWay | undefined;
  readonly opposed: UnruledContest;
}

/**
 * Rules on a target that others stand against, by plugins first and then by the strategy; where plugins are still to
 * be asked, it says so and does not rule.
 */
async function assessOpposedTarget(
  dependencies: AssessDependencies,
  about: TargetToAssess,
  { common, request, plain, found, own: ownChange, opposed }: OpposedTarget,
): Promise<AssessedTarget> {
  const { participant, target, plugins } = about;
  const pluginAnswer = plugins.findOpinion(participant, target, opposed);
  if (!pluginAnswer) return { ...plain, isUnasked: true };
  const contest = { ...opposed, ...(pluginAnswer.ruling && { hook: pluginAnswer.ruling }) };
  const isMerge = arbitrate(createArbitrationInput(participant.stepId, contest)).kind === "merge";
  const left = plain.text === undefined ? {} : { text: plain.text };
  const toMerge = { ...common, found, own: ownChange };
  const change = isMerge
    ? (reuseMergeOfPath(about, found) ?? (await mergeTarget(dependencies, toMerge)))
    : left;
  const words = pluginAnswer.sentence === undefined ? {} : { pluginAnswer: pluginAnswer.sentence };
  return ruleOnContest(dependencies, participant, {
    common: { ...common, ...words },
    request,
    contest,
    change,
  });
}

/**
 * Returns the outcome of the merge by path, for what the hard links of a file share: where all who hold it hold the path, too, nothing
 * else is merged. Who changed the file by another of its names before has claimed the path as that change left it: that is no base for
 * a session which has not seen the path. `undefined` for everything else.
 */
function reuseMergeOfPath(
  { target, before }: TargetToAssess,
  { holders }: Opposition,
): MergeOutcome | undefined {
  const [path, ...otherPaths] = target.names;
  const merged = before.find(({ request }) => request.resource === path);
  const evidence = merged?.request.contest?.merge;
  if (!merged || !evidence || otherPaths.length > 0) return undefined;
  const claimsOfPath = holders.map(({ runId, stepId }) =>
    merged.holders.find((holder) => holder.runId === runId && holder.stepId === stepId),
  );
  if (claimsOfPath.includes(undefined)) return undefined;
  const isLater = holders.some(({ token }, index) => (claimsOfPath[index]?.token ?? 0) > token);
  const hasBase = merged.request.base !== undefined || !isLater;
  return { evidence: hasBase ? evidence : { kind: "obstacle", obstacle: "no_base" } };
}

/** Returns the text that the call will leave, when later changes may be merged with it. */
function computeTextLeft(
  { look, target }: TargetToAssess,
  { strategy }: AppliedStrategy,
  ownChange: ChangeUnderWay | undefined,
): { readonly text?: string } {
  if (strategy !== "merge_if_safe") return {};
  return applyProposal(ownChange?.text ?? readCurrentText(look), target.propose);
}

/**
 * True where people approved this change, it has not happened yet, and they knew of everybody who stands against it
 * and of what was changed outside.
 */
function isApprovedByPeople(
  { state, stepId }: Participant,
  { resource, current }: ResourceRequest,
  { held: requesterClaim, contest }: Opposition,
): boolean {
  // An approval ends with the claim that it was given, not with one on a folder around the file.
  if (requesterClaim?.resource !== resource || !contest) return false;
  const others = contest.claims.filter(
    (claim) => claim.stepId !== stepId || claim.coordinationId !== undefined,
  );
  const claim = { stepId, resource, acquiredAtMs: requesterClaim.acquiredAtMs };
  return isChangeApproved(state, claim, { claims: others, current });
}

/** Rules on a contest by all that is known of it, the outcome of a merge included. */
function ruleOnContest(
  dependencies: AssessDependencies,
  participant: Participant,
  contested: {
    readonly common: UnruledCall;
    readonly request: ResourceRequest;
    readonly contest: ResourceContest;
    readonly change: MergeOutcome;
  },
): AssessedTarget {
  const { common, request, change } = contested;
  const { evidence, ...texts } = change;
  const contest = { ...contested.contest, ...(evidence && { merge: evidence }) };
  const ruling = arbitrate(createArbitrationInput(participant.stepId, contest));
  const reviewed = createReviewFields(dependencies, participant, { ruling, now: dependencies.clock.now() });
  return { ...common, ...texts, ruling, request: { ...request, contest: { ...contest, ...reviewed } } };
}

/** A resource that a participant wants to change, with what stands against it. */
interface RequestedResource {
  readonly participant: Participant;
  readonly resource: string;
  readonly found: Opposition;
  readonly look: FileLook | undefined;
  readonly fresh: number;
  readonly now: EpochMs;
}

function createResourceRequest(
  { conflicts }: AssessDependencies,
  { participant, resource, found, look, fresh, now }: RequestedResource,
): ResourceRequest {
  const { held: requesterClaim, lastToken, base } = found;
  const ended = found.delegated.filter(({ runId }) => runId === participant.runId);
  const leaseEnd = addMs(now, conflicts.leaseMs);
  // A renewal for every write would be an event for every write.
  const isFresh = requesterClaim !== undefined && requesterClaim.expiresAtMs - now > conflicts.leaseMs / 2;
  return {
    resource,
    ...(requesterClaim && { held: requesterClaim.token }),
    token: requesterClaim?.token ?? lastToken + fresh + 1,
    expiresAtMs: isFresh ? requesterClaim.expiresAtMs : leaseEnd,
    ...(ended.length > 0 && { delegated: ended.map(({ stepId }) => stepId) }),
    ...(base !== undefined && { base }),
    ...(look && "version" in look && { current: look.version }),
  };
}

/** Returns the text that the proposed change makes of the text before it, where it makes one. */
function applyProposal(
  before: string | undefined,
  propose: LocatedTarget["propose"],
): { readonly text?: string } {
  const proposed: ChangeProposal | undefined = propose?.(before);
  return proposed?.kind === "text" ? { text: proposed.text } : {};
}

/** Returns what a file was before the change, to be kept as the base of later merges when its changes may be merged. */
function createBaseOfMerge(
  dependencies: AssessDependencies,
  { strategy }: AppliedStrategy,
  look: FileLook | undefined,
): Pick<AssessedTarget, "content"> {
  const current = readCurrentText(look);
  if (strategy !== "merge_if_safe" || current === undefined) return {};
  return { content: createContentUntilEnd(dependencies, current) };
}

/**
 * Lists the contents of a call's files to keep as the base of later merges; none where they have too many bytes
 * together.
 */
export function listContentsToKeep(
  dependencies: ArbiterDependencies,
  assessed: readonly AssessedTarget[],
): ContentInput[] {
  const contents = assessed.flatMap(({ content, proposed }) => [
    ...(content ? [content] : []),
    ...(proposed === undefined ? [] : [createContentUntilEnd(dependencies, proposed)]),
  ]);
  const bytes = contents.reduce((sum, { ref }) => sum + ref.bytes, 0);
  return bytes <= BOUNDS.mergeBytesPerCallMax ? contents : [];
}

/** Creates the content of a text that is kept until the coordination ends. */
function createContentUntilEnd({ refOf }: ArbiterDependencies, text: string): ContentInput {
  return { ref: refOf(text), text, keepWhileRunning: true };
}

/** Returns by when people must answer, where they are to be asked, or that only they could rule. */
function createReviewFields(
  { conflicts, unanswerable }: AssessDependencies,
  participant: Participant,
  { ruling, now }: { readonly ruling: ArbitrationRuling; readonly now: EpochMs },
): Pick<ResourceContest, "reviewByMs" | "asksPeople"> {
  if (ruling.kind !== "review") return {};
  if (canAskPeopleAbout(participant, unanswerable)) return { reviewByMs: addMs(now, conflicts.reviewMs) };
  return isReasonForPeople(ruling.because) ? { asksPeople: true } : {};
}
