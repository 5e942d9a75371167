/** Owns: what a running host of workflows is made of. */
import type { AgentBook } from "../agents/agent-book.ts";
import type { OwnRuns } from "../../ownership/own-runs.ts";
import type { RunDriver } from "../driving/drive-runs.ts";
import type { RunBook } from "../records/run-book.ts";
import type { RunWatch } from "../driving/watch-runs.ts";
import type { TenantUsage } from "../records/tenant-usage.ts";
import type { WorkflowSeams } from "../records/workflow-host.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";

/** The collaborators of one running host of workflows. */
export interface HostCollaborators extends WorkflowHostDependencies {
  readonly book: RunBook;
  readonly agentBook: AgentBook;
  readonly driver: RunDriver;
  readonly watching: RunWatch;
  readonly usage: TenantUsage;
  readonly ownRuns: OwnRuns;
  /** There where the host has a conformance play. */
  readonly seams?: WorkflowSeams;
}
