/** Owns: when OpenClaw last made a backup that has the ledger in it, by what the host itself records. */
import { existsSync } from "node:fs";
import { loadDriver } from "./database/open-database.ts";

export type HostBackup =
  | { readonly kind: "none" | "unreadable" }
  | { readonly kind: "made"; readonly atMs: number; readonly archive: string };

const BUSY_TIMEOUT_MS = 1_000;

/**
 * Reads the host's table itself: `openclaw status --json` tells the newest backup of any kind, and only archives have plugin data.
 * It changes nothing there. A host that keeps its records elsewhere makes it "unreadable", never a failure.
 */
export async function readHostBackup(path: string): Promise<HostBackup> {
  if (!existsSync(path)) return { kind: "none" };
  const Database = await loadDriver();
  try {
    // A read-only connection leaves files behind that it cannot remove, unless they are there already.
    const database = new Database(path, {
      readonly: existsSync(`${path}-wal`),
      fileMustExist: true,
      timeout: BUSY_TIMEOUT_MS,
    });
    try {
      database.pragma("query_only = on");
      database.pragma("trusted_schema = off");
      const found = database
        .prepare<[], { readonly atMs: unknown; readonly archive: unknown }>(
          `select created_at as atMs, archive_path as archive
          from backup_runs
          where status = 'ok' and json_extract(manifest_json, '$.kind') = 'archive'
          order by created_at desc, id desc
          limit 1`,
        )
        .get();
      if (!found) return { kind: "none" };
      const { atMs, archive } = found;
      return typeof atMs === "number" && typeof archive === "string"
        ? { kind: "made", atMs, archive }
        : { kind: "unreadable" };
    } finally {
      database.close();
    }
  } catch {
    return { kind: "unreadable" };
  }
}
