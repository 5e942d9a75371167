/** Owns: the parts that the A2A server works with, and its limits by name. */
import type { ParentRun } from "../../agents/coordination/contracts/workflows/workflow-events.ts";
import type { Caller } from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import type { RunAccess } from "../openwop/runs/run-access.ts";

export interface A2aParts extends RunAccess {
  /** Where clients reach the host, without a slash at its end. */
  readonly baseUrl: () => string;
}

/** One request, after its caller was let in. */
export interface A2aRequest {
  readonly caller: Caller;
  /** Aborted when the client leaves. */
  readonly signal: AbortSignal;
  readonly traceparent?: string;
  readonly tracestate?: string;
  /** The run of another host that asks. */
  readonly parent?: ParentRun;
}

export const A2A_PATH = "/v1/a2a";

export const A2A_BOUNDS = {
  idCharsMax: 256,
  /** Tasks of one page of a listing. */
  pageDefault: 50,
  pageMax: 100,
  /** A page ends behind the task that reaches so many characters. */
  pageCharsMax: 4_000_000,
} as const;
