/** Owns: stopping runs of the host by their task rows. The host stops what a running one has spawned, too. */
import type { Cancellation } from "../../../agents/coordination/contracts/observation.ts";
import { isRowOpen, type HostRuntime, type TaskRow } from "../host/host-runs.ts";
import { walkSpawnRows } from "./rows-below.ts";

/** @param owner the session that the row lies under */
export async function cancelRowRun(
  runtime: HostRuntime,
  owner: string,
  { id }: TaskRow,
): Promise<Cancellation> {
  const rows = runtime.tasks.runs.bindSession({ sessionKey: owner });
  // The host's own types of its config disagree about `undefined`.
  const cfg = runtime.config.current() as Parameters<typeof rows.cancel>[0]["cfg"];
  const result = await rows.cancel({ taskId: id, cfg });
  if (result.cancelled) return "stopped";
  return result.task && !isRowOpen(result.task) ? "already_ended" : "unreachable";
}

/**
 * Cancels the open runs of all that a session spawned, as deep as the host lets agents spawn. Returns `unreachable`
 * where one could not be stopped, else `stopped` where one was, else `already_ended`.
 */
export async function cancelSpawnsBelow(runtime: HostRuntime, session: string): Promise<Cancellation> {
  const results: Cancellation[] = [];
  for await (const { owner, row } of walkSpawnRows(runtime, session)) {
    if (isRowOpen(row)) results.push(await cancelRowRun(runtime, owner, row));
  }
  if (results.includes("unreachable")) return "unreachable";
  return results.includes("stopped") ? "stopped" : "already_ended";
}
