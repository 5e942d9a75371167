/** Owns: which result an agent's last answer has where no schema is asked for. */
import { expect, test } from "vitest";
import { readAgentResult } from "../../src/agents/coordination/runtime/workflow-host/agents/agent-result.ts";

const contract = { compile: () => ({ ok: true as const }), check: () => [] };

test.each<[text: string, final: object]>([
  ["null", { result: null }],
  ["```json\nnull\n```", { result: null }],
  ['{"result": null, "confidence": 0.5}', { result: null, confidence: 0.5 }],
  ["false", { result: false }],
  ["0", { result: 0 }],
  ["nullify it", { result: "nullify it" }],
  ["null it is", { result: "null it is" }],
])("the answer %j has its result", (text, final) => {
  expect(readAgentResult(contract, undefined, { text, finish: "stop" })).toStrictEqual({
    kind: "result",
    final,
  });
});
