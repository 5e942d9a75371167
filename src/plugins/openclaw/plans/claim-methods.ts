/** Owns: the gateway methods about claims, and what they answer. An operator may end the claim of any step. */
import { z } from "zod";
import { fencingTokenSchema } from "../../../agents/coordination/contracts/arbitration.ts";
import { ENVELOPE_BOUNDS } from "../../../agents/coordination/contracts/validation.ts";
import { answer, read, createRefusedAnswer, type MethodAnswer } from "../host/method-answer.ts";
import type { UsePlans } from "../runtime-access/plan-access.ts";

const releaseParams = z.strictObject({ token: fencingTokenSchema });

/** The step keeps working: its next write of the resource is ruled on anew. */
export function releaseClaim(use: UsePlans, params: unknown): Promise<MethodAnswer> {
  return read({ schema: releaseParams, params, bounds: ENVELOPE_BOUNDS }, ({ token }) =>
    use(async (_, runtime) => {
      const { reads, arbiter } = await runtime.coordinator();
      const [claim] = await reads.claims({ after: token - 1, limit: 1 });
      const released = claim?.token === token ? await arbiter.release(token) : undefined;
      if (!claim || !released) {
        const message = `there is no claim ${token}; it has ended already, or there never was one`;
        return createRefusedAnswer("REQUEST_REFUSED", message, { refusal: "NO_SUCH_CLAIM" });
      }
      const { stepId, resource } = claim;
      return answer({ token, coordinationId: released.runId, stepId, resource });
    }),
  );
}
