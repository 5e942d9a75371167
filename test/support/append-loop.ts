/** Owns: a process of its own that appends to a ledger until it is ended. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Readable } from "node:stream";
import type { AcknowledgedOperation } from "../crash/kill-loop-worker.ts";
import { waitFor } from "./wait-for.ts";

const WORKER = fileURLToPath(new URL("../crash/kill-loop-worker.ts", import.meta.url));

export interface AppendLoop extends AsyncDisposable {
  /** Appends that the ledger has acknowledged so far. */
  acknowledged(): readonly AcknowledgedOperation[];
  /** Resolves when so many more appends are acknowledged. */
  more(appends: number): Promise<void>;
}

/** Begins to append; `round` makes the ids of its coordinations. */
export async function startAppendLoop(path: string, round = 0): Promise<AppendLoop> {
  const child = spawn(process.execPath, [WORKER, path, String(round)], {
    stdio: ["pipe", "pipe", "inherit", "pipe"],
  });
  const exited = once(child, "exit");
  const acknowledged: AcknowledgedOperation[] = [];
  createInterface({ input: child.stdio[3] as Readable }).on("line", (line) => {
    acknowledged.push(JSON.parse(line) as AcknowledgedOperation);
  });
  await once(child.stdout as Readable, "data");
  child.stdin?.write("go\n");
  const appendMore = async (appends: number): Promise<void> => {
    const wanted = acknowledged.length + appends;
    await waitFor(() => Promise.resolve(acknowledged.length >= wanted || undefined), {
      what: `${appends} more appends`,
      timeoutMs: 60_000,
    });
  };
  return {
    acknowledged: () => [...acknowledged],
    more: appendMore,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await exited;
    },
  };
}
