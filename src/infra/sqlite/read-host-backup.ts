/** Owns: when OpenClaw last made a backup that has the ledger in it, by what the host itself records. */
import { existsSync } from "node:fs";
import { loadSqliteDriver } from "./database/open-database.ts";

export type HostBackup =
  | { readonly kind: "none" | "unreadable" }
  | { readonly kind: "made"; readonly atMs: number; readonly archive: string };

const BUSY_TIMEOUT_MS = 1_000;

/**
 * Returns when OpenClaw last made a successful backup archive, from the host's own SQLite table, without changing it;
 * "none" where there is none, "unreadable" where the host keeps its records otherwise. Never rejects for what it finds
 * there. `openclaw status --json` tells the newest backup of any kind, and only archives have plugin data.
 */
export async function readHostBackup(path: string): Promise<HostBackup> {
  if (!existsSync(path)) return { kind: "none" };
  const Database = await loadSqliteDriver();
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
      const newestBackup = database
        .prepare<[], { readonly atMs: unknown; readonly archive: unknown }>(
          `select created_at as atMs, archive_path as archive
          from backup_runs
          where status = 'ok' and json_extract(manifest_json, '$.kind') = 'archive'
          order by created_at desc, id desc
          limit 1`,
        )
        .get();
      if (!newestBackup) return { kind: "none" };
      const { atMs, archive } = newestBackup;
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
