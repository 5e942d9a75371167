/** Owns: creating refusals of requests to a host of runs. */
import type { HostRefusal } from "./workflow-host.ts";

/** Returns a refusal, which the caller gets in place of an answer. It does not throw. */
export function refuse(
  code: HostRefusal["code"],
  message: string,
  details?: Readonly<Record<string, unknown>>,
): HostRefusal {
  return { kind: "refused", code, message, ...(details && { details }) };
}
