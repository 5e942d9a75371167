/** Owns: a client in a thread of its own, so that what it does is not counted as work of the host in this thread. */
import { Worker } from "node:worker_threads";

export interface ThreadAnswer {
  readonly status: number;
  /** Its beginning. */
  readonly text: string;
}

export interface ThreadClient {
  ask(path: string, init: RequestInit): Promise<ThreadAnswer>;
  close(): Promise<unknown>;
}

const CODE = `
const { parentPort } = require("node:worker_threads");
const CHARS_MAX = 10_000;
parentPort.on("message", async ({ id, url, init }) => {
  const response = await fetch(url, init);
  const text = await response.text();
  parentPort.postMessage({ id, status: response.status, text: text.slice(0, CHARS_MAX) });
});`;

export function startThreadClient(baseUrl: string): ThreadClient {
  const worker = new Worker(CODE, { eval: true });
  const waiting = new Map<number, (answer: ThreadAnswer) => void>();
  let requestCount = 0;
  worker.on("message", ({ id, ...answer }: ThreadAnswer & { readonly id: number }) => {
    waiting.get(id)?.(answer);
    waiting.delete(id);
  });
  return {
    ask: (path, init) =>
      new Promise((resolve) => {
        const id = (requestCount += 1);
        waiting.set(id, resolve);
        worker.postMessage({ id, url: `${baseUrl}${path}`, init });
      }),
    close: () => worker.terminate(),
  };
}
