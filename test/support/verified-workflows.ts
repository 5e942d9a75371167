/**
 * Owns: supervised workflows with gates that fast-check makes up: verdicts in a script or from checks, approvals, time limits.
 * The ids of their nodes are such that most children complete (`workflow-arbitraries.ts`).
 */
import fc from "fast-check";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import { createEdge, sendNextWorker, createNode, TERMINATE, createWorkflow } from "./workflow-definitions.ts";

const verdict = fc.oneof(
  fc.constantFrom("pass", "fail", "revise"),
  fc.record({
    verdict: fc.constantFrom("pass", "pass", "fail", "revise"),
    confidence: fc.constantFrom(0.1, 0.5, 0.9),
  }),
);

const verifier = fc.record({
  script: fc.option(fc.array(verdict, { minLength: 1, maxLength: 4 }), { nil: undefined }),
  revisionsMax: fc.option(fc.nat({ max: 2 }), { nil: undefined }),
  approvalTimeoutMs: fc.option(fc.constantFrom(20, 80), { nil: undefined }),
  onUnresolved: fc.constantFrom("ask", "ask", "fail"),
  allowSelfVerification: fc.boolean(),
});

const attestation = fc.record({ checksum: fc.boolean(), requireApproval: fc.boolean() });

const turns = fc.array(
  fc
    .array(fc.constantFrom("a", "b", "aa"), { minLength: 1, maxLength: 3 })
    .map((ids) => sendNextWorker(...ids)),
  { minLength: 1, maxLength: 3 },
);

interface WorkflowTraits {
  readonly turns: readonly unknown[];
  readonly verifier: Readonly<Record<string, unknown>> & { readonly script: readonly unknown[] | undefined };
  readonly attestation: object | undefined;
  readonly isMapped: boolean;
  readonly hasSub: boolean;
  readonly absorbs: boolean;
}

function makeWorkflows({
  turns: plan,
  verifier: { script, ...rest },
  attestation: attests,
  ...more
}: WorkflowTraits): WorkflowDefinition {
  const gate = {
    verifier: { agentId: "critic", criteria: ["k"], ...rest, ...(script && { mockVerdicts: script }) },
    ...(attests && { outputAttestation: attests }),
    ...(more.isMapped && { outputMapping: { v: "result" } }),
  };
  const onChildFailure = more.absorbs ? "absorb" : "fail-parent";
  return createWorkflow("made-up", {
    nodes: [
      createNode("s", "core.orchestrator.supervisor", { mockDispatchPlan: [...plan, TERMINATE] }),
      createNode("dd", "core.dispatch", gate),
      ...(more.hasSub
        ? [createNode("subw", "core.subWorkflow", { ...gate, workflowId: "aa", onChildFailure })]
        : []),
    ],
    edges: [createEdge("s>dd"), createEdge("dd>s")],
  });
}

export const verifiedWorkflows: fc.Arbitrary<WorkflowDefinition> = fc
  .record({
    turns,
    verifier,
    attestation: fc.option(attestation, { nil: undefined }),
    isMapped: fc.boolean(),
    hasSub: fc.boolean(),
    absorbs: fc.boolean(),
  })
  .map(makeWorkflows);
