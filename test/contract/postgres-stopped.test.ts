/** Owns: that a process which is stopped in the middle of what it does behind the lock of the ledger holds up no other for long. */
import { describe, expect, it } from "vitest";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import { openRun, runIdOf } from "../support/ledger-fixtures.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { startPostgresProxy } from "../support/postgres-proxy.ts";
import { createTestSchema } from "../support/postgres-server.ts";
import { TEST_EPOCH_MS } from "../support/temp-ledger.ts";
import { readAll } from "./ledger-store-tested.ts";
import { addCoordination, listProblems, listRunIds, prune } from "./prunable-ledger.ts";

describe("a process that is stopped in the middle", () => {
  it.each<[string, (store: OpenedLedger) => Promise<unknown>]>([
    ["pruning", (store) => prune(store)],
    ["deleting old texts", (store) => store.deleteBefore((TEST_EPOCH_MS + 1) as EpochMs)],
  ])("of %s holds up the others for 2 s at most, and its work is done later", async (_, work) => {
    await using schema = await createTestSchema();
    await using proxy = await startPostgresProxy(schema.url);
    const stopped = await openTestPostgres(proxy.url);
    const other = await openTestPostgres(schema.url, { busyTimeoutMs: 8_000 });
    await addCoordination(other, "old");
    const stalled = proxy.stallNextAppend();
    const worked = work(stopped).catch((error: unknown) => error);
    await stalled;
    const { author, request } = openRun("b");
    await other.append(request);
    expect(await readAll(other, author.runId)).toEqual(request.events);
    expect(await worked).toMatchObject({ code: "LEDGER_BUSY" });
    expect(await listRunIds(other)).toContain(runIdOf("old"));
    await work(stopped);
    expect(await listProblems(other)).toEqual([]);
    await stopped.close();
    await other.close();
  });
});
