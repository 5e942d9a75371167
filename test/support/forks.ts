/** Owns: forking the runs of a scene, and what a fork's log is compared by. */
import { expect } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type {
  Caller,
  ForkRun,
} from "../../src/agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import type { MemoryWorkflowLedger } from "./memory-workflow-store.ts";
import { ALICE, listEvents, valueOf, type WorkflowScene } from "./workflow-scene.ts";

/** Forks a run, lets everything that needs no time happen, and returns the fork's id. */
export async function forkIn(
  scene: WorkflowScene,
  request: ForkRun,
  caller: Caller = ALICE,
): Promise<string> {
  const forked = valueOf(await scene.host.fork(caller, request));
  const { sourceRunId, mode, fromSeq = 0 } = request;
  expect(forked).toEqual({ runId: forked.runId, sourceRunId, mode, fromSeq });
  await scene.settle();
  return forked.runId;
}

export function countEvents(ledger: MemoryWorkflowLedger, runId: string): number {
  return ledger.runs.get(runId as CoordinationId)?.events.length ?? 0;
}

/** Everything about the events but the run that they are of. */
export function stripRunIds(events: readonly WorkflowEvent[]): readonly unknown[] {
  return events.map(({ runId: _, ...event }) => event);
}

export function expectReplayOf(ledger: MemoryWorkflowLedger, runId: string, sourceRunId: string): void {
  expect(stripRunIds(listEvents(ledger, runId))).toEqual(stripRunIds(listEvents(ledger, sourceRunId)));
}
