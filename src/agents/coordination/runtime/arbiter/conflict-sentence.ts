/** Owns: what the model of a refused call, or the person who is asked about one, reads. */
import type { Contestant } from "../../contracts/arbitration.ts";
import { BOUNDS } from "../../contracts/bounds.ts";
import type { ClaimEntry } from "../../contracts/claim-entry.ts";
import { OUTSIDE_STEP_ID, OWNER_STEP_ID, type EpochMs } from "../../contracts/ids.ts";
import { findOwningTool } from "../../contracts/owned-files.ts";
import { formatOwnResource } from "../../contracts/resource-names.ts";
import type { Coordination } from "../../ledger/state.ts";
import { replaceHiddenCharacters } from "../../std/hidden-characters.ts";
import type { AssessedTarget } from "./assessed-target.ts";
import type { UndeterminedWrite } from "./write-call.ts";
import type { CallUnderWay } from "./writes-under-way.ts";

const START = "Coordination refused this call";

/**
 * Returns the text by which a contested call is refused: who holds or changed the resource, since when and until when,
 * and what the model can do.
 */
export function describeRefusal(
  assessed: AssessedTarget,
  state: Coordination,
  conflictId: string | undefined,
): string {
  const { ruling } = assessed;
  const resource = formatOwnResource(nameTarget(assessed));
  const which = conflictId === undefined ? "" : ` (conflict ${conflictId})`;
  if (ruling?.kind === "review")
    return describeReviewRefusal(assessed, state, { because: ruling.because, which });
  if (assessed.pluginAnswer !== undefined)
    return `${START}: ${resource} is wanted by others too${describeHolder(assessed, state)}, and ${addFullStop(assessed.pluginAnswer)} Go on with other work; do not write it under another name${which}.`;
  const changers = listOpposingChangers(assessed);
  if (changers.length > 0)
    return `${START}: ${resource} was changed by ${formatContestantNames(changers, state)} since you read ${assessed.target.replaces ? "all of it" : "it"}; your change would undo that. ${describeRereading(assessed)}${which}.`;
  return `${START}: ${resource} is ${describeHolding(assessed, state)}. Go on with other work and try again then; do not write it under another name${which}.`;
}

/**
 * Says to read the resource again. A session may look by a command, too, but which files that shows it is not known; and who replaces
 * everything must have seen all of it.
 */
function describeRereading({ target: { replaces } }: AssessedTarget): string {
  return `Read it again${replaces ? " to its end" : ""} with the tool read, not by a command, and make your change to what it is now`;
}

/** Reasons for a failed merge that the model itself can often mend. */
const MENDABLE: ReadonlySet<string> = new Set(["overlapping-changes", "no-base", "does-not-apply"]);

/**
 * True when the reason for which a contest is under review is one that only people can rule on; false for one that
 * passes or that the requester can mend.
 */
export function isReasonForPeople(because: string): boolean {
  return !MENDABLE.has(because) && because !== "being-written";
}

/**
 * Returns the text by which a call is refused while a person is asked about its resource, now or for an earlier call:
 * until when they may answer, and what the model can do.
 */
export function describeOpenQuestions(
  assessed: AssessedTarget,
  state: Coordination,
  questions: readonly OpenQuestion[],
): string {
  const resource = formatOwnResource(nameTarget(assessed));
  const names = questions.map(({ questionId }) => questionId).join(", ");
  const tool = findOwningTool(nameTarget(assessed));
  const advice =
    tool === undefined ? "" : ` It is a file that a tool writes: run "${tool}" rather than write it.`;
  const untilMs = questions.map(({ deadlineAtMs }) => deadlineAtMs).reduce((a, b) => (a < b ? a : b));
  return `${START}: a person must decide who may change ${resource}${describeHolder(assessed, state)}. A person was asked (${names}) and may answer until ${formatUtcTime(untilMs)}; if they approve, make the same call again. Go on with other work until then; do not write it under another name.${advice}`;
}

export interface OpenQuestion {
  readonly questionId: string;
  readonly deadlineAtMs: EpochMs;
}

/**
 * Returns the text by which a call is refused because the plugins that rule on contested writes did not answer in
 * time.
 */
export function describeLatePlugins(): string {
  return `${START}: the plugins that rule on contested writes kept it waiting for too long. Try again later.`;
}

/** Returns the text by which a call is refused that had ended before it was ruled on. */
export function describeEndedCall(): string {
  return `${START}: the call has ended before it was ruled on. Make it again if it is still needed.`;
}

