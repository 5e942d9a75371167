/**
 * What forking costs: replaying a run of 10^5 events, against reading the same events, and a branch at an index against reading
 * as many events as lie before it. On disk, with the host's own settings but for its limits on the length of a run.
 */
import { hash } from "node:crypto";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { createWorkflowHost } from "../../src/agents/coordination/runtime/workflow-host/create-workflow-host.ts";
import type {
  ForkRun,
  WorkflowHost,
} from "../../src/agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import type { SqliteLedger } from "../../src/infra/sqlite/sqlite-ledger-store.ts";
import { interruptTokens } from "../../src/infra/tokens/interrupt-tokens.ts";
import { openTestLedger, tempFolder } from "../support/temp-ledger.ts";
import { edge, node, workflow } from "../support/workflow-definitions.ts";
import { alternate, median, round, timed, type BenchOptions, type BenchRow } from "./bench-row.ts";

const CALLER = { tenant: "bench", principal: "bench" };
const PAGE = 1_000;
/** Of a turn of the loop: each of three nodes starts and completes. */
const EVENTS_PER_TURN = 6;
const NODES = ["a", "b", "c"] as const;

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  using folder = tempFolder();
  // The host's own timers keep no process alive.
  const alive = setInterval(() => undefined, 1_000);
  const ledger = await openTestLedger(folder.file("ledger.sqlite"), { clock: systemClock });
  const turns = Math.ceil((quick ? 5_000 : 100_000) / EVENTS_PER_TURN);
  const host = hostOf(ledger, turns);
  const sourceRunId = await runOnce(host);
  const length = await read(ledger, sourceRunId, Infinity);
  const rounds = quick ? 1 : 5;
  const fork = (asked: Omit<ForkRun, "sourceRunId">) => () =>
    timed(() => ended(host, { sourceRunId, ...asked }));
  const reading = (before: number) => () =>
    timed(async () => {
      await read(ledger, sourceRunId, before);
    });
  const half = Math.floor(length / 2);
  const [reads = [], replays = [], parts = [], branches = []] = await alternate(rounds, [
    reading(Infinity),
    fork({ mode: "replay" }),
    reading(half),
    () => timed(() => accepted(host, ledger, { sourceRunId, mode: "branch", fromSeq: half })),
  ]);
  await host.stop();
  await ledger.close();
  clearInterval(alive);
  const perSecond = (length / median(replays)) * 1_000;
  return [
    {
      name: "replaying a long run",
      compares: `a replay of ${length} events from 0, asked for until it has ended, on disk; by events`,
      value: Math.round(perSecond),
      unit: "events/s",
      target: { is: "at least", value: 50_000 },
      detail: { replayMs: round(median(replays)), slowestMs: round(Math.max(...replays)) },
    },
    {
      name: "replaying against reading",
      compares: "the same replay, by reading the same events in pages",
      value: round(median(replays) / median(reads)),
      unit: "times",
      detail: { readMs: round(median(reads)), replayMs: round(median(replays)) },
    },
    {
      name: "forking at an index against reading up to it",
      compares: `a branch at event ${half}, until it has taken them all, by reading ${half} events in pages`,
      value: round(median(branches) / median(parts)),
      unit: "times",
      detail: { readMs: round(median(parts)), forkMs: round(median(branches)) },
    },
  ];
}

function hostOf(ledger: SqliteLedger, turns: number): WorkflowHost {
  const never = (): never => {
    throw new Error("nothing is done outside");
  };
  let made = 0;
  const log = (): void => undefined;
  return createWorkflowHost({
    store: ledger.workflows,
    clock: systemClock,
    logger: { debug: log, info: log, warn: console.warn, error: console.error },
    settings: {
      hostId: "bench",
      confidenceFloor: 0.5,
      escalationThreshold: 0.7,
      allowsMocks: true,
      nodeExecutionsMax: 10_000_000,
      loopIterationsMax: 100,
      runDurationMsMax: 3_600_000,
    },
    definitions: [
      workflow("long", {
        nodes: NODES.map((id) => node(id)),
        edges: [edge("a>b"), edge("b>c"), edge("c>a")],
        settings: { maxLoopbackIterations: turns },
      }),
    ],
    newRunId: () => `run-bench-${(made += 1)}` as CoordinationId,
    driver: { id: "bench", pid: process.pid },
    isAlive: () => true,
    sha256: (text) => hash("sha256", text),
    tokens: interruptTokens(new Uint8Array(32).fill(7)),
    baseUrl: () => "http://127.0.0.1:1",
    contract: never,
    peers: never,
    tools: never,
    chat: never,
    verifier: never,
    secrets: new Map(),
    retentionMs: 3_600_000,
    testSeams: false,
  });
}

async function runOnce(host: WorkflowHost): Promise<string> {
  const created = await host.create(CALLER, { workflowId: "long", inputs: {}, transport: "rest" });
  if (created.kind === "refused") throw new Error(created.message);
  await untilEnded(host, created.value.runId);
  return created.value.runId;
}

function untilEnded(host: WorkflowHost, runId: string): Promise<void> {
  return until(host, runId, async () => {
    const snapshot = await host.snapshot(CALLER, runId);
    return snapshot.kind === "done" && ["completed", "failed"].includes(snapshot.value.status);
  });
}

async function until(host: WorkflowHost, runId: string, isThere: () => Promise<boolean>): Promise<void> {
  for (;;) {
    let wake: () => void = () => undefined;
    const news = new Promise<void>((resolve) => (wake = resolve));
    const forget = host.watch(runId, () => wake());
    try {
      if (await isThere()) return;
      await news;
    } finally {
      forget();
    }
  }
}

async function ended(host: WorkflowHost, asked: ForkRun): Promise<void> {
  const forked = await host.fork(CALLER, asked);
  if (forked.kind === "refused") throw new Error(forked.message);
  await untilEnded(host, forked.value.runId);
}

/** A branch goes on by itself when it has taken what it takes; that is not measured. */
async function accepted(host: WorkflowHost, ledger: SqliteLedger, asked: ForkRun): Promise<void> {
  const forked = await host.fork(CALLER, asked);
  if (forked.kind === "refused") throw new Error(forked.message);
  const { runId, fromSeq } = forked.value;
  await until(host, runId, async () => ((await ledger.workflows.entry(runId))?.length ?? 0) >= fromSeq);
  await host.cancel(CALLER, runId, {});
}

async function read({ workflows }: SqliteLedger, runId: string, before: number): Promise<number> {
  let from = 0;
  for (;;) {
    const limit = Math.min(PAGE, before - from);
    const page = limit > 0 ? await workflows.read(runId as CoordinationId, { from, limit }) : [];
    from += page.length;
    if (page.length < PAGE) return from;
  }
}
