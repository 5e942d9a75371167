/** Owns: how far exports came (`ExportCursors`), in a PostgreSQL database. */
import type { ExportCursors } from "../../../agents/coordination/ports/export-cursors.ts";
import { ADVANCE_EXPORT, TAKE_EXPORT } from "../../ledger/export-cursor-sql.ts";
import type { OpenLedger } from "./commit-queue.ts";

export function createExportCursors({ database: { query }, written }: OpenLedger): ExportCursors {
  return {
    take: (request) =>
      written(async () => {
        const [row] = await query<{ position: number }>(TAKE_EXPORT, request);
        return row?.position;
      }),
    advance: (progress) => written(async () => (await query(ADVANCE_EXPORT, progress)).length > 0),
  };
}
