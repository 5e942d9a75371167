/** Owns: one valid example of every fact about claims, writes and conflicts, with every optional field present. */
import type { FactPayloads } from "../../src/agents/coordination/contracts/facts.ts";
import type { CoordinationId, EpochMs, StepId } from "../../src/agents/coordination/contracts/ids.ts";

interface ExampleNames {
  readonly step: StepId;
  readonly otherStep: StepId;
  readonly version: string;
  readonly atMs: EpochMs;
}

type ClaimFact =
  | "claim.acquired"
  | "claim.renewed"
  | "claim.released"
  | "resource.changed"
  | "write.undetermined"
  | "privilege.refused"
  | "conflict.detected"
  | "conflict.resolved";

/** Creates them about two steps, in the order of the contracts. */
export function createClaimExamples({
  step,
  otherStep,
  version,
  atMs,
}: ExampleNames): Pick<FactPayloads, ClaimFact> {
  return {
    "claim.acquired": {
      stepId: step,
      resource: "file:/tmp/a",
      token: 4,
      priority: "normal",
      expiresAtMs: atMs,
      base: version,
    },
    "claim.renewed": { stepId: step, token: 4, expiresAtMs: atMs },
    "claim.released": { stepId: step, token: 4, because: "step_ended" },
    "resource.changed": { stepId: step, resource: "file:/tmp/a", version, tool: "write", token: 4 },
    "write.undetermined": {
      stepId: step,
      tool: "exec",
      because: "extractor_failed",
      extractor: "board",
      action: "denied",
    },
    "privilege.refused": {
      stepId: step,
      tool: "write",
      rule: "write",
      from: { by: "spawn", stepId: otherStep, coordinationId: "co-2" as CoordinationId },
      resource: "file:/tmp/a",
    },
    "conflict.detected": {
      conflictId: "conflict-1",
      resource: "file:/tmp/a",
      claims: [
        { stepId: step, priority: "normal", claimedSequence: 4, declared: true, expiresAtMs: atMs },
        {
          stepId: otherStep,
          priority: "high",
          claimedSequence: 7,
          coordinationId: "co-0" as CoordinationId,
          changedAtMs: atMs,
        },
      ],
      contest: {
        requester: otherStep,
        cause: "stale_base",
        strategy: "merge_if_safe",
        from: "plan",
        atMs: atMs,
        base: version,
        current: "absent",
        merge: { kind: "clean", base: version, current: "absent", merged: version },
        reviewByMs: atMs,
      },
    },
    "conflict.resolved": {
      conflictId: "conflict-1",
      strategy: "owner_wins",
      winner: step,
      winnerCoordinationId: "co-0" as CoordinationId,
      losers: [otherStep],
      because: "earliest-claim",
      rule: "lease",
    },
  };
}
