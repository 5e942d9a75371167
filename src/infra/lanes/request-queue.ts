/** Owns: our requests in the shape that p-queue asks of a queue. */
import type { Queue, QueueAddOptions, RunFunction } from "p-queue";
import { InvariantViolation } from "../../agents/coordination/contracts/errors.ts";
import type { LaneRequest } from "../../agents/coordination/ports/lane-runner.ts";
import type { WaitingRequests } from "./waiting-requests.ts";

export interface RequestOptions extends QueueAddOptions {
  readonly request: LaneRequest;
}

export type RequestQueue = Queue<RunFunction, RequestOptions>;

/**
 * Creates the class of queue in which p-queue keeps and takes the waiting requests of a lane. A class because p-queue
 * makes its queue itself, without arguments.
 */
export function createRequestQueueClass(waiting: WaitingRequests): new () => RequestQueue {
  return class implements RequestQueue {
    /** Not how many wait: p-queue calls what `dequeue` returns whenever this is not 0, so what a cap holds back must not count. */
    get size(): number {
      return waiting.next() ? 1 : 0;
    }

    enqueue(run: RunFunction, options?: Partial<RequestOptions>): void {
      if (!options?.request) throw new InvariantViolation("work entered a lane without a request");
      waiting.add(options.request, run);
    }

    dequeue(): RunFunction | undefined {
      return waiting.takeNext()?.run;
    }

    filter(): RunFunction[] {
      throw createUnusedMethodError("filter");
    }

    setPriority(): void {
      throw createUnusedMethodError("setPriority");
    }

    remove(): void {
      throw createUnusedMethodError("remove");
    }
  };
}

/** Creates the error for a method that p-queue needs for `sizeBy`, `setPriority` and `signal` only. */
function createUnusedMethodError(method: string): InvariantViolation {
  return new InvariantViolation(`a lane's queue was asked to ${method}`);
}
