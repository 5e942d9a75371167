/** Owns: that equal spawns of one message are as many children, also after a compaction, in which only older ones are repeated. */
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { openLedgerForReading } from "../../src/plugins/ledger-reader.ts";
import { createHookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import { createFakeHost } from "./fake-host.ts";
import { createCallContext, createCallEvent } from "./hook-calls.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const OWNER = "agent:main:main";
const SECOND_MS = 1_000;
const folder = useStateFolder(() => vi.useRealTimers());

async function readEvents(): Promise<RunEvent[]> {
  const ledger = await openLedgerForReading(join(folder.path, "coordination", "ledger.sqlite"));
  try {
    const [run] = await ledger.list({ limit: 1 });
    return run ? await ledger.read(run.runId, { from: 0, limit: 1_000 }) : [];
  } finally {
    await ledger.close();
  }
}

it("equal spawns of one message are as many children, also after a compaction; only after the next one are they repeated", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const host = createFakeHost({ stateDir: folder.path });
  const handlers = createHookHandlers(host.api);
  folder.stopLater(handlers);
  await handlers.start();
  let children = 0;
  /** Both hooks of a spawn, as the host calls them. Returns why it is refused. */
  const spawn = async (params: object = {}): Promise<string | undefined> => {
    const event = createCallEvent("sessions_spawn", { task: "Find the mill.", ...params });
    const before = await handlers.beforeSpawn(event, createCallContext(OWNER));
    if (before?.block) return before.blockReason;
    children += 1;
    const childSessionKey = `agent:main:subagent:${children}`;
    const details = { status: "accepted", childSessionKey, runId: `${children}` };
    await handlers.afterSpawn({ ...event, ...before, result: { details } }, createCallContext(OWNER));
    return undefined;
  };
  const endCompaction = async (): Promise<void> => {
    vi.setSystemTime(Date.now() + SECOND_MS);
    await handlers.compacted({ compactedCount: 3 } as never, createCallContext(OWNER));
    vi.setSystemTime(Date.now() + SECOND_MS);
  };

  await endCompaction();
  // Whether the second begins before the first is recorded or after it.
  expect(await Promise.all([spawn(), spawn()])).toEqual([undefined, undefined]);
  expect(await spawn()).toBeUndefined();
  await endCompaction();
  expect(await spawn()).toContain('coordination: {"again": true}');
  expect(await spawn({ coordination: { again: true } })).toBeUndefined();

  const events = await readEvents();
  const sessions = events.flatMap((event) =>
    event.type === "step.acknowledged" ? [event.payload.childSessionKey] : [],
  );
  expect(sessions).toHaveLength(4);
  expect(new Set(sessions).size).toBe(4);
  expect(events.filter(({ type }) => type === "step.admitted")).toHaveLength(4);
});
