/** Owns: `openclaw-coordination serve` as processes that can be killed, over ledgers that outlive them. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import type { WorkflowEntry, WorkflowStore } from "../../src/agents/coordination/ports/workflow-store.ts";
import { clientOf, type Client, type Event } from "../openwop/levels-world.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { openTestLedger, createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";

const MAIN = new URL("../../src/plugins/cli/main.ts", import.meta.url).pathname;
export const TOKEN = "the-token-of-the-end-to-end-tests";
const { PATH, NODE_COMPILE_CACHE } = process.env;
const ENVIRONMENT = { PATH, NODE_COMPILE_CACHE, LANG: "C.UTF-8" };

/** So often a served host is killed in each campaign. */
export const SERVE_KILLS = chooseCampaignSize("SERVE_KILLS", { short: 8, long: 24 });

export interface Serve {
  readonly client: Client;
  readonly baseUrl: string;
  /** No chance to clean up. */
  kill9(): Promise<void>;
  stop(): Promise<void>;
}

export interface ServeStage extends AsyncDisposable {
  readonly ledger: string;
  serve(more?: readonly string[]): Promise<Serve>;
  /** All runs of the ledger, as it lies on disk. */
  runs(): Promise<WorkflowEntry[]>;
  /** The processes that the ledger knows of, and when each was last heard of. */
  beats(): ReturnType<WorkflowStore["owners"]["beats"]>;
  /** The log of a run, as it lies on disk. */
  log(runId: string): Promise<Event[]>;
  /** The answer of `verify`, with its exit code. */
  verify(): Promise<{ readonly ok: boolean; readonly problems: unknown; readonly exitCode: number | null }>;
}

export function serveStage(definitions: readonly WorkflowDefinition[]): ServeStage {
  const folder = createTempFolder();
  const workflows = writeWorkflowFolder(folder, definitions);
  const ledger = folder.file("runs.sqlite");
  const started: ChildProcess[] = [];
  return {
    ledger,
    serve: async (more = []) => {
      const options = ["--port", "0", "--token", TOKEN, "--workflows", workflows, "--ledger", ledger];
      const child = spawn(process.execPath, [MAIN, "serve", ...options, "--test-seams", "--json", ...more], {
        env: ENVIRONMENT,
        stdio: ["ignore", "pipe", "pipe"],
      });
      started.push(child);
      const baseUrl = await baseUrlOf(child);
      const endChildWith = (signal: NodeJS.Signals): Promise<void> => endChild(child, signal);
      return {
        baseUrl,
        client: clientOf(baseUrl, TOKEN),
        kill9: () => endChildWith("SIGKILL"),
        stop: () => endChildWith("SIGTERM"),
      };
    },
    runs: () => readLedger(ledger, ({ workflows: store }) => store.list({ order: "oldest", limit: 10_000 })),
    beats: () => readLedger(ledger, ({ workflows: store }) => store.owners.beats()),
    log: (runId) =>
      readLedger(ledger, async ({ workflows: store }) => {
        const events = await store.read(runId as CoordinationId, { from: 0, limit: 10_000 });
        return events;
      }),
    verify: () => verify(ledger),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(started.map((child) => endChild(child, "SIGKILL")));
      folder[Symbol.dispose]();
    },
  };
}

async function endChild(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const isThere = child.exitCode === null && child.signalCode === null;
  const exited = isThere ? once(child, "exit") : undefined;
  child.kill(signal);
  await exited;
}

function writeWorkflowFolder(folder: TempFolder, definitions: readonly WorkflowDefinition[]): string {
  const path = folder.file("workflows");
  mkdirSync(path);
  for (const definition of definitions)
    writeFileSync(join(path, `${definition.id}.json`), JSON.stringify(definition));
  return path;
}

async function baseUrlOf(child: ChildProcess): Promise<string> {
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  return waitFor(
    () => {
      if (child.exitCode !== null) throw new Error(`serve ended: ${stderr}`);
      return (JSON.parse(stdout) as { baseUrl: string }).baseUrl;
    },
    { what: "serve to listen", timeoutMs: 20_000, everyMs: 10 },
  );
}

async function readLedger<T>(
  path: string,
  read: (ledger: Awaited<ReturnType<typeof openTestLedger>>) => Promise<T>,
): Promise<T> {
  const ledger = await openTestLedger(path, { mode: "read" });
  try {
    return await read(ledger);
  } finally {
    await ledger.close();
  }
}

async function verify(ledger: string): ReturnType<ServeStage["verify"]> {
  const child = spawn(process.execPath, [MAIN, "verify", "--ledger", ledger, "--json"], { env: ENVIRONMENT });
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  const [exitCode] = (await once(child, "close")) as [number | null];
  return { ...(JSON.parse(stdout) as { ok: boolean; problems: unknown }), exitCode };
}
