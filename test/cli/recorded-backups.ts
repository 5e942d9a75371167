/** Owns: the host's record of its backups, as its release 2026.9.6 makes it. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";

export interface RecordedBackup {
  readonly id: string;
  readonly atMs: number;
  readonly status?: string;
  readonly kind?: string;
}

/** Writes the host's database of a state folder. */
export function recordBackups(stateDir: string, backups: readonly RecordedBackup[]): void {
  changeHostDatabase(stateDir, (database) => {
    database.exec(`create table backup_runs (
      id text not null primary key, created_at integer not null, archive_path text not null,
      status text not null, manifest_json text not null
    ) strict`);
    const insert = database.prepare("insert into backup_runs values (?, ?, ?, ?, ?)");
    for (const { id, atMs, status = "ok", kind = "archive" } of backups)
      insert.run(id, atMs, `${id}.tar.gz`, status, JSON.stringify({ kind }));
  });
}

export function changeHostDatabase(stateDir: string, change: (database: Database.Database) => void): void {
  mkdirSync(join(stateDir, "state"), { recursive: true });
  const database = new Database(join(stateDir, "state", "openclaw.sqlite"));
  try {
    change(database);
  } finally {
    database.close();
  }
}
