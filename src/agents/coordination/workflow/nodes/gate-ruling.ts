/**
 * Owns: what the answers about a child's outputs come to: one verdict, or none (RFC 0090).
 *
 * G1 missing evidence never passes. A failure outweighs everything, a wish for a revision whatever is missing.
 */
import type { ChildGate, VerifierConfig } from "../../contracts/workflows/child-gate-config.ts";
import type { VerificationFailure, Verdict } from "../../contracts/verification.ts";
import type { EffectOutcome, Judgement, NodeView } from "../node-contract/node-type.ts";
import type { Handoff, RecordedVerdict } from "../state/workflow-state.ts";

export type Judged = EffectOutcome & { readonly kind: "child_judged" };

export type Ruling =
  | { readonly kind: "unasked" }
  | { readonly kind: "verdict"; readonly verdict: RecordedVerdict }
  | { readonly kind: "missing"; readonly because: VerificationFailure };

/** A verdict that is on record is not asked for again. */
export function rulingOf(view: NodeView, handoff: Handoff, gate: ChildGate, judged: Judged): Ruling {
  if (handoff.verdict) return { kind: "verdict", verdict: handoff.verdict };
  const { verifier } = gate;
  if (!verifier) return { kind: "unasked" };
  if (judged.isSelf && !verifier.allowSelfVerification)
    return { kind: "missing", because: "self_not_allowed" };
  return scripted(verifier, view.own.completedChildren) ?? combined(verifier, judged.judgements);
}

/** The k-th completed child gets the k-th verdict, and the last one repeats. */
function scripted({ agentId, criteria, mockVerdicts }: VerifierConfig, child: number): Ruling | undefined {
  const said = mockVerdicts?.[Math.max(0, Math.min(child, mockVerdicts.length) - 1)];
  if (!said) return undefined;
  const { verdict, confidence } = said;
  const found = said.criteria ?? criteria;
  return { kind: "verdict", verdict: recorded({ agentId, verdict, criteria: found, confidence }) };
}

type Said = Judgement & { readonly kind: "verdict" };

function combined({ agentId, criteria }: VerifierConfig, judgements: readonly Judgement[]): Ruling {
  const said = judgements.filter((judgement) => judgement.kind === "verdict");
  for (const verdict of ["fail", "revise"] as const) {
    const same = said.filter((each) => each.verdict === verdict);
    if (same.length > 0) return { kind: "verdict", verdict: together(agentId, verdict, same) };
  }
  const [missing] = judgements.filter((judgement) => judgement.kind === "none");
  if (missing) return { kind: "missing", because: missing.because };
  if (said.length === 0) return { kind: "missing", because: "unavailable" };
  const passed = together(agentId, "pass", said);
  return { kind: "verdict", verdict: criteria.length > 0 ? { ...passed, criteria } : passed };
}

function together(agentId: string, verdict: Verdict, said: readonly Said[]): RecordedVerdict {
  const criteria = [...new Set(said.flatMap((each) => each.criteria))];
  const stated = said.flatMap(({ confidence }) => (confidence === undefined ? [] : [confidence]));
  const confidence = stated.length > 0 ? Math.min(...stated) : undefined;
  return recorded({ agentId, verdict, criteria, confidence });
}

interface Stated {
  readonly agentId: string;
  readonly verdict: Verdict;
  readonly criteria: readonly string[];
  readonly confidence: number | undefined;
}

function recorded({ agentId, verdict, criteria, confidence }: Stated): RecordedVerdict {
  return {
    agentId,
    verdict,
    ...(criteria.length > 0 && { criteria: [...criteria] }),
    ...(confidence !== undefined && { confidence }),
  };
}
