import type { ContentRef } from "../contracts/facts.ts";
import type { EpochMs } from "../contracts/ids.ts";

/** A text to keep, with the reference that events name it by. */
export interface ContentInput {
  readonly ref: ContentRef;
  readonly text: string;
}

/** Texts by their sha256, beside the log. Deleting one never breaks the log. */
export interface ContentStore {
  /** The text, or `undefined` once it was deleted. */
  get(sha256: string): Promise<string | undefined>;
  /** Deletes texts last stored before a time and returns how many. */
  deleteBefore(time: EpochMs): Promise<number>;
}
