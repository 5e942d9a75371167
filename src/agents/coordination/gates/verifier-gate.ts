/**
 * Owns: what follows from the verdicts on a result (OpenWOP RFC 0090, section B) and from its stated confidence, in basis points.
 *
 * G1 a check without a verdict holds. A failure outweighs everything, a wish for another turn outweighs a pass; the order of the
 * verdicts does not matter. Either the actor's or a critic's confidence below its threshold holds; equal to it passes. A missing
 * confidence holds where one is demanded, and what cannot be read is never taken for a number. Absence alone never holds (OpenWOP
 * RFC 0039; `agent.decided` of run-event-payloads.schema.json).
 */
import type { StatedConfidence } from "../contracts/commands.ts";
import type { ChildDifference } from "../contracts/fact-fields.ts";
import type { Finding, Gate, VerificationFailure } from "../contracts/verification.ts";

/** The findings of the checks of a result, and what else its gate rules by. */
export interface VerificationEvidence {
  readonly stated: StatedConfidence;
  readonly findings: readonly Finding[];
  readonly failures: ReadonlyMap<string, VerificationFailure>;
  /** How often the result went back to its agent already. */
  readonly revisions: number;
  /** Where the child did not run as it was asked. */
  readonly differences?: readonly ChildDifference[];
}

export type ResultVerdict =
  /** These checks have not answered. */
  | { readonly outcome: "wait"; readonly checks: readonly string[] }
  | { readonly outcome: "pass" }
  | { readonly outcome: "fail"; readonly criteria: readonly string[] }
  | { readonly outcome: "revise"; readonly criteria: readonly string[] }
  /** People rule. */
  | {
      readonly outcome: "hold";
      readonly cause: "verifier";
      readonly reason: "no_verdict" | "revisions_spent";
    }
  | { readonly outcome: "hold"; readonly cause: "mismatch" }
  | {
      readonly outcome: "hold";
      readonly cause: "confidence";
      readonly of: "result" | "verdict";
      readonly measured?: number;
      readonly required: number;
    };

/**
 * True when a gate holds a new result although nothing was checked yet: the gate has checks, or the stated confidence
 * does not pass.
 */
export function mustHold(gate: Gate, stated: StatedConfidence): boolean {
  return (gate.checks?.length ?? 0) > 0 || ruleOnStatedConfidence(gate, stated).outcome === "hold";
}

/** True when a gate holds the result of a child because it did not run as it was asked. */
export function mustHoldMismatch(gate: Gate, differences: readonly ChildDifference[] = []): boolean {
  return gate.holdMismatch === true && differences.length > 0;
}

/**
 * Returns the ruling on a held result by the verdicts of its checks, then by its confidence: wait, pass, fail, revise,
 * or hold for people (G1).
 */
export function ruleOnVerdicts(gate: Gate, verified: VerificationEvidence): ResultVerdict {
  const { findings, failures, revisions } = verified;
  const failed = findings.filter(({ verdict }) => verdict === "fail");
  if (failed.length > 0) return { outcome: "fail", criteria: listCriteria(failed) };
  const answered = new Set([...findings.map(({ check }) => check), ...failures.keys()]);
  const checks = (gate.checks ?? []).filter((check) => !answered.has(check));
  if (checks.length > 0) return { outcome: "wait", checks };
  if (failures.size > 0) return { outcome: "hold", cause: "verifier", reason: "no_verdict" };
  const revise = findings.filter(({ verdict }) => verdict === "revise");
  if (revise.length === 0) return ruleByConfidence(gate, verified);
  return revisions < (gate.revisionsMax ?? 0)
    ? { outcome: "revise", criteria: listCriteria(revise) }
    : { outcome: "hold", cause: "verifier", reason: "revisions_spent" };
}

/** Rules on a result by its agent's confidence, then its critics', then by differences of the child. */
function ruleByConfidence(
  gate: Gate,
  { stated, findings, differences }: VerificationEvidence,
): ResultVerdict {
  const actor = ruleOnStatedConfidence(gate, stated);
  if (actor.outcome === "hold") {
    const { measured, required } = actor;
    const measuredPart = measured === undefined ? {} : { measured };
    return { outcome: "hold", cause: "confidence", of: "result", ...measuredPart, required };
  }
  const required = gate.criticThreshold ?? 0;
  const measured = findings.reduce((least, { confidence = 10_000 }) => Math.min(least, confidence), 10_000);
  if (measured < required) return { outcome: "hold", cause: "confidence", of: "verdict", measured, required };
  return mustHoldMismatch(gate, differences) ? { outcome: "hold", cause: "mismatch" } : { outcome: "pass" };
}

function ruleOnStatedConfidence(gate: Gate, stated: StatedConfidence) {
  return ruleOnConfidence(stated, {
    required: gate.threshold,
    isDemanded: gate.requireConfidence === true,
  });
}

type ConfidenceVerdict =
  | { readonly outcome: "pass"; readonly measured?: number; readonly required: number }
  | {
      readonly outcome: "hold";
      readonly reason: "low" | "missing" | "unreadable";
      readonly measured?: number;
      readonly required: number;
    };

/**
 * Returns whether a stated confidence passes or holds the result: it holds when too low, unreadable, or missing where
 * it is demanded.
 */
export function ruleOnConfidence(
  { confidence, confidenceUnreadable }: StatedConfidence,
  { required, isDemanded }: { readonly required: number; readonly isDemanded: boolean },
): ConfidenceVerdict {
  if (confidenceUnreadable) return { outcome: "hold", reason: "unreadable", required };
  if (confidence === undefined)
    return isDemanded ? { outcome: "hold", reason: "missing", required } : { outcome: "pass", required };
  return confidence < required
    ? { outcome: "hold", reason: "low", measured: confidence, required }
    : { outcome: "pass", measured: confidence, required };
}

/** Lists the criteria that findings name, each once; a check that names none counts as one. */
function listCriteria(findings: readonly Finding[]): string[] {
  return [
    ...new Set(findings.flatMap(({ check, criteria = [] }) => (criteria.length > 0 ? criteria : [check]))),
  ];
}
