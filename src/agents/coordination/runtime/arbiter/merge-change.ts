/** Owns: what a three-way merge makes of a change that others stand against: evidence for the ruling, and the text to write. */
import type { MergeEvidence, MergeObstacle } from "../../contracts/arbitration.ts";
import type { FileLook } from "../../ports/resource-files.ts";
import type { ArbiterDependencies } from "./arbiter-dependencies.ts";
import type { ChangeProposal, WriteTarget } from "./write-call.ts";

export interface MergedChange {
  readonly evidence: MergeEvidence;
  /** Present for a clean merge. */
  readonly text?: string;
  /** The text that the call itself would have made of its base. */
  readonly proposed?: string;
}

interface CleanChange {
  readonly evidence: MergeEvidence & { readonly kind: "clean" };
  readonly text: string;
}

/** A change of a resource that is to be merged with the changes of others. */
export interface MergeableChange {
  /** Its name says by which format it is merged. */
  readonly resource: string;
  readonly propose: WriteTarget["propose"];
  readonly look: FileLook;
  /** The version that both sides began from; `undefined` where that is not known. */
  readonly base: string | undefined;
  /** Somebody else is writing it just now. */
  readonly isBeingWritten: boolean;
}

type TextLook = FileLook & { kind: "text" };
type ChangeMergeDependencies = Pick<ArbiterDependencies, "content" | "textMerge" | "refOf">;

/**
 * Returns a proposed change merged with what others made of the file, or the obstacle to a merge; the file is not
 * written.
 */
export function mergeChange(
  dependencies: ChangeMergeDependencies,
  change: MergeableChange,
): Promise<MergedChange> | MergedChange {
  const { look } = change;
  if (change.isBeingWritten) return createObstacle("being_written");
  switch (look.kind) {
    case "absent":
      return mergeCreation(dependencies, change);
    case "text":
      return mergeWithCurrentText(dependencies, change, look);
    case "other":
      return createObstacle(look.because);
    case "folder":
    case "unreadable":
      return createObstacle("not_a_file");
  }
}

async function mergeWithCurrentText(
  dependencies: ChangeMergeDependencies,
  { resource, base, propose }: MergeableChange,
  look: TextLook,
): Promise<MergedChange> {
  const before = await readBaseText(dependencies, { base, look });
  if (before === "unknown") return createObstacle("no_base");
  const proposed = propose?.(before?.text) ?? { kind: "deleted" };
  if (proposed.kind !== "text") return mergeUnfitChange(dependencies, { look, base, propose }, proposed.kind);
  return mergeThreeWay(dependencies, {
    resource,
    look,
    base,
    before: before?.text ?? "",
    proposed: proposed.text,
  });
}

/** Merges a change that makes no text of the base: only one that fits the file as it is now can be taken. */
function mergeUnfitChange(
  dependencies: ChangeMergeDependencies,
  { look, base, propose }: Pick<MergeableChange, "base" | "propose"> & { readonly look: TextLook },
  kind: Exclude<ChangeProposal["kind"], "text">,
): MergedChange {
  if (kind === "deleted") return createObstacle("not_a_file");
  if (kind === "untold") return createObstacle("too_large");
  return takeChangeOfCurrent(dependencies, { look, base, proposed: propose?.(look.text) });
}

async function mergeThreeWay(
  dependencies: ChangeMergeDependencies,
  sides: {
    readonly resource: string;
    readonly look: TextLook;
    readonly base: string | undefined;
    readonly before: string;
    readonly proposed: string;
  },
): Promise<MergedChange> {
  const { resource, look, base = look.version, before, proposed } = sides;
  const merge = await dependencies.textMerge();
  const merged = merge.merge({ base: before, current: look.text, proposed, path: resource });
  if (merged.kind === "obstacle") return createObstacle(merged.obstacle);
  const { evidence, text } = createCleanChange(dependencies, {
    base,
    current: look.version,
    text: merged.text,
  });
  const { way } = merged;
  return { evidence: way === undefined ? evidence : { ...evidence, way }, text, proposed };
}

/**
 * Merges the creation of a file. Nothing was written by the holder of the claim, so there is nothing to merge with,
 * unless the file existed and is deleted.
 */
function mergeCreation(
  dependencies: ChangeMergeDependencies,
  { base, look, propose }: MergeableChange,
): MergedChange {
  const proposed = base === undefined || base === "absent" ? propose?.(undefined) : undefined;
  if (proposed?.kind !== "text" || look.kind !== "absent") return createObstacle("not_a_file");
  return createCleanChange(dependencies, { base: look.version, current: look.version, text: proposed.text });
}

/** Returns a change that fits only the file as it is now as a clean merge: it was made with it in view. */
function takeChangeOfCurrent(
  dependencies: ChangeMergeDependencies,
  {
    look,
    base = look.version,
    proposed,
  }: {
    readonly look: TextLook;
    readonly base: string | undefined;
    readonly proposed: ChangeProposal | undefined;
  },
): MergedChange {
  if (proposed?.kind === "untold") return createObstacle("too_large");
  if (proposed?.kind !== "text") return createObstacle("does_not_apply");
  return createCleanChange(dependencies, { base, current: look.version, text: proposed.text });
}

/** Returns the text of the version that both began from; `undefined`: no file. "unknown": it cannot be had. */
async function readBaseText(
  { content }: ChangeMergeDependencies,
  { base, look }: { readonly base: string | undefined; readonly look: FileLook },
): Promise<{ readonly text: string } | undefined | "unknown"> {
  if (base === undefined) return "unknown";
  if (base === "absent") return undefined;
  if (look.kind === "text" && look.version === base) return { text: look.text };
  const text = await content.get(base.slice(base.indexOf(":") + 1));
  return text === undefined ? "unknown" : { text };
}

function createCleanChange(
  { refOf }: ChangeMergeDependencies,
  { base, current, text }: { readonly base: string; readonly current: string; readonly text: string },
): CleanChange {
  const merged = `sha256:${refOf(text).sha256}`;
  return { evidence: { kind: "clean", base, current, merged }, text };
}

function createObstacle(which: MergeObstacle): MergedChange {
  return { evidence: { kind: "obstacle", obstacle: which } };
}
