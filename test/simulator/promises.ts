/** Owns: the small independent model of what hosts and people were promised: only what was asked, and what was answered. */
import type { CoordinationEnvelope } from "../../src/agents/coordination/contracts/envelope.ts";
import type { QuestionAnswered } from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import type {
  PlanForked,
  PlanSubmitted,
  RequestAnswer,
} from "../../src/agents/coordination/runtime/plans/plan-requests.ts";
import type { Move } from "./moves.ts";
import type { SpawnedChild } from "./spawn-host.ts";

export interface SpawnPromise {
  readonly toolCallId: string;
  admitted?: CoordinationEnvelope;
  child?: SpawnedChild;
  confirmed?: CoordinationEnvelope;
  refusalNoted?: true;
  /** The end was told by a hook, and the call came back. */
  endHeardAtMs?: number;
}

export interface PlanPromise {
  readonly coordinationId: string;
  readonly plan: Readonly<Record<string, unknown>>;
  readonly as: "first" | "again" | "other";
  /** Another submission had been accepted before this one was made. */
  readonly isLater: boolean;
  answer?: PlanSubmitted;
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

export interface RequestPromise {
  readonly kind: "cancel" | "retry";
  readonly runId: string;
  readonly stepId?: string;
  answer?: RequestAnswer;
  answeredAtMs?: number;
}

export interface AnswerPromise {
  readonly questionId: string;
  readonly move: Extract<Move, { kind: "answer" }>;
  readonly text?: string;
  readonly session?: string;
  /** When it was given, by the world's clock. */
  readonly givenAtMs: number;
  answer?: QuestionAnswered;
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
