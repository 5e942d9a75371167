/** Owns: a real `serve` in a process of its own, over a ledger that the real core filled. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { killAtExit } from "../support/kill-at-exit.ts";

const MAIN = join(import.meta.dirname, "..", "..", "src", "plugins", "cli", "main.ts");
const STOP_MS = 10_000;

/** The page that a process of `serve` shows. */
export interface PageServer {
  /** With a link that signs in once. */
  readonly address: string;
  readonly port: number;
  stop(): Promise<void>;
}

/** The ledger of a process of `serve`, its port and its workflows. */
export interface ServeSetup {
  readonly ledger: string;
  /** 0 takes any that is free. */
  readonly port?: number;
  /** A folder of definitions. */
  readonly workflows?: string;
}

export const TOKEN = "s3cret-of-the-tests";

export async function startServe({ ledger, port = 0, workflows }: ServeSetup): Promise<PageServer> {
  const args = [MAIN, "serve", "--port", String(port), "--ledger", ledger, "--token", TOKEN, "--json"];
  if (workflows !== undefined) args.push("--workflows", workflows);
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  killAtExit(child);
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  const lines = createInterface({ input: child.stdout });
  let text = "";
  for await (const line of lines) {
    text += line;
    const listening = parseListening(text);
    if (listening) return { ...listening, stop: () => stop(child) };
  }
  throw new Error(`serve ended: ${errors}`);
}

function parseListening(text: string): { readonly address: string; readonly port: number } | undefined {
  try {
    const { page } = JSON.parse(text) as { readonly page: string };
    return { address: page, port: Number(new URL(page).port) };
  } catch {
    return undefined;
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
  await ended;
  clearTimeout(timer);
}
