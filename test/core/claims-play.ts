/**
 * Owns: random histories of claims. Each move is told without tokens; who is in the way, and which token comes next, follows
 * from the state then, as it does in the runtime.
 */
import fc from "fast-check";
import type { Contestant } from "../../src/agents/coordination/contracts/arbitration.ts";
import type {
  Command,
  RequestResources,
  ResourceRequest,
  SettleReview,
} from "../../src/agents/coordination/contracts/commands.ts";
import {
  addMs,
  OWNER_STEP_ID,
  type EpochMs,
  type StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import {
  conflictStrategySchema,
  type ConflictStrategy,
} from "../../src/agents/coordination/contracts/plan.ts";
import { isClaimCovering } from "../../src/agents/coordination/contracts/resource-names.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import type { Decision } from "../../src/agents/coordination/dispatch/decision.ts";
import { recordFacts } from "../../src/agents/coordination/dispatch/record.ts";
import {
  formatHoldingKey,
  type Coordination,
  type HeldClaim,
  type OpenCoordination,
} from "../../src/agents/coordination/ledger/state.ts";
import { openAtWork, FOREIGN, openOf } from "./claims-scene.ts";
import { acknowledge, timeAt, complete, fail, SETTLE, spawn, stepId } from "./scene.ts";

export const STEPS = 3;
const RESOURCES = ["file:/w", "file:/w/a", "file:/w/b", "queue:q"];
const FOREIGN_TOKEN = 1;
const LEASES = [1_000, 60_000, 300_000];

interface Request {
  readonly kind: "request";
  readonly step: number;
  readonly resources: readonly string[];
  readonly leaseMs: number;
  readonly strategy: ConflictStrategy;
  readonly declared: boolean;
  /** Somebody of another coordination is in the way, too. */
  readonly foreign: boolean;
  readonly people: boolean;
  readonly isClean: boolean;
  /** The step does not look whether its lease has ended. */
  readonly careless: boolean;
}

type Act =
  | Request
  | { readonly kind: "release"; readonly step: number; readonly pick: number }
  | { readonly kind: "answer"; readonly pick: number; readonly said: SettleReview["answer"] }
  | { readonly kind: "change"; readonly step: number; readonly resource: string; readonly version: string }
  | { readonly kind: "end"; readonly step: number; readonly well: boolean }
  | { readonly kind: "undetermined" | "spawn" | "settle"; readonly step: number };

export interface Move {
  readonly act: Act;
  readonly afterMs: number;
  /** How often the same happens in a row. */
  readonly times: number;
}

const steps = fc.integer({ min: 0, max: STEPS });
const nat = fc.nat({ max: 9 });

const createRequesting = (
  strategies: readonly ConflictStrategy[],
  mayMeetOthers: boolean,
): fc.Arbitrary<Act> =>
  fc.record({
    kind: fc.constant("request" as const),
    step: steps,
    resources: fc.shuffledSubarray(RESOURCES, { minLength: 1, maxLength: 3 }),
    leaseMs: fc.constantFrom(...LEASES),
    strategy: fc.constantFrom(...strategies),
    declared: fc.boolean(),
    foreign: mayMeetOthers ? fc.constantFrom(false, false, false, true) : fc.constant(false),
    people: fc.boolean(),
    isClean: fc.boolean(),
    careless: fc.constantFrom(false, false, false, true),
  });

const createActs = (requests: fc.Arbitrary<Act>): fc.Arbitrary<Act> =>
  fc.oneof(
    { weight: 14, arbitrary: requests },
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant("answer" as const),
        pick: nat,
        said: fc.constantFrom("approved", "approved", "denied", "unanswered", "nobody_to_ask", "withdrawn"),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("release" as const), step: steps, pick: nat }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant("change" as const),
        step: steps,
        resource: fc.constantFrom(...RESOURCES),
        version: fc.constantFrom("a", "b"),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant("end" as const), step: steps, well: fc.boolean() }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constantFrom("undetermined", "spawn", "settle"), step: steps }),
    },
  );

