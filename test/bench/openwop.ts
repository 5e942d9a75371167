/**
 * Throughput of the OpenWOP host end to end over HTTP, against a bare HTTP server, a bare SQLite and OpenWorkflow, all on this
 * machine: no-op runs and runs of a supervisor that hands over once, at 1 and 16 clients, durable.
 *
 * Client and server share the machine's processors. All sides are measured in turn in every round, each load by a process of
 * its own; ratios are those of one round, and what is said is the median over the rounds.
 */
import Database from "better-sqlite3";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { findMedian, round, spreadOf, type BenchOptions, type BenchRow } from "./bench-row.ts";
import type { LoadFigures } from "./openwop-load.ts";
import { putLoad, startEcho, startHost, startOpenWorkflow, type ServerProcess } from "./openwop-servers.ts";
import { CHILD, HANDOFF, NOOP } from "./openwop-workflows.ts";

type Kind = "noop" | "handoff";

interface LoadCase {
  readonly kind: Kind;
  readonly clients: number;
  readonly runs: number;
  /** The peer's, so that both sides take about as long. */
  readonly peerRuns: number;
  readonly target?: number;
}

const CASES: readonly LoadCase[] = [
  { kind: "noop", clients: 1, runs: 1_000, peerRuns: 300 },
  { kind: "noop", clients: 16, runs: 6_000, peerRuns: 600, target: 1_500 },
  { kind: "handoff", clients: 1, runs: 400, peerRuns: 100 },
  { kind: "handoff", clients: 16, runs: 2_000, peerRuns: 300, target: 400 },
];
const ECHO_REQUESTS = 12_000;
const RUNS_PER_COMMIT = 16;
const QUICK = 10;

interface Servers {
  readonly host: ServerProcess;
  readonly echo: ServerProcess;
  readonly peer: ServerProcess | undefined;
}

interface Round {
  readonly echo: LoadFigures;
  readonly rawRunsPerSecond: number;
  readonly cases: ReadonlyMap<LoadCase, { readonly ours: LoadFigures; readonly peer?: LoadFigures }>;
}

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  using folder = createTempFolder();
  const servers: Servers = {
    host: await startHost(folder.file("ledger.sqlite"), folder),
    echo: await startEcho(),
    peer: await startOpenWorkflow(folder.file("openworkflow.sqlite")),
  };
  try {
    const share = quick ? QUICK : 1;
    // The first round is for the compilers of all sides.
    await measureRound(servers, folder, share * 4);
    const rounds: Round[] = [];
    for (let index = 0; index < (quick ? 1 : 5); index += 1)
      rounds.push(await measureRound(servers, folder, share));
    return CASES.flatMap((each) => rowsOf(each, rounds, servers.peer));
  } finally {
    for (const server of [servers.host, servers.echo, servers.peer]) await server?.stop();
  }
}

async function measureRound(
  { host, echo, peer }: Servers,
  folder: TempFolder,
  share: number,
): Promise<Round> {
  const echoed = await putLoad(echo, {
    workflowId: "",
    clients: 16,
    warmups: 1_000,
    echo: "/",
    runs: Math.ceil(ECHO_REQUESTS / share),
  });
  const cases = new Map<LoadCase, { ours: LoadFigures; peer?: LoadFigures }>();
  for (const each of CASES) {
    const { kind, clients, runs, peerRuns } = each;
    const warmups = clients * 4;
    const workflowId = kind === "noop" ? NOOP.id : HANDOFF.id;
    const ours = await putLoad(host, { workflowId, clients, warmups, runs: Math.ceil(runs / share) });
    const theirs =
      peer &&
      (await putLoad(peer, { workflowId: kind, clients, warmups, runs: Math.ceil(peerRuns / share) }));
    cases.set(each, { ours, ...(theirs && { peer: theirs }) });
  }
  const rawRunsPerSecond = measureRawRuns(
    folder.file(`raw-${performance.now()}.sqlite`),
    Math.ceil(6_400 / share),
  );
  return { echo: echoed, rawRunsPerSecond, cases };
}

