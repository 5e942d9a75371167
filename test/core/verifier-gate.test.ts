import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type {
  Finding,
  Gate,
  VerificationFailure,
} from "../../src/agents/coordination/contracts/verification.ts";
import {
  mustHold,
  ruleOnVerdicts,
  type ResultVerdict,
} from "../../src/agents/coordination/gates/verifier-gate.ts";
import { mustWithhold } from "../../src/agents/coordination/gates/withholds.ts";

const GATE: Gate = { threshold: 7_000, checks: ["a", "b"], criticThreshold: 6_000, revisionsMax: 1 };

const found = (check: string, verdict: Finding["verdict"], rest: Partial<Finding> = {}): Finding => ({
  check,
  agentId: `check:${check}`,
  verdict,
  ...rest,
});

interface Given {
  readonly findings?: readonly Finding[];
  readonly failures?: Readonly<Record<string, VerificationFailure>>;
  readonly confidence?: number;
  readonly unreadable?: true;
  readonly revisions?: number;
  readonly gate?: Gate;
}

function ruled({
  findings = [],
  failures = {},
  confidence,
  unreadable,
  revisions = 0,
  gate = GATE,
}: Given): ResultVerdict {
  return ruleOnVerdicts(gate, {
    stated: {
      ...(confidence !== undefined && { confidence }),
      ...(unreadable && { confidenceUnreadable: true }),
    },
    findings,
    failures: new Map(Object.entries(failures)),
    revisions,
  });
}

describe("the verdicts on a result", () => {
  it("wait for every check that has not answered, in the order in which they are asked", () => {
    expect(ruled({})).toEqual({ outcome: "wait", checks: ["a", "b"] });
    expect(ruled({ findings: [found("b", "pass")] })).toEqual({ outcome: "wait", checks: ["a"] });
    expect(ruled({ failures: { a: "failed" } })).toEqual({ outcome: "wait", checks: ["b"] });
    expect(ruled({ findings: [found("a", "revise")] })).toEqual({ outcome: "wait", checks: ["b"] });
  });

  it("let it through when all pass", () => {
    expect(ruled({ findings: [found("a", "pass"), found("b", "pass")] })).toEqual({ outcome: "pass" });
  });

  it("reject it with the first failure, whatever else is still asked, and name the criteria", () => {
    const failing = found("b", "fail", { criteria: ["grounded", "no-pii"] });
    expect(ruled({ findings: [failing] })).toEqual({ outcome: "fail", criteria: ["grounded", "no-pii"] });
    expect(ruled({ findings: [found("a", "fail")] })).toEqual({ outcome: "fail", criteria: ["a"] });
    expect(ruled({ findings: [failing], failures: { a: "timed_out" } }).outcome).toBe("fail");
  });

  it("send it back as long as revisions are left, with each criterion once", () => {
    const findings = [
      found("a", "revise", { criteria: ["x", "y"] }),
      found("b", "revise", { criteria: ["y", "z"] }),
    ];
    expect(ruled({ findings })).toEqual({ outcome: "revise", criteria: ["x", "y", "z"] });
    expect(ruled({ findings, revisions: 1 })).toEqual({
      outcome: "hold",
      cause: "verifier",
      reason: "revisions_spent",
    });
    const none: Gate = { threshold: 0, checks: ["a"] };
    expect(ruled({ findings: [found("a", "revise")], gate: none })).toMatchObject({
      reason: "revisions_spent",
    });
  });

  it("hold it where a check gave none, also where another one wants a revision", () => {
    for (const verdict of ["pass", "revise"] as const)
      expect(ruled({ findings: [found("a", verdict)], failures: { b: "malformed" } })).toEqual({
        outcome: "hold",
        cause: "verifier",
        reason: "no_verdict",
      });
  });

  it("hold it where the actor or a critic is not sure enough, and equality passes", () => {
    const findings = [found("a", "pass", { confidence: 6_000 }), found("b", "pass")];
    expect(ruled({ findings, confidence: 7_000 })).toEqual({ outcome: "pass" });
    expect(ruled({ findings, confidence: 6_999 })).toEqual({
      outcome: "hold",
      cause: "confidence",
      of: "result",
      measured: 6_999,
      required: 7_000,
    });
    const unsure = [found("a", "pass", { confidence: 9_000 }), found("b", "pass", { confidence: 5_999 })];
    expect(ruled({ findings: unsure, confidence: 10_000 })).toEqual({
      outcome: "hold",
      cause: "confidence",
      of: "verdict",
      measured: 5_999,
      required: 6_000,
    });
    expect(ruled({ findings: unsure, confidence: 0 })).toMatchObject({ of: "result", measured: 0 });
  });

  it("hold it where the actor stated something unreadable, and say no number", () => {
    const findings = [found("a", "pass"), found("b", "pass")];
    const verdict = ruled({ findings, unreadable: true });
    expect(verdict).toEqual({ outcome: "hold", cause: "confidence", of: "result", required: 7_000 });
  });

  it("of no check at all rest on the confidence alone", () => {
    expect(ruled({ gate: { threshold: 7_000 } })).toEqual({ outcome: "pass" });
    expect(ruled({ gate: { threshold: 7_000, requireConfidence: true } })).toMatchObject({ of: "result" });
  });

  const verdicts = fc.constantFrom(
    "pass" as const,
    "fail" as const,
    "revise" as const,
    undefined,
    "none" as const,
  );
  const shares = fc.option(fc.constantFrom(0, 5_999, 6_000, 7_000, 10_000), { nil: undefined });

  it("come to the same in whatever order they came, and pass only where every check passed and all are sure", () => {
    const given = fc.record({
      rulings: fc.array(fc.record({ verdict: verdicts, confidence: shares }), { maxLength: 4 }),
      confidence: shares,
      demanded: fc.boolean(),
      revisions: fc.nat({ max: 2 }),
      order: fc.func(fc.nat()),
    });
    fc.assert(
      fc.property(given, ({ rulings, confidence, demanded, revisions, order }) => {
        const named = rulings.map((ruling, index) => ({ ...ruling, check: `c${index}` }));
        const gate: Gate = {
          ...GATE,
          checks: named.map(({ check }) => check),
          ...(demanded && { requireConfidence: true }),
        };
        const findings = named.flatMap(({ check, verdict, confidence: own }) =>
          verdict && verdict !== "none"
            ? [found(check, verdict, own === undefined ? {} : { confidence: own })]
            : [],
        );
        const failures = Object.fromEntries(
          named.filter(({ verdict }) => verdict === "none").map(({ check }) => [check, "failed" as const]),
        );
        const all = { failures, revisions, gate, ...(confidence !== undefined && { confidence }) };
        const verdict = ruled({ ...all, findings });
        const shuffled = findings.toSorted((a, b) => order(a.check) - order(b.check));
        expect(ruled({ ...all, findings: shuffled }).outcome).toBe(verdict.outcome);
        const isSure = confidence === undefined ? !demanded : confidence >= 7_000;
        const areSure = findings.every(({ confidence: own = 10_000 }) => own >= 6_000);
        const allPassed = named.every(({ verdict: ruling }) => ruling === "pass");
        expect(verdict.outcome === "pass").toBe(allPassed && isSure && areSure);
      }),
    );
  });
});

