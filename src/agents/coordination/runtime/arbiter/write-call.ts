/** Owns: what a host tells about a tool call that may change something, and what it is answered. */
import type { EpochMs, SessionKey } from "../../contracts/ids.ts";
import type { PathEnd } from "../../ports/resource-files.ts";

/** A tool call before it happens, as its extractor reads it. */
export interface WriteCall {
  readonly session: SessionKey;
  readonly tool: string;
  /** Names the call between its two hooks. */
  readonly callKey: string;
  /** When its hook began, where that has waited for something else already: all waits together have one budget. */
  readonly hookBeganAtMs?: EpochMs;
  /** When its host must have the answer. Absent: 12 s after it is asked for. */
  readonly answerByMs?: EpochMs;
  /** Resources that it would change. */
  readonly targets: readonly WriteTarget[];
  /** Resources that it looks at: later changes of them are based on their present versions. */
  readonly reads: readonly ReadPlace[];
  /** It may change more than its targets. */
  readonly undetermined?: UndeterminedWrite;
  /** Anything may have been changed by it that the session then knows of, such as by a shell command. */
  readonly mayTouchAnything?: boolean;
  /** Where it works, where it may touch anything. */
  readonly folder?: string;
  /** The parameters that leave merged texts in place of what the call proposed; `undefined` where its tool cannot. */
  readonly rewrite?: (merged: readonly MergedFile[]) => CallParams | undefined;
}

export type CallParams = Readonly<Record<string, unknown>>;

/** Where something is: a path, from a folder where it is relative; or a resource by its name. */
export type ResourceLocation =
  | { readonly path: string; readonly folder: string }
  /** `session:<key>`, `queue:<name>` or a name of a plugin author. */
  | { readonly resource: string };

/** Where something is read, and from which place in its text. Absent: from its beginning. */
export type ReadPlace = ResourceLocation & { readonly from?: TextPlace };

/** A place in a text. */
export interface TextPlace {
  /** Counted from 1. */
  readonly line: number;
  /** Counted from 0 within the line. */
  readonly character: number;
}

export interface WriteTarget {
  readonly at: ResourceLocation;
  /** Makes the call's text of the text that is there; absent where that cannot be told. */
  readonly propose?: (before: string | undefined) => ChangeProposal;
  /**
   * The things that it changes where its path ends at a link: the link itself (`entry`) where that is removed, and what the link leads to
   * (`target`) where that is written. Absent: the latter. With `namesBelowRemoved` the call removes something above it before.
   */
  readonly ends?: readonly PathEnd[];
  /** True where the present content is replaced, whatever it is: a change that the caller does not know of would be lost. */
  readonly replaces: boolean;
}

/** The text that a call makes of the text before it, or why there is none. */
export type ChangeProposal =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "deleted" }
  /** The call does not fit the text: the tool itself would fail. */
  | { readonly kind: "fails" }
  /** Working it out would take too long. */
  | { readonly kind: "untold" };

/** The reason why nobody can tell what a call changes. */
export interface UndeterminedWrite {
  readonly because: "undeclared" | "unreadable" | "too_many" | "extractor_failed";
  /** The extractor that failed. */
  readonly extractor?: string;
}

export type WriteAnswer =
  /** Nobody else can be in the way, or the session takes no part in a coordination. */
  | { readonly kind: "free" }
  /** The call may happen, with these parameters where others' changes were merged into it. */
  | { readonly kind: "granted"; readonly params?: CallParams }
  /** The call must not happen; `sentence` is for the model that made it. */
  | { readonly kind: "refused"; readonly sentence: string; readonly conflictId?: string }
  /** A person decides. `settle` must be called with the answer before the call happens. */
  | {
      readonly kind: "review";
      readonly title: string;
      readonly description: string;
      readonly timeoutMs: number;
      readonly params?: CallParams;
      readonly settle: (answer: ReviewAnswer) => Promise<void>;
    };

/** A file to be written in place of the one that the call proposed. `target` counts in `WriteCall.targets`. */
export interface MergedFile {
  readonly target: number;
  /** Further targets that are the same file by another path. */
  readonly others?: readonly number[];
  /** The text of the file now; `undefined` where there is none. */
  readonly current: string | undefined;
  readonly merged: string;
}

export type ReviewAnswer = "approved" | "denied" | "unanswered" | "nobody_to_ask" | "withdrawn";
