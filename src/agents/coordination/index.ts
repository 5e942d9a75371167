/** Owns: the public surface of the package: the contracts, the ports, the coordinator and the check of a ledger. */
export type * from "./contracts/commands.ts";
export * from "./contracts/config/config.ts";
export * from "./contracts/envelope.ts";
export * from "./contracts/errors.ts";
export type {
  Answerer,
  AnswerKind,
  AnswerRefusal,
  Channel,
  Notice,
  QuestionPolicy,
  QuestionText,
} from "./contracts/escalation.ts";
export type {
  ContentRef,
  HeldDecision,
  InputProblem,
  LearntVia,
  Planned,
  Requester,
  RunnerKind,
  SpendingLimit,
  StepAdmitted,
  StepError,
  Usage,
} from "./contracts/fact-fields.ts";
export type { EscalationsConfig, GatesConfig, WebhookConfig } from "./contracts/config/gates-config.ts";
export type {
  Check,
  CriterionMet,
  Finding,
  Gate,
  StepVerify,
  SuccessCriterion,
  Verdict,
  VerificationFailure,
} from "./contracts/verification.ts";
export type * from "./ports/human-channel.ts";
export type * from "./ports/model-client.ts";
export type * from "./ports/verifier.ts";
export * from "./contracts/facts.ts";
export * from "./contracts/ids.ts";
export type * from "./contracts/observation.ts";
export * from "./contracts/openwop-events.ts";
export * from "./contracts/plan.ts";
export * from "./contracts/run-event.ts";
export type * from "./contracts/coordination-summary.ts";
export * from "./contracts/validation.ts";
export type * from "./ports/spawn-observer.ts";
export type * from "./ports/clock.ts";
export type * from "./ports/content-store.ts";
export type * from "./ports/health-sink.ts";
export type * from "./ports/lane-runner.ts";
export type * from "./ports/ledger-store.ts";
export type * from "./ports/logger.ts";
export type * from "./ports/run-store.ts";
export {
  createCoordinator,
  type Coordinator,
  type CoordinatorDependencies,
  // The former name, for whoever imports it.
  type CoordinatorDependencies as CoordinatorParts,
} from "./runtime/coordinator.ts";
export { verifyLedger, type Verification } from "./runtime/verify-ledger.ts";
