/**
 * The cost of deciding a coordination of 10^5 events again, of a SQLite ledger, against reading and folding the same log.
 *
 * Its log is one that the core made: spawns that are reported, change a file, are held, checked and let through.
 */
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import {
  addMs,
  type CoordinationId,
  type EpochMs,
  type StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import { recordFacts } from "../../src/agents/coordination/dispatch/record.ts";
import { createUnopenedCoordination, type Coordination } from "../../src/agents/coordination/ledger/state.ts";
import { listEventReferences, summarizeCoordination } from "../../src/agents/coordination/ledger/summary.ts";
import { listClaimChanges } from "../../src/agents/coordination/ledger/claim-changes.ts";
import type { LedgerStore } from "../../src/agents/coordination/ports/ledger-store.ts";
import { readState } from "../../src/agents/coordination/runtime/log/read-state.ts";
import { replayCoordination } from "../../src/agents/coordination/runtime/replay-coordination.ts";
import { nameChildSession, contentOf, openingOf, spawnOf } from "../support/ledger-fixtures.ts";
import { openTestLedger, createTempFolder, TEST_EPOCH_MS } from "../support/temp-ledger.ts";
import { alternate, findMedian, round, timeWork, type BenchOptions, type BenchRow } from "./bench-row.ts";

const EVENTS = { full: 100_000, quick: 5_000 } as const;
const EVENTS_PER_SECOND = 50_000;
const AT_ONCE = 100;
const RUN = "co-00000000-0000-4000-8000-000000000001" as CoordinationId;

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  using folder = createTempFolder();
  const store = await openTestLedger(folder.file("ledger.sqlite"));
  const events = await fill(store, quick ? EVENTS.quick : EVENTS.full);
  const policy = { gates: { confidenceThreshold: 0.8 } };
  const ms = await alternate(quick ? 3 : 7, [
    () =>
      timeWork(async () => {
        await readState(store, RUN);
      }),
    () => timeWork(async () => assertEqual((await replayCoordination(store, RUN)).difference)),
    () => timeWork(async () => assertEqual((await replayCoordination(store, RUN, { policy })).difference)),
  ]);
  const processorMs = await measureProcessorTime(async () => {
    await replayCoordination(store, RUN);
  });
  await store.close();
  const [readMs = 0, replayMs = 0, policyMs = 0] = ms.map(findMedian);
  const computePerSecond = (tookMs: number): number => Math.round((events * 1_000) / tookMs);
  return [
    {
      name: "replay of one coordination",
      compares: `${events.toLocaleString("en")} events, read, decided, projected and compared; medians`,
      value: computePerSecond(replayMs),
      unit: "events/s",
      target: { is: "at least", value: EVENTS_PER_SECOND },
      detail: {
        "of processor time, events/s": computePerSecond(processorMs),
        "reading and folding, events/s": computePerSecond(readMs),
        "times reading and folding": round(replayMs / readMs),
        "under another policy, events/s": computePerSecond(policyMs),
        "under another policy, times reading and folding": round(policyMs / readMs),
      },
    },
  ];
}

/** Returns time without that of other processes on the machine. */
async function measureProcessorTime(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

function assertEqual(difference: unknown): void {
  if (difference !== undefined) throw new Error(`the replay differs: ${JSON.stringify(difference)}`);
}

async function fill(store: LedgerStore, eventsMin: number): Promise<number> {
  let state: Coordination = createUnopenedCoordination(RUN);
  let now = TEST_EPOCH_MS as EpochMs;
  let count = 0;
  let pending: RunEvent[] = [];
  const flush = async (): Promise<void> => {
    if (state.kind === "unopened" || pending.length === 0) return;
    const claims = pending.flatMap(listClaimChanges);
    await store.append({
      runId: RUN,
      events: pending,
      summary: summarizeCoordination(state),
      references: pending.flatMap(listEventReferences),
      contents: [],
      ...(claims.length > 0 && { claims }),
    });
    pending = [];
  };
  const submit = (command: Command): void => {
    now = addMs(now, 1);
    const decision = decide(state, command, now);
    if (decision.kind !== "accepted") throw new Error(`${command.type} was ${JSON.stringify(decision)}`);
    const recorded = recordFacts(state, decision.facts, now);
    state = recorded.state;
    count += recorded.events.length;
    pending.push(...recorded.events);
  };
  submit(openingOf("trace"));
  for (let step = 1; count < eventsMin; step += 1) {
    for (const command of workOf(step, now)) submit(command(state));
    if (step % AT_ONCE === 0) await flush();
  }
  await flush();
  return count;
}

type CommandMaker = (state: Coordination) => Command;

function workOf(number: number, now: EpochMs): CommandMaker[] {
  const of = { stepId: `step-${number}` as StepId, attempt: 1 };
  const name = `child-${number}`;
  const resource = `file:/project/${number % 100}.md`;
  const { ref } = contentOf(name);
  const findTarget = (state: Coordination) => {
    const phase = state.kind === "unopened" ? undefined : state.steps.get(of.stepId)?.phase;
    return phase?.status === "held" ? phase.target : ("" as never);
  };
  const request = { resource, token: number, expiresAtMs: addMs(now, 300_000) };
  return [
    () => ({ ...spawnOf(name), gate: { threshold: 7_000, checks: ["lint"] } }) as Command,
    () => ({
      type: "acknowledgeStep",
      ...of,
      childSessionKey: nameChildSession(name),
      childRunId: `run-${name}`,
      via: "hook",
    }),
    () => ({ type: "requestResources", stepId: of.stepId, requests: [request] }),
    () => ({
      type: "recordChange",
      stepId: of.stepId,
      resource,
      version: name,
      tool: "write",
      token: number,
    }),
    () => ({ type: "reportStep", ...of, outcome: "completed", output: ref, confidence: 7_500 }),
    () => ({ type: "completeStep", ...of, via: "hook" }),
    (state) => ({
      type: "recordFinding",
      ...of,
      target: findTarget(state),
      finding: { check: "lint", verdict: "pass", agentId: "agent:critic" },
    }),
  ];
}
