/** Owns: what a merge makes of one target of a call: from which base, and what the call is to write then. */
import type { MergeEvidence } from "../../contracts/arbitration.ts";
import type { FileLook } from "../../ports/resource-files.ts";
import { ignoreDamage } from "../log/ignore-damage.ts";
import type { ArbiterDependencies } from "./arbiter-dependencies.ts";
import type { AssessedTarget, LocatedTarget } from "./assessed-target.ts";
import type { Opposition } from "./find-opposition.ts";
import { mergeChange, type MergedChange } from "./merge-change.ts";
import type { ChangeUnderWay } from "./writes-under-way.ts";

export interface MergeOutcome extends Pick<AssessedTarget, "merged" | "text" | "proposed"> {
  readonly evidence?: MergeEvidence;
}

interface ToMerge extends Pick<AssessedTarget, "target" | "look" | "underWay"> {
  readonly found: Opposition;
  /** The newest change of the resource by the session itself that has not ended. */
  readonly own: ChangeUnderWay | undefined;
}

/**
 * Returns the evidence for a ruling on a target's change, by merging it with what is there now, and where that
 * succeeds the text to write; the file is not written.
 */
export async function mergeTarget(
  dependencies: ArbiterDependencies,
  { target, look = { kind: "unreadable" }, underWay, found, own: ownChange }: ToMerge,
): Promise<MergeOutcome> {
  if (ownChange && !underWay) return mergeAfterOwnChange(dependencies, target, ownChange);
  const base = found.base ?? (await findBaseOfFirstClaim(dependencies, found, target.resource));
  const { propose } = target;
  const mergedChange = await mergeChange(dependencies, {
    resource: target.resource,
    propose,
    look,
    base,
    isBeingWritten: underWay !== undefined && !underWay.isReserved,
  });
  const { evidence, text, proposed } = mergedChange;
  return {
    evidence,
    ...(text !== undefined && createRewrite(target, look, text)),
    ...(proposed !== undefined && { proposed }),
  };
}

/**
 * Returns the change as one of what the session's own call before it will leave. The host runs all hooks of a message
 * before the first of its calls, which the tools then make in their order. A whole text knows nothing of what was
 * merged into that.
 */
function mergeAfterOwnChange(
  { refOf }: ArbiterDependencies,
  { propose, replaces }: LocatedTarget,
  ownChange: ChangeUnderWay,
): MergedChange {
  const proposed = ownChange.text === undefined || replaces ? undefined : propose?.(ownChange.text);
  if (proposed?.kind !== "text" || ownChange.text === undefined)
    return { evidence: { kind: "obstacle", obstacle: "being_written" } };
  const before = `sha256:${refOf(ownChange.text).sha256}`;
  const merged = `sha256:${refOf(proposed.text).sha256}`;
  return { evidence: { kind: "clean", base: before, current: before, merged }, text: proposed.text };
}

/** Finds the base that both sides began from: what the resource was when it was first claimed. */
async function findBaseOfFirstClaim(
  { runs }: ArbiterDependencies,
  { holders }: Opposition,
  resource: string,
): Promise<string | undefined> {
  const first = holders.find((claim) => claim.resource === resource);
  const state = first && (await runs.latest(first.runId).catch(ignoreDamage));
  return state && state.kind !== "unopened" ? state.claims.get(first.token)?.base : undefined;
}

/** Returns the text to write, and how the call is to be changed where it would leave something else. */
function createRewrite(
  { index, others, propose }: LocatedTarget,
  look: FileLook,
  text: string,
): Pick<AssessedTarget, "merged" | "text"> {
  const current = look.kind === "text" ? look.text : undefined;
  const unchanged = propose?.(current);
  if (unchanged?.kind === "text" && unchanged.text === text) return { text };
  return { text, merged: { target: index, ...(others && { others }), current, merged: text } };
}
