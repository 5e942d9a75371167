/**
 * `node test/bench/openwop-load.ts '{"baseUrl":...,"clients":16,"runs":2000,...}'`: puts load on a server that speaks the
 * protocol's way of starting a run and seeing its end, and prints one JSON object. A process of its own.
 *
 * A run is timed from before its request is sent until the client has read that the run completed: the answer to creating
 * it, then its snapshot, and, while that has not ended, one poll for events behind all there will be, which is answered at
 * the end of the run, and the snapshot again.
 */
import { findMedian, round } from "./bench-row.ts";
import { runIdOf } from "./openwop-ids.ts";
import { openClient, type KeepAliveClient } from "./keep-alive-client.ts";

export interface Load {
  readonly baseUrl: string;
  readonly token: string;
  readonly workflowId: string;
  readonly clients: number;
  readonly runs: number;
  readonly warmups: number;
  /** Where it is there, each is one bare request to this path, in place of a run. */
  readonly echo?: string;
  /** Where it is there, each is a snapshot of one of the first so many runs that the ledger was filled with. */
  readonly readsOf?: number;
}

export interface LoadFigures {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly requestsPerRun: number;
  /** Latencies of reading a run that has ended. */
  readonly snapshotP50Ms: number;
  /** CPU time of the client's own process, for each run. */
  readonly clientCpuMicros: number;
}

const BEHIND_ALL = 999_999;

const load = JSON.parse(process.argv[2] ?? "{}") as Load;
const clients = await Promise.all(
  Array.from({ length: load.clients }, () => openClient(load.baseUrl, load.token)),
);
let requests = 0;
let snapshotMs: number[] = [];
await runAll(load.warmups);
requests = 0;
snapshotMs = [];
const cpuBefore = process.cpuUsage();
const begun = performance.now();
const times = await runAll(load.runs);
const elapsedMs = performance.now() - begun;
const { user, system } = process.cpuUsage(cpuBefore);
const figures: LoadFigures = {
  perSecond: round((1_000 * times.length) / elapsedMs, 4),
  p50Ms: round(findMedian(times)),
  p99Ms: round(times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? Number.NaN),
  requestsPerRun: round(requests / times.length),
  snapshotP50Ms: round(findMedian(snapshotMs)),
  clientCpuMicros: round((user + system) / times.length),
};
for (const client of clients) client.close();
process.stdout.write(`${JSON.stringify(figures)}\n`);

/** Each client does one run after the other, until all are done. */
async function runAll(runs: number): Promise<number[]> {
  let left = runs;
  const found: number[] = [];
  await Promise.all(
    clients.map(async (client) => {
      while (left > 0) {
        left -= 1;
        const start = performance.now();
        await doOnce(client);
        found.push(performance.now() - start);
      }
    }),
  );
  return found;
}

function doOnce(client: KeepAliveClient): Promise<void> {
  const { echo, readsOf } = load;
  if (echo !== undefined) return readOnce(client, echo);
  if (readsOf === undefined) return runOnce(client);
  return readOnce(client, `/v1/runs/${runIdOf(Math.floor(Math.random() * readsOf))}`);
}

async function readOnce(client: KeepAliveClient, path: string): Promise<void> {
  requests += 1;
  const { status } = await client.get(path);
  if (status !== 200) throw new Error(`${path} was answered with ${status}`);
}

async function runOnce(client: KeepAliveClient): Promise<void> {
  requests += 1;
  const created = await client.post("/v1/runs", JSON.stringify({ workflowId: load.workflowId }));
  if (created.status !== 201) throw new Error(`a run was not accepted: ${created.status} ${created.body}`);
  const { runId } = JSON.parse(created.body) as { runId: string };
  const path = `/v1/runs/${runId}`;
  for (;;) {
    requests += 1;
    const start = performance.now();
    const { body } = await client.get(path);
    const { status } = JSON.parse(body) as { status: string };
    if (status === "completed") {
      snapshotMs.push(performance.now() - start);
      return;
    }
    if (status !== "running" && status !== "pending") throw new Error(`the run is ${status}: ${body}`);
    requests += 1;
    await client.get(`${path}/events/poll?lastSequence=${BEHIND_ALL}&timeout=30`);
  }
}
