/** Owns: one valid example of every contract, with every optional field present. */
import type { CoordinationEnvelope } from "../../src/agents/coordination/contracts/envelope.ts";
import type { FactPayloads } from "../../src/agents/coordination/contracts/facts.ts";
import type {
  AgentId,
  CoordinationId,
  EpochMs,
  SessionKey,
  StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { OpenWopPayloads } from "../../src/agents/coordination/contracts/openwop-events.ts";
import type { ArbiterPolicy, CoordinationPlan } from "../../src/agents/coordination/contracts/plan.ts";
import { createClaimExamples } from "./claim-examples.ts";

export const RUN_ID = "co-1" as CoordinationId;
export const OWNER = "agent:main:main" as SessionKey;
export const CHILD = "agent:main:subagent:1" as SessionKey;
export const AGENT = "main" as AgentId;
export const STEP = "step-1" as StepId;
export const OTHER_STEP = "step-2" as StepId;
export const AT_MS = 1_767_323_045_678 as EpochMs;

const ref = { sha256: "ab".repeat(32), bytes: 12 };
const VERSION = `sha256:${ref.sha256}`;

export const ENVELOPE: CoordinationEnvelope = {
  coordinationId: RUN_ID,
  stepId: STEP,
  parentStepId: "step-0" as StepId,
  sourceSession: OWNER,
  targetSession: CHILD,
  intent: "execute",
  priority: "normal",
  deliveryMode: "at_least_once",
  deadlineMs: AT_MS,
  createdAtMs: AT_MS,
  trace: { runId: "run-1", spanId: "span-1", causalRef: "co-1:3" },
};

export const POLICY: ArbiterPolicy = {
  strategy: "priority_wins",
  overrides: [{ resource: "file:/tmp/a", strategy: "manual_review" }],
  highRisk: ["queue:*"],
};

export const PLAN: CoordinationPlan = {
  coordinationId: RUN_ID,
  objective: "write the release notes",
  ownerSession: OWNER,
  steps: [
    {
      stepId: STEP,
      agent: AGENT,
      task: "collect the changes",
      dependsOn: [OTHER_STEP],
      fanIn: { min: 1 },
      input: { since: "v1", list: [1, null, { deep: true }] },
      outputSchema: { type: "object" },
      priority: "high",
      timeoutMs: 60_000,
      retry: { budget: 2, backoffMs: 500 },
      resources: ["file:/tmp/a"],
      deliveryMode: "best_effort",
      lane: "control",
      verify: {
        checks: { tone: true, shape: { kind: "schema", schema: { type: "object" } } },
        revisionsMax: 1,
        requireConfidence: true,
        confidenceThreshold: 0.8,
      },
      confidence: 0.9,
      budget: { spawns: 3, tokens: 10_000, costUsd: 0.5, wallMs: 60_000 },
      isolate: "worktree",
    },
    { stepId: OTHER_STEP, agent: AGENT, task: "write them up" },
  ],
  conflictPolicy: POLICY,
  failurePolicy: { retryBudget: 1, timeoutPolicy: "fail_fast", escalationPolicy: "hitl" },
  deadlineMs: 3_600_000,
  defaults: {
    priority: "low",
    timeoutMs: 30_000,
    retry: { budget: 1, backoffMs: 250 },
    deliveryMode: "best_effort",
    lane: "data",
  },
  budget: { spawns: 10, tokens: 100_000, costUsd: 5, wallMs: 3_600_000 },
  confidence: 0.8,
  successCriteria: [{ key: "shipped", when: `{{steps.${STEP}.outputs.ok}}` }, { key: "all-done" }],
};

const about = { stepId: STEP, attempt: 1 };

const used = { tokens: 1_200, costMicroUsd: 3_400 };
const escalation = { escalationId: "escalation-1", answerByMs: AT_MS };
const stated = { confidence: 4_000, confidenceUnreadable: true } as const;
const criteria = ["grounded", "complete"];

export const FACTS: FactPayloads = {
  "coordination.created": {
    origin: "plan",
    ownerSession: OWNER,
    ownerAgent: AGENT,
    objective: ref,
    trace: {
      traceId: "0af7651916cd43dd8448eb211c80319c",
      runId: "run-1",
      spanId: "span-1",
      causalRef: RUN_ID,
    },
    failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
    settleMs: 3_000,
    acknowledgeMs: 30_000,
    questions: {
      answerMs: 3_600_000,
      notify: [{ channel: "webhook:oncall", afterMs: 60_000 }],
      requireDifferentApprover: true,
    },
    plan: {
      content: ref,
      steps: 2,
      seed: "0af7651916cd43dd",
      deadlineAtMs: AT_MS,
      budget: { spawns: 10, tokens: 100_000, costMicroUsd: 5_000_000, wallMs: 3_600_000 },
      escalateMs: 3_600_000,
      decision: { confidence: 4_000, floor: 5_000 },
      successCriteria: [{ key: "shipped", when: `{{steps.${STEP}.outputs.ok}}` }],
    },
    parent: { coordinationId: "co-0" as CoordinationId, stepId: OTHER_STEP },
    budget: {
      tokens: 100_000,
      costMicroUsd: 500_000,
      spawns: 5,
      depth: 2,
      agents: { [AGENT]: { spawns: 3 } },
    },
    gateway: "office",
  },
  "step.admitted": {
    stepId: STEP,
    parentStepId: "step-0" as StepId,
    lane: "data",
    runner: "subagent",
    agentId: AGENT,
    name: "research",
    sourceSession: OWNER,
    deliveryMode: "at_least_once",
    priority: "normal",
    input: ref,
    timeoutMs: 60_000,
    retryBudget: 0,
    collect: false,
    call: { toolCallId: "call-1", runId: "run-1", spanId: "span-1" },
    problems: [{ code: "ENVELOPE_MALFORMED", path: "coordination.stepId" }],
    requested: { model: "mock/large", thinking: "high", folder: "/srv/work" },
    planned: {
      dependsOn: [OTHER_STEP],
      fanIn: 1,
      backoffMs: 500,
      criticalPathMs: 60_000,
      budget: { spawns: 3, tokens: 10_000, costMicroUsd: 500_000, wallMs: 60_000 },
    },
    gate: {
      threshold: 7_000,
      requireConfidence: true,
      checks: ["tone"],
      criticThreshold: 6_000,
      revisionsMax: 2,
      verifyMs: 120_000,
      allowSelf: true,
      holdMismatch: true,
    },
    decision: { confidence: 4_000, floor: 5_000 },
    isolate: "worktree",
  },
  "step.dispatched": {
    ...about,
    lane: "data",
    idempotencyKey: "co-1:step-1:1",
    deadlineAtMs: AT_MS,
    targetSession: CHILD,
    message: ref,
  },
  "step.acknowledged": { ...about, childSessionKey: CHILD, childRunId: "run-2", via: "hook" },
  "step.completed": { ...about, via: "gate", output: ref, usage: used, released: "approved" },
  "step.failed": {
    ...about,
    error: { code: "child_failed", message: "the model gave up" },
    cancelled: false,
    via: "reconciled",
    retryAtMs: AT_MS,
    escalated: escalation,
    usage: used,
    unspawned: true,
  },
  "step.timed_out": {
    ...about,
    deadlineAtMs: AT_MS,
    via: "deadline",
    retryAtMs: AT_MS,
    escalated: escalation,
  },
  "step.reported": { ...about, outcome: "completed", output: ref, confidence: 8_500 },
  "step.progressed": { ...about, percent: 40, line: ref },
  "child.observed": {
    ...about,
    ran: {
      agentId: AGENT,
      model: "mock/small",
      thinking: "off",
      folder: "/srv/other",
      tools: { count: 12, sha256: ref.sha256 },
    },
    refused: true,
  },
  "child.differed": { ...about, field: "model", asked: "mock/large", ran: "mock/small" },
  "step.outcome_refused": { ...about, outcome: "completed", because: "stale_attempt" },
  "step.skipped": { stepId: STEP, because: "dependency" },
  "step.retry_granted": { stepId: STEP, by: "operator" },
  "step.child_stopped": { ...about, childSessionKey: CHILD, outcome: "stopped" },
  "worktree.opened": {
    ...about,
    repository: "/srv/notes",
    base: "ab".repeat(20),
    folder: "/srv/worktrees/step-1-1-abababababababab",
  },
  "worktree.merge_begun": {
    ...about,
    files: [{ path: "RELEASE.md", before: "absent", after: `100644 ${"ab".repeat(20)}` }],
  },
  "worktree.merged": { ...about, files: 1 },
  "worktree.conflicted": { ...about, files: [{ path: "RELEASE.md", because: "both_changed" }] },
  "worktree.removed": { ...about, outcome: "removed" },
  "coordination.cancel_requested": { by: "agent", stepId: STEP },
  "result.withheld": { ...about, text: ref, ...stated },
  "result.shortened": { ...about, text: ref, chars: 100_000, shownChars: 16_000 },
  "message.suppressed": { ...about, through: "reply", channel: "slack", chars: 120, media: 1 },
  "result.held": { ...about, via: "hook", output: ref, usage: used, ...stated, verifyByMs: AT_MS },
  "result.verified": {
    ...about,
    check: "tone",
    agentId: "agent:critic",
    verdict: "revise",
    criteria,
    confidence: 9_000,
    self: true,
  },
  "verification.failed": { ...about, check: "tone", because: "timed_out" },
  "result.revised": { ...about, revision: 1, criteria },
  "session.told": { tellingId: "result:step-1:1", delivery: "delivered" },
  "plan.judged": { successCriteria: [{ key: "shipped", met: false }] },
  "escalation.answered": {
    escalationId: "escalation-1",
    answer: "answer",
    text: ref,
    by: { kind: "person", id: "telegram:7", session: OWNER },
    through: "chat",
    refused: "closed",
  },
  "escalation.notified": {
    escalationId: "escalation-1",
    notice: 0,
    channel: "webhook:oncall",
    outcome: "failed",
    tries: 6,
  },
  "escalation.forwarded": {
    escalationId: "escalation-1",
    deadlineAtMs: AT_MS,
    notices: [{ channel: "chat", atMs: AT_MS }],
  },
  "escalation.closed": { escalationId: "escalation-1", resolution: "retried", by: "operator" },
  ...createClaimExamples({ step: STEP, otherStep: OTHER_STEP, version: VERSION, atMs: AT_MS }),
  "usage.recorded": {
    stepId: STEP,
    runId: "run-1",
    meter: "0af7651916cd43dd",
    models: ["provider/model"],
    calls: 3,
    inputTokens: 1_200,
    outputTokens: 340,
    cacheReadTokens: 600,
    cacheWriteTokens: 0,
    costMicroUsd: 8_700,
  },
  "budget.reached": {
    stepId: STEP,
    limit: "spawns",
    agentId: AGENT,
    allowed: 3,
    used: 3,
    stopped: "spawn",
  },
  "budget.lent": {
    stepId: STEP,
    attempt: 1,
    to: "co-2" as CoordinationId,
    budget: { spawns: 3, tokens: 1_000, costMicroUsd: 5_000 },
  },
  "coordination.escalated": {
    escalationId: "escalation-1",
    stepId: STEP,
    cause: "confidence",
    kind: "approval",
    confidence: { measured: 4_000, floor: 5_000, of: "result" },
    deadlineAtMs: AT_MS,
    answers: ["approve", "deny", "answer"],
    askedBy: CHILD,
    askedOf: OWNER,
    requireDifferentApprover: true,
    question: ref,
    conflictId: "conflict-1",
    onExpiry: "deny",
    notices: [{ channel: "webhook:oncall", atMs: AT_MS }],
  },
  "coordination.terminal": {
    status: "partial",
    steps: { total: 5, completed: 1, failed: 1, timedOut: 1, cancelled: 1, skipped: 1 },
    successCriteria: [{ key: "shipped", met: false }],
    delivery: "delivered",
  },
};

const error = { code: "child_failed", message: "the model gave up" };

export const OPENWOP: OpenWopPayloads = {
  "run.started": { workflowId: "openclaw.observed-coordination" },
  "run.completed": { durationMs: 1 },
  "run.failed": { error, durationMs: 1 },
  "run.cancelled": { reason: "asked to", durationMs: 1 },
  "runOrchestrator.decided": {
    agentId: "agent:main",
    decision: { kind: "next-worker", nextWorkerIds: [STEP] },
    iteration: 1,
    causationHostId: "other-host",
  },
  "agent.decided": {
    agentId: "agent:main",
    decision: { workerId: STEP, attempt: 1, outputSha256: ref.sha256 },
    confidence: 0.4,
    causationHostId: "other-host",
  },
  "agent.verified": {
    agentId: "agent:critic",
    target: "co-1:7",
    verdict: "revise",
    criteria,
    confidence: 0.9,
    causationHostId: "other-host",
  },
  "node.dispatched": { childRunId: "run-2", childWorkflowId: "workflow", childStatus: "running" },
  "core.workflowChain.event": {
    phase: "child.failed",
    workerId: STEP,
    parentRunId: RUN_ID,
    childRunId: "run-2",
    harvestedKeys: ["key"],
    error,
    causationHostId: "other-host",
  },
  "core.workflowChain.confidence-escalated": {
    confidence: 0.4,
    floor: 0.5,
    escalationKind: "escalate",
    parentRunId: RUN_ID,
    workerId: STEP,
    causationHostId: "other-host",
  },
  "interrupt.requested": {
    kind: "approval",
    key: "escalation-1",
    data: {
      artifactId: STEP,
      artifactType: "coordination.step",
      title: "step-1: confidence",
      actions: ["accept"],
    },
    timeoutMs: 1,
  },
  "interrupt.resolved": {
    nodeId: STEP,
    interruptId: "escalation-1",
    kind: "approval",
    resumeValue: { action: "accept" },
  },
  "node.suspended": {
    nodeId: STEP,
    interruptId: "escalation-1",
    kind: "approval",
    key: "escalation-1",
    reason: "low-confidence",
    agentId: "agent:main",
    threshold: 0.7,
    observed: 0.4,
  },
};
