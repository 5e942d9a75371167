import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { coordinationEnvelopeSchema } from "../../src/agents/coordination/contracts/envelope.ts";
import { FACT_PAYLOADS, QM2_EVENT_TYPES } from "../../src/agents/coordination/contracts/facts.ts";
import { OPENWOP_PAYLOADS } from "../../src/agents/coordination/contracts/openwop-events.ts";
import {
  arbiterPolicySchema,
  coordinationPlanSchema,
  coordinationStepSchema,
  parsePlan,
} from "../../src/agents/coordination/contracts/plan.ts";
import { parseBounded, PLAN_BOUNDS } from "../../src/agents/coordination/contracts/validation.ts";
import { ENVELOPE, FACTS, OPENWOP, PLAN, POLICY } from "../support/arbitraries-examples.ts";

interface Contract {
  readonly name: string;
  readonly schema: z.ZodType;
  readonly valid: object;
  /** Paths that may be absent. */
  readonly optional: readonly string[];
  readonly strict: boolean;
}

const BUDGET = ["budget", "budget.spawns", "budget.tokens", "budget.costUsd", "budget.wallMs"];
const USAGE = ["usage", "usage.tokens", "usage.costMicroUsd"];
const STATED = ["confidence", "confidenceUnreadable"];
const findLimitsAt = (path: string): string[] => [
  path,
  ...["spawns", "tokens", "costMicroUsd", "wallMs"].map((name) => `${path}.${name}`),
];

const OPTIONAL: Readonly<Record<string, readonly string[]>> = {
  envelope: ["parentStepId", "deadlineMs", "trace.runId", "trace.spanId", "trace.causalRef"],
  policy: ["strategy", "overrides", "highRisk"],
  plan: [
    ...["conflictPolicy.strategy", "conflictPolicy.overrides", "conflictPolicy.highRisk", "deadlineMs"],
    ...["defaults", "defaults.priority", "defaults.timeoutMs", "defaults.retry", "defaults.retry.backoffMs"],
    ...["defaults.deliveryMode", "defaults.lane", "confidence", "successCriteria"],
    ...BUDGET,
  ],
  step: [
    ...["dependsOn", "fanIn", "input", "outputSchema", "priority", "timeoutMs", "retry", "retry.backoffMs"],
    ...["resources", "deliveryMode", "lane", "confidence", "verify", "verify.checks", "verify.revisionsMax"],
    "isolate",
    ...["verify.requireConfidence", "verify.confidenceThreshold"],
    ...BUDGET,
  ],
  "coordination.created": [
    ...["trace.traceId", "trace.runId", "trace.spanId", "trace.causalRef"],
    ...["plan", "plan.deadlineAtMs", "parent", ...findLimitsAt("plan.budget")],
    ...["plan.decision", "plan.decision.confidence", "plan.successCriteria"],
    ...["questions", "questions.notify", "questions.requireDifferentApprover"],
    "budget",
    "budget.tokens",
    "budget.costMicroUsd",
    "budget.spawns",
    "budget.depth",
    "budget.agents",
    "budget.agents.main",
    "budget.agents.main.spawns",
    "gateway",
  ],
  "step.admitted": [
    "isolate",
    ...["parentStepId", "name", "call.toolCallId", "call.runId", "call.spanId", "problems"],
    ...["planned", ...findLimitsAt("planned.budget"), "decision", "decision.confidence"],
    ...["gate", "gate.requireConfidence", "gate.checks", "gate.criticThreshold", "gate.revisionsMax"],
    ...["gate.verifyMs", "gate.allowSelf", "gate.holdMismatch"],
    ...["requested", "requested.model", "requested.thinking", "requested.folder"],
  ],
  "step.dispatched": ["targetSession", "message"],
  "step.completed": ["output", "released", ...USAGE],
  "step.failed": ["retryAtMs", "escalated", ...USAGE, "unspawned"],
  "step.timed_out": ["retryAtMs", "escalated"],
  "step.reported": ["confidence"],
  "child.observed": ["ran.agentId", "ran.model", "ran.thinking", "ran.folder", "ran.tools", "refused"],
  "coordination.cancel_requested": ["stepId"],
  "result.withheld": STATED,
  "result.held": ["output", "verifyByMs", ...STATED, ...USAGE],
  "result.verified": ["criteria", "confidence", "self"],
  "escalation.answered": ["text", "by.id", "by.session", "refused"],
  "escalation.notified": ["tries"],
  "step.progressed": ["percent"],
  "escalation.forwarded": ["notices"],
  "escalation.closed": ["by"],
  "coordination.terminal": ["steps.skipped", "successCriteria", "delivery"],
  "claim.acquired": ["base"],
  "resource.changed": ["token"],
  "write.undetermined": ["extractor"],
  "privilege.refused": ["from.coordinationId", "resource"],
  "conflict.detected": [
    ...["contest", "contest.base", "contest.current", "contest.merge", "contest.reviewByMs"],
  ],
  "conflict.resolved": ["winner", "winnerCoordinationId", "rule"],
  "budget.reached": ["agentId"],
  "budget.lent": ["budget.spawns", "budget.tokens", "budget.costMicroUsd"],
  "coordination.escalated": [
    ...["stepId", "confidence", "confidence.measured", "confidence.of", "answers", "askedBy"],
    "askedOf",
    ...["requireDifferentApprover", "question", "conflictId", "onExpiry", "notices"],
  ],
  "run.completed": ["durationMs"],
  "run.failed": ["durationMs"],
  "run.cancelled": ["reason", "durationMs"],
  "runOrchestrator.decided": ["causationHostId"],
  "agent.decided": ["decision.outputSha256", "confidence", "causationHostId"],
  "agent.verified": ["criteria", "confidence", "causationHostId"],
  "node.dispatched": ["childStatus"],
  "core.workflowChain.event": ["childRunId", "harvestedKeys", "error", "causationHostId"],
  "core.workflowChain.confidence-escalated": ["workerId", "causationHostId"],
  "interrupt.requested": ["timeoutMs"],
  "interrupt.resolved": ["kind"],
  "node.suspended": ["reason", "agentId", "threshold", "observed"],
};