const forward = fc.oneof(
  fc.integer({ min: 0, max: 2_000 }),
  fc.constantFrom(60_000, 299_000, 600_000, 86_400_000),
);
const anyway = fc.oneof(
  { weight: 9, arbitrary: forward },
  { weight: 1, arbitrary: fc.integer({ min: -5_000, max: 0 }) },
);

const movesOf = (requests: fc.Arbitrary<Act>, afterMs: fc.Arbitrary<number>): fc.Arbitrary<Move[]> =>
  fc.array(fc.record({ act: createActs(requests), afterMs, times: fc.constantFrom(1, 1, 1, 2) }), {
    maxLength: 40,
  });

/** By every strategy, with others in the way, on a clock that jumps. */
export const claimHistories = movesOf(createRequesting(conflictStrategySchema.options, true), anyway);
/** Where only rules decide, within one coordination, on a clock that never goes back. */
export const ruledHistories = movesOf(createRequesting(["owner_wins", "priority_wins"], false), forward);

/** A coordination after moves about claims, with its log and each command on the way. */
export interface PlayedClaims {
  readonly state: Coordination;
  readonly log: readonly RunEvent[];
  readonly steps: readonly {
    /** The same as the step before, at the same time. */
    readonly again: boolean;
    readonly before: Coordination;
    readonly command: Command;
    readonly now: EpochMs;
    readonly decision: Decision;
    readonly events: readonly RunEvent[];
    readonly after: Coordination;
  }[];
}

export function playClaims(moves: readonly Move[]): PlayedClaims {
  const scene = openAtWork(STEPS);
  let state: Coordination = openOf(scene);
  const log = [...scene.log];
  const played: PlayedClaims["steps"][number][] = [];
  const tokens = { newest: FOREIGN_TOKEN };
  let now = timeAt(10_000);
  for (const { act, afterMs, times } of moves) {
    now = addMs(now, afterMs);
    for (let time = 0; time < times; time += 1) {
      if (state.kind !== "open") break;
      for (const command of commandsOf(state, act, { now, tokens })) {
        const before: Coordination = state;
        const decision = decide(before, command, now);
        const facts = decision.kind === "accepted" ? decision.facts : [];
        const recorded = recordFacts(before, facts, now);
        log.push(...recorded.events);
        state = recorded.state;
        played.push({
          again: time > 0,
          before,
          command,
          now,
          decision,
          events: recorded.events,
          after: state,
        });
      }
    }
  }
  return { state, log, steps: played };
}

interface Moment {
  readonly now: EpochMs;
  readonly tokens: { newest: number };
}

const nameStep = (step: number): StepId => (step === 0 ? OWNER_STEP_ID : stepId(step));

function commandsOf(state: OpenCoordination, act: Act, moment: Moment): Command[] {
  switch (act.kind) {
    case "request":
      return [requestOf(state, act, moment)];
    case "answer": {
      const open = state.reviews.keySeq().toArray();
      const conflictId = open[act.pick % Math.max(open.length, 1)] ?? "conflict-0";
      const claim = { token: takeNextToken(moment), expiresAtMs: addMs(moment.now, 60_000) };
      return [{ type: "settleReview", conflictId, answer: act.said, ...(act.pick > 0 && { claim }) }];
    }
    case "release": {
      const heldTokens = state.claims.keySeq().toArray();
      const token = heldTokens[act.pick] ?? 1;
      const which = act.pick % 2 === 0 ? { stepId: nameStep(act.step) } : { tokens: [token] };
      return [{ type: "releaseClaims", because: "operator", ...which }];
    }
    case "change": {
      const { resource, version } = act;
      return [
        { type: "recordChange", stepId: nameStep(act.step), resource, version, tool: "write", token: 1 },
      ];
    }
    case "end":
      return [act.well ? complete(act.step) : fail(act.step)];
    case "undetermined": {
      const report = { tool: "exec", because: "undeclared", action: "denied" } as const;
      return [{ type: "recordUndetermined", stepId: nameStep(act.step), ...report }];
    }
    case "spawn": {
      const number = state.steps.size + 1;
      return [spawn(`call-${number}`), acknowledge(number)];
    }
    case "settle":
      return [...state.openSteps.toArray().map(createCompletion), SETTLE];
  }
}

