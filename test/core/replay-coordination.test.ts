import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { EpochMs, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { parseReplayPolicy } from "../../src/agents/coordination/contracts/config/replay-policy.ts";
import { decodeEvent, isFact, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import { recordFacts } from "../../src/agents/coordination/dispatch/record.ts";
import { createUnopenedCoordination, type Coordination } from "../../src/agents/coordination/ledger/state.ts";
import { listDecidedFacts } from "../../src/agents/coordination/replay/decide-again.ts";
import { chooseStrategyUnderPolicy } from "../../src/agents/coordination/replay/strategy-under-policy.ts";
import {
  replayCoordination,
  type ReplayedCoordination,
  type ReplayQuery,
} from "../../src/agents/coordination/runtime/replay-coordination.ts";
import { playGates } from "./gates-play.ts";
import type { Move, Setup } from "./gates-setups.ts";
import { answer } from "./gates-scene.ts";
import {
  admit,
  answer as answerByPlan,
  ask as askIn,
  beginSteps,
  dispatch,
  ESCALATE_MS,
  expire,
  failStep,
  finish,
  nameSessionOfAttempt,
  openPlan,
  planScene,
  planStep,
  recordTold,
  SETTLE_PLAN,
  startStep,
  type PlanScene,
} from "./planned-scene.ts";
import { timeAt, OPEN, OWNER, RUN, spawn } from "./scene.ts";

/** A store that gives `size` events at a time, and has the texts that it is told. */
function storeOf(log: readonly RunEvent[], texts: Readonly<Record<string, string>> = {}) {
  return {
    read: (_: unknown, { from, limit }: { from: number; limit: number }) =>
      Promise.resolve(log.slice(from, from + limit)),
    get: (sha256: string) => Promise.resolve(texts[sha256]),
  };
}

function replay(log: readonly RunEvent[], query?: ReplayQuery): Promise<ReplayedCoordination> {
  return replayCoordination(storeOf(log), log[0]?.runId ?? RUN, query);
}

const move = (kind: Move["kind"], rest: Partial<Move> = {}): Move => ({
  kind,
  a: 0,
  b: 0,
  c: 0,
  d: 1,
  aim: "right",
  times: 1,
  crash: false,
  ...rest,
});

/** A plan of three steps in a row whose first one fails, is tried again, and completes. */
const RETRIED: Setup = {
  isPlan: true,
  gates: [0, 0, 0],
  doubts: [false, false, false],
  doubtsAll: false,
  chained: true,
  retryBudget: 1,
  asksPeople: true,
  failsFast: false,
  deadline: false,
  different: false,
  criteria: false,
  moves: [
    move("dispatch"),
    move("ack"),
    move("fail"),
    move("time", { a: 1, b: 1 }),
    move("time", { a: 1, b: 2 }),
    move("dispatch"),
    move("ack"),
    move("finish"),
  ],
};

function playCommands(commands: readonly Command[], timeOf: (index: number) => EpochMs) {
  let state: Coordination = createUnopenedCoordination(RUN);
  const events: RunEvent[] = [];
  for (const [index, command] of commands.entries()) {
    const recorded = recordFacts(
      state,
      listDecidedFacts(decide(state, command, timeOf(index))),
      timeOf(index),
    );
    state = recorded.state;
    events.push(...recorded.events);
  }
  return { log: events };
}

const log = (): RunEvent[] => [...playGates(RETRIED).log];

function findFact(events: readonly RunEvent[], type: RunEvent["type"]): number {
  const at = events.findIndex((event) => event.type === type);
  expect(at).toBeGreaterThan(0);
  return at;
}

function changeEvent(events: readonly RunEvent[], at: number, change: object): RunEvent[] {
  return events.map((event, index) =>
    index === at ? ({ ...event, payload: { ...event.payload, ...change } } as RunEvent) : event,
  );
}

describe("a replay of a coordination", () => {
  it("is equal where nothing was changed", async () => {
    const events = log();
    expect(await replay(events)).toMatchObject({ from: 0, to: events.length, events: events.length });
    expect((await replay(events)).difference).toBeUndefined();
  });

  it("of more than is read at once is equal, also where a page ends within a decision", async () => {
    const commands = Array.from({ length: 420 }, (_, index) => spawn(`call-${index}`));
    const { log: long } = playCommands([OPEN, ...commands], (index) => timeAt(Math.floor(index / 7)));
    expect(long.length).toBeGreaterThan(1_600);
    const { difference, decisions, to } = await replay(long);
    expect({ difference, decisions, to }).toEqual({
      difference: undefined,
      decisions: 421,
      to: long.length,
    });
    const { to: stopped } = await replay(long, { to: 1_000 });
    expect(stopped).toBeGreaterThanOrEqual(1_000);
    expect(long[stopped]?.type).toBe("step.admitted");
  });

  it("finds a retry that comes at another time than the rules say", async () => {
    const at = findFact(log(), "step.failed");
    const { difference, to } = await replay(changeEvent(log(), at, { retryAtMs: 1_800_000_000_000 }));
    expect(difference).toMatchObject({ sequence: at, type: "step.failed", kind: "decision" });
    expect(difference?.why).toMatch(/^retryAtMs: \d+ is decided, 1800000000000 is recorded$/);
    expect(to).toBe(at);
  });

  it("finds a result that counts although nothing let it through", async () => {
    const gated = log().map((event) =>
      event.type === "step.admitted"
        ? {
            ...event,
            payload: { ...event.payload, gate: { threshold: 7_000, checks: ["lint"] } },
          }
        : event,
    );
    const { difference } = await replay(gated);
    expect(difference).toMatchObject({
      type: "step.completed",
      kind: "decision",
      why: "result.held is decided, step.completed is recorded",
    });
  });

  it("finds a projection that is not what the fact leads to, and a cause that is another", async () => {
    const at = findFact(log(), "core.workflowChain.event");
    const wrong = await replay(changeEvent(log(), at, { phase: "dispatch.succeeded" }));
    expect(wrong.difference).toMatchObject({ sequence: at, kind: "projection" });
    const causes = log().map((event, index) =>
      index === at ? { ...event, causationId: `${RUN}:0` as RunEvent["eventId"] } : event,
    );
    expect((await replay(causes)).difference?.why).toMatch(/^causationId: /);
  });

  it("finds any recorded decision that is taken away, and one that is there twice", async () => {
    const events = log();
    const renumberEvents = (list: readonly RunEvent[]): RunEvent[] =>
      list.map((event, sequence) => ({
        ...event,
        sequence,
        eventId: `${RUN}:${sequence}` as RunEvent["eventId"],
      }));
    for (const [at, event] of events.entries()) {
      if (!isFact(event) || at === 0) continue;
      expect((await replay(renumberEvents(events.toSpliced(at, 1)))).difference).toBeDefined();
      expect((await replay(renumberEvents(events.toSpliced(at, 0, event)))).difference).toBeDefined();
    }
  });

  it("takes what comes before an index as it is recorded, and stops behind the decision at another", async () => {
    const at = findFact(log(), "step.failed");
    const forged = changeEvent(log(), at, { retryAtMs: 1_767_323_046_000 });
    expect((await replay(forged, { from: at + 1 })).difference?.sequence).not.toBe(at);
    const { to, difference } = await replay(forged, { to: at });
    expect({ to, difference }).toEqual({ to: at, difference: undefined });
    expect((await replay(log(), { to: at + 1 })).to).toBe(at + 2);
  });

  it.each(["0.1.0-gateway", "0.1.0-conflict"])("of an older release comes out equal: %s", async (name) => {
    const text = readFileSync(new URL(`../replay/${name}.jsonl`, import.meta.url), "utf8").trimEnd();
    const events = text.split("\n").map((line) => decodeEvent(JSON.parse(line)));
    for (const run of Map.groupBy(events, ({ runId }) => runId).values()) {
      expect((await replay(run)).difference).toBeUndefined();
      const { whatIf } = await replay(run, { policy: { conflicts: { strategy: "manual_review" } } });
      expect(whatIf).toMatchObject({ points: [], leftOut: 0, uncertain: [] });
    }
  });
});

describe("a replay of an answer", () => {
  it("is equal where a release that let the owner of a plan answer recorded it", async () => {
    const questions = { answerMs: 60_000, requireDifferentApprover: true } as const;
    const { log: recorded } = planScene(
      openPlan({ steps: 1, policy: { escalationPolicy: "hitl" }, questions }),
      admit(planStep("a")),
      dispatch("a"),
      startStep("a"),
      failStep("a"),
      answer("approve"),
    );
    const at = findFact(recorded, "escalation.answered");
    const byOwner = changeEvent(recorded, at, { by: { kind: "person", session: OWNER } });
    expect((await replay(byOwner)).difference).toBeUndefined();
    // Whoever refuses such an answer has to have a reason.
    const refused = changeEvent(recorded, at, { refused: "same_session" });
    expect((await replay(refused)).difference).toBeDefined();
  });
});

it("a replay of a question that was asked anew while an answer to it was untold is equal", async () => {
  const stepId = "a" as StepId;
  const { log: recorded } = planScene(
    openPlan({ steps: 1 }),
    admit(planStep("a")),
    ...beginSteps("a"),
    askIn(nameSessionOfAttempt("a"), { stepId }),
    answerByPlan(1, "answer"),
    askIn(nameSessionOfAttempt("a"), { stepId, tellingsUnderWay: ["answer:escalation-1"] }),
  );
  expect(recorded.filter(({ type }) => type === "coordination.escalated")).toHaveLength(2);
  expect((await replay(recorded)).difference).toBeUndefined();
});

describe("a replay of a question whose asker's attempt is over", () => {
  const createBegun = () =>
    planScene(
      openPlan({ steps: 2, policy: { escalationPolicy: "hitl" } }),
      admit(planStep("a", { retryBudget: 1 }), planStep("b")),
      ...beginSteps("a", "b"),
      askIn(nameSessionOfAttempt("a"), { stepId: "a" as StepId }),
      failStep("a"),
    );
  const finishBoth = (scene: PlanScene): readonly RunEvent[] =>
    scene.then(dispatch("a", 2), startStep("a", 2), finish("a", 2), finish("b"), SETTLE_PLAN).log;

  it("is equal where it was withdrawn, and where an earlier release left it open", async () => {
    const withdrawn = finishBoth(createBegun().then(expire()));
    const leftOpen = finishBoth(createBegun());
    for (const recorded of [withdrawn, leftOpen]) {
      expect(recorded.filter(({ type }) => type === "escalation.closed")).toHaveLength(1);
      expect((await replay(recorded)).difference).toBeUndefined();
    }
  });

  it("is equal where an earlier release let an answer to it count, or let it expire", async () => {
    const answered = createBegun().then(answerByPlan(1, "answer"));
    expect((await replay(finishBoth(answered.then(recordTold("answer:escalation-1"))))).difference).toBe(
      undefined,
    );
    const expired = createBegun();
    expired.when(expire(), ESCALATE_MS * 2);
    expect(expired.last("escalation.closed").payload.resolution).toBe("expired");
    expect((await replay(expired.log)).difference).toBeUndefined();
  });
});

describe("a policy", () => {
  it("says only what its file names: the rest stays as it was", () => {
    expect(parseReplayPolicy({ gates: { confidenceThreshold: 0.8 } })).toEqual({
      gates: { confidenceThreshold: 0.8 },
    });
    expect(
      parseReplayPolicy({
        conflicts: { strategy: "priority_wins" },
        escalations: { requireDifferentApprover: true },
        escalateMs: 60_000,
        failurePolicy: { timeoutPolicy: "fail_fast" },
      }),
    ).toEqual({
      conflicts: { strategy: "priority_wins" },
      requireDifferentApprover: true,
      escalateMs: 60_000,
      failurePolicy: { timeoutPolicy: "fail_fast" },
    });
  });

  it("is refused where it names what is no part of any decision, rather than left out in silence", () => {
    expect(() => parseReplayPolicy({ escalations: { notify: [] } })).toThrow(
      "the policy is not one: escalations.notify decides nothing; of escalations there are requireDifferentApprover",
    );
    expect(() => parseReplayPolicy({ conflicts: { leaseMs: 60_000 } })).toThrow(
      "conflicts.leaseMs decides nothing; of conflicts there are strategy, overrides, highRisk",
    );
  });

  it("chooses a strategy by resource, and keeps what a plan is known to say of it", () => {
    const under = {
      policy: { conflicts: { highRisk: ["queue:prod*"], strategy: "priority_wins" as const } },
    };
    const byDefault = { strategy: "owner_wins", from: "default" } as const;
    const byPlan = { strategy: "merge_if_safe", from: "plan" } as const;
    expect(chooseStrategyUnderPolicy("queue:production", byDefault, under)).toEqual({
      strategy: "manual_review",
      from: "high_risk",
    });
    expect(chooseStrategyUnderPolicy("file:/a", byDefault, under)).toEqual({
      strategy: "priority_wins",
      from: "default",
    });
    expect(chooseStrategyUnderPolicy("file:/a", byPlan, under)).toEqual(byPlan);
    expect(chooseStrategyUnderPolicy("file:/a", byPlan, { policy: { gates: {} } })).toEqual(byPlan);
  });

  it("keeps the strategy for what hard links share: by which name it was chosen is not recorded", () => {
    const under = { policy: { conflicts: { highRisk: ["secret.md"], strategy: "priority_wins" as const } } };
    const applied = { strategy: "manual_review", from: "high_risk" } as const;
    expect(chooseStrategyUnderPolicy("hardlink:1-2", applied, under)).toEqual(applied);
    const byDefault = { strategy: "owner_wins", from: "default" } as const;
    expect(chooseStrategyUnderPolicy("hardlink:1-2", byDefault, under).strategy).toBe("priority_wins");
  });

  it("with a longer backoff begins nothing before its time, and tells that it does not", async () => {
    const policy = { retry: { backoffMs: 3_600_000 } };
    const { whatIf } = await replay(log(), { policy });
    const [failed, begun] = whatIf?.points ?? [];
    expect(failed?.would).toMatch(/^failed, tried again at /);
    expect(begun).toMatchObject({ decided: "attempt 2 begins", would: "not decided" });
    expect(whatIf?.uncertain).toMatchObject([{ stepId: failed?.stepId }]);
    expect(whatIf?.would).toBe("open");
  });

  it("that asks a plan's own text where it is kept: what a step says of its retries stays", async () => {
    const steps = ["a", "b", "c"].map((stepId) => ({
      stepId,
      agent: "main",
      task: "x",
      retry: { budget: 1 },
    }));
    const plan = {
      coordinationId: RUN,
      objective: "o",
      ownerSession: "agent:main:main",
      steps,
      conflictPolicy: {},
      failurePolicy: { retryBudget: 1, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
    };
    const events = log();
    const [first] = events;
    const sha256 = first?.type === "coordination.created" ? (first.payload.plan?.content.sha256 ?? "") : "";
    const policy = { failurePolicy: { retryBudget: 0 } };
    const kept = storeOf(events, { [sha256]: JSON.stringify(plan) });
    expect((await replayCoordination(kept, RUN, { policy })).whatIf).toMatchObject({
      plan: "kept",
      points: [],
    });
    const later = await replay(events, { policy, from: 2, to: Number.MAX_SAFE_INTEGER });
    expect(later.whatIf?.plan).toBe("deleted");
  });
});

it("a time is part of a decision: the same facts a moment later are other ones", async () => {
  const events = log();
  const at = findFact(events, "step.failed");
  const late = new Date(Date.parse(events[at]?.timestamp ?? "") + 1).toISOString();
  const shifted = events.map((event, index) =>
    index === at || index === at + 1 ? { ...event, timestamp: late } : event,
  );
  expect((await replay(shifted)).difference).toMatchObject({ sequence: at, type: "step.failed" });
});
