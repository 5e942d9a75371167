/** Owns: refusing a call of a tool in words for its model, and what happens to one that could not be recorded. */
import type { HookResult, OpenClawPluginApi } from "../host/sdk.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";
import { reportFailure } from "./report-failure.ts";
import { readRulesInForce } from "./rules-in-force.ts";

type BeforeResult = HookResult<"before_tool_call">;

/** The act that the host is asked for. */
export type HostAct = "spawn" | "call";

/** Returns the result of a host hook that blocks a spawn or a tool call, with the reason for its model. */
export function createCallRefusal(refusedThing: HostAct, reason: string): BeforeResult {
  return { block: true, blockReason: `Coordination refused this ${refusedThing}: ${reason}` };
}

/**
 * Reports that the ledger failed under a hook, and returns what the hook does then: `undefined`, by which the spawn or
 * call goes on, or a refusal where the operator is strict.
 */
export async function continueOrRefuse(
  api: OpenClawPluginApi,
  error: unknown,
  refusedThing: HostAct,
): Promise<BeforeResult> {
  const { strict } = readRulesInForce(api);
  const failure = await reportFailure(api, error, refusedThing === "spawn" && !strict ? 1 : 0);
  if (!failure) api.logger.error(`coordination: ${describeError(error)}`);
  if (!strict) return undefined;
  return createCallRefusal(
    refusedThing,
    failure ? `${failure.message}. ${failure.advice}` : "the ledger is not open",
  );
}
