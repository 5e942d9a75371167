/** Heap held per open step by the running coordinator: folded states, timers and maps, after a collection. */
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import {
  nameChildSession,
  OWNER,
  runIdOf,
  spawnRequest,
  testCoordinator,
} from "../support/ledger-fixtures.ts";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";
import { findMedian, round, type BenchOptions, type BenchRow } from "./bench-row.ts";
import { measureHeapBytes } from "./heap-bytes.ts";

const STEPS_PER_COORDINATION = 8;

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  const coordinations = quick ? 100 : 500;
  const samples: number[] = [];
  for (let sample = 0; sample < 3; sample += 1) samples.push(await measureBytesPerStep(coordinations));
  return [
    {
      name: "memory per open step",
      compares: `heap after a collection, ${coordinations * STEPS_PER_COORDINATION} open steps in ${coordinations} coordinations, by open steps`,
      value: Math.round(findMedian(samples)),
      unit: "bytes",
      target: { is: "at most", value: 4_096 },
      detail: { lowest: round(Math.min(...samples), 4), highest: round(Math.max(...samples), 4) },
    },
  ];
}

async function measureBytesPerStep(coordinations: number): Promise<number> {
  using folder = createTempFolder();
  const store = await openTestLedger(folder.file("ledger.sqlite"), { clock: systemClock });
  let number = 0;
  const coordinator = testCoordinator({
    store,
    clock: systemClock,
    newCoordinationId: () => runIdOf((number += 1)),
  });
  const before = measureHeapBytes();
  for (let trace = 0; trace < coordinations; trace += 1) {
    for (let step = 0; step < STEPS_PER_COORDINATION; step += 1) {
      const call = `call-${trace}-${step}`;
      const admission = await coordinator.admitSpawn(spawnRequest({ call, trace: `trace-${trace}` }));
      if (admission.kind === "refused") throw new Error(admission.reason);
      const { coordinationId, stepId } = admission.envelope;
      const claim = { coordinationId, stepId, sourceSession: OWNER };
      await coordinator.confirmSpawn(claim, { childSessionKey: nameChildSession(call), childRunId: call });
    }
  }
  const bytes = measureHeapBytes() - before;
  await coordinator.stop();
  await store.close();
  return bytes / (coordinations * STEPS_PER_COORDINATION);
}
