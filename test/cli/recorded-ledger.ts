/** Owns: ledgers as the gateway leaves them: recorded through the real coordinator into the real store. */
import type { AgentId, CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { CoordinationEnvelope } from "../../src/agents/coordination/contracts/envelope.ts";
import type { ChildEnding } from "../../src/agents/coordination/contracts/observation.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { TreeBudget } from "../../src/agents/coordination/contracts/usage.ts";
import {
  createUsageBook,
  type CallUsage,
  type ModelCall,
  type UsageBook,
} from "../../src/agents/coordination/runtime/usage/usage-book.ts";
import type { LedgerStore } from "../../src/agents/coordination/ports/ledger-store.ts";
import {
  nameChildSession,
  contentOf,
  OWNER,
  spawnRequest,
  testCoordinator,
} from "../support/ledger-fixtures.ts";
import {
  createManualClock,
  openTestLedger,
  TEST_EPOCH_MS,
  type ManualClock,
} from "../support/temp-ledger.ts";

export interface SpawnScript {
  readonly name: string;
  readonly agent?: string;
  /** The name of the spawn whose child asks for this one. */
  readonly under?: string;
  readonly atMs: number;
  readonly confirmedAtMs?: number;
  readonly ends?: ChildEnding & { readonly atMs: number };
  /** How often its model was called by the time it was confirmed. */
  readonly calls?: number;
}

export interface CoordinationScript {
  readonly id: string;
  readonly objective: string;
  readonly trace: string;
  readonly spawns: readonly SpawnScript[];
  /** How often the owner's model was called by the end. */
  readonly ownerCalls?: number;
  /** When it is settled; absent: it stays open. */
  readonly settledAtMs?: number;
}

interface Recorder {
  readonly coordinator: Coordinator;
  readonly clock: ManualClock;
  readonly store: LedgerStore;
  readonly usage: UsageBook;
}

/** Usage of each call of a model: 10,150 tokens and 0.0333 USD. */
const USED: CallUsage = {
  model: "mock/scripted",
  inputTokens: 8_000,
  outputTokens: 150,
  cacheReadTokens: 2_000,
  cacheWriteTokens: 0,
  costNanoUsd: 33_300_000,
};

function callModel(usage: UsageBook, call: ModelCall, calls: number): void {
  for (let number = 0; number < calls; number += 1) {
    usage.beginCall(call);
    usage.addUsage(call.session, USED);
  }
}

/** Times in scripts count from `TEST_EPOCH_MS`. */
export async function recordLedger(
  path: string,
  scripts: readonly CoordinationScript[],
  { budget, gateway }: { readonly budget?: TreeBudget; readonly gateway?: string } = {},
): Promise<void> {
  const clock = createManualClock();
  const store = await openTestLedger(path, { clock });
  const ids = scripts.map(({ id }) => id as CoordinationId);
  const takeCoordinationId = (): CoordinationId => ids.shift() ?? ("co-unexpected" as CoordinationId);
  const usage = createUsageBook("meter-1");
  const coordinator = testCoordinator({
    store,
    clock,
    usage,
    newCoordinationId: takeCoordinationId,
    ...(budget && { budget }),
    ...(gateway !== undefined && { settings: { gateway } }),
  });
  for (const script of scripts) await record({ coordinator, clock, store, usage }, script);
  await coordinator.stop();
  await store.close();
}

async function record(recorder: Recorder, script: CoordinationScript): Promise<void> {
  const { coordinator, clock, store, usage } = recorder;
  const acts = script.spawns
    .flatMap((spawn) => actsOf(recorder, script, spawn))
    .toSorted((a, b) => a.atMs - b.atMs);
  for (const { atMs, act } of acts) {
    clock.set(TEST_EPOCH_MS + atMs);
    await act();
  }
  callModel(usage, { session: OWNER, runId: "owner-run", traceId: script.trace }, script.ownerCalls ?? 0);
  await coordinator.usageRecorder.flush();
  if (script.settledAtMs === undefined) return;
  clock.set(TEST_EPOCH_MS + script.settledAtMs);
  for (let turns = 0; turns < 1_000; turns += 1) {
    clock.fire();
    const [newest] = await store.list({ limit: 1 });
    if (newest?.summary.status !== "running") return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error(`${script.id} was not settled`);
}

function actsOf(
  { coordinator, usage }: Recorder,
  { objective, trace }: CoordinationScript,
  spawn: SpawnScript,
) {
  const { name, agent = "main", under, atMs, confirmedAtMs = atMs + 200, ends, calls = 0 } = spawn;
  const sourceSession: SessionKey = under === undefined ? OWNER : nameChildSession(`${trace}-${under}`);
  const child = nameChildSession(`${trace}-${name}`);
  const call = `call-${trace}-${name}`;
  const base = spawnRequest({ call, trace, source: sourceSession });
  let envelope: CoordinationEnvelope | undefined;
  const admit = async () => {
    const admission = await coordinator.admitSpawn({
      ...base,
      spawn: { ...base.spawn, name, agentId: agent as AgentId },
      objective: contentOf(objective),
    });
    if (admission.kind !== "admitted") throw new Error(`${name} was refused: ${admission.reason}`);
    envelope = admission.envelope;
  };
  const confirm = async () => {
    if (!envelope) throw new Error(`${name} was not admitted`);
    const { coordinationId, stepId } = envelope;
    await coordinator.confirmSpawn(
      { coordinationId, stepId, sourceSession, toolCallId: call },
      { childSessionKey: child, childRunId: `run-of-${name}` },
    );
    callModel(usage, { session: child, runId: `run-of-${name}` }, calls);
  };
  return [
    { atMs, act: admit },
    ...(confirmedAtMs === Number.POSITIVE_INFINITY ? [] : [{ atMs: confirmedAtMs, act: confirm }]),
    ...(ends ? [{ atMs: ends.atMs, act: () => coordinator.endChild(child, ends) }] : []),
  ];
}

/** Seven steps over 47 seconds, two levels deep, one failed. */
export const RESEARCH: CoordinationScript = {
  id: "co-1f0c7a52-9e4b-4d6f-8a21-5b3c9d7e0f14",
  objective: "Compare the three candidate queue libraries and recommend one",
  trace: "8d18117895fdfe83fe614bb1360e9344",
  settledAtMs: 47_000,
  spawns: [
    { name: "survey", agent: "research", atMs: 0, ends: { atMs: 21_400, outcome: "completed" } },
    {
      name: "read-docs",
      agent: "reader",
      under: "survey",
      atMs: 1_900,
      ends: { atMs: 11_200, outcome: "completed" },
    },
    {
      name: "read-issues",
      agent: "reader",
      under: "survey",
      atMs: 2_300,
      ends: { atMs: 17_800, outcome: "failed", message: "the issue tracker answered 503 three times" },
    },
    {
      name: "read-changelog",
      agent: "reader",
      under: "survey",
      atMs: 11_900,
      ends: { atMs: 18_100, outcome: "completed" },
    },
    { name: "benchmark", agent: "bench", atMs: 600, ends: { atMs: 38_900, outcome: "completed" } },
    {
      name: "run-1k",
      agent: "bench",
      under: "benchmark",
      atMs: 5_200,
      ends: { atMs: 16_000, outcome: "completed" },
    },
    {
      name: "run-1m",
      agent: "bench",
      under: "benchmark",
      atMs: 16_400,
      ends: { atMs: 37_700, outcome: "completed" },
    },
  ],
};

/** One step that runs, one that the host has not confirmed. */
export const OPEN: CoordinationScript = {
  id: "co-9a3b0000-0000-4000-8000-000000000001",
  objective: "Keep going",
  trace: "11111111111111111111111111111111",
  spawns: [
    { name: "long-job", atMs: 60_000, confirmedAtMs: 65_000 },
    { name: "just-asked", atMs: 68_000, confirmedAtMs: Number.POSITIVE_INFINITY },
  ],
};
