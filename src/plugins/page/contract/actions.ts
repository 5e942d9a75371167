/** Owns: what the page asks for, and what it is told. */
import type { AnswerKind } from "../../../agents/coordination/contracts/escalation.ts";
import type { PlanProblem } from "../../../agents/coordination/plan/plan-problem.ts";
import type { ReplayedCoordination } from "../../../agents/coordination/runtime/replay-coordination.ts";
import type { PlanShape } from "./runs.ts";

/** Says in one sentence what an action brought about. */
export interface ActionResult {
  readonly happened: string;
}

/** `POST ./api/questions/{id}/answer`, with the right `approve`. */
export interface AnswerBody {
  readonly revision: string;
  readonly answer: AnswerKind;
  /** With `answer`, and with nothing else. */
  readonly text?: string;
}

/** The answer of `plans/run`. */
export interface PlanRun extends ActionResult {
  readonly id: string;
}

/** The answer of `plans/check`. */
export type PlanCheck =
  | { readonly ok: true; readonly id: string; readonly objective: string; readonly plan: PlanShape }
  | { readonly ok: false; readonly problems: readonly PlacedProblem[] };

export interface PlacedProblem extends PlanProblem {
  /** From 1; absent where no place of the text stands for it. */
  readonly line?: number;
  readonly column?: number;
}

/** `GET ./api/runs/{id}/fork-preview?event=N`: nothing is done. */
export interface ForkPreview {
  readonly source: string;
  /** The first event that the fork takes nothing from. */
  readonly event: number;
  /** Steps, or nodes of a workflow, whose results it keeps. */
  readonly kept: readonly string[];
  /** Steps that run anew; of a workflow run the nodes that it began and whose results are not kept. */
  readonly anew: readonly string[];
}

/** The answer of `runs/{id}/fork`. */
export interface ForkResult extends ActionResult {
  readonly id: string;
}

/** The answer of `runs/{id}/what-if`, as `replay --policy` tells: `whatIf.points` are the differences. */
export type WhatIfAnswer = ReplayedCoordination;
