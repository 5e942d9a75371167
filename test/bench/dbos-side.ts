/** Owns: running DBOS workflows of two steps on a PostgreSQL server, in a process of their own. */
import { randomBytes } from "node:crypto";
import type { TestSchema } from "../support/postgres-server.ts";
import { isInstalled } from "./peers.ts";
import { runForJson } from "./run-for-json.ts";

const RUN_DBOS = new URL("dbos/run-workflows.mjs", import.meta.url);

export interface DbosLoad {
  readonly atOnce: number;
  readonly workflows: number;
  readonly warmups: number;
}

export interface DbosFigures {
  readonly perSecond: number;
  readonly p50Ms: number;
  /** Processor time of the process for each workflow, without that of the server. */
  readonly cpuMicros: number;
}

/** Returns `undefined` where DBOS is not installed, and deletes what it stored. */
export async function runDbos(schema: TestSchema, load: DbosLoad): Promise<DbosFigures | undefined> {
  if (!isInstalled("dbos")) return undefined;
  const name = `dbos_${randomBytes(6).toString("hex")}`;
  try {
    return await runForJson<DbosFigures>(RUN_DBOS, [
      JSON.stringify({ ...load, url: schema.url, schema: name }),
    ]);
  } finally {
    await schema.query(`drop schema if exists ${name} cascade`);
  }
}
