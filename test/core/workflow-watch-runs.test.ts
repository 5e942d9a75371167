/** Owns: what is said of runs that clients follow while the ledger cannot be read. */
import { expect, it, vi } from "vitest";
import { createRunWatch } from "../../src/agents/coordination/runtime/workflow-host/driving/watch-runs.ts";
import type { WorkflowHostDependencies } from "../../src/agents/coordination/runtime/workflow-host/records/workflow-dependencies.ts";
import { createFakeClock } from "../support/fake-clock.ts";

it("says once that runs cannot be read, tries again, and says it anew after it worked", async () => {
  const clock = createFakeClock();
  const logger = { warn: vi.fn() };
  let readings = 0;
  const failing = new Set([1, 2, 3, 5]);
  const readEntry = (): Promise<{ length: number }> => {
    readings += 1;
    return failing.has(readings)
      ? Promise.reject(new Error("no disk"))
      : Promise.resolve({ length: readings });
  };
  const dependencies = { clock, logger, store: { entry: readEntry } } as unknown as WorkflowHostDependencies;
  const watch = createRunWatch(dependencies);
  const wake = vi.fn();
  watch.watch("run-1", wake);
  await clock.advance(1_000);
  expect(readings).toBe(4);
  expect(wake).toHaveBeenCalledTimes(1);
  expect(logger.warn.mock.calls).toEqual([
    [{ code: "UNKNOWN" }, expect.stringContaining("could not be read")],
  ]);
  await clock.advance(250);
  expect(logger.warn).toHaveBeenCalledTimes(2);
  watch.stop();
});

it("says nothing of a look that fails when nobody follows a run any more", async () => {
  const clock = createFakeClock();
  const logger = { warn: vi.fn() };
  const reading = Promise.withResolvers<never>();
  const dependencies = { clock, logger, store: { entry: () => reading.promise } };
  const watch = createRunWatch(dependencies as unknown as WorkflowHostDependencies);
  watch.watch("run-1", vi.fn());
  await clock.advance(250);
  watch.stop();
  reading.reject(new Error("no disk"));
  await clock.advance(1_000);
  expect(logger.warn).not.toHaveBeenCalled();
});
