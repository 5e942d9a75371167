/** Owns: the gateway method that lets somebody into the operator's page. The rights of the link follow from the caller's scopes. */
import { z } from "zod";
import { ENVELOPE_BOUNDS } from "../../../agents/coordination/contracts/validation.ts";
import { answer, createRefusedAnswer, read, type MethodAnswer } from "../host/method-answer.ts";
import type { MethodCaller } from "../questions/question-methods.ts";
import type { UsePlans } from "../runtime-access/plan-access.ts";

const linkParams = z.strictObject({});

export function mintPageLink(
  use: UsePlans,
  params: unknown,
  { scopes = [] }: MethodCaller,
): Promise<MethodAnswer> {
  return read({ schema: linkParams, params, bounds: ENVELOPE_BOUNDS }, () =>
    use(async (_, { page }) => {
      if (page) return answer(await page.mintAddress(scopes));
      return createRefusedAnswer(
        "REQUEST_REFUSED",
        "the page is switched off: set coordination.phase1.page.enabled to true",
      );
    }),
  );
}
