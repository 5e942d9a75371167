/** Owns: what hooks are given, as examples, for tests of authors. Each field can be replaced. */
import type { EventId, CoordinationId, StepId } from "../../agents/coordination/contracts/ids.ts";
import type {
  CoordinationEvent,
  HookContest,
  HookQuestion,
  HookResult,
  PlanDecision,
  SpawnDecision,
} from "./hook-types.ts";

const COORDINATION = "co-sample";
const OWNER = "agent:main:main";
const FAR_FUTURE_MS = Date.UTC(2100, 0, 1);

/** Returns a sample contest: `step-2` wants to change a file that `step-1` holds. */
export function sampleContest(over: Partial<HookContest> = {}): HookContest {
  return {
    coordinationId: COORDINATION,
    resource: "file:/repo/notes.md",
    names: ["file:/repo/notes.md"],
    cause: "overlap",
    strategy: "owner_wins",
    requester: { stepId: "step-2", agentId: "writer", priority: "normal" },
    holders: [{ stepId: "step-1", agentId: "editor", priority: "normal", expiresAtMs: FAR_FUTURE_MS }],
    tool: "write",
    ...over,
  };
}

/** Returns a sample result: of the first attempt of `step-1`, done by `writer`. */
export function sampleResult(over: Partial<HookResult> = {}): HookResult {
  return {
    coordinationId: COORDINATION,
    stepId: "step-1",
    attempt: 1,
    target: `${COORDINATION}:7`,
    agentId: "writer",
    childSessionKey: "agent:writer:subagent:sample",
    task: "Write the notes.",
    text: "The notes are written.",
    ...over,
  };
}

/** Returns a sample decision: `main` wants to spawn `writer`. */
export function sampleDecision(over: Partial<SpawnDecision> = {}): SpawnDecision {
  return { kind: "spawn", agentId: "writer", sourceSession: OWNER, runner: "subagent", depth: 1, ...over };
}

/** Returns a sample decision: `main` wants to run a plan of two steps. */
export function samplePlanDecision(over: Partial<PlanDecision> = {}): PlanDecision {
  return {
    kind: "plan",
    agentId: "main",
    sourceSession: OWNER,
    coordinationId: COORDINATION,
    steps: 2,
    agents: ["writer", "editor"],
    ...over,
  };
}

/** Returns a sample question: whether the result of `step-1` counts although its agent doubts it. */
export function sampleQuestion(over: Partial<HookQuestion> = {}): HookQuestion {
  return {
    questionId: `${COORDINATION}:escalation-1`,
    coordinationId: COORDINATION,
    escalationId: "escalation-1",
    cause: "confidence",
    kind: "approval",
    title: "The result of step-1 was stated with a confidence of 0.4, below 0.7.",
    stepId: "step-1",
    ownerSession: OWNER,
    answers: ["approve", "deny", "answer"],
    deadlineAtMs: FAR_FUTURE_MS,
    onExpiry: "deny",
    confidence: { measured: 0.4, floor: 0.7 },
    ...over,
  };
}

/** Returns a sample event: `step-1` has completed. */
export function sampleEvent(): CoordinationEvent {
  return {
    eventId: `${COORDINATION}:9` as EventId,
    runId: COORDINATION as CoordinationId,
    sequence: 9,
    type: "step.completed",
    timestamp: "2026-01-02T03:04:05.678Z",
    nodeId: "step-1",
    payload: { stepId: "step-1" as StepId, attempt: 1, via: "hook" },
  };
}