const STRICT = [
  ...["envelope", "policy", "plan", "step", "runOrchestrator.decided", "node.dispatched"],
  ...["agent.decided", "agent.verified"],
  ...["core.workflowChain.event", "core.workflowChain.confidence-escalated", "interrupt.requested"],
];

function createContract(name: string, schema: z.ZodType, valid: object): Contract {
  return { name, schema, valid, optional: OPTIONAL[name] ?? [], strict: STRICT.includes(name) };
}

const CONTRACTS: readonly Contract[] = [
  createContract("envelope", coordinationEnvelopeSchema, ENVELOPE),
  createContract("policy", arbiterPolicySchema, POLICY),
  createContract("plan", coordinationPlanSchema, { ...PLAN, steps: PLAN.steps.slice(1) }),
  createContract("step", coordinationStepSchema, PLAN.steps[0]!),
  ...Object.entries(FACT_PAYLOADS).map(([type, schema]) =>
    createContract(type, schema, FACTS[type as keyof typeof FACTS]),
  ),
  ...Object.entries(OPENWOP_PAYLOADS).map(([type, schema]) =>
    createContract(type, schema, OPENWOP[type as keyof typeof OPENWOP]),
  ),
];

const problemsOf = (
  schema: z.ZodType,
  value: unknown,
): readonly { path: string; expected: string; received: string }[] => {
  const parsed = parseBounded(schema, value, PLAN_BOUNDS);
  return parsed.ok ? [] : parsed.problems;
};

