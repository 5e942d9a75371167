/** Owns: what a failed call to the outside is to the node that wanted it. */
import type { OutboundFailure } from "../../../ports/outbound.ts";
import type { EffectOutcome } from "../../../workflow/node-contract/node-type.ts";

type Failed = EffectOutcome & { readonly kind: "failed" };

/** By the code of the other side where it gave one. `more`: what is known of the call besides. */
export function failureOf(
  { code, errorCode, message }: OutboundFailure,
  more: Omit<Failed, "kind" | "error"> = {},
): Failed {
  return { kind: "failed", error: { code: errorCode ?? code, message }, ...more };
}
