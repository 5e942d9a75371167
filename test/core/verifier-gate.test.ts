import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type {
  Finding,
  Gate,
  VerificationFailure,
} from "../../src/agents/coordination/contracts/verification.ts";
import type { ChildDifference } from "../../src/agents/coordination/contracts/fact-fields.ts";
import {
  mustHold,
  mustHoldMismatch,
  ruleOnVerdicts,
  type ResultVerdict,
} from "../../src/agents/coordination/gates/verifier-gate.ts";
import { mustWithhold } from "../../src/agents/coordination/gates/withholds.ts";

const GATE: Gate = { threshold: 7_000, checks: ["a", "b"], criticThreshold: 6_000, revisionsMax: 1 };

const createFinding = (check: string, verdict: Finding["verdict"], rest: Partial<Finding> = {}): Finding => ({
  check,
  agentId: `check:${check}`,
  verdict,
  ...rest,
});

interface RulingFacts {
  readonly findings?: readonly Finding[];
  readonly failures?: Readonly<Record<string, VerificationFailure>>;
  readonly confidence?: number;
  readonly unreadable?: true;
  readonly revisions?: number;
  readonly gate?: Gate;
}

function ruleOnFindings({
  findings = [],
  failures = {},
  confidence,
  unreadable,
  revisions = 0,
  gate = GATE,
}: RulingFacts): ResultVerdict {
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
    expect(ruleOnFindings({})).toEqual({ outcome: "wait", checks: ["a", "b"] });
    expect(ruleOnFindings({ findings: [createFinding("b", "pass")] })).toEqual({
      outcome: "wait",
      checks: ["a"],
    });
    expect(ruleOnFindings({ failures: { a: "failed" } })).toEqual({ outcome: "wait", checks: ["b"] });
    expect(ruleOnFindings({ findings: [createFinding("a", "revise")] })).toEqual({
      outcome: "wait",
      checks: ["b"],
    });
  });

  it("let it through when all pass", () => {
    expect(ruleOnFindings({ findings: [createFinding("a", "pass"), createFinding("b", "pass")] })).toEqual({
      outcome: "pass",
    });
  });

  it("reject it with the first failure, whatever else is still asked, and name the criteria", () => {
    const failing = createFinding("b", "fail", { criteria: ["grounded", "no-pii"] });
    expect(ruleOnFindings({ findings: [failing] })).toEqual({
      outcome: "fail",
      criteria: ["grounded", "no-pii"],
    });
    expect(ruleOnFindings({ findings: [createFinding("a", "fail")] })).toEqual({
      outcome: "fail",
      criteria: ["a"],
    });
    expect(ruleOnFindings({ findings: [failing], failures: { a: "timed_out" } }).outcome).toBe("fail");
  });

  it("send it back as long as revisions are left, with each criterion once", () => {
    const findings = [
      createFinding("a", "revise", { criteria: ["x", "y"] }),
      createFinding("b", "revise", { criteria: ["y", "z"] }),
    ];
    expect(ruleOnFindings({ findings })).toEqual({ outcome: "revise", criteria: ["x", "y", "z"] });
    expect(ruleOnFindings({ findings, revisions: 1 })).toEqual({
      outcome: "hold",
      cause: "verifier",
      reason: "revisions_spent",
    });
    const none: Gate = { threshold: 0, checks: ["a"] };
    expect(ruleOnFindings({ findings: [createFinding("a", "revise")], gate: none })).toMatchObject({
      reason: "revisions_spent",
    });
  });

  it("hold it where a check gave none, also where another one wants a revision", () => {
    for (const verdict of ["pass", "revise"] as const)
      expect(
        ruleOnFindings({ findings: [createFinding("a", verdict)], failures: { b: "malformed" } }),
      ).toEqual({
        outcome: "hold",
        cause: "verifier",
        reason: "no_verdict",
      });
  });

  it("hold it where the actor or a critic is not sure enough, and equality passes", () => {
    const findings = [createFinding("a", "pass", { confidence: 6_000 }), createFinding("b", "pass")];
    expect(ruleOnFindings({ findings, confidence: 7_000 })).toEqual({ outcome: "pass" });
    expect(ruleOnFindings({ findings, confidence: 6_999 })).toEqual({
      outcome: "hold",
      cause: "confidence",
      of: "result",
      measured: 6_999,
      required: 7_000,
    });
    const unsure = [
      createFinding("a", "pass", { confidence: 9_000 }),
      createFinding("b", "pass", { confidence: 5_999 }),
    ];
    expect(ruleOnFindings({ findings: unsure, confidence: 10_000 })).toEqual({
      outcome: "hold",
      cause: "confidence",
      of: "verdict",
      measured: 5_999,
      required: 6_000,
    });
    expect(ruleOnFindings({ findings: unsure, confidence: 0 })).toMatchObject({ of: "result", measured: 0 });
  });

  it("hold it where the actor stated something unreadable, and say no number", () => {
    const findings = [createFinding("a", "pass"), createFinding("b", "pass")];
    const verdict = ruleOnFindings({ findings, unreadable: true });
    expect(verdict).toEqual({ outcome: "hold", cause: "confidence", of: "result", required: 7_000 });
  });

  it("of no check at all rest on the confidence alone", () => {
    expect(ruleOnFindings({ gate: { threshold: 7_000 } })).toEqual({ outcome: "pass" });
    expect(ruleOnFindings({ gate: { threshold: 7_000, requireConfidence: true } })).toMatchObject({
      of: "result",
    });
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
    const input = fc.record({
      rulings: fc.array(fc.record({ verdict: verdicts, confidence: shares }), { maxLength: 4 }),
      confidence: shares,
      demanded: fc.boolean(),
      revisions: fc.nat({ max: 2 }),
      order: fc.func(fc.nat()),
    });
    fc.assert(
      fc.property(input, ({ rulings, confidence, demanded, revisions, order }) => {
        const named = rulings.map((ruling, index) => ({ ...ruling, check: `c${index}` }));
        const gate: Gate = {
          ...GATE,
          checks: named.map(({ check }) => check),
          ...(demanded && { requireConfidence: true }),
        };
        const findings = named.flatMap(({ check, verdict, confidence: statedConfidence }) =>
          verdict && verdict !== "none"
            ? [
                createFinding(
                  check,
                  verdict,
                  statedConfidence === undefined ? {} : { confidence: statedConfidence },
                ),
              ]
            : [],
        );
        const failures = Object.fromEntries(
          named.filter(({ verdict }) => verdict === "none").map(({ check }) => [check, "failed" as const]),
        );
        const all = { failures, revisions, gate, ...(confidence !== undefined && { confidence }) };
        const verdict = ruleOnFindings({ ...all, findings });
        const shuffled = findings.toSorted((a, b) => order(a.check) - order(b.check));
        expect(ruleOnFindings({ ...all, findings: shuffled }).outcome).toBe(verdict.outcome);
        const isSure = confidence === undefined ? !demanded : confidence >= 7_000;
        const areSure = findings.every(
          ({ confidence: statedConfidence = 10_000 }) => statedConfidence >= 6_000,
        );
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

describe("a child that does not run as it was asked", () => {
  const differences: readonly ChildDifference[] = [{ field: "model", asked: "a/large", ran: "a/small" }];
  const gate: Gate = { threshold: 0, holdMismatch: true };
  const evidence = { stated: {}, findings: [], failures: new Map(), revisions: 0 };

  it("is held where the gate says so, and there is a difference", () => {
    expect(mustHoldMismatch(gate, differences)).toBe(true);
    expect(mustHoldMismatch(gate, [])).toBe(false);
    expect(mustHoldMismatch(gate)).toBe(false);
    expect(mustHoldMismatch({ threshold: 0 }, differences)).toBe(false);
  });

  it("is held after everything else has passed", () => {
    expect(ruleOnVerdicts(gate, { ...evidence, differences })).toEqual({
      outcome: "hold",
      cause: "mismatch",
    });
    expect(ruleOnVerdicts(gate, evidence)).toEqual({ outcome: "pass" });
  });
});

describe("a result without a demanded confidence", () => {
  it("is held without a measured one", () => {
    const evidence = { stated: {}, findings: [], failures: new Map(), revisions: 0 };
    const gate: Gate = { threshold: 7_000, requireConfidence: true };
    expect(ruleOnVerdicts(gate, evidence)).toStrictEqual({
      outcome: "hold",
      cause: "confidence",
      of: "result",
      required: 7_000,
    });
  });
});
