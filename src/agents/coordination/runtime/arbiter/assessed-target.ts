/** Owns: what is known of one target of a call before it is ruled on. */
import type { FileLook } from "../../ports/resource-files.ts";
import type { ContentInput } from "../../ports/content-store.ts";
import type { ResourceRequest } from "../../contracts/commands.ts";
import type { ClaimEntry } from "../../contracts/claim-entry.ts";
import type { ArbitrationRuling } from "../../arbitration/arbitrate.ts";
import type { RuledNames } from "../../arbitration/strategy-for.ts";
import type { MergedFile, WriteTarget } from "./write-call.ts";
import type { CallUnderWay } from "./writes-under-way.ts";

/** A target that is known by its resource, with its place in the call. */
export interface LocatedTarget extends RuledNames {
  readonly resource: string;
  readonly index: number;
  /** The places of further targets that are the same resource by another path. */
  readonly others?: readonly number[];
  readonly propose: WriteTarget["propose"];
  /** The call deletes it, or moves it away. */
  readonly isRemoved?: boolean;
  /** The call removes something above it before: nothing is there when it is changed. */
  readonly isBelowRemoved?: boolean;
  readonly replaces: boolean;
}
/** A target of a call, with the ruling on it and everything that led to the ruling. */
export interface AssessedTarget {
  readonly target: LocatedTarget;
  readonly request: ResourceRequest;
  readonly ruling: ArbitrationRuling | undefined;
  readonly holders: readonly ClaimEntry[];
  /** Claims of those that the requester works for, which end when it is granted. */
  readonly delegated: readonly ClaimEntry[];
  readonly merged?: MergedFile;
  /** The text that the call leaves in the file, where it is known. */
  readonly text?: string;
  /** The text that its session proposed, where others' changes are merged into it. */
  readonly proposed?: string;
  readonly look: FileLook | undefined;
  /** Somebody else's call that changes it and has not ended, or for which it is reserved: the latter comes first. */
  readonly underWay?: CallUnderWay;
  /** A plugin's words about it, for the model that asked. */
  readonly pluginAnswer?: string;
  /** Plugins are to be asked first. */
  readonly isUnasked?: true;
  /** Kept so that later changes can be merged with it. */
  readonly content?: ContentInput;
}
