/** Owns: what a failed call to the outside is to the node that wanted it. */
import type { OutboundFailure } from "../../../ports/outbound.ts";
import type { EffectOutcome } from "../../../workflow/node-contract/node-type.ts";

/** The outcome of an effect that failed. */
type FailedOutcome = EffectOutcome & { readonly kind: "failed" };

/**
 * Returns the failed outcome of an effect whose outbound call failed, with the other side's own error code where it
 * gave one. `more` is whatever else is known of the call.
 */
export function convertToFailedOutcome(
  { code, errorCode, message }: OutboundFailure,
  more: Omit<FailedOutcome, "kind" | "error"> = {},
): FailedOutcome {
  return { kind: "failed", error: { code: errorCode ?? code, message }, ...more };
}
