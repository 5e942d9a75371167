/** Owns: all that the ledger has of one conflict, for people. */
import type {
  Contestant,
  MergeEvidence,
  MergeWay,
} from "../../../agents/coordination/contracts/arbitration.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import type { ConflictRecord } from "../../reports/conflict-log.ts";
import {
  describeConflictOutcome,
  nameRequester,
  describeStrategy,
  findWinningClaim,
} from "./conflict-text.ts";
import { isRequester, type StepNames } from "../../reports/conflict-outcome.ts";
import { renderFields } from "../terminal/fields.ts";
import type { FoundConflict } from "../../reports/find-conflicts.ts";
import { createPaint, type Paint } from "../terminal/paint.ts";
import { nameParty } from "../../reports/step-name.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { formatDuration, formatInstant } from "../../../agents/coordination/std/quantities.ts";

/**
 * Returns the text that shows all that the ledger has of one conflict: its fields, without those that have no value,
 * then its claimants.
 */
export function renderConflictStory({ conflict, names }: FoundConflict, terminal: Terminal): string {
  const paint = createPaint(terminal);
  const print = (value: string): string => formatPrintable(value, terminal.unicode);
  const entries: readonly (readonly [string, string])[] = [
    ["resource", conflict.resource],
    ["detected", formatInstant(conflict.detectedAtMs)],
    ["asked", conflict.contest ? nameRequester(names, conflict) : ""],
    ["cause", describeConflictCause(conflict)],
    ["strategy", describeStrategy(conflict)],
    ["base", conflict.contest?.base ?? ""],
    ["current", conflict.contest?.current ?? ""],
    ["merge", describeMerge(conflict.contest?.merge)],
    ["outcome", describeConflictOutcome(names, conflict)],
    ["rule", conflict.resolution?.rule ?? ""],
    ["resolved", describeResolution(conflict)],
    ["losers", nameLosers(conflict, names).join(", ")],
  ];
  const lines = [
    paint.tone("strong", print(conflict.conflictId)),
    ...renderFields(
      paint,
      entries.map(([name, value]) => [name, print(value)]),
    ),
    ...conflict.claims.flatMap((claim) => [
      "",
      ...renderClaimant(conflict, { claim, names, paint, text: print }),
    ]),
    ...(conflict.contest ? [] : ["", "Its evidence is missing: it was recorded before arbitration."]),
  ];
  return `${lines.join("\n")}\n`;
}

/** Returns in words why a conflict arose; an empty text where that was not recorded. */
export function describeConflictCause({ contest }: ConflictRecord): string {
  return contest ? CAUSES[contest.cause] : "";
}

const CAUSES: Readonly<Record<NonNullable<ConflictRecord["contest"]>["cause"], string>> = {
  overlap: "overlap: others have claimed it, or their plan names it as theirs",
  stale_base: "stale base: it was changed since the requester saw it last",
  overwritten: "overwritten: a command changed it while others held it",
};

const CLEAN_TEXT: Readonly<Record<MergeWay | "line", string>> = {
  line: "clean",
  key: "clean by key",
  section: "clean by section",
  imports: "clean as a set of imports",
};

/**
 * Returns in words how the merge that was attempted for a conflict came out and how it was made; an empty text where
 * none was attempted.
 */
export function describeMerge(merge: MergeEvidence | undefined): string {
  if (!merge) return "";
  if (merge.kind === "obstacle") return `not possible: ${merge.obstacle.replaceAll("_", " ")}`;
  return `${CLEAN_TEXT[merge.way ?? "line"]}: ${merge.base} and ${merge.current} became ${merge.merged}`;
}

const BY = {
  ownership: ", by the rules",
  lease: ", by the rules",
  strategy: ", by the rules",
  hook: ", by a plugin",
  people: ", by people",
} as const;

/** Describes when the conflict was resolved and by what, or until when people may answer. */
function describeResolution({ resolution, contest, detectedAtMs }: ConflictRecord): string {
  if (!resolution)
    return contest?.reviewByMs === undefined
      ? "not yet"
      : `not yet: people may answer until ${formatInstant(contest.reviewByMs)}`;
  const { resolvedAtMs, rule } = resolution;
  const after = resolvedAtMs > detectedAtMs ? ` (after ${formatDuration(resolvedAtMs - detectedAtMs)})` : "";
  return `${formatInstant(resolvedAtMs)}${after}${rule === undefined ? "" : BY[rule]}`;
}

/**
 * Names the claimants that lost. Losers are recorded by step id alone, so the winner's claim is left out by itself:
 * its step, in another coordination, may have the same id.
 */
function nameLosers(conflict: ConflictRecord, names: StepNames): string[] {
  const { resolution, claims } = conflict;
  const winner = findWinningClaim(conflict);
  const losers = new Set<string>(resolution?.losers);
  return claims
    .filter((claim) => claim !== winner && losers.has(claim.stepId))
    .map((claim) => nameParty(names, claim));
}

/** A claim of a conflict, with what its lines are drawn by. */
interface DrawnClaim {
  readonly claim: Contestant;
  readonly names: StepNames;
  readonly paint: Paint;
  readonly text: (value: string) => string;
}

function renderClaimant(conflict: ConflictRecord, claimant: DrawnClaim): string[] {
  const { claim, names, paint, text } = claimant;
  const { stepId, coordinationId } = claim;
  const hasAsked = isRequester(conflict.contest, claim);
  const name = nameParty(names, claim);
  const titles = [
    ...(name === (stepId as string) ? [] : [`(${coordinationId ? `${coordinationId} ` : ""}${stepId})`]),
    ...(hasAsked ? ["asked"] : []),
    ...(claim === findWinningClaim(conflict) ? ["won"] : []),
  ];
  return [
    `  ${paint.tone("strong", text(name))}${titles.length > 0 ? `  ${text(titles.join(" "))}` : ""}`,
    `    ${text(describeClaimFacts(claim, hasAsked))}`,
  ];
}

/**
 * Describes priority, token, lease and last change of a claim. A requester without a claim has the token that it would
 * get.
 */
function describeClaimFacts(claim: Contestant, hasAsked: boolean): string {
  const { priority, claimedSequence, declared, expiresAtMs, changedAtMs } = claim;
  const token = hasAsked && expiresAtMs === undefined ? "would get token" : "token";
  const facts = [
    `priority ${priority}`,
    ...(claimedSequence > 0 ? [`${token} ${claimedSequence}`] : []),
    ...(expiresAtMs === undefined ? [] : [`lease until ${formatInstant(expiresAtMs)}`]),
    ...(declared ? ["declared as its own by its plan"] : []),
    ...(changedAtMs === undefined ? [] : [`changed it at ${formatInstant(changedAtMs)}`]),
  ];
  return facts.join(", ");
}
