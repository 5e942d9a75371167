/** Owns: the port that tells, outside the ledger, whether spawns are being coordinated. */
import type { ErrorCode } from "../contracts/errors.ts";

/**
 * Whether spawns are being coordinated, told outside the ledger because the ledger may be what is broken.
 * Times are epoch milliseconds.
 */
export interface Health {
  readonly state: "ok" | "degraded";
  /** The newest failure; kept after recovery so that it can be seen. */
  readonly failure?: { readonly code: ErrorCode; readonly message: string; readonly atMs: number };
  /** Spawns that went on without a record since this ledger was first degraded. */
  readonly uncoordinatedSpawns: number;
}

/** Where the plugin reports whether it is well. */
export interface HealthSink {
  /** Never throws: health is told as well as can be. */
  write(health: Health): void;
}
