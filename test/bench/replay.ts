/**
 * The cost of forking: replaying a run of 10^5 events, against reading the same events, and a branch at an index against reading
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
import { steadyClock } from "../../src/infra/clock/steady-clock.ts";
import type { SqliteLedger } from "../../src/infra/sqlite/sqlite-ledger-store.ts";
import { createTokenSigner } from "../../src/infra/tokens/interrupt-tokens.ts";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";
import { createEdge, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { alternate, findMedian, round, timeWork, type BenchOptions, type BenchRow } from "./bench-row.ts";

const CALLER = { tenant: "bench", principal: "bench" };
const PAGE = 1_000;
/** Events of a turn of the loop: each of three nodes starts and completes. */
const EVENTS_PER_TURN = 6;
const NODES = ["a", "b", "c"] as const;

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  using folder = createTempFolder();
  // The host's own timers keep no process alive.
  const alive = setInterval(() => undefined, 1_000);
  const ledger = await openTestLedger(folder.file("ledger.sqlite"), { clock: systemClock });
  const turns = Math.ceil((quick ? 5_000 : 100_000) / EVENTS_PER_TURN);
  const host = hostOf(ledger, turns);
  const sourceRunId = await runOnce(host);
  const length = await read(ledger, sourceRunId, Infinity);
  const rounds = quick ? 1 : 5;
  const fork = (forkRequest: Omit<ForkRun, "sourceRunId">) => () =>
    timeWork(() => forkAndWaitForEnd(host, { sourceRunId, ...forkRequest }));
  const createReading = (before: number) => () =>
    timeWork(async () => {
      await read(ledger, sourceRunId, before);
    });
  const half = Math.floor(length / 2);
  const [reads = [], replays = [], parts = [], branches = []] = await alternate(rounds, [
    createReading(Infinity),
    fork({ mode: "replay" }),
    createReading(half),
    () =>
      timeWork(() => forkAndWaitForAcceptance(host, ledger, { sourceRunId, mode: "branch", fromSeq: half })),
  ]);
  await host.stop();
  await ledger.close();
  clearInterval(alive);
  const perSecond = (length / findMedian(replays)) * 1_000;
  return [
    {
      name: "replaying a long run",
      compares: `a replay of ${length} events from 0, asked for until it has ended, on disk; by events`,
      value: Math.round(perSecond),
      unit: "events/s",
      target: { is: "at least", value: 50_000 },
      detail: { replayMs: round(findMedian(replays)), slowestMs: round(Math.max(...replays)) },
    },
    {
      name: "replaying against reading",
      compares: "the same replay, by reading the same events in pages",
      value: round(findMedian(replays) / findMedian(reads)),
      unit: "times",
      detail: { readMs: round(findMedian(reads)), replayMs: round(findMedian(replays)) },
    },
    {
      name: "forking at an index against reading up to it",
      compares: `a branch at event ${half}, until it has taken them all, by reading ${half} events in pages`,
      value: round(findMedian(branches) / findMedian(parts)),
      unit: "times",
      detail: { readMs: round(findMedian(parts)), forkMs: round(findMedian(branches)) },
    },
  ];
}

function hostOf(ledger: SqliteLedger, turns: number): WorkflowHost {
  const refuseToAct = (): never => {
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
      nodeExecutionsMax: 10_000_000,
      loopIterationsMax: 100,
      runDurationMsMax: 3_600_000,
    },
    definitions: [
      createWorkflow("long", {
        nodes: NODES.map((id) => createNode(id)),
        edges: [createEdge("a>b"), createEdge("b>c"), createEdge("c>a")],
        settings: { maxLoopbackIterations: turns },
      }),
    ],
    newRunId: () => `run-bench-${(made += 1)}` as CoordinationId,
    owner: { id: "bench" },
    isProcessGone: () => false,
    steady: steadyClock,
    leaseMs: 10_000,
    sha256: (text) => hash("sha256", text),
    tokens: createTokenSigner(new Uint8Array(32).fill(7)),
    baseUrl: () => "http://127.0.0.1:1",
    contract: refuseToAct,
    peers: refuseToAct,
    tools: refuseToAct,
    chat: refuseToAct,
    verifier: refuseToAct,
    secrets: new Map(),
    retentionMs: 3_600_000,
  });
}

async function runOnce(host: WorkflowHost): Promise<string> {
  const created = await host.create(CALLER, { workflowId: "long", inputs: {}, transport: "rest" });
  if (created.kind === "refused") throw new Error(created.message);
  await waitUntilEnded(host, created.value.runId);
  return created.value.runId;
}

function waitUntilEnded(host: WorkflowHost, runId: string): Promise<void> {
  return waitUntil(host, runId, async () => {
    const snapshot = await host.snapshot(CALLER, runId);
    return snapshot.kind === "done" && ["completed", "failed"].includes(snapshot.value.status);
  });
}

async function waitUntil(host: WorkflowHost, runId: string, isThere: () => Promise<boolean>): Promise<void> {
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

async function forkAndWaitForEnd(host: WorkflowHost, forkRequest: ForkRun): Promise<void> {
  const forked = await host.fork(CALLER, forkRequest);
  if (forked.kind === "refused") throw new Error(forked.message);
  await waitUntilEnded(host, forked.value.runId);
}

/** A branch goes on by itself when it has taken what it takes; that is not measured. */
async function forkAndWaitForAcceptance(
  host: WorkflowHost,
  ledger: SqliteLedger,
  forkRequest: ForkRun,
): Promise<void> {
  const forked = await host.fork(CALLER, forkRequest);
  if (forked.kind === "refused") throw new Error(forked.message);
  const { runId, fromSeq } = forked.value;
  await waitUntil(host, runId, async () => ((await ledger.workflows.entry(runId))?.length ?? 0) >= fromSeq);
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
