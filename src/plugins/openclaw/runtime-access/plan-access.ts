/** Owns: how tools and gateway methods reach the running coordinator. */
import type { ContentReader, ContentsReader } from "../../../agents/coordination/ports/content-store.ts";
import type { GatewayPlace } from "../../../agents/coordination/contracts/coordination-summary.ts";
import type { Lane } from "../../../agents/coordination/contracts/envelope.ts";
import type { LaneMetrics } from "../../../agents/coordination/ports/lane-runner.ts";
import type { LedgerStore } from "../../../agents/coordination/ports/ledger-store.ts";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import type { CoordinationView } from "../../../agents/coordination/runtime/log/coordination-view.ts";
import type { Coordinator } from "../../../agents/coordination/runtime/coordinator.ts";
import type { QuestionRequests } from "../../../agents/coordination/runtime/questions/question-requests.ts";
import type { PlanRequests } from "../../../agents/coordination/runtime/plans/plan-requests.ts";
import type { RunningCoordinator } from "../../compose.ts";
import type { OpenClawPluginApi } from "../host/sdk.ts";
import { withRuntime, type SharedRuntime } from "./shared-runtime.ts";
import { runWithinBudget } from "../host/within-budget.ts";

/** Requests to a running coordinator about plans. */
export interface PlanAccess extends PlanRequests, QuestionRequests {
  readonly envelopeForChild: Coordinator["envelopeForChild"];
  readonly reads: PlanReads;
  /** Whether an answer that came by webhook is one. */
  readonly signedAnswers: RunningCoordinator["signedAnswers"];
  /** The load of each lane of this process. */
  readonly laneMetrics: () => Readonly<Record<Lane, LaneMetrics>>;
}

/** Reading what the ledger says, without changing it, for the sessions of this gateway. */
export interface PlanReads extends Pick<LedgerStore, "list">, ContentReader, ContentsReader, GatewayPlace {
  /** `undefined` for a coordination that the ledger does not know. */
  view(coordinationId: CoordinationId): Promise<CoordinationView | undefined>;
}

/** Runs `work` on the coordinator of this process. @throws CoordinationError */
export type UsePlans = <T>(work: (plans: PlanAccess, runtime: SharedRuntime) => Promise<T>) => Promise<T>;

/** Admitting a plan of 10,000 steps takes seconds. */
const REQUEST_BUDGET_MS = 30_000;

/**
 * Creates the function that runs work on this process's coordinator and runtime; it rejects after 30 seconds, while
 * the work goes on.
 */
export function createPlanAccess(api: OpenClawPluginApi): UsePlans {
  return (work) =>
    runWithinBudget(
      withRuntime(api, async (runtime) => work(await runtime.coordinator(), runtime)),
      REQUEST_BUDGET_MS,
    );
}