/** The fields of a value by path, objects and what is in them; items of arrays are left to their own schemas. */
function fieldsOf(value: object, prefix = ""): string[] {
  return Object.entries(value).flatMap(([key, field]: [string, unknown]) => {
    const path = prefix + key;
    // The content of these may be any JSON, or one of several forms.
    const isFree = ["input", "outputSchema", "verify.checks", "fanIn", "data", "contest.merge"].includes(
      path,
    );
    const hasForms = path === "decision" && isObject(field) && "kind" in field;
    return isObject(field) && !isFree && !hasForms ? [path, ...fieldsOf(field, `${path}.`)] : [path];
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A copy in which one field is changed, or removed where `change` returns `undefined`. */
function changeField(value: object, path: string, change: (field: unknown) => unknown): object {
  const copy = structuredClone(value) as Record<string, unknown>;
  const keys = path.split(".");
  const last = keys.pop() ?? "";
  const holder = keys.reduce((at, key) => at[key] as Record<string, unknown>, copy);
  const next = change(holder[last]);
  if (next === undefined) Reflect.deleteProperty(holder, last);
  else holder[last] = next;
  return copy;
}

describe.each(CONTRACTS)("the contract of $name", ({ schema, valid, optional, strict }) => {
  it("takes a valid example as it is", () => {
    expect(parseBounded(schema, valid, PLAN_BOUNDS)).toEqual({ ok: true, value: valid });
  });

  it.each(fieldsOf(valid))("refuses a wrong %s and says where, what was expected and what came", (path) => {
    const problems = problemsOf(
      schema,
      changeField(valid, path, (field) => (isObject(field) ? 7 : { nothing: "valid" })),
    );
    const problem = problems.find((each) => each.path === path);
    expect(problem, JSON.stringify(problems)).toBeDefined();
    expect(problem?.expected).toMatch(/\S/u);
    // A code may be named so; the sentence around it may not.
    expect(problem?.expected.replaceAll(/"[^"]*"/gu, '""')).not.toMatch(/invalid|undefined/iu);
    expect(problem?.received).toMatch(/^(an object|number 7)$/u);
  });

  it.each(fieldsOf(valid))("takes %s as absent only where it is optional", (path) => {
    const problems = problemsOf(
      schema,
      changeField(valid, path, () => undefined),
    );
    if (optional.includes(path)) expect(problems).toEqual([]);
    else expect(problems).toContainEqual(expect.objectContaining({ path, received: "nothing" }));
  });

  it(
    strict ? "refuses a key that it does not know" : "keeps going over a key that a later release may add",
    () => {
      const problems = problemsOf(schema, { ...valid, later: 1 });
      if (strict)
        expect(problems).toContainEqual({ path: "(root)", expected: 'no key "later"', received: "it" });
      else expect(problems).toEqual([]);
    },
  );

  it.each([undefined, null, 1, "text", true, [], Symbol("s"), 1n, () => 1])(
    "refuses %s in its place",
    (value) => {
      expect(problemsOf(schema, value)).toEqual([expect.objectContaining({ path: "(root)" })]);
    },
  );
});

describe("the set of contracts", () => {
  it("has an example of every event type", () => {
    expect(Object.keys(FACTS)).toEqual(Object.keys(FACT_PAYLOADS));
    expect(Object.keys(OPENWOP)).toEqual(Object.keys(OPENWOP_PAYLOADS));
  });

  it("has the ten event types of QM2 and this host's own as facts, and no other", () => {
    const ownProblems = [
      ...["step.admitted", "step.reported", "step.outcome_refused", "step.skipped", "step.retry_granted"],
      ...[
        "child.observed",
        "child.differed",
        "step.child_stopped",
        "coordination.cancel_requested",
        "escalation.closed",
      ],
      ...["result.withheld", "result.held", "result.verified", "verification.failed", "result.revised"],
      ...["result.shortened", "message.suppressed"],
      ...["session.told", "plan.judged", "escalation.answered", "escalation.notified"],
      ...["step.progressed", "escalation.forwarded"],
      ...["worktree.opened", "worktree.merge_begun", "worktree.merged", "worktree.conflicted"],
      "worktree.removed",
      ...["claim.acquired", "claim.renewed", "claim.released", "resource.changed", "write.undetermined"],
      "privilege.refused",
      ...["usage.recorded", "budget.reached", "budget.lent"],
    ];
    expect(Object.keys(FACT_PAYLOADS).toSorted()).toEqual([...QM2_EVENT_TYPES, ...ownProblems].toSorted());
    expect(QM2_EVENT_TYPES).toHaveLength(10);
  });

  it("fills in no strategy of a policy that names none", () => {
    expect(arbiterPolicySchema.parse({})).toEqual({});
  });
});

describe("the evidence of a merge", () => {
  const { contest, ...conflict } = FACTS["conflict.detected"];
  const withMerge = (merge: unknown): unknown => ({ ...conflict, contest: { ...contest, merge } });
  const clean = { kind: "clean", base: "sha256:a", current: "absent", merged: "sha256:b" };

  it.each([clean, { kind: "obstacle", obstacle: "too_large" }])("may be %j", (merge) => {
    const detected = withMerge(merge);
    expect(problemsOf(FACT_PAYLOADS["conflict.detected"], detected)).toEqual([]);
  });

  it.each([
    ["contest.merge.kind", { kind: "forced" }],
    ["contest.merge.kind", {}],
    ["contest.merge.merged", { ...clean, merged: undefined }],
    ["contest.merge.base", { ...clean, base: "" }],
    ["contest.merge.current", { ...clean, current: "x".repeat(129) }],
    ["contest.merge.obstacle", { kind: "obstacle", obstacle: "bored" }],
  ])("is refused at %s in %j", (path, merge) => {
    expect(problemsOf(FACT_PAYLOADS["conflict.detected"], withMerge(merge))).toEqual([
      expect.objectContaining({ path }),
    ]);
  });
});

describe("what an orchestrator decided", () => {
  const { agentId } = OPENWOP["runOrchestrator.decided"];
  const findDecisionProblems = (decision: unknown): unknown =>
    problemsOf(OPENWOP_PAYLOADS["runOrchestrator.decided"], { agentId, decision, iteration: 1 });
  const criteria = [{ key: "shipped", met: false }];

  it.each([
    { kind: "next-worker", nextWorkerIds: ["step-1"] },
    { kind: "terminate" },
    { kind: "terminate", reason: "done", successCriteria: criteria },
  ])("may be %j", (decision) => {
    expect(findDecisionProblems(decision)).toEqual([]);
  });

  it.each([
    ["decision.kind", { kind: "sleep" }],
    ["decision.kind", {}],
    ["decision.nextWorkerIds", { kind: "next-worker" }],
    ["decision.nextWorkerIds", { kind: "next-worker", nextWorkerIds: [] }],
    ["decision", { kind: "next-worker", nextWorkerIds: ["step-1"], successCriteria: criteria }],
    ["decision.successCriteria[0].met", { kind: "terminate", successCriteria: [{ key: "shipped" }] }],
    ["decision.successCriteria[0].key", { kind: "terminate", successCriteria: [{ key: " ", met: true }] }],
  ])("is refused at %s in %j", (path, decision) => {
    expect(findDecisionProblems(decision)).toEqual([expect.objectContaining({ path })]);
  });
});

describe("what is checked of a step", () => {
  const verify = (checks: unknown): unknown =>
    problemsOf(coordinationStepSchema, { ...PLAN.steps[1], verify: { checks } });

  it.each([
    { known: true },
    { shape: { kind: "schema", schema: { type: "object" } } },
    { words: { kind: "pattern", pattern: "TODO", absent: true } },
    { file: { kind: "file", path: "out.txt", sha256: "0".repeat(64) } },
    { critic: { kind: "model", rubric: "is it grounded?", criteria: ["grounded"], agent: "critic" } },
  ])("may be %j", (checks) => {
    expect(verify(checks)).toEqual([]);
  });

  it.each([
    {},
    { known: false },
    { "no key": true },
    { command: { kind: "command", command: "/bin/true" } },
    { file: { kind: "file", path: "out.txt", sha256: "short" } },
    { critic: { kind: "model", rubric: "is it grounded?", criteria: [] } },
    { words: { kind: "pattern", pattern: "x", flags: "i" } },
    Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`check-${index}`, true])),
  ])("is refused as %j", (checks) => {
    expect(verify(checks)).not.toEqual([]);
  });
});

describe("a problem's wording", () => {
  const findWordingProblems = (change: object): unknown =>
    problemsOf(coordinationEnvelopeSchema, { ...ENVELOPE, ...change });

  it.each([
    [{ priority: "urgent" }, 'one of "low", "normal", "high", "critical"', 'string "urgent"'],
    [{ stepId: "" }, "at least 1 characters", 'string ""'],
    [{ stepId: "x".repeat(200) }, "at most 128 characters", "a string of 200 characters"],
    [{ createdAtMs: -1 }, "at least 0", "number -1"],
    [{ createdAtMs: 1.5 }, "int", "number 1.5"],
    [{ createdAtMs: Number.NaN }, "number", "number NaN"],
    [{ createdAtMs: true }, "number", "boolean true"],
    [{ trace: null }, "object", "null"],
    [{ trace: [1, 2] }, "object", "an array of 2 items"],
  ])("of %j is what was expected and what came", (change, expected, received) => {
    expect(findWordingProblems(change)).toEqual([{ path: Object.keys(change)[0], expected, received }]);
  });

  it("names the forms that a union allows", () => {
    const step = { ...PLAN.steps[0], fanIn: "some" };
    expect(problemsOf(coordinationStepSchema, step)).toEqual([
      { path: "fanIn", expected: 'one of "all", "any" or object', received: 'string "some"' },
    ]);
  });
});

describe("parsePlan", () => {
  it("takes a valid plan as it is", () => {
    expect(parsePlan(PLAN)).toEqual({ ok: true, value: PLAN });
  });

  it("leaves it to the operator how conflicts are ruled on where the plan does not say", () => {
    expect(parsePlan({ ...PLAN, conflictPolicy: {} })).toMatchObject({
      ok: true,
      value: { conflictPolicy: {} },
    });
  });

  it("names the step and the field that is wrong, for the first twenty problems", () => {
    const steps = Array.from({ length: 100 }, (_, index) => ({
      ...PLAN.steps[1],
      agent: index % 2 ? AGENT_WRONG : "a",
    }));
    const parsed = parsePlan({ ...PLAN, steps });
    const problems = parsed.ok ? [] : parsed.problems;
    expect(problems).toHaveLength(20);
    expect(problems[0]).toEqual({ path: "steps[1].agent", expected: "string", received: "number 7" });
    expect(problems[19]?.path).toBe("steps[39].agent");
  });

  it.each([
    ["objective", { objective: 1 }],
    ["steps", { steps: [] }],
    ["steps", { steps: 5 }],
    ["steps[0]", { steps: [null] }],
    ["failurePolicy.retryBudget", { failurePolicy: { ...PLAN.failurePolicy, retryBudget: 101 } }],
    ["(root)", { extra: 1 }],
  ])("names %s where that is wrong", (path, change) => {
    expect(parsePlan({ ...PLAN, ...change })).toEqual({
      ok: false,
      problems: [expect.objectContaining({ path })],
    });
  });
});

const AGENT_WRONG = 7;
