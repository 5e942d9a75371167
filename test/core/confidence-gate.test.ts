import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ruleOnConfidence } from "../../src/agents/coordination/gates/verifier-gate.ts";

const basisPoints = fc.integer({ min: 0, max: 10_000 });

describe("a stated confidence", () => {
  it("passes when it equals what is required", () => {
    const verdict = ruleOnConfidence({ confidence: 7_000 }, { required: 7_000, isDemanded: false });
    expect(verdict).toEqual({ outcome: "pass", measured: 7_000, required: 7_000 });
  });

  it("holds one basis point below it, and says what was measured and what required", () => {
    const verdict = ruleOnConfidence({ confidence: 6_999 }, { required: 7_000, isDemanded: false });
    expect(verdict).toEqual({ outcome: "hold", reason: "low", measured: 6_999, required: 7_000 });
  });

  it("that is missing never holds unless one is demanded", () => {
    expect(ruleOnConfidence({}, { required: 10_000, isDemanded: false })).toEqual({
      outcome: "pass",
      required: 10_000,
    });
    expect(ruleOnConfidence({}, { required: 0, isDemanded: true })).toEqual({
      outcome: "hold",
      reason: "missing",
      required: 0,
    });
  });

  it.each([true, false])(
    "that cannot be read holds, demanded or not (%j), and is never a number",
    (isDemanded) => {
      const stated = { confidence: 10_000, confidenceUnreadable: true } as const;
      expect(ruleOnConfidence(stated, { required: 0, isDemanded })).toEqual({
        outcome: "hold",
        reason: "unreadable",
        required: 0,
      });
    },
  );

  it("passes exactly when it is at least what is required, whether or not one is demanded", () => {
    fc.assert(
      fc.property(basisPoints, basisPoints, fc.boolean(), (confidence, required, isDemanded) => {
        const { outcome } = ruleOnConfidence({ confidence }, { required, isDemanded });
        expect(outcome).toBe(confidence >= required ? "pass" : "hold");
      }),
    );
  });
});
