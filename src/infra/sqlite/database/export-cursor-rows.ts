/** Owns: how far exports came (`ExportCursors`), in a ledger file. */
import type { ExportCursors } from "../../../agents/coordination/ports/export-cursors.ts";
import { createOnce } from "../../../agents/coordination/std/load-once.ts";
import { ADVANCE_EXPORT, TAKE_EXPORT } from "../../ledger/export-cursor-sql.ts";
import type { OpenLedger } from "./write-queue.ts";

export function createExportCursors({ database, queued }: OpenLedger): ExportCursors {
  const prepared = createOnce(() => ({
    take: database.prepare<[object], { position: number }>(TAKE_EXPORT),
    advance: database.prepare<[object], { name: string }>(ADVANCE_EXPORT),
  }));
  return {
    take: (request) => queued((queue) => queue.run(() => prepared().take.get(request)?.position)),
    advance: (progress) => queued((queue) => queue.run(() => prepared().advance.get(progress) !== undefined)),
  };
}
