/** Owns: ledgers with plans in every situation, decided by the real core and stored in the real store. */
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type {
  AgentId,
  CoordinationId,
  EpochMs,
  SessionKey,
  StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import { recordFacts } from "../../src/agents/coordination/dispatch/record.ts";
import { listClaimChanges } from "../../src/agents/coordination/ledger/claim-changes.ts";
import { createUnopenedCoordination, type Coordination } from "../../src/agents/coordination/ledger/state.ts";
import { listEventReferences, summarizeCoordination } from "../../src/agents/coordination/ledger/summary.ts";
import { createPlannedSteps } from "../../src/agents/coordination/plan/create-planned-steps.ts";
import type { ContentInput } from "../../src/agents/coordination/ports/content-store.ts";
import { listCarriedResults } from "../../src/agents/coordination/runtime/log/carried-results.ts";
import { graphOf, step, type Fields } from "../core/plan-scene.ts";
import { contentOf, OWNER } from "../support/ledger-fixtures.ts";
import { createManualClock, openTestLedger, TEST_EPOCH_MS } from "../support/temp-ledger.ts";

/** One thing that happens at a time, which counts from `TEST_EPOCH_MS`. */
export type Act =
  | readonly [atMs: number, act: "dispatch" | "ack" | "fail" | "timeOut", stepId: string, attempt: number]
  | readonly [atMs: number, act: "complete", stepId: string, attempt: number, outputs: object]
  | readonly [atMs: number, act: "command", command: Command];

export interface PlanScript {
  readonly id: string;
  readonly objective: string;
  readonly steps: readonly Fields[];
  readonly failurePolicy?: Fields;
  readonly budget?: Fields;
  readonly atMs?: number;
  /** A script before this one, of which it is a fork from behind its last event. */
  readonly forkOf?: string;
  readonly acts: readonly Act[];
}

const ESCALATE_MS = 3_600_000;
/** Waits before retries are spread by the seed; the scripts wait longer. */
const SEED = "seed";

export async function recordPlans(path: string, scripts: readonly PlanScript[]): Promise<void> {
  const store = await openTestLedger(path, { clock: createManualClock() });
  const recordedStates = new Map<string, Coordination>();
  for (const script of scripts) {
    let state: Coordination = createUnopenedCoordination(script.id as CoordinationId);
    for (const [atMs, command, contents] of commandsOf(script, recordedStates.get(script.forkOf ?? ""))) {
      const now = (TEST_EPOCH_MS + atMs) as EpochMs;
      const decision = decide(state, command, now);
      // An outcome that comes too late is refused, and that is recorded.
      const facts = decision.kind === "replay" ? undefined : decision.facts;
      if (!facts) throw new Error(`${command.type} at ${atMs} was ${JSON.stringify(decision)}`);
      const recorded = recordFacts(state, facts, now);
      state = recorded.state;
      if (state.kind === "unopened") throw new Error("the script does not open its coordination");
      const events: readonly RunEvent[] = recorded.events;
      await store.append({
        runId: state.coordinationId,
        events,
        summary: summarizeCoordination(state),
        references: events.flatMap(listEventReferences),
        claims: events.flatMap(listClaimChanges),
        contents,
      });
    }
    recordedStates.set(script.id, state);
  }
  await store.close();
}

type RecordedCommand = readonly [atMs: number, command: Command, contents: readonly ContentInput[]];

function commandsOf(
  { id, objective, steps, failurePolicy, budget, atMs = 0, acts }: PlanScript,
  source: Coordination | undefined,
): RecordedCommand[] {
  const fields = {
    coordinationId: id,
    objective,
    ...(failurePolicy && { failurePolicy }),
    ...(budget && { budget }),
  };
  const graph = graphOf(steps, fields);
  const plan = contentOf(JSON.stringify(graph));
  const open: Command = {
    type: "openCoordination",
    origin: "plan",
    ownerSession: OWNER,
    ownerAgent: "main" as AgentId,
    objective: contentOf(objective).ref,
    trace: { traceId: `trace-${id}` },
    failurePolicy: graph.failurePolicy,
    settleMs: 1_000,
    acknowledgeMs: 30_000,
    plan: {
      content: plan.ref,
      steps: steps.length,
      seed: SEED,
      escalateMs: ESCALATE_MS,
      ...(graph.budget && { budget: graph.budget }),
    },
    ...(source?.kind === "ended" && {
      forkedFrom: { coordinationId: source.coordinationId, sequence: source.nextSequence },
    }),
  };
  const admitted = createPlannedSteps(graph, {
    ownerSession: OWNER,
    runnerOf: () => "subagent",
    refOf: (text) => contentOf(text).ref,
    gateStep: () => ({}),
    ...(source && { carried: listCarriedResults(source) }),
  });
  return [
    [atMs, open, [plan, contentOf(objective)]],
    [atMs, { type: "admitPlanSteps", steps: admitted }, []],
    ...acts.map((act) => createSaidBy(act)),
  ];
}

function createSaidBy(act: Act): RecordedCommand {
  if (act[1] === "command") return [act[0], act[2], []];
  const [atMs, subject, name, attempt] = act;
  const stepId = name as StepId;
  const child = `agent:main:subagent:${name.replace("@", "")}-${attempt}` as SessionKey;
  const of = { stepId, attempt, via: "runner" as const };
  switch (subject) {
    case "dispatch":
      return [atMs, { type: "dispatchStep", stepId, attempt, targetSession: child }, []];
    case "ack":
      return [
        atMs,
        { type: "acknowledgeStep", ...of, childSessionKey: child, childRunId: `run-${name}` },
        [],
      ];
    case "fail": {
      const error = { code: "child_failed" as const, message: "the model gave up" };
      return [atMs, { type: "failStep", ...of, error, cancelled: false }, []];
    }
    case "timeOut":
      return [atMs, { type: "timeOutStep", ...of }, []];
    case "complete": {
      const output = contentOf(JSON.stringify(act[4]));
      return [atMs, { type: "completeStep", ...of, output: output.ref }, [output]];
    }
  }
}

const HITL = { retryBudget: 2, timeoutPolicy: "continue_with_partial", escalationPolicy: "hitl" };

/** At 60 s: `fetch` done at the second try, `parse` runs, `slow` waits for its third try, `audit` for people, `report` for others. */
export const RUNNING_PLAN: PlanScript = {
  id: "plan-6f1c0000-0000-4000-8000-000000000001",
  objective: "Prepare the quarterly report",
  failurePolicy: HITL,
  steps: [
    step("fetch", [], { agent: "reader", retry: { budget: 2, backoffMs: 1_000 } }),
    step("slow", [], { retry: { budget: 2, backoffMs: 60_000 } }),
    step("audit", [], { retry: { budget: 0 }, lane: "control" }),
    step("parse", ["fetch"]),
    step("report", ["parse", "audit", "slow"], { agent: "writer", fanIn: { min: 2 } }),
  ],
  acts: [
    [0, "dispatch", "fetch", 1],
    [100, "dispatch", "audit", 1],
    [200, "ack", "fetch", 1],
    [300, "ack", "audit", 1],
    [400, "dispatch", "slow", 1],
    [500, "ack", "slow", 1],
    [9_000, "fail", "audit", 1],
    [10_000, "fail", "fetch", 1],
    [20_000, "dispatch", "fetch", 2],
    [20_200, "ack", "fetch", 2],
    [25_000, "fail", "slow", 1],
    [30_000, "complete", "fetch", 2, { rows: 12 }],
    [30_500, "dispatch", "parse", 1],
    [30_700, "ack", "parse", 1],
  ],
};

/** Ended as partial: one step timed out, what needs it was skipped, the owner was told. */
export const ENDED_PLAN: PlanScript = {
  id: "plan-ended",
  objective: "Compare two databases",
  failurePolicy: { ...HITL, escalationPolicy: "none" },
  atMs: 100_000,
  steps: [
    step("sqlite", [], { timeoutMs: 5_000, retry: { budget: 0 } }),
    step("postgres", []),
    step("compare", ["sqlite", "postgres"]),
  ],
  acts: [
    [100_000, "dispatch", "sqlite", 1],
    [100_100, "dispatch", "postgres", 1],
    [100_200, "ack", "sqlite", 1],
    [100_300, "ack", "postgres", 1],
    [105_000, "timeOut", "sqlite", 1],
    [105_200, "command", { type: "skipSteps", stepIds: ["compare" as StepId] }],
    [120_000, "complete", "postgres", 1, { points: ["servers"] }],
    [120_100, "command", { type: "settleCoordination" }],
    [120_200, "dispatch", "@delivery", 1],
    [120_300, "ack", "@delivery", 1],
    [121_000, "complete", "@delivery", 1, {}],
    [121_100, "command", { type: "settleCoordination" }],
  ],
};

/** At 230 s: `postgres` is kept from the first run, `sqlite` completed this time, `compare` runs. */
export const FORKED_PLAN: PlanScript = {
  ...ENDED_PLAN,
  id: "plan-again",
  atMs: 200_000,
  forkOf: ENDED_PLAN.id,
  acts: [
    [200_000, "dispatch", "sqlite", 1],
    [200_200, "ack", "sqlite", 1],
    [204_000, "complete", "sqlite", 1, { points: ["files"] }],
    [210_000, "dispatch", "compare", 1],
    [210_300, "ack", "compare", 1],
  ],
};
