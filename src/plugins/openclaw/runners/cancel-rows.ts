/** Owns: stopping runs of the host by their task rows. The host stops what a running one has spawned, too. */
import type { Cancellation } from "../../../agents/coordination/contracts/observation.ts";
import { isOpen, type HostRuntime, type TaskRow } from "../host/host-runs.ts";
import { walkRowsBelow } from "./rows-below.ts";

/** @param owner the session that the row lies under */
export async function cancelRow(runtime: HostRuntime, owner: string, { id }: TaskRow): Promise<Cancellation> {
  const rows = runtime.tasks.runs.bindSession({ sessionKey: owner });
  // The host's own types of its config disagree about `undefined`.
  const cfg = runtime.config.current() as Parameters<typeof rows.cancel>[0]["cfg"];
  const result = await rows.cancel({ taskId: id, cfg });
  if (result.cancelled) return "stopped";
  return result.task && !isOpen(result.task) ? "already_ended" : "unreachable";
}

/** Stops what the agents of a session have spawned; `unreachable` when one could not be, `already_ended` when none was at work. */
export async function cancelSpawnsOf(runtime: HostRuntime, session: string): Promise<Cancellation> {
  const results: Cancellation[] = [];
  for await (const { owner, row } of walkRowsBelow(runtime, session)) {
    if (isOpen(row)) results.push(await cancelRow(runtime, owner, row));
  }
  if (results.includes("unreachable")) return "unreachable";
  return results.includes("stopped") ? "stopped" : "already_ended";
}
