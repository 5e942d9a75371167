/** Owns: refusing a call of a tool in words for its model, and what happens to one that could not be recorded. */
import type { HookResult, OpenClawPluginApi } from "../host/sdk.ts";
import { findRuntime } from "./shared-runtime.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";

type BeforeResult = HookResult<"before_tool_call">;

/** The act that the host is asked for. */
export type HostAct = "spawn" | "call";

export function createRefusal(refusedThing: HostAct, reason: string): BeforeResult {
  return { block: true, blockReason: `Coordination refused this ${refusedThing}: ${reason}` };
}

/** The ledger failed: the call goes on, unless the operator wants it otherwise. */
export function continueOrRefuse(
  api: OpenClawPluginApi,
  error: unknown,
  refusedThing: HostAct,
): BeforeResult {
  const runtime = findRuntime();
  const failure = runtime?.health.failed(error, refusedThing === "spawn" ? 1 : 0);
  if (!failure) api.logger.error(`coordination: ${describeError(error)}`);
  if (!runtime?.config.strict) return undefined;
  return createRefusal(
    refusedThing,
    failure ? `${failure.message}. ${failure.advice}` : "the ledger is not open",
  );
}
