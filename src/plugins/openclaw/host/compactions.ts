/**
 * Owns: which sessions had their history compacted, when, and whether they were told of their children since. It lies in the host's
 * entry of the session, so that a crash between the compaction and the next prompt loses nothing; in memory is a copy.
 */
import { z } from "zod";
import { epochMsSchema } from "../../../agents/coordination/contracts/ids.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import { formatErrorSentence } from "./host-runs.ts";
import { createRecentMap } from "../../../agents/coordination/std/recent.ts";
import { writeSessionNotes, readSessionEntry, type HostSessions } from "./session-entry.ts";

const compactionSchema = z.object({
  atMs: epochMsSchema,
  /** The run whose prompts tell of the children; absent before the first prompt. */
  toldIn: z.string().optional(),
});
/** The newest compaction of a session's history. */
export type Compaction = z.infer<typeof compactionSchema>;

/** The newest compaction of each session, as the host's entries record it. */
export interface CompactionRecords {
  /** `undefined` for a session whose history was never compacted, as far as the host says. Never throws. */
  find(session: string): Compaction | undefined;
  /** Resolves when it is in the session's entry, or could not be brought there. */
  record(session: string, compaction: Compaction): Promise<void>;
}

const SESSIONS_MAX = 10_000;

/**
 * Creates the record of which sessions the host has compacted, kept in the host's session entries with a copy in
 * memory; an entry that cannot be read counts as not compacted.
 */
export function createCompactions(session: HostSessions, logger: Logger): CompactionRecords {
  const compactions = createRecentMap<{ readonly compaction: Compaction | undefined }>(SESSIONS_MAX);
  /** No spawn and no prompt depends on what the host cannot say. */
  const readQuietly = (sessionKey: string): Compaction | undefined => {
    try {
      return readCompaction(session, sessionKey);
    } catch (error) {
      logger.debug(
        { session: sessionKey },
        `a session's entry cannot be read: ${formatErrorSentence(error)}`,
      );
      return undefined;
    }
  };
  return {
    find: (sessionKey) => {
      const seen = compactions.get(sessionKey) ?? { compaction: readQuietly(sessionKey) };
      compactions.set(sessionKey, seen);
      return seen.compaction;
    },
    record: async (sessionKey, compaction) => {
      compactions.set(sessionKey, { compaction });
      try {
        const { atMs, toldIn } = compaction;
        const written = { atMs, ...(toldIn !== undefined && { toldIn }) };
        await writeSessionNotes(session, sessionKey, { compaction: written });
      } catch (error) {
        logger.warn(
          { session: sessionKey },
          `that a session was compacted is not in its entry: ${formatErrorSentence(error)}`,
        );
      }
    },
  };
}

function readCompaction(session: HostSessions, sessionKey: string): Compaction | undefined {
  const value = readSessionEntry(session, sessionKey)?.pluginExtensions?.["coordination"]?.["compaction"];
  return compactionSchema.safeParse(value).data;
}
