import type { ContentRef, FactPayloads, LearntVia, StepAdmitted, StepError } from "./facts.ts";
import type { SessionKey, StepId } from "./ids.ts";
import type { ObservedChild } from "./observation.ts";

/** What a host asks of a coordination. Hosts build commands; `decide` rules on them. */
export type Command =
  | ({ readonly type: "openCoordination" } & FactPayloads["coordination.created"])
  | AdmitSpawn
  | AcknowledgeStep
  | CompleteStep
  | FailStep
  | TimeOutStep
  | { readonly type: "settleCoordination" };

/** A spawn that a model asked for: admitted and dispatched at once, because the model decided and the host acts. */
export interface AdmitSpawn extends Omit<
  StepAdmitted,
  "stepId" | "lane" | "deliveryMode" | "priority" | "retryBudget"
> {
  readonly type: "admitSpawn";
  /** A child that the host has made already: its step is acknowledged with its admission. */
  readonly child?: ObservedChild;
}

interface OutcomeOf {
  readonly stepId: StepId;
  /** The fencing token: an outcome of an older attempt is refused (D3). */
  readonly attempt: number;
  readonly via: LearntVia;
}

export interface AcknowledgeStep extends OutcomeOf {
  readonly type: "acknowledgeStep";
  readonly childSessionKey: SessionKey;
  readonly childRunId: string;
}

export interface CompleteStep extends OutcomeOf {
  readonly type: "completeStep";
  readonly output?: ContentRef;
}

export interface FailStep extends OutcomeOf {
  readonly type: "failStep";
  readonly error: StepError;
  readonly cancelled: boolean;
}

export interface TimeOutStep extends OutcomeOf {
  readonly type: "timeOutStep";
}
