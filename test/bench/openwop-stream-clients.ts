/**
 * Owns: the process of the clients of event streams, and talking to it.
 *
 * Run as a program, `node test/bench/openwop-stream-clients.ts`, it is that process: it makes runs that wait, opens a stream on
 * each, cancels all, and counts what the streams told.
 */
import { fork } from "node:child_process";
import { Agent, get } from "node:http";
import { fileURLToPath } from "node:url";
import { openClient } from "./keep-alive-client.ts";
import { TOKEN, WAITING } from "./openwop-workflows.ts";

const PROGRAM = fileURLToPath(import.meta.url);
const CANCELLED_TOGETHER = 100;

export interface Streams {
  /** Opens them all; milliseconds until each had its first events. */
  open(): Promise<number>;
  /** Cancels all runs; milliseconds until each stream told of it and ended. @throws where one did not. */
  endAll(): Promise<number>;
  stop(): void;
}

type Order = { readonly make: number; readonly baseUrl: string } | "open" | "end";

/** The runs are there, and no stream yet. */
export async function openStreams(baseUrl: string, count: number): Promise<Streams> {
  const child = fork(PROGRAM, []);
  const ask = (order: Order): Promise<number> => {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const rejectGone = (): void => reject(new Error("the clients' process ended"));
    child.once("exit", rejectGone);
    child.once("message", (answer) => {
      child.off("exit", rejectGone);
      resolve(Number(answer));
    });
    child.send(order);
    return promise;
  };
  await ask({ make: count, baseUrl });
  return { open: () => ask("open"), endAll: () => ask("end"), stop: () => child.kill() };
}

interface Clients {
  readonly baseUrl: string;
  readonly runIds: readonly string[];
  /** Each resolves when its stream has ended. */
  readonly ends: Promise<boolean>[];
}

async function make(baseUrl: string, count: number): Promise<Clients> {
  const client = await openClient(baseUrl, TOKEN);
  const runIds: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const created = await client.post("/v1/runs", JSON.stringify({ workflowId: WAITING.id }));
    runIds.push((JSON.parse(created.body) as { runId: string }).runId);
  }
  client.close();
  return { baseUrl, runIds, ends: [] };
}

async function openAll({ baseUrl, runIds, ends }: Clients): Promise<number> {
  const agent = new Agent({ maxSockets: Infinity });
  const begun = performance.now();
  const opened = runIds.map((runId) => {
    const first = Promise.withResolvers<undefined>();
    ends.push(follow(`${baseUrl}/v1/runs/${runId}/events`, agent, first));
    return first.promise;
  });
  await Promise.all(opened);
  return performance.now() - begun;
}

/** Whether it told of the run's end before it ended. */
function follow(url: string, agent: Agent, first: PromiseWithResolvers<undefined>): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const headers = { authorization: `Bearer ${TOKEN}`, accept: "text/event-stream" };
  get(url, { agent, headers }, (response) => {
    if (response.statusCode !== 200) first.reject(new Error(`a stream was answered ${response.statusCode}`));
    let message = "";
    response.setEncoding("utf8");
    response.on("data", (text: string) => {
      message += text;
      if (message.includes("event: interrupt.requested")) first.resolve(undefined);
    });
    response.on("end", () => resolve(message.includes("event: run.cancelled")));
    response.on("error", reject);
  }).on("error", reject);
  return promise;
}

async function endAll({ baseUrl, runIds, ends }: Clients): Promise<number> {
  const client = await openClient(baseUrl, TOKEN);
  const begun = performance.now();
  for (let from = 0; from < runIds.length; from += CANCELLED_TOGETHER) {
    const some = runIds.slice(from, from + CANCELLED_TOGETHER);
    await client.post("/v1/runs:bulk-cancel", JSON.stringify({ runIds: some }));
  }
  const reports = await Promise.all(ends);
  const elapsedMs = performance.now() - begun;
  client.close();
  const silent = reports.filter((isTold) => !isTold).length;
  if (silent > 0) throw new Error(`${silent} streams ended without telling of the cancellation`);
  return elapsedMs;
}

if (process.argv[1] === PROGRAM) {
  let clients: Clients | undefined;
  const followOrder = async (order: Order): Promise<number> => {
    if (typeof order === "object") {
      clients = await make(order.baseUrl, order.make);
      return clients.runIds.length;
    }
    if (!clients) throw new Error("runs are made first");
    return order === "open" ? await openAll(clients) : await endAll(clients);
  };
  process.on("message", (order: Order) => {
    followOrder(order).then(
      (answer) => process.send?.(answer),
      (error: unknown) => {
        process.stderr.write(`${String(error)}\n`);
        process.exit(1);
      },
    );
  });
}