function addFullStop(sentence: string): string {
  return /[.!?]$/u.test(sentence) ? sentence : `${sentence}.`;
}

function describeReviewRefusal(
  assessed: AssessedTarget,
  state: Coordination,
  { because, which }: { readonly because: string; readonly which: string },
): string {
  const resource = formatOwnResource(nameTarget(assessed));
  const holderClause = describeHolder(assessed, state);
  if (MENDABLE.has(because))
    return `${START}: ${resource} is wanted by others too${holderClause}, and your change could not be merged with theirs (${because}). ${describeRereading(assessed)}${which}.`;
  if (because === "being-written")
    return `${START}: ${resource} is being changed just now${holderClause}. Try again in a moment${which}.`;
  const tool = because === "owned-by-tool" ? findOwningTool(resource) : undefined;
  if (tool !== undefined)
    return `${START}: ${resource} is wanted by others too${holderClause}, and it is never merged, because a tool writes it (${because}). A person must decide who may change it, and nobody can be asked from here. Do not write it yourself: once the files that it follows from are settled, run "${tool}", or report in your result that it must be run${which}.`;
  return `${START}: a person must decide who may change ${resource}${holderClause} (${because}), and nobody can be asked from here. Go on with other work, and report this in your result${which}.`;
}

/** Describes who already holds the resource, with the times. */
function describeHolder({ holders }: AssessedTarget, state: Coordination): string {
  const [first] = holders;
  if (!first) return "";
  const foreign = first.runId === state.coordinationId ? {} : { coordinationId: first.runId };
  const name = nameContestant({ ...first, ...foreign, claimedSequence: first.token }, state);
  return `, held by ${name} since ${formatUtcTime(first.acquiredAtMs)} until ${formatUtcTime(first.expiresAtMs)}`;
}

/** Returns those who have already changed the resource, when that is what stands in the way. */
function listOpposingChangers({ request, ruling }: AssessedTarget): Contestant[] {
  const isLostToThem = ruling?.kind === "refused" && hasChangedResource(ruling.winner);
  if (request.contest?.cause !== "stale_base" && !isLostToThem) return [];
  return request.contest?.claims.filter(hasChangedResource) ?? [];
}

/** Describes who has the resource: by a claim with its times, or because its plan says so. */
function describeHolding({ holders, ruling }: AssessedTarget, state: Coordination): string {
  if (ruling?.kind !== "refused") return "held by another step";
  const { winner } = ruling;
  const name = nameContestant(winner, state);
  const claim = holders.find(({ token }) => token === winner.claimedSequence);
  if (!claim) return `declared by ${name} as its own in the plan, until that step ends`;
  const since = formatUtcTime(claim.acquiredAtMs);
  return `held by ${name} since ${since} until ${formatUtcTime(claim.expiresAtMs)}, or until that step ends`;
}

/** Returns the text by which a session whose step has ended is refused a resource that somebody holds. */
export function describeHeldResource(
  resource: string,
  { runId, stepId, acquiredAtMs, expiresAtMs }: ClaimEntry,
): string {
  return `${START}: ${formatOwnResource(resource)} is held by ${stepId} of coordination ${runId} since ${formatUtcTime(acquiredAtMs)} until ${formatUtcTime(expiresAtMs)}, and the step that this session worked on has ended. Try again then.`;
}

/**
 * Returns the text by which a call is refused because a call of another changes the resource just now, or is to change
 * it once a person has answered.
 */
export function describeCallUnderWay(resource: string, call: CallUnderWay): string {
  const { participant, tool, atMs, isReserved } = call;
  const name = nameContestant(
    { stepId: participant.stepId, priority: "normal", claimedSequence: 0 },
    participant.state,
  );
  const start = `${START}: ${formatOwnResource(resource)}`;
  if (isReserved)
    return `${start} is to be changed by a call of ${name} (${tool}) about which a person is asked since ${formatUtcTime(atMs)}. Go on with other work, and try again later.`;
  return `${start} is being changed just now by ${name} (${tool}, since ${formatUtcTime(atMs)}). Try again in a moment.`;
}

/**
 * Returns the text by which a call is refused whose changes cannot be told, with the reason and what the model can do.
 */
