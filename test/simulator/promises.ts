/** Owns: the small independent model of what hosts and people were promised: only what was asked, and what was answered. */
import type { CoordinationEnvelope } from "../../src/agents/coordination/contracts/envelope.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { QuestionAnswered } from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import type { SpawnAdmission } from "../../src/agents/coordination/runtime/spawns/admit-spawn.ts";
import type {
  PlanForked,
  PlanSubmitted,
  RequestAnswer,
} from "../../src/agents/coordination/runtime/plans/plan-requests.ts";
import type { Move } from "./moves.ts";
import type { SpawnedChild } from "./spawn-host.ts";

/** How many events the journal had when something was answered: what the answer says is among them. */
interface Answerable {
  answeredBy?: number;
}

export interface SpawnPromise extends Answerable {
  readonly toolCallId: string;
  readonly source: SessionKey;
  /** By the world's clock. */
  answeredAtMs?: number;
  admitted?: CoordinationEnvelope;
  refused?: Refusal;
  child?: SpawnedChild;
  confirmed?: CoordinationEnvelope;
  refusalNoted?: true;
  /** The end was told by a hook, and the call came back. */
  endHeardAtMs?: number;
}

export type Refusal = Extract<SpawnAdmission, { readonly kind: "refused" }> & {
  /** Nothing was wrong with the gateway that refused. */
  readonly isCalm: boolean;
};

export interface PlanPromise {
  readonly coordinationId: string;
  readonly plan: Readonly<Record<string, unknown>>;
  readonly as: "first" | "again" | "other";
  /** Another submission had been accepted before this one was made. */
  readonly isLater: boolean;
  answer?: PlanSubmitted;
  /** Nothing was wrong with the gateway when it answered. */
  isCalm?: boolean;
}

export interface ForkPromise {
  readonly coordinationId: string;
  readonly source: string;
  readonly from?: number;
  readonly isPreview: boolean;
  /** Another request for a fork of this id had been accepted before this one was made. */
  readonly isLater: boolean;
  answer?: PlanForked;
}

export interface RequestPromise extends Answerable {
  /** How many events the journal had when it was asked for. */
  readonly askedFrom: number;
  readonly kind: "cancel" | "retry";
  readonly runId: string;
  readonly stepId?: string;
  answer?: RequestAnswer;
}

export interface AnswerPromise extends Answerable {
  readonly questionId: string;
  readonly move: Extract<Move, { kind: "answer" }>;
  readonly text?: string;
  readonly session?: string;
  answer?: QuestionAnswered;
  /** By the world's clock. */
  answeredAtMs?: number;
}

/** A call that may happen, and who held the resource at that moment. */
export interface GrantPromise {
  readonly session: string;
  readonly resource: string;
  readonly holders: readonly string[];
  /** Who held it, or a folder that it is in. */
  readonly covering: readonly string[];
  /** Nothing was disturbed by then. */
  readonly isCalm: boolean;
  readonly atMs: number;
}

export interface Promises {
  readonly spawns: SpawnPromise[];
  readonly plans: PlanPromise[];
  readonly forks: ForkPromise[];
  readonly requests: RequestPromise[];
  readonly answers: AnswerPromise[];
  readonly grants: GrantPromise[];
  readonly notices: string[];
  /** Sessions that asked people. */
  readonly askers: Set<string>;
}

export function createPromises(): Promises {
  return {
    spawns: [],
    plans: [],
    forks: [],
    requests: [],
    answers: [],
    grants: [],
    notices: [],
    askers: new Set(),
  };
}
