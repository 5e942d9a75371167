/** Owns: coordinations whose steps claim resources, and the parts of the commands by which they do. */
import { arbitrate } from "../../src/agents/coordination/arbitration/arbitrate.ts";
import type { Contestant } from "../../src/agents/coordination/contracts/arbitration.ts";
import type {
  Command,
  ReleaseClaims,
  RequestResources,
  ResourceContest,
  ResourceRequest,
  SettleReview,
} from "../../src/agents/coordination/contracts/commands.ts";
import type { FactPayloads } from "../../src/agents/coordination/contracts/facts.ts";
import type { CoordinationId, EpochMs, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { Decision } from "../../src/agents/coordination/dispatch/decision.ts";
import type { OpenCoordination } from "../../src/agents/coordination/ledger/state.ts";
import { acknowledge, timeAt, openScene, OPEN, RUN, spawn, stepId, type Scene } from "./scene.ts";

export const NOTES = "file:/repo/notes.md";
export const REPORT = "file:/repo/report.md";
export const LEASE_MS = 300_000;
export const FOREIGN = "co-2" as CoordinationId;

export const createContestant = (
  step: number | StepId,
  claimedSequence: number,
  rest: Partial<Contestant> = {},
): Contestant => ({
  stepId: typeof step === "number" ? stepId(step) : step,
  priority: "normal",
  claimedSequence,
  ...rest,
});

/** A contestant whose lease runs. */
export const createHolder = (step: number, token: number, rest: Partial<Contestant> = {}): Contestant =>
  createContestant(step, token, { expiresAtMs: timeAt(LEASE_MS), ...rest });

export const createContest = (
  claims: readonly Contestant[],
  rest: Partial<ResourceContest> = {},
): ResourceContest => ({ cause: "overlap", strategy: "owner_wins", from: "default", claims, ...rest });

export const createAsk = (
  resource: string,
  token: number,
  rest: Partial<ResourceRequest> = {},
): ResourceRequest => ({
  resource,
  token,
  expiresAtMs: timeAt(LEASE_MS),
  ...rest,
});

export const request = (
  step: number | StepId,
  ...requests: readonly ResourceRequest[]
): RequestResources => ({
  type: "requestResources",
  stepId: typeof step === "number" ? stepId(step) : step,
  requests,
});

export const release = (rest: Partial<ReleaseClaims> = {}): Command => ({
  type: "releaseClaims",
  because: "operator",
  ...rest,
});

export const change = (
  step: number,
  version: string,
  rest: Partial<FactPayloads["resource.changed"]> = {},
): Command => ({
  type: "recordChange",
  stepId: stepId(step),
  resource: NOTES,
  version,
  tool: "write",
  token: 1,
  ...rest,
});

export const nameConflict = (number: number): string => `${RUN}:conflict-${number}`;

export const answer = (
  number: number,
  resolution: SettleReview["answer"],
  claim?: SettleReview["claim"],
): Command => ({
  type: "settleReview",
  conflictId: nameConflict(number),
  answer: resolution,
  ...(claim && { claim }),
});

/** An observed coordination with that many steps at work. */
export function openAtWork(steps: number, ...more: readonly Command[]): Scene {
  const spawned = Array.from({ length: steps }, (_, index) => [
    spawn(`call-${index + 1}`),
    acknowledge(index + 1),
  ]);
  return openScene(OPEN, ...spawned.flat(), ...more);
}

export function openOf({ state }: Pick<Scene, "state">): OpenCoordination {
  if (state.kind !== "open") throw new Error(`the coordination is ${state.kind}`);
  return state;
}

/** The claims that were not released. */
export const tokensOf = (scene: Pick<Scene, "state">): number[] => openOf(scene).claims.keySeq().toArray();

/** The types of the facts of a decision, or its code. */
export function describeDecision(decision: Decision): readonly string[] {
  if (decision.kind === "refused") return [decision.code];
  return decision.kind === "replay" ? ["replay"] : decision.facts.map(({ type }) => type);
}

type Payload<T extends RunEvent["type"]> = Extract<RunEvent, { type: T }>["payload"];

export function payloadsOf<T extends RunEvent["type"]>(log: readonly RunEvent[], type: T): Payload<T>[] {
  return log.filter((event) => event.type === type).map(({ payload }) => payload as Payload<T>);
}

type DetectedConflict = FactPayloads["conflict.detected"];

/** The ruling on a conflict as it is recorded; `undefined` where people rule, or only a 0.1.0 knew why. */
export function ruleByRecord({
  conflictId: id,
  claims,
  contest: recorded,
}: DetectedConflict): FactPayloads["conflict.resolved"] | undefined {
  if (!recorded) return undefined;
  const { requester, strategy, merge, reviewByMs } = recorded;
  const ruling = arbitrate({ requester, claims, strategy, ...(merge && { merge }) });
  if (ruling.kind === "merge") throw new Error(`${id}: a merge was recorded without what came of it`);
  if (ruling.kind !== "review") {
    const { winner, losers, rule, because } = ruling;
    const lostSteps = losers.map((loser) => loser.stepId);
    const elsewhere = winner.coordinationId && { winnerCoordinationId: winner.coordinationId };
    return {
      conflictId: id,
      strategy,
      winner: winner.stepId,
      ...elsewhere,
      losers: lostSteps,
      rule,
      because,
    };
  }
  if (reviewByMs !== undefined) return undefined;
  return { conflictId: id, strategy, losers: [requester], because: ruling.because, rule: "strategy" };
}

/** The claims that hold at a time. */
export function listLiveTokens(state: OpenCoordination, now: EpochMs): number[] {
  return state.claims
    .valueSeq()
    .filter(({ expiresAtMs }) => expiresAtMs > now)
    .map(({ token }) => token)
    .toArray();
}
