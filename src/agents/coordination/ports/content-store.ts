/** Owns: the port to the texts that events name by their sha256: what is kept of one, reading and deleting them. */
import type { ContentRef } from "../contracts/fact-fields.ts";
import type { EpochMs } from "../contracts/ids.ts";

/** A text to keep, with the reference that events name it by. */
export interface ContentInput {
  readonly ref: ContentRef;
  readonly text: string;
  /** `deleteBefore` leaves the text alone, whatever its age, until the coordination that stores it has ended. */
  readonly keepWhileRunning?: boolean;
}

/** Texts by their sha256, beside the log. Deleting one never breaks the log. */
export interface ContentStore {
  /** The text, or `undefined` once it was deleted. */
  get(sha256: string): Promise<string | undefined>;
  /** The texts by their sha256, in no particular order, without those that are not there. */
  getMany(sha256s: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Deletes texts last stored before a time, unless a running coordination keeps them, and returns how many. */
  deleteBefore(time: EpochMs): Promise<number>;
}

/** Reads single texts. */
export type ContentReader = Pick<ContentStore, "get">;

/** Reads many texts at once. */
export type ContentsReader = Pick<ContentStore, "getMany">;

/** Parts of which only the texts are read. */
export interface ContentSource {
  readonly content: ContentReader;
}
