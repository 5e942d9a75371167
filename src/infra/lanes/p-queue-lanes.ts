/**
 * Owns: the p-queue behind each lane. A lane limits concurrency in this process and holds no truth.
 *
 * No p-queue `timeout` or `signal`: both free the slot while the work still runs. No `clear()`: its promises never settle.
 */
import PQueue from "p-queue";
import type { Lane, Priority } from "../../agents/coordination/contracts/envelope.ts";
import type { LaneRunner } from "../../agents/coordination/ports/lane-runner.ts";

const PRIORITY: Readonly<Record<Priority, number>> = { low: -1, normal: 0, high: 1, critical: 2 };

/** Escalations are serial; control keeps going while data is busy. */
export const LANE_CONCURRENCY: Readonly<Record<Lane, number>> = { control: 4, data: 4, escalation: 1 };

export function pQueueLanes(concurrency: Readonly<Record<Lane, number>> = LANE_CONCURRENCY): LaneRunner {
  const queues: Readonly<Record<Lane, PQueue>> = {
    control: new PQueue({ concurrency: concurrency.control }),
    data: new PQueue({ concurrency: concurrency.data }),
    escalation: new PQueue({ concurrency: concurrency.escalation }),
  };
  return {
    run: (lane, priority, work) => queues[lane].add(work, { priority: PRIORITY[priority] }),
    idle: async () => {
      await Promise.all(Object.values(queues).map((queue) => queue.onIdle()));
    },
  };
}
