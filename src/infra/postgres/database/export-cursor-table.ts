/** Owns: how far exports came (`ExportCursors`), in a PostgreSQL database. */
import type { ExportCursors, ExportHolder } from "../../../agents/coordination/ports/export-cursors.ts";
import { ADVANCE_EXPORT, FIND_HOLDER, RELEASE_EXPORT, TAKE_EXPORT } from "../../ledger/export-cursor-sql.ts";
import type { OpenLedger } from "./commit-queue.ts";
import { hasMigration } from "./migrate-schema.ts";

/** The migration that brought exports. */
const EXPORTS_SINCE_MIGRATION = 4;

/**
 * Creates the access to the cursors that record, in a PostgreSQL ledger, how far each telemetry export has come and
 * who holds it.
 */
export function createExportCursors({ database: { query }, guarded, written }: OpenLedger): ExportCursors {
  return {
    holder: (name) =>
      guarded(async () => {
        if (!(await hasMigration(query, EXPORTS_SINCE_MIGRATION))) return undefined;
        const [row] = await query<{ holder: string; beats: number }>(FIND_HOLDER, { name });
        return row satisfies ExportHolder | undefined;
      }),
    take: ({ silent, ...request }) =>
      written(async (write) => {
        const silence = { silentHolder: silent?.holder ?? null, silentBeats: silent?.beats ?? null };
        const [row] = await write<{ position: number }>(TAKE_EXPORT, { ...request, ...silence });
        return row?.position;
      }),
    advance: (progress) => written(async (write) => (await write(ADVANCE_EXPORT, progress)).length > 0),
    release: async (request) => {
      await written((write) => write(RELEASE_EXPORT, request));
    },
  };
}
