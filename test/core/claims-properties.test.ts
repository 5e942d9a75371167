import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RequestResources } from "../../src/agents/coordination/contracts/commands.ts";
import { OWNER_STEP_ID, addMs } from "../../src/agents/coordination/contracts/ids.ts";
import { decodeEvent, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import {
  findNextDeadline,
  planDispatch,
} from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import { listClaimChanges } from "../../src/agents/coordination/ledger/claim-changes.ts";
import { fold } from "../../src/agents/coordination/ledger/evolve.ts";
import { formatHoldingKey, type Coordination } from "../../src/agents/coordination/ledger/state.ts";
import {
  claimHistories,
  isOverlapping,
  playClaims,
  ruledHistories,
  type Move,
  type PlayedClaims,
} from "./claims-play.ts";
import { ruleByRecord, payloadsOf, describeDecision } from "./claims-scene.ts";
import { RUN } from "./scene.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 300);
const GRACE_MS = 15_000;

function prove(
  check: (played: PlayedClaims) => void,
  histories: fc.Arbitrary<Move[]> = claimHistories,
): void {
  fc.assert(
    fc.property(histories, (moves) => {
      check(playClaims(moves));
    }),
    { numRuns: RUNS },
  );
}

type OpenedCoordination = Exclude<Coordination, { kind: "unopened" }>;
const requireKnown = (state: Coordination): OpenedCoordination => {
  if (state.kind === "unopened") throw new Error("nothing was opened");
  return state;
};

interface Lease {
  readonly stepId: string;
  readonly resource: string;
  readonly expiresAtMs: number;
}

/** The leases by the plainest reading of the log. */
function listLeases(log: readonly RunEvent[]): Map<number, Lease> {
  const leases = new Map<number, Lease>();
  for (const { type, payload } of log) {
    if (type === "claim.acquired") leases.set(payload.token, payload);
    if (type === "claim.renewed") {
      const lease = leases.get(payload.token);
      if (lease) leases.set(payload.token, { ...lease, expiresAtMs: payload.expiresAtMs });
    }
    if (type === "claim.released") leases.delete(payload.token);
  }
  return leases;
}

/** By the plainest reading: who is not at work claims nothing, and no lease carries a write beyond its end. */
function refusalOf(
  before: OpenedCoordination,
  { stepId, requests }: RequestResources,
  now: number,
): string | undefined {
  if (stepId !== OWNER_STEP_ID && !before.openSteps.has(stepId)) return "STEP_ENDED";
  const isOver = (token: number): boolean => (before.claims.get(token)?.expiresAtMs ?? 0) <= now;
  return requests.some(({ held: heldToken }) => heldToken !== undefined && isOver(heldToken))
    ? "STALE_TOKEN"
    : undefined;
}

function isHeldUp(events: readonly RunEvent[], { stepId }: RequestResources): boolean {
  const rulings = payloadsOf(events, "conflict.resolved");
  const isAsked = payloadsOf(events, "conflict.detected").length > rulings.length;
  return isAsked || rulings.some(({ winner }) => winner !== stepId);
}

function findLeaseOn({ command, after }: PlayedClaims["steps"][number], resource: string): number {
  if (command.type !== "requestResources") throw new Error(command.type);
  const token = requireKnown(after).holdings.get(formatHoldingKey(command.stepId, resource)) ?? 0;
  return requireKnown(after).claims.get(token)?.expiresAtMs ?? 0;
}

describe("for every history of claims", () => {
  it("L4: the log folds to what it folded to step by step, also out of its JSON", () => {
    prove(({ log, state }) => {
      const stored = log.map((event) => decodeEvent(JSON.parse(JSON.stringify(event))));
      expect(stored).toStrictEqual(log);
      expect(fold(RUN, stored)).toStrictEqual(state);
    });
  });

  it("L3: every cause is an earlier event", () => {
    prove(({ log }) => {
      const seen = new Set<string | undefined>();
      for (const { eventId, causationId, sequence } of log) {
        if (sequence > 0) expect(seen.has(causationId), eventId).toBe(true);
        seen.add(eventId);
      }
    });
  });

  it("A1: what the rules decided follows from what is recorded with the conflict", () => {
    prove(({ log }) => {
      const detected = payloadsOf(log, "conflict.detected");
      for (const resolved of payloadsOf(log, "conflict.resolved")) {
        const conflict = detected.find(({ conflictId }) => conflictId === resolved.conflictId);
        const ruled = conflict && ruleByRecord(conflict);
        if (resolved.rule === "people") expect(ruled).toBeUndefined();
        else expect(ruled).toEqual(resolved);
      }
    });
  });

  it("A2: tokens only grow", () => {
    prove(({ log }) => {
      const tokens = payloadsOf(log, "claim.acquired").map(({ token }) => token);
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    });
  });

  it("A2: a lease that has ended is never renewed, and no renewal ends one sooner", () => {
    prove(({ steps }) => {
      for (const { before, events, now } of steps) {
        for (const { token, expiresAtMs } of payloadsOf(events, "claim.renewed")) {
          const was = requireKnown(before).claims.get(token)?.expiresAtMs ?? 0;
          expect(was).toBeGreaterThan(now);
          expect(expiresAtMs).toBeGreaterThan(was);
        }
      }
    });
  });

  it("A3: every conflict has one resolution, or people may still answer", () => {
    prove(({ log, state }) => {
      const { conflicts, reviews } = requireKnown(state);
      const ids = payloadsOf(log, "conflict.resolved").map(({ conflictId }) => conflictId);
      expect(new Set(ids).size).toBe(ids.length);
      const open = conflicts.filter(({ resolution }) => !resolution).map(({ conflictId }) => conflictId);
      expect(open.sort()).toEqual(reviews.keySeq().toArray().sort());
    });
  });

  it("D5: when it has ended, nothing is held and nothing is asked", () => {
    prove(({ state }) => {
      if (state.kind !== "ended") return;
      expect([state.claims.size, state.holdings.size, state.reviews.size]).toEqual([0, 0, 0]);
    });
  });

  it("a claim and a question are of the owner or of a step that is at work", () => {
    prove(({ steps }) => {
      for (const { after } of steps) {
        const { claims, conflicts, reviews, steps: all } = requireKnown(after);
        const askers = conflicts
          .filter(({ conflictId }) => reviews.has(conflictId))
          .map(({ contest }) => contest?.requester ?? OWNER_STEP_ID);
        for (const stepId of [...askers, ...claims.valueSeq().map((claim) => claim.stepId)])
          if (stepId !== OWNER_STEP_ID) expect(all.get(stepId)?.phase.status).toBe("running");
      }
    });
  });

  it("what a step holds of a resource is the newest of its claims on it", () => {
    prove(({ steps }) => {
      for (const { after } of steps) {
        const { claims, holdings } = requireKnown(after);
        const newest: Record<string, number> = {};
        for (const { stepId, resource, token } of claims.values())
          newest[formatHoldingKey(stepId, resource)] = token;
        expect(holdings.toObject()).toEqual(newest);
      }
    });
  });

  it("A2: the claims of each step are counted as they are held", () => {
    prove(({ log, state }) => {
      const holders = [...listLeases(log).values()].map(({ stepId }) => stepId);
      const counts = [...Map.groupBy(holders, (stepId) => stepId)].map(([stepId, all]) => [
        stepId,
        all.length,
      ]);
      expect(Object.fromEntries(requireKnown(state).claimCounts)).toEqual(Object.fromEntries(counts));
    });
  });

  it("what is kept beside the log is what the state holds, and what the log says", () => {
    prove(({ log, state }) => {
      const kept = new Map<number, number>();
      for (const change of log.flatMap(listClaimChanges)) {
        if (change.kind === "released") kept.delete(change.token);
        else kept.set(change.token, change.expiresAtMs);
      }
      const heldClaims = [...requireKnown(state).claims.values()];
      expect([...kept]).toEqual(heldClaims.map(({ token, expiresAtMs }) => [token, expiresAtMs]));
      const leases = [...listLeases(log)].map(([token, lease]) => [token, lease.stepId, lease.resource]);
      expect(leases).toEqual(heldClaims.map(({ token, stepId, resource }) => [token, stepId, resource]));
    });
  });

  it("a request has everything or nothing, as the leases and the rulings say", () => {
    prove(({ steps }) => {
      for (const step of steps) {
        const { before, command, decision, now } = step;
        if (command.type !== "requestResources") continue;
        const code = refusalOf(requireKnown(before), command, now);
        if (code) expect(describeDecision(decision)).toEqual([code]);
        else if (isHeldUp(step.events, command) || decision.kind !== "accepted")
          expect(step.events.filter(({ type }) => type.startsWith("claim."))).toEqual([]);
        else
          for (const { resource } of command.requests)
            expect(findLeaseOn(step, resource)).toBeGreaterThan(now);
      }
    });
  });

  it("D2: a request that was not won by a ruling is recorded once", () => {
    prove(({ steps }) => {
      for (const [index, { again, command, before, after }] of steps.entries()) {
        if (!again || command.type !== "requestResources") continue;
        // Each question to people is one of its own.
        if (command.requests.some(({ contest }) => contest?.reviewByMs !== undefined)) continue;
        const rulings = payloadsOf(steps[index - 1]?.events ?? [], "conflict.resolved");
        if (!rulings.some(({ winner }) => winner === command.stepId)) expect(after).toBe(before);
      }
    });
  });

  it("a question that is overdue is closed, nothing is planned before the deadline, and something at it", () => {
    prove(({ steps }) => {
      for (const { after } of steps) {
        const due = findNextDeadline(after);
        if (after.kind !== "open" || due === undefined) continue;
        expect(planDispatch(after, addMs(due, -1))).toEqual([]);
        const effects = planDispatch(after, due);
        expect(effects.length).toBeGreaterThan(0);
        expect(new Set(effects.map(({ effectId }) => effectId)).size).toBe(effects.length);
        for (const [conflictId, reviewByMs] of after.reviews) {
          const closesAt = addMs(reviewByMs, GRACE_MS);
          expect(due).toBeLessThanOrEqual(closesAt);
          expect(planDispatch(after, closesAt)).toContainEqual(
            expect.objectContaining({ kind: "closeReview", conflictId }),
          );
        }
      }
    });
  });
});

describe("where only the rules decide", () => {
  it("no two steps hold leases on one resource, or on what is below it, at the same time", () => {
    prove(({ steps }) => {
      for (const { after, now } of steps) {
        const live = [...requireKnown(after).claims.values()].filter(({ expiresAtMs }) => expiresAtMs > now);
        for (const one of live)
          for (const other of live)
            if (one.stepId !== other.stepId) expect(isOverlapping(one.resource, other.resource)).toBe(false);
      }
    }, ruledHistories);
  });
});

describe("the histories", () => {
  it("reach every situation that there is", () => {
    const met = new Set<string>();
    for (const moves of fc.sample(claimHistories, { numRuns: 1_000, seed: 1 })) {
      const { state, steps, log } = playClaims(moves);
      met.add(state.kind);
      for (const { decision } of steps) met.add(decision.kind === "refused" ? decision.code : decision.kind);
      for (const { because } of payloadsOf(log, "conflict.resolved")) met.add(because);
      for (const { because } of payloadsOf(log, "claim.released")) met.add(because);
      for (const { type } of log) met.add(type);
    }
    const facts = [
      "claim.acquired",
      "claim.renewed",
      "claim.released",
      "resource.changed",
      "write.undetermined",
    ];
    const ends = ["step_ended", "expired", "preempted", "operator", "coordination_ended"];
    const rulings = ["declared-owner", "lease-holder", "changed-since", "highest-priority", "merged"];
    const answers = ["approved", "denied", "unanswered", "nobody-to-ask", "withdrawn"];
    const people = ["manual-review", "overlapping-changes", ...answers];
    const codes = ["open", "ended", "accepted", "replay", "STALE_TOKEN", "STEP_ENDED", "UNKNOWN_STEP"];
    for (const each of [...facts, ...ends, ...rulings, ...people, ...codes]) expect(met).toContain(each);
  });
});
