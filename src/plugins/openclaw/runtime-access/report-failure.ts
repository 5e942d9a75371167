/** Owns: telling the operator that coordination fails, in the log and beside the ledger, whether or not there is a runtime. */
import type { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { OpenClawPluginApi } from "../host/sdk.ts";
import { findRuntime } from "./shared-runtime.ts";

/**
 * Reports a failure of the ledger, because of which `spawns` spawns go on uncoordinated, to the gateway's health, and
 * returns it with its advice; `undefined` where it could not be reported.
 */
export async function reportFailure(
  api: OpenClawPluginApi,
  error: unknown,
  spawns: number,
): Promise<CoordinationError | undefined> {
  try {
    const health = findRuntime()?.health ?? (await import("./make-runtime.ts")).createGatewayHealth(api);
    return health.failed(error, spawns);
  } catch {
    // The host cannot name its state folder.
    return undefined;
  }
}
