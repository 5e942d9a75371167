/**
 * Owns: telling other processes, such as the CLI, whether the gateway coordinates spawns. The file lies beside the ledger,
 * because the ledger may be what is broken.
 */
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Health, HealthSink } from "../../agents/coordination/ports/health-sink.ts";

export function healthFile(path: string): HealthSink {
  return {
    write: (health) => {
      try {
        mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
        const draft = `${path}.${process.pid}.tmp`;
        writeFileSync(draft, `${JSON.stringify(health)}\n`, { mode: 0o600 });
        chmodSync(draft, 0o600);
        renameSync(draft, path);
      } catch {
        // The disk that fails the ledger may fail this too; the log has said it already.
      }
    },
  };
}

/** What the gateway told last; `undefined` when it told nothing readable. */
export function readHealth(path: string): Health | undefined {
  try {
    const health: unknown = JSON.parse(readFileSync(path, "utf8"));
    return isHealth(health) ? health : undefined;
  } catch {
    return undefined;
  }
}

function isHealth(value: unknown): value is Health {
  return typeof value === "object" && value !== null && "state" in value && "uncoordinatedSpawns" in value;
}
