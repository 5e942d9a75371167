/** Owns: the ruling that the answers about a child's outputs come to. */
import { describe, expect, it } from "vitest";
import type { VerifierConfig } from "../../src/agents/coordination/contracts/workflows/child-gate-config.ts";
import type { Judgement } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { ruleOnChild, type ChildRuling } from "../../src/agents/coordination/workflow/nodes/gate-ruling.ts";
import type { RecordedVerdict } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import {
  createAttestation,
  createHandoff,
  createJudged,
  createPlay,
  createVerifier,
  createView,
} from "./workflow-node-view-scene.ts";

type VerdictJudgement = Judgement & { readonly kind: "verdict" };

function createVerdict(
  verdict: VerdictJudgement["verdict"],
  more: Partial<VerdictJudgement> = {},
): VerdictJudgement {
  return { kind: "verdict", verdict, criteria: [], ...more };
}

const TIMED_OUT: Judgement = { kind: "none", because: "timed_out" };
const MALFORMED: Judgement = { kind: "none", because: "malformed" };

describe("the ruling on what a child produced", () => {
  function rule(judgements: readonly Judgement[], verifier: Partial<VerifierConfig> = {}): ChildRuling {
    const gate = { verifier: createVerifier(verifier) };
    return ruleOnChild(createView(), createHandoff(), gate, createJudged({ judgements }));
  }

  it("is the verdict on record, whatever the answers say now", () => {
    const verdict: RecordedVerdict = { agentId: "acme.other", verdict: "revise" };
    const judged = createJudged({ isSelf: true, judgements: [createVerdict("pass")] });
    const handoff = createHandoff({ verdict });
    expect(ruleOnChild(createView(), handoff, {}, judged)).toStrictEqual({ kind: "verdict", verdict });
    const gate = { verifier: createVerifier() };
    expect(ruleOnChild(createView(), handoff, gate, judged)).toStrictEqual({ kind: "verdict", verdict });
  });

  it("is that nobody was asked where there is no verifier", () => {
    const gate = { attestation: createAttestation() };
    expect(ruleOnChild(createView(), createHandoff(), gate, createJudged())).toStrictEqual({
      kind: "unasked",
    });
  });

  it("counts of whoever did the work only where the gate allows it", () => {
    const judged = createJudged({ isSelf: true, judgements: [createVerdict("pass")] });
    const ruleSelf = (allowSelfVerification: boolean): ChildRuling => {
      const gate = { verifier: createVerifier({ allowSelfVerification }) };
      return ruleOnChild(createView(), createHandoff(), gate, judged);
    };
    expect(ruleSelf(false)).toStrictEqual({ kind: "missing", because: "self_not_allowed" });
    expect(ruleSelf(true)).toMatchObject({ kind: "verdict", verdict: { verdict: "pass" } });
  });

  it("is the one that a script plays, and otherwise that of the checks", () => {
    const verdict: RecordedVerdict = { agentId: "acme.critic", verdict: "fail" };
    const judged = createJudged({ judgements: [createVerdict("pass")] });
    const gate = { verifier: createVerifier() };
    const played = createView({ settings: { play: createPlay({ playVerdict: () => verdict }) } });
    expect(ruleOnChild(played, createHandoff(), gate, judged)).toStrictEqual({ kind: "verdict", verdict });
    const live = createView({ settings: { play: createPlay({}) } });
    expect(ruleOnChild(live, createHandoff(), gate, judged)).toMatchObject({ verdict: { verdict: "pass" } });
  });

  it.each<[title: string, judgements: readonly Judgement[], verdict: string]>([
    [
      "a failure before all else",
      [createVerdict("pass"), createVerdict("revise"), TIMED_OUT, createVerdict("fail")],
      "fail",
    ],
    [
      "a wish for a revision before an answer that is missing",
      [createVerdict("pass"), TIMED_OUT, createVerdict("revise")],
      "revise",
    ],
    ["a pass where all of them passed", [createVerdict("pass"), createVerdict("pass")], "pass"],
  ])("is %s", (_title, judgements, verdict) => {
    expect(rule(judgements)).toStrictEqual({ kind: "verdict", verdict: { agentId: "acme.critic", verdict } });
  });

  it("is missing for the reason of the first answer that is missing, though others passed", () => {
    const judgements = [createVerdict("pass"), MALFORMED, TIMED_OUT];
    expect(rule(judgements)).toStrictEqual({ kind: "missing", because: "malformed" });
  });

  it("is missing where nobody answered", () => {
    expect(rule([])).toStrictEqual({ kind: "missing", because: "unavailable" });
  });

  it("names each criterion once, and of a verdict that is no pass only those of the answers like it", () => {
    const judgements = [
      createVerdict("fail", { criteria: ["style", "facts"] }),
      createVerdict("pass", { criteria: ["length"] }),
      createVerdict("fail", { criteria: ["facts", "tone"] }),
    ];
    expect(rule(judgements, { criteria: ["all"] })).toMatchObject({
      verdict: { verdict: "fail", criteria: ["style", "facts", "tone"] },
    });
  });

  it("names of a pass the criteria that were asked for, else those that were looked at", () => {
    const judgements = [createVerdict("pass", { criteria: ["style"] })];
    expect(rule(judgements, { criteria: ["all"] })).toMatchObject({ verdict: { criteria: ["all"] } });
    expect(rule(judgements)).toMatchObject({ verdict: { criteria: ["style"] } });
  });

  it("is as confident as the least confident of the answers that say so", () => {
    const judgements = [
      createVerdict("pass", { confidence: 0.9 }),
      createVerdict("pass", { confidence: 0.4 }),
      createVerdict("pass"),
    ];
    expect(rule(judgements)).toStrictEqual({
      kind: "verdict",
      verdict: { agentId: "acme.critic", verdict: "pass", confidence: 0.4 },
    });
  });
});
