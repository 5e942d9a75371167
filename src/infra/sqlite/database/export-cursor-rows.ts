/** Owns: how far exports came (`ExportCursors`), in a ledger file. */
import type { ExportCursors, ExportHolder } from "../../../agents/coordination/ports/export-cursors.ts";
import { createOnceLoader } from "../../../agents/coordination/std/load-once.ts";
import { ADVANCE_EXPORT, FIND_HOLDER, RELEASE_EXPORT, TAKE_EXPORT } from "../../ledger/export-cursor-sql.ts";
import { readSchemaVersion } from "./migrate.ts";
import type { OpenLedger } from "./write-queue.ts";

/** The schema that has exports. */
const EXPORTS_SINCE_VERSION = 9;

/**
 * Creates the access to the cursors that record, in a ledger file, how far each telemetry export has come and who
 * holds it.
 */
export function createExportCursors({ database, guarded, queued }: OpenLedger): ExportCursors {
  const prepared = createOnceLoader(() => ({
    holder: database.prepare<[object], ExportHolder>(FIND_HOLDER),
    take: database.prepare<[object], { position: number }>(TAKE_EXPORT),
    advance: database.prepare<[object], { name: string }>(ADVANCE_EXPORT),
    release: database.prepare<[object], { name: string }>(RELEASE_EXPORT),
  }));
  const write = <T>(work: () => T): Promise<T> => queued((queue) => queue.run(work));
  return {
    holder: (name) =>
      guarded(() =>
        readSchemaVersion(database) < EXPORTS_SINCE_VERSION ? undefined : prepared().holder.get({ name }),
      ),
    take: ({ silent, ...request }) =>
      write(() => {
        const silence = { silentHolder: silent?.holder ?? null, silentBeats: silent?.beats ?? null };
        return prepared().take.get({ ...request, ...silence })?.position;
      }),
    advance: (progress) => write(() => prepared().advance.get(progress) !== undefined),
    release: async (request) => {
      await write(() => prepared().release.get(request));
    },
  };
}