describe("a result is held at all", () => {
  it("where there is a check, a low or unreadable confidence, or none where one is demanded", () => {
    expect(mustHold(GATE, { confidence: 10_000 })).toBe(true);
    expect(mustHold({ threshold: 7_000 }, { confidence: 7_000 })).toBe(false);
    expect(mustHold({ threshold: 7_000, checks: [] }, { confidence: 6_999 })).toBe(true);
    expect(mustHold({ threshold: 7_000 }, {})).toBe(false);
    expect(mustHold({ threshold: 7_000, requireConfidence: true }, {})).toBe(true);
    expect(mustHold({ threshold: 0 }, { confidenceUnreadable: true })).toBe(true);
  });
});

describe("what an agent just said is kept back", () => {
  const gate: Gate = { threshold: 7_000 };

  it("by what it reported before, else by what it states", () => {
    expect(mustWithhold(gate, '{"confidence":0.9}', undefined)).toBe(false);
    expect(mustWithhold(gate, '{"confidence":0.1}', undefined)).toBe(true);
    expect(mustWithhold(gate, '{"confidence":0.9}', { confidence: 1_000 })).toBe(true);
    expect(mustWithhold(gate, '{"confidence":0.1}', { confidence: 9_000 })).toBe(false);
    expect(mustWithhold(gate, '{"confidence":0.1}', {})).toBe(true);
  });

  it("where it was cut short within its confidence", () => {
    expect(mustWithhold(gate, 'done\n{"confidence":', undefined)).toBe(true);
  });
});
