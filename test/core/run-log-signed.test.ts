/** A gateway owns the coordinations that it began, and no others. */
import { expect, it } from "vitest";
import type { SigningRuns } from "../../src/agents/coordination/runtime/ownership/sign-append.ts";
import { createOwnRuns } from "../../src/agents/coordination/runtime/ownership/own-runs.ts";
import { createRunLog } from "../../src/agents/coordination/runtime/log/run-log.ts";
import { createWorld } from "../support/fake-clock-host.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { OPEN, RUN } from "./scene.ts";

const ignore = (): void => undefined;
const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore };
const GATEWAY = "gateway-1";

it("one whose first event could not be read again is not its own", async () => {
  const w = createWorld();
  const ownRuns = createOwnRuns({
    owners: createMemoryWorkflowLedger().open().owners,
    owner: { id: GATEWAY },
    clock: w.clock,
    steady: { elapsedMs: () => 0 },
    leaseMs: 10_000,
  });
  const signing: SigningRuns = { ...ownRuns, ownerId: GATEWAY };
  const log = createRunLog({
    store: w.ledger.open(w.clock),
    clock: w.clock,
    logger: SILENT,
    ownRuns: signing,
  });
  const unreadable = { ...OPEN, objective: { sha256: "no hash", bytes: 1 } } as typeof OPEN;
  await expect(log.submit(RUN, [unreadable])).rejects.toMatchObject({ code: "INPUT_INVALID" });
  expect(ownRuns.ids()).toEqual([]);
  await log.submit(RUN, [OPEN]);
  expect(ownRuns.ids()).toEqual([RUN]);
});
