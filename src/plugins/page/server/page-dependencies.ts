/** Owns: what the page's server works with, and how a route is written. */
import type { StatsConfig } from "../../../agents/coordination/contracts/config/stats-config.ts";
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import type { Health } from "../../../agents/coordination/ports/health-sink.ts";
import type { LaneMetrics } from "../../../agents/coordination/ports/lane-runner.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import type { ReportedLedger } from "../../reports/reported-ledger.ts";
import type { LastVerification } from "../contract/health.ts";
import type { Product } from "../contract/session.ts";
import type { AllowedPlaces } from "./security-headers.ts";
import type { JsonAnswer } from "./page-answer.ts";
import type { PageSession, PageSessions } from "./page-sessions.ts";

/** The gateway methods that the page calls for an operator. */
export type GatewayRequest =
  | "coordination.answer"
  | "coordination.cancel"
  | "coordination.claims.release"
  | "coordination.plan.fork"
  | "coordination.plan.run"
  | "coordination.retry";

/** As gateway methods answer. */
export type GatewayReply =
  | { readonly ok: true; readonly payload: object }
  | {
      readonly ok: false;
      readonly error: { readonly code: string; readonly message: string; readonly details?: object };
    };

/** Does what an operator asks the host of workflows for. A refusal says why nothing is done. */
export interface WorkflowControls {
  cancel(run: WorkflowRun): Promise<{ readonly refusal?: string }>;
  /** `event`: the first one that the fork takes nothing from. */
  fork(
    run: WorkflowRun & { readonly event: number },
  ): Promise<{ readonly id: string; readonly refusal?: undefined } | { readonly refusal: string }>;
}

/** Names a run and the tenant whose run it is. */
export interface WorkflowRun {
  readonly runId: string;
  readonly tenant: string;
}

export interface PageDependencies {
  readonly product: Product;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly sessions: PageSessions;
  readonly places: AllowedPlaces;
  /** Opens the ledger for reading at the first call. @throws CoordinationError */
  readonly reader: () => Promise<ReportedLedger>;
  readonly health: () => Health;
  /** Returns the outcome of the last `verify`, where that is known. */
  readonly verification: () => LastVerification | undefined;
  /** The load of the lanes of this process; absent where it runs none. */
  readonly lanes?: () => Promise<Readonly<Record<string, LaneMetrics>>>;
  /** The targets of the measures. */
  readonly targets: StatsConfig;
  /** Absent where there is no gateway. */
  readonly ask?: (method: GatewayRequest, params: object) => Promise<GatewayReply>;
  /** Absent where no workflows are run. */
  readonly workflows?: WorkflowControls;
}

/** A request of somebody who is signed in. */
export interface PageRequest {
  readonly session: PageSession;
  readonly param: (name: string) => string;
  readonly query: (name: string) => string | undefined;
  /** The body as JSON; an empty object without one. */
  readonly body: unknown;
}

export interface PageRoute {
  readonly method: "GET" | "POST";
  /** Below `api/`, as Hono writes it. */
  readonly path: string;
  /** The right that the session must have. */
  readonly right: keyof PageSession["rights"];
  readonly handle: (request: PageRequest, dependencies: PageDependencies) => Promise<JsonAnswer>;
}
