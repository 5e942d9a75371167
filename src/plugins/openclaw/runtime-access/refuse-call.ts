/** Owns: refusing a call of a tool in words for its model, and what happens to one that could not be recorded. */
import type { HookResult, OpenClawPluginApi } from "../host/sdk.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";
import { reportFailure } from "./report-failure.ts";
import { readRulesInForce } from "./rules-in-force.ts";

type BeforeResult = HookResult<"before_tool_call">;

/** The act that the host is asked for. */
export type HostAct = "spawn" | "call";

export function createRefusal(refusedThing: HostAct, reason: string): BeforeResult {
  return { block: true, blockReason: `Coordination refused this ${refusedThing}: ${reason}` };
}

/** Reports that the ledger failed. The call goes on, unless the operator wants it otherwise. */
export async function continueOrRefuse(
  api: OpenClawPluginApi,
  error: unknown,
  refusedThing: HostAct,
): Promise<BeforeResult> {
  const { strict } = readRulesInForce(api);
  const failure = await reportFailure(api, error, refusedThing === "spawn" && !strict ? 1 : 0);
  if (!failure) api.logger.error(`coordination: ${describeError(error)}`);
  if (!strict) return undefined;
  return createRefusal(
    refusedThing,
    failure ? `${failure.message}. ${failure.advice}` : "the ledger is not open",
  );
}