function createCompletion(step: StepId): Command {
  return { type: "completeStep", stepId: step, attempt: 1, via: "hook" };
}

function requestOf(state: OpenCoordination, act: Request, moment: Moment): RequestResources {
  const step = nameStep(act.step);
  const requests = act.resources.map((resource): ResourceRequest => {
    const heldClaim = ownClaim(state, resource, { act, moment });
    const token = takeNextToken(moment);
    const expiresAtMs = addMs(moment.now, act.leaseMs);
    const request = { resource, token, expiresAtMs, ...(heldClaim && { held: heldClaim.token }) };
    const against = listOthersOn(state, resource, { step, now: moment.now });
    if (act.foreign) against.push(createForeigner(moment));
    if (against.length === 0) return request;
    const me: Contestant = {
      stepId: step,
      priority: "normal",
      claimedSequence: request.held ?? token,
      declared: act.declared,
      ...(heldClaim && { expiresAtMs: heldClaim.expiresAtMs }),
    };
    return { ...request, contest: contestOf(act, [...against, me], moment) };
  });
  return { type: "requestResources", stepId: step, requests };
}

function ownClaim(
  { claims, holdings }: OpenCoordination,
  resource: string,
  { act, moment }: { readonly act: Request; readonly moment: Moment },
): HeldClaim | undefined {
  const heldClaim = claims.get(holdings.get(formatHoldingKey(nameStep(act.step), resource)) ?? 0);
  return heldClaim && (act.careless || heldClaim.expiresAtMs > moment.now) ? heldClaim : undefined;
}

function contestOf(
  { strategy, people, isClean }: Request,
  claims: readonly Contestant[],
  { now }: Moment,
): NonNullable<ResourceRequest["contest"]> {
  const merge = isClean
    ? ({ kind: "clean", base: "a", current: "b", merged: "c" } as const)
    : ({ kind: "obstacle", obstacle: "overlapping_changes" } as const);
  return {
    cause: "overlap",
    strategy,
    from: "default",
    claims,
    ...(strategy === "merge_if_safe" && { merge }),
    ...(people && { reviewByMs: addMs(now, 30_000) }),
  };
}

/** The leases of other steps that run on the resource, and who changed it without holding it any more. */
function listOthersOn(
  state: OpenCoordination,
  resource: string,
  { step, now }: { readonly step: StepId; readonly now: EpochMs },
): Contestant[] {
  const live = state.claims
    .valueSeq()
    .toArray()
    .filter(
      (claim) => claim.stepId !== step && claim.expiresAtMs > now && isOverlapping(claim.resource, resource),
    )
    .map(({ stepId: holder, priority, token, expiresAtMs }) => ({
      stepId: holder,
      priority,
      claimedSequence: token,
      expiresAtMs,
    }));
  const change = state.changes.get(resource);
  if (!change || change.stepId === step || live.some((claim) => claim.stepId === change.stepId)) return live;
  const { stepId: changer, token, atMs } = change;
  return [...live, { stepId: changer, priority: "normal", claimedSequence: token ?? 0, changedAtMs: atMs }];
}

export function isOverlapping(one: string, other: string): boolean {
  return isClaimCovering(one, other) || isClaimCovering(other, one);
}

function createForeigner({ now }: Moment): Contestant {
  const participant = { stepId: stepId(99), coordinationId: FOREIGN, priority: "high" } as const;
  return { ...participant, claimedSequence: FOREIGN_TOKEN, expiresAtMs: addMs(now, 1_000) };
}

function takeNextToken({ tokens }: Moment): number {
  tokens.newest += 1;
  return tokens.newest;
}
