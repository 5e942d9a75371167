/** Owns: that the MCP server over stdio goes on with its work while it proves the whole ledger. */
import { expect, it } from "vitest";
import { startMcp } from "../support/mcp-process.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { openRun } from "../support/ledger-fixtures.ts";
import { callTool } from "./mcp-world.ts";

const RUNS = 4_000;
const BATCH = 500;

async function fillLedger(path: string): Promise<void> {
  const store = await openTestLedger(path);
  for (let first = 0; first < RUNS; first += BATCH)
    await Promise.all(Array.from({ length: BATCH }, (_, at) => store.append(openRun(first + at).request)));
  await store.close();
}

it("answers others while the whole ledger is proved", async () => {
  using folder = createTempFolder();
  await fillLedger(folder.file("runs.sqlite"));
  const served = await startMcp(folder.path);
  const beganAtMs = performance.now();
  let isProved = false;
  const proving = callTool(served, "verify").finally(() => {
    isProved = true;
  });
  let longestMs = 0;
  while (!isProved) {
    const askedAtMs = performance.now();
    await served.client.ping();
    longestMs = Math.max(longestMs, performance.now() - askedAtMs);
  }
  const { data } = await proving;
  expect(data).toMatchObject({ ok: true, problems: [] });
  expect(longestMs).toBeLessThan((performance.now() - beganAtMs) / 4);
  await served.close();
});
