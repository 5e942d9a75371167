/** Owns: how the installation is, as it goes over the wire. */
import type { Health } from "../../../agents/coordination/ports/health-sink.ts";
import type { LaneMetrics } from "../../../agents/coordination/ports/lane-runner.ts";
import type { ContentsReport } from "../../reports/contents-report.ts";

/** `GET ./api/health`: the contents as `status --json` has them, with what the page needs besides. */
export interface HealthReport {
  readonly contents: ContentsReport;
  readonly health: Health;
  /** The size in bytes, with the write-ahead log. Where the ledger lies is not told. */
  readonly ledgerBytes: number;
  /** Load of the lanes of the gateway; absent with `serve`, and where the gateway coordinates nothing now. */
  readonly lanes?: Readonly<Record<string, LaneMetrics>>;
  /** Held claims, expired ones included; counted to 10,000. */
  readonly claims: number;
  /** The last 24 hours, oldest first. */
  readonly hours: readonly HourCounts[];
  /** More happened in the last day than is counted; the oldest hours are short. */
  readonly isHoursCut?: true;
  /** The outcome of the last `verify`; absent where it never ran for this ledger. */
  readonly verification?: LastVerification;
  readonly atMs: number;
}

/** When it ended, whether the ledger was sound, and how many problems it found in how many events. */
export interface LastVerification {
  readonly atMs: number;
  readonly ok: boolean;
  readonly problems: number;
  /** It stopped at so many problems; there may be more. */
  readonly isCut?: true;
  readonly events: number;
}

/** Counts the events of one hour by what they record. */
export interface HourCounts {
  readonly startMs: number;
  readonly opened: number;
  readonly completed: number;
  readonly failed: number;
  readonly questions: number;
  readonly conflicts: number;
  readonly events: number;
}
