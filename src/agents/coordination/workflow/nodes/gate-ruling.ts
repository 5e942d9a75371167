/**
 * Owns: what the answers about a child's outputs come to: one verdict, or none (RFC 0090).
 *
 * G1 missing evidence never passes. A failure outweighs everything, a wish for a revision whatever is missing.
 */
import type { ChildGate, VerifierConfig } from "../../contracts/workflows/child-gate-config.ts";
import type { VerificationFailure, Verdict } from "../../contracts/verification.ts";
import type { EffectOutcome, Judgement, NodeView } from "../node-contract/node-type.ts";
import type { Handoff, RecordedVerdict } from "../state/workflow-state.ts";

/** The outcome of an effect that judged a child. */
export type ChildJudgedOutcome = EffectOutcome & { readonly kind: "child_judged" };

/** The ruling of a child's gate on its outputs. */
export type ChildRuling =
  | { readonly kind: "unasked" }
  | { readonly kind: "verdict"; readonly verdict: RecordedVerdict }
  | { readonly kind: "missing"; readonly because: VerificationFailure };

/**
 * Returns the ruling on a child's outputs: the verdict of its judgements, the reason why there is none, or that none
 * is asked for. A verdict on record is returned again.
 */
export function ruleOnChild(
  view: NodeView,
  handoff: Handoff,
  gate: ChildGate,
  judged: ChildJudgedOutcome,
): ChildRuling {
  if (handoff.verdict) return { kind: "verdict", verdict: handoff.verdict };
  const { verifier } = gate;
  if (!verifier) return { kind: "unasked" };
  if (judged.isSelf && !verifier.allowSelfVerification)
    return { kind: "missing", because: "self_not_allowed" };
  return findPlayedRuling(view, verifier) ?? combineJudgements(verifier, judged.judgements);
}

/** Returns the verdict of the conformance play; `undefined` where there is no play, or no script for the child. */
function findPlayedRuling(view: NodeView, verifier: VerifierConfig): ChildRuling | undefined {
  const verdict = view.settings.play?.playVerdict(view, verifier);
  return verdict && { kind: "verdict", verdict };
}

type VerdictJudgement = Judgement & { readonly kind: "verdict" };

/** Combines the judgements: a failure outweighs everything, then a wish for a revision, then missing evidence (G1). */
function combineJudgements(
  { agentId, criteria }: VerifierConfig,
  judgements: readonly Judgement[],
): ChildRuling {
  const verdicts = judgements.filter((judgement) => judgement.kind === "verdict");
  for (const verdict of ["fail", "revise"] as const) {
    const same = verdicts.filter((each) => each.verdict === verdict);
    if (same.length > 0) return { kind: "verdict", verdict: combineVerdicts(agentId, verdict, same) };
  }
  const [missing] = judgements.filter((judgement) => judgement.kind === "none");
  if (missing) return { kind: "missing", because: missing.because };
  if (verdicts.length === 0) return { kind: "missing", because: "unavailable" };
  const passed = combineVerdicts(agentId, "pass", verdicts);
  return { kind: "verdict", verdict: criteria.length > 0 ? { ...passed, criteria } : passed };
}

/** Combines equal verdicts into one, with all their criteria and the lowest confidence. */
function combineVerdicts(
  agentId: string,
  verdict: Verdict,
  verdicts: readonly VerdictJudgement[],
): RecordedVerdict {
  const criteria = [...new Set(verdicts.flatMap((each) => each.criteria))];
  const stated = verdicts.flatMap(({ confidence }) => (confidence === undefined ? [] : [confidence]));
  const confidence = stated.length > 0 ? Math.min(...stated) : undefined;
  return createRecordedVerdict({ agentId, verdict, criteria, confidence });
}

/** A verdict as an agent stated it, which is not recorded yet. */
interface StatedVerdict {
  readonly agentId: string;
  readonly verdict: Verdict;
  readonly criteria: readonly string[];
  readonly confidence: number | undefined;
}

function createRecordedVerdict({ agentId, verdict, criteria, confidence }: StatedVerdict): RecordedVerdict {
  return {
    agentId,
    verdict,
    ...(criteria.length > 0 && { criteria: [...criteria] }),
    ...(confidence !== undefined && { confidence }),
  };
}
