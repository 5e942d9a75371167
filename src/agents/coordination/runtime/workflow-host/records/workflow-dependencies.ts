/** Owns: what the host of workflow runs is made of. */
import type { CoordinationId } from "../../../contracts/ids.ts";
import type { WorkflowDefinition } from "../../../contracts/workflows/workflow-definition.ts";
import type { Quotas } from "../../../contracts/workflows/quotas.ts";
import type { Clock, SteadyClock } from "../../../ports/clock.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { ChatModel, PeerHosts, ToolCaller, AnswerMeter } from "../../../ports/outbound.ts";
import type { OutputContract } from "../../../ports/output-contract.ts";
import type { RunOwner } from "../../../ports/run-owners.ts";
import type { TokenSigner } from "../../../ports/token-signer.ts";
import type { Verifier } from "../../../ports/verifier.ts";
import type { WorkflowStore } from "../../../ports/workflow-store.ts";
import type { WorkflowSettings } from "../../../workflow/node-contract/node-type.ts";
import type { AgentHostDependencies } from "./agent-dependencies.ts";
import type { ConformancePlay } from "./conformance-play.ts";
import type { OtherRuns } from "./other-runs.ts";

export interface CriticCall {
  readonly model?: string;
  readonly traceparent?: string;
  /** Hears of each answer of the critic's model. */
  readonly onAnswered?: (answer: AnswerMeter) => void;
}

/** The store of runs, and the hash by which it names texts. */
export type HashedStore = Pick<WorkflowHostDependencies, "store" | "sha256">;

export interface WorkflowHostDependencies {
  readonly store: WorkflowStore;
  /** Runs of another kind that may be watched, too. Absent: there are none. */
  readonly otherRuns?: Pick<OtherRuns, "length">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: WorkflowSettings;
  /** Workflows that every tenant may run. */
  readonly definitions: readonly WorkflowDefinition[];
  readonly newRunId: () => CoordinationId;
  /** This process, as the ledger knows it. */
  readonly owner: RunOwner;
  /** True when a process is known to have ended; false where it is there, or where nothing is known of it. */
  readonly isProcessGone: (process: string) => boolean;
  readonly steady: SteadyClock;
  /** How long an owner of runs may be silent until others take them over. */
  readonly leaseMs: number;
  /** Hexadecimal. */
  readonly sha256: (text: string) => string;
  readonly tokens: TokenSigner;
  /** The root under which this host is reached, without a slash at its end. */
  readonly baseUrl: () => string;
  readonly contract: () => Promise<OutputContract>;
  readonly peers: () => Promise<PeerHosts>;
  readonly tools: () => Promise<ToolCaller>;
  readonly chat: () => Promise<ChatModel>;
  /** Rules on what child runs produced, with a critic's model of its own where one is named. */
  readonly verifier: (critic: CriticCall) => Promise<Verifier>;
  /** SR-1: texts that are never kept, by the id that stands for each. */
  readonly secrets: ReadonlyMap<string, string>;
  /** How long a run that ended can be forked, and what expired in memory is still there as of earlier events. */
  readonly retentionMs: number;
  /** Absent, or absent in it: the usual ones. */
  readonly quotas?: Partial<Quotas>;
  /** Absent: there are none. */
  readonly agents?: AgentHostDependencies;
  /** Plays what the protocol's conformance suite scripts. Absent: nothing of it is there; `settings.play` goes with it. */
  readonly conformance?: ConformancePlay;
}
