/** Owns: who may speak in an answer to a doubt, and under whose name it is recorded. */
import { expect, it } from "vitest";
import { answerInterrupt } from "../../src/agents/coordination/workflow/state/answer-interrupt.ts";
import type { Interrupt, NodeRun } from "../../src/agents/coordination/workflow/state/workflow-state.ts";

function answerDoubt(value: object) {
  const interrupt = { interruptId: "a~1", kind: "low-confidence", key: "k", data: {}, votes: [] };
  return answerInterrupt({
    node: { nodeId: "a" } as NodeRun,
    interrupt: interrupt as unknown as Interrupt,
    value,
    by: "alice",
  });
}

it("refuses an answer to a doubt in the name of somebody else", () => {
  const answered = answerDoubt({ action: "accept", decidedBy: "the-ceo", voter: "the-ceo" });
  expect(answered).toMatchObject({ ok: false, code: "forbidden" });
});

it("records an answer to a doubt as that of the principal, whatever name it gives", () => {
  const payload = {
    resolvedBy: "alice",
    resumeValue: { action: "accept", decidedBy: "alice", voter: "alice" },
  };
  expect(answerDoubt({ action: "accept", decidedBy: "the-ceo", voter: "alice" })).toMatchObject({
    ok: true,
    drafts: [{ payload }],
  });
});