/** The four events of a no-op run as rows, 16 runs in each transaction, durable: no protocol, no chain of hashes, no checks. */
function measureRawRuns(path: string, runs: number): number {
  const database = new Database(path);
  database.pragma("journal_mode = WAL");
  database.pragma("synchronous = FULL");
  database.exec(`
    create table run (run_key integer primary key, run_id text not null unique, summary text not null);
    create table event (
      event_key integer primary key, run_key integer not null, sequence integer not null, type text not null,
      timestamp_ms integer not null, payload text not null, unique (run_key, sequence)
    );
  `);
  const insertRun = database.prepare("insert into run (run_id, summary) values (?, ?)");
  const insertEvent = database.prepare(
    "insert into event (run_key, sequence, type, timestamp_ms, payload) values (?, ?, ?, ?, ?)",
  );
  const write = database.transaction((from: number) => {
    for (let index = from; index < from + RUNS_PER_COMMIT; index += 1) {
      const key = insertRun.run(`run-${Math.random()}-${index}`, SUMMARY).lastInsertRowid;
      for (let sequence = 0; sequence < 4; sequence += 1)
        insertEvent.run(key, sequence, "node.completed", Date.now(), PAYLOAD);
    }
  });
  const start = performance.now();
  for (let from = 0; from < runs; from += RUNS_PER_COMMIT) write(from);
  const elapsedMs = performance.now() - start;
  database.close();
  return (1_000 * runs) / elapsedMs;
}

const SUMMARY = JSON.stringify({
  status: "completed",
  tenant: "default",
  workflowId: NOOP.id,
  text: "-".repeat(80),
});
const PAYLOAD = JSON.stringify({ nodeId: "noop", text: "-".repeat(60) });

const WHAT: Readonly<Record<Kind, string>> = {
  noop: "no-op runs",
  handoff: `runs of a supervisor that hands over to a child run (${CHILD.id}) and ends`,
};

function rowsOf(each: LoadCase, rounds: readonly Round[], peer: ServerProcess | undefined): BenchRow[] {
  const { kind, clients, target } = each;
  const all = rounds.flatMap(({ cases }) => cases.get(each)?.ours ?? []);
  const findMedianOf = (of: (figures: LoadFigures) => number): number => round(findMedian(all.map(of)));
  const per = all.map(({ perSecond }) => perSecond);
  const ofEcho = rounds.map(({ echo, cases }) => {
    const { perSecond = 0, requestsPerRun = 0 } = cases.get(each)?.ours ?? {};
    return (perSecond * requestsPerRun) / echo.perSecond;
  });
  const row: BenchRow = {
    name: `OpenWOP: ${WHAT[kind]}, ${clients} ${clients === 1 ? "client" : "clients"}`,
    compares: `from before POST /v1/runs until the client has read that the run completed; synchronous=FULL; ${rounds.length} rounds`,
    value: round(findMedian(per)),
    unit: "runs/s",
    ...(target !== undefined && { target: { is: "at least", value: target } }),
    detail: {
      ...spreadOf(per),
      p50Ms: findMedianOf((figures) => figures.p50Ms),
      p99Ms: findMedianOf((figures) => figures.p99Ms),
      requestsPerRun: findMedianOf((figures) => figures.requestsPerRun),
      clientCpuMicrosPerRun: findMedianOf((figures) => figures.clientCpuMicros),
      echoRequestsPerSecond: round(findMedian(rounds.map(({ echo }) => echo.perSecond))),
      requestsToEcho: round(findMedian(ofEcho)),
      rawCommitMs: round(findMedian(rounds.map((each) => (1_000 * RUNS_PER_COMMIT) / each.rawRunsPerSecond))),
      ...(kind === "noop" && {
        toRawSqlite: round(
          findMedian(rounds.map((each, index) => (per[index] ?? 0) / each.rawRunsPerSecond)),
        ),
      }),
    },
  };
  return [row, ...(peer ? [createPeerRow(each, rounds, peer)] : [])];
}

function createPeerRow(each: LoadCase, rounds: readonly Round[], { telling }: ServerProcess): BenchRow {
  const { kind, clients } = each;
  const pairs = rounds.flatMap(({ cases }) => {
    const { ours, peer } = cases.get(each) ?? {};
    return ours && peer ? [{ ours, peer }] : [];
  });
  const ratios = pairs.map(({ ours, peer }) => ours.perSecond / peer.perSecond);
  const findMedianOf = (of: (figures: LoadFigures) => number): number =>
    round(findMedian(pairs.map(({ peer }) => of(peer))));
  const { version, journalMode, synchronous } = telling as Record<string, string>;
  return {
    name: `OpenWOP: ${kind}, ${clients} ${clients === 1 ? "client" : "clients"}, to OpenWorkflow ${version}`,
    compares:
      `runs/s by runs/s of the same round; OpenWorkflow behind a thin HTTP face, node:sqlite in ${journalMode}, ` +
      `synchronous=${synchronous}, a transaction for each change, asked for work as soon as there is some`,
    value: round(findMedian(ratios)),
    unit: "times",
    detail: {
      ...spreadOf(ratios),
      peerRunsPerSecond: findMedianOf((figures) => figures.perSecond),
      peerP50Ms: findMedianOf((figures) => figures.p50Ms),
      peerP99Ms: findMedianOf((figures) => figures.p99Ms),
    },
  };
}
