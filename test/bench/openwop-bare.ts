/**
 * Reads over HTTP from a ledger of many runs, against a bare Hono server that answers the same bytes from memory: what
 * looking up, checking the caller and writing JSON cost beside HTTP itself. Both sides take turns in every round.
 */
import { writeFileSync } from "node:fs";
import type { TempFolder } from "../support/temp-ledger.ts";
import { findMedian, round, spreadOf, type BenchRow } from "./bench-row.ts";
import type { FixedAnswer } from "./hono-server.ts";
import { runIdOf } from "./openwop-ids.ts";
import type { Load, LoadFigures } from "./openwop-load.ts";
import { putLoad, startHono, startHost, type ServerProcess } from "./openwop-servers.ts";
import { LONG, TOKEN } from "./openwop-workflows.ts";

const TARGET = 0.5;
const CLIENTS = 16;
/** Headers that Node.js writes by itself, or that say how the bytes went over the wire. */
const HEADERS_OF_NODE = new Set(["connection", "date", "keep-alive", "content-length", "transfer-encoding"]);

interface Read {
  readonly subject: string;
  readonly path: string;
  readonly token: string;
  /** The host is asked for a different run each time where this is there. */
  readonly readsOf?: number;
}

/** With the answer of the host that Hono repeats. */
interface AnsweredRead extends Read {
  readonly answer: FixedAnswer;
}

interface Sizes {
  readonly runs: number;
  readonly quick: boolean;
}

/** Adds one run of many events to the ledger. */
export async function compareWithHono(
  ledger: string,
  folder: TempFolder,
  { runs, quick }: Sizes,
): Promise<BenchRow[]> {
  const host = await startHost(ledger, folder);
  try {
    const reads: AnsweredRead[] = [];
    for (const read of await listReads(host, runs))
      reads.push({ ...read, answer: await askOnce(host, read) });
    const file = folder.file("answers.json");
    writeFileSync(file, JSON.stringify(reads.map(({ answer }) => answer)));
    const hono = await startHono(file);
    try {
      const rows: BenchRow[] = [];
      for (const read of reads) rows.push(await compareRead({ host, hono, read, quick }));
      return rows;
    } finally {
      await hono.stop();
    }
  } finally {
    await host.stop();
  }
}

async function listReads(host: ServerProcess, runs: number): Promise<Read[]> {
  const longRun = await runLongWorkflow(host);
  const events = `/v1/runs/${longRun}/events/poll?lastSequence=0&timeout=0`;
  const count = runs.toLocaleString("en");
  return [
    {
      subject: `snapshots of old runs, ${count} runs in the ledger`,
      path: `/v1/runs/${runIdOf(0)}`,
      token: TOKEN,
      readsOf: runs,
    },
    { subject: "a page of the events of one run", path: events, token: TOKEN },
    {
      subject: `the newest of ${count} runs, as the page lists them`,
      path: "/api/runs",
      token: await signIn(host),
    },
  ];
}

/** Returns the id of a run that has ended. */
async function runLongWorkflow({ baseUrl }: ServerProcess): Promise<string> {
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
  const body = JSON.stringify({ workflowId: LONG.id });
  const created = await fetch(`${baseUrl}/v1/runs`, { method: "POST", headers, body });
  const { runId } = (await created.json()) as { runId: string };
  for (;;) {
    const answer = await fetch(`${baseUrl}/v1/runs/${runId}`, { headers });
    const { status } = (await answer.json()) as { status: string };
    if (status === "completed") return runId;
    if (status !== "running" && status !== "pending") throw new Error(`the run of ${LONG.id} is ${status}`);
    await fetch(`${baseUrl}/v1/runs/${runId}/events/poll?lastSequence=999999&timeout=30`, { headers });
  }
}

async function signIn({ baseUrl, telling }: ServerProcess): Promise<string> {
  const [, link] = String(telling["page"]).split("#link=");
  const answer = await fetch(`${baseUrl}/api/session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ link }),
  });
  const { token } = (await answer.json()) as { token: string };
  return token;
}

async function askOnce({ baseUrl }: ServerProcess, { path, token }: Read): Promise<FixedAnswer> {
  const answer = await fetch(`${baseUrl}${path}`, { headers: { authorization: `Bearer ${token}` } });
  const body = await answer.text();
  if (answer.status !== 200) throw new Error(`${path} was answered ${answer.status}: ${body}`);
  const headers = Object.fromEntries([...answer.headers].filter(([name]) => !HEADERS_OF_NODE.has(name)));
  return { path: new URL(path, baseUrl).pathname, body, headers };
}

interface Sides {
  readonly host: ServerProcess;
  readonly hono: ServerProcess;
  readonly read: AnsweredRead;
  readonly quick: boolean;
}

async function compareRead({ host, hono, read, quick }: Sides): Promise<BenchRow> {
  const { subject, path, token, readsOf, answer } = read;
  const counts = { clients: CLIENTS, warmups: quick ? 50 : 1_000, runs: quick ? 200 : 4_000 };
  const load: Omit<Load, "baseUrl"> = { ...counts, workflowId: "", token, echo: path };
  const ours: LoadFigures[] = [];
  const theirs: LoadFigures[] = [];
  for (let index = 0; index < (quick ? 1 : 5); index += 1) {
    ours.push(await putLoad(host, readsOf === undefined ? load : { ...counts, workflowId: "", readsOf }));
    theirs.push(await putLoad(hono, load));
  }
  const ratios = ours.map(({ perSecond }, index) => perSecond / (theirs[index]?.perSecond ?? Number.NaN));
  const medianOf = (all: readonly LoadFigures[], figure: (figures: LoadFigures) => number): number =>
    round(findMedian(all.map(figure)));
  return {
    name: `OpenWOP: ${subject} / bare Hono answering the same bytes`,
    compares: `requests per second of ${CLIENTS} clients; Hono from memory, without looking anything up or checking who asks`,
    value: round(findMedian(ratios)),
    unit: "ratio",
    target: { is: "at least", value: TARGET },
    detail: {
      ...spreadOf(ratios),
      bytes: Buffer.byteLength(answer.body),
      perSecond: medianOf(ours, ({ perSecond }) => perSecond),
      honoPerSecond: medianOf(theirs, ({ perSecond }) => perSecond),
      p50Ms: medianOf(ours, ({ p50Ms }) => p50Ms),
      p99Ms: medianOf(ours, ({ p99Ms }) => p99Ms),
      honoP50Ms: medianOf(theirs, ({ p50Ms }) => p50Ms),
      clientCpuMicros: medianOf(ours, ({ clientCpuMicros }) => clientCpuMicros),
    },
  };
}