export function describeUndeterminedRefusal(tool: string, { because, extractor }: UndeterminedWrite): string {
  if (because === "too_many")
    return `${START}: it changes more than ${BOUNDS.resourcesPerCallMax} things at once. Make several calls of ${tool} of it.`;
  if (because === "extractor_failed")
    return `${START}: the extractor ${JSON.stringify(extractor)} of another plugin failed to say what ${tool} would change, so the call cannot be checked. Use another tool, or ask the operator to correct that plugin.`;
  return `${START}: what ${tool} would change cannot be told, and the operator allows no such call while other agents are at work. Use write, edit or apply_patch, or ask for the command to be declared in coordination.phase1.conflicts.commands.`;
}

/** Returns the text by which a call is refused because what it needs could not be recorded, for this reason. */
export function describeRecordRefusal(reason: string): string {
  return `${START}: ${reason}.`;
}

/** Returns the text by which a call of a given-up attempt's session is refused, or of one that works for it. */
export function describeGivenUpAttempt(stepId: string): string {
  return `${START}: this attempt of step ${stepId} was given up, or one that it works for, and what it writes no longer counts. End your turn.`;
}

/**
 * Returns the title and text of the question to people about a call whose changes cannot be told, within the host's 80
 * and 512 characters.
 */
export function createUndeterminedReviewText(tool: string): {
  readonly title: string;
  readonly description: string;
} {
  return {
    title: cutWithEllipsis(`Unchecked call of ${tool}`, 80),
    description:
      `What this call of ${tool} would change cannot be told, and other agents may be at work on the same files.`.slice(
        0,
        512,
      ),
  };
}

/**
 * Returns the title and text of the question to people about contested targets of a call, within the host's 80 and 512
 * characters.
 */
export function createReviewText(
  assessed: readonly AssessedTarget[],
  state: Coordination,
): { readonly title: string; readonly description: string } {
  const [first] = assessed;
  const resource = formatOwnResource(first ? nameTarget(first) : "a resource");
  const lines = assessed.map(({ target, request }) => {
    const name = nameTarget({ target });
    const against = (request.contest?.claims ?? []).filter(
      ({ stepId, coordinationId }) => coordinationId !== undefined || stepId !== OWNER_STEP_ID,
    );
    const why = request.contest?.from === "high_risk" ? ", which is marked high-risk" : "";
    const tool = findOwningTool(name);
    const advice =
      tool === undefined ? "" : ` A tool writes it: running "${tool}" is better than either text.`;
    return `${keepEndWithEllipsis(formatOwnResource(name), 120)}${why}: also wanted by ${formatContestantNames(against, state)}.${advice}`;
  });
  const stake = "If you allow it, this call overwrites what they have there and their claims end.";
  return {
    title: cutWithEllipsis(`Contested write: ${keepEndWithEllipsis(resource, 60)}`, 80),
    description: `${cutWithEllipsis([...new Set(lines)].join(" "), 511 - stake.length)} ${stake}`,
  };
}

/**
 * Returns the name of an assessed target as the call has it: its path, also where the resource is the name that the
 * hard links of a file share.
 */
export function nameTarget({ target: { names, resource } }: Pick<AssessedTarget, "target">): string {
  return names[0] ?? resource;
}

function formatContestantNames(contestants: readonly Contestant[], state: Coordination): string {
  const names = contestants.slice(0, 3).map((contestant) => nameContestant(contestant, state));
  const more = contestants.length - names.length;
  return `${names.join(", ") || "another step"}${more > 0 ? ` and ${more} more` : ""}`;
}

function nameContestant({ stepId, coordinationId }: Contestant, state: Coordination): string {
  if (stepId === OUTSIDE_STEP_ID) return "somebody outside of this coordination";
  // An older release took ids with any characters.
  if (coordinationId !== undefined)
    return replaceHiddenCharacters(`${stepId} of coordination ${coordinationId}`, () => " ");
  if (stepId === OWNER_STEP_ID) return "the session that began this work";
  const name = state.kind === "unopened" ? undefined : state.steps.get(stepId)?.spec.name;
  // A step of a plan is called what its id is.
  return name === undefined || name === stepId ? stepId : `${stepId} (${JSON.stringify(name)})`;
}

function hasChangedResource({ changedAtMs }: Contestant): boolean {
  return changedAtMs !== undefined;
}

function formatUtcTime(atMs: EpochMs): string {
  return `${new Date(atMs).toISOString().slice(0, 19)}Z`;
}

function keepEndWithEllipsis(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `…${text.slice(1 - charsMax)}`;
}

function cutWithEllipsis(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1)}…`;
}
