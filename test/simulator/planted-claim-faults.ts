/** Owns: faults in claims, rulings, observed spawns and the ownership of coordinations. */
import type { PlantedFault } from "./planted-fault.ts";

const DISPATCH = "src/agents/coordination/dispatch";
const LEDGER = "src/agents/coordination/ledger";
const ARBITRATION = "src/agents/coordination/arbitration";
const RUNTIME = "src/agents/coordination/runtime";

export const CLAIM_FAULTS: readonly PlantedFault[] = [
  {
    name: "claims-kept-after-end",
    file: `${DISPATCH}/decide.ts`,
    find: 'const claims = draftEndOfClaims(state, "step_ended", command.stepId);',
    replace: "const claims: FactDraft[] = [];",
    breaks: "A2: the claims of a step are freed too late",
  },
  {
    name: "claims-kept-while-held",
    file: `${DISPATCH}/decide-held.ts`,
    find: '    ...draftEndOfClaims(state, "step_ended", stepId),\n',
    replace: "",
    breaks: "A2: a step whose result is held keeps its claims",
  },
  {
    name: "claims-of-others-freed",
    file: `${DISPATCH}/release-claims.ts`,
    find: "stepId === undefined || holder === stepId;",
    replace: "stepId !== holder || holder === stepId;",
    breaks: "A2: the end of one step frees the claims of all",
  },
  {
    name: "claims-left-by-spawns",
    file: `${DISPATCH}/settle-plan.ts`,
    find: '    ...draftEndOfClaims(state, "coordination_ended"),\n',
    replace: "",
    breaks: "A2: a coordination that has ended still holds resources",
  },
  {
    name: "losers-keep-claims",
    file: `${DISPATCH}/decide-claims.ts`,
    find: "return [...conflictFacts, ...draftPreemptions(state, ruled)];",
    replace: "return conflictFacts;",
    breaks: "A2: who lost a resource still holds it",
  },
  {
    name: "approval-beside-holder",
    file: `${RUNTIME}/arbiter/claim-over.ts`,
    find: '  await endOverlappingClaims(arbiter, { claims: others, resource, because: "preempted" });\n',
    replace: "",
    breaks: "A2: an approved write happens beside whoever holds the file",
  },
  {
    name: "lowest-priority-wins",
    file: `${ARBITRATION}/arbitrate.ts`,
    find: "PRIORITIES.indexOf(b.priority) - PRIORITIES.indexOf(a.priority) ||",
    replace: "PRIORITIES.indexOf(a.priority) - PRIORITIES.indexOf(b.priority) ||",
    breaks: "A1: the less urgent step gets the resource",
  },
  {
    name: "declared-owner-loses",
    file: `${ARBITRATION}/arbitrate.ts`,
    find: "Number(isDeclaredOwner(b)) - Number(isDeclaredOwner(a)) ||",
    replace: "Number(isDeclaredOwner(a)) - Number(isDeclaredOwner(b)) ||",
    breaks: "A1: a step loses the resource that its plan declares",
  },
  {
    name: "latest-claim-wins",
    file: `${ARBITRATION}/arbitrate.ts`,
    find: "rankClaimSequence(a) - rankClaimSequence(b) ||",
    replace: "rankClaimSequence(b) - rankClaimSequence(a) ||",
    breaks: "A1: who came last gets the resource",
  },
  {
    name: "loser-is-granted",
    file: `${ARBITRATION}/arbitrate.ts`,
    find: 'kind: isRequester(contest, winner) ? "granted" : "refused"',
    replace: 'kind: isRequester(contest, winner) ? "granted" : "granted"',
    breaks: "A2: who lost may write",
  },
  {
    name: "unmergeable-is-merged",
    file: `${ARBITRATION}/arbitrate.ts`,
    find: 'if (merge.kind === "obstacle") return',
    replace: 'if (merge.kind === "obstacle" && merge.obstacle === "not_text") return',
    breaks: "A1: changes that overlap count as merged",
  },
  {
    name: "claims-not-seen",
    file: `${RUNTIME}/arbiter/split-claims.ts`,
    find: "claim.runId !== runId || claim.stepId !== stepId);",
    replace: "claim.runId === runId && claim.stepId === stepId);",
    breaks: "A2: claims of others are not looked at",
  },
  {
    name: "claim-outlives-release",
    file: `${LEDGER}/evolve-claims.ts`,
    find: "    claims: state.claims.remove(token),",
    replace: "    claims: state.claims,",
    breaks: "A2: a claim that was released is released again",
  },
  {
    name: "review-never-closed",
    file: `${LEDGER}/evolve-claims.ts`,
    find: "reviews: state.reviews.remove(conflictId),",
    replace: "reviews: state.reviews,",
    breaks: "A3: a conflict is resolved twice",
  },
  {
    name: "spawn-given-up-early",
    file: `${DISPATCH}/effects/next-effects.ts`,
    find: "return addMs(deadlineAtMs, state.created.acknowledgeMs);",
    replace: "return addMs(deadlineAtMs, -state.created.acknowledgeMs);",
    breaks: "D1: a spawn times out before its deadline",
  },
  {
    name: "unknown-is-failure",
    file: `${DISPATCH}/effects/rule-on-observation.ts`,
    find: '    case "unknown":\n      return overdue;\n',
    replace: '    case "unknown":\n',
    breaks: "D1: a host that does not know is taken for one that has no child",
  },
  {
    name: "fence-not-checked",
    file: "src/infra/ledger/owner-fence.ts",
    find: "return isOwner ? undefined : createNotOwnerError(runId, owner);",
    replace: "return isOwner || head ? undefined : createNotOwnerError(runId, owner);",
    breaks: "O2: a gateway that was replaced still writes",
  },
  {
    name: "given-back-forgotten",
    file: `${RUNTIME}/ownership/shared-ledger.ts`,
    find: "if (isGiven) takeGiven(runId, token);",
    replace: "if (isGiven && token < 0) takeGiven(runId, token);",
    breaks: "O2: a coordination that was given back is never taken up",
  },
  {
    name: "granted-under-no-claim",
    file: `${RUNTIME}/arbiter/record-ruling.ts`,
    find: "  await endForeignClaims(arbiter, ruled);\n",
    replace:
      "  await endForeignClaims(arbiter, ruled);\n  if (ruled.assessed.length > 0) return undefined;\n",
    breaks: "A2: a write is allowed under no claim",
  },
  {
    name: "change-not-recorded",
    file: `${RUNTIME}/arbiter/record-changes.ts`,
    find: "  const version = await readFileVersion(arbiter, resource);\n",
    replace:
      "  const version = await readFileVersion(arbiter, resource);\n  if (version !== undefined) return [];\n",
    breaks: "A2: what was written is not in the log",
  },
];
