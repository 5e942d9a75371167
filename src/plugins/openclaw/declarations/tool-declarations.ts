/**
 * Owns: the names of the agent tools and what models read of them. Does not own: what the tools do (`plan-tools.ts`).
 *
 * The schemas are written for models: what a field is for stands beside it. Unknown fields are not excluded here, because our
 * own validation names them in a sentence; a test holds the fields equal to the contracts.
 */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import {
  ANSWER,
  ANSWER_DESCRIPTION,
  ESCALATE,
  ESCALATE_DESCRIPTION,
  PROGRESS,
  PROGRESS_DESCRIPTION,
} from "./asking-declarations.ts";
import { BUDGET, declareDuration, TOOLS, WRITE } from "./limit-declarations.ts";
import { RESULT_DECLARATION } from "./result-declaration.ts";

export const TOOL_NAMES = [
  "coordination_plan",
  "coordination_report",
  "coordination_status",
  "coordination_result",
  "coordination_escalate",
  "coordination_progress",
  "coordination_answer",
] as const;
export const REPORT_TOOL = "coordination_report";
/** Children of steps are given these, whatever the profile of their agent. */
export const ESCALATE_TOOL = "coordination_escalate";
export const PROGRESS_TOOL = "coordination_progress";
export const CHILD_TOOLS = [REPORT_TOOL, ESCALATE_TOOL, PROGRESS_TOOL] as const;
export type ToolName = (typeof TOOL_NAMES)[number];

export interface ToolDeclaration {
  readonly name: ToolName;
  readonly label: string;
  readonly description: string;
  /** JSON Schema. */
  readonly parameters: object;
}

const PRIORITY = { type: "string", enum: ["low", "normal", "high", "critical"] };
const LANE = { type: "string", enum: ["control", "data", "escalation"] };
const DELIVERY_MODE = {
  type: "string",
  enum: ["best_effort", "at_least_once"],
  description: "best_effort: tried once. Default: at_least_once.",
};
const RETRY = {
  type: "object",
  description:
    "How often the step is tried again, and how long the first wait is; each further wait doubles.",
  properties: {
    budget: { type: "integer", minimum: 0, maximum: BOUNDS.retryBudgetMax },
    backoffMs: declareDuration("Default: 1000."),
  },
  required: ["budget"],
};
const STEP = {
  type: "object",
  properties: {
    stepId: {
      type: "string",
      maxLength: BOUNDS.idCharsMax,
      description: "Unique in the plan: letters, digits, - and _. Does not begin with @.",
    },
    agent: {
      type: "string",
      maxLength: BOUNDS.agentIdCharsMax,
      description: "The id of the agent that does it. Left out: your own agent.",
    },
    task: {
      type: "string",
      maxLength: BOUNDS.taskCharsMax,
      description:
        "What to do, complete in itself: the agent sees nothing of this conversation. No bindings here.",
    },
    dependsOn: {
      type: "array",
      items: { type: "string" },
      maxItems: BOUNDS.dependenciesMax,
      description: "Ids of the steps that must have completed first. Without it the step begins at once.",
    },
    fanIn: {
      description: 'How many of dependsOn must have completed: "all" (default), "any", or {"min": N}.',
      anyOf: [
        { type: "string", enum: ["all", "any"] },
        { type: "object", properties: { min: { type: "integer", minimum: 1 } }, required: ["min"] },
      ],
    },
    input: {
      type: "object",
      description:
        'Data for the step. A text "{{steps.ID.outputs.PATH}}" is replaced by that output of an earlier step, which must be in dependsOn, directly or through others. PATH is like items[0].title.',
    },
    outputSchema: {
      type: "object",
      description:
        "A JSON Schema (type object) that the outputs of the step must meet; outputs that do not are a failed attempt. Give one where a later step binds to an output.",
    },
    priority: PRIORITY,
    timeoutMs: declareDuration("How long one attempt may take. Default: 24 hours, cut to deadlineMs."),
    retry: RETRY,
    resources: {
      type: "array",
      items: { type: "string", maxLength: BOUNDS.resourceCharsMax },
      maxItems: BOUNDS.resourcesPerStepMax,
      description: 'What the step writes, such as "file:/srv/report.md".',
    },
    deliveryMode: DELIVERY_MODE,
    lane: LANE,
    verify: {
      type: "object",
      description: "What is checked of the result before it counts.",
      properties: {
        checks: {
          type: "object",
          description:
            'Checks by key: {"kind":"schema","schema":{...}}, {"kind":"pattern","pattern":"...","absent":false}, {"kind":"file","path":"relative.txt","sha256":"..."}, {"kind":"model","rubric":"...","criteria":["grounded"]}, or true for one that the operator defined under that key.',
        },
        revisionsMax: {
          type: "integer",
          minimum: 0,
          maximum: BOUNDS.revisionsMax,
          description: "How often the result may go back to its agent.",
        },
        requireConfidence: {
          type: "boolean",
          description: "A result without a stated confidence waits for a person.",
        },
        confidenceThreshold: {
          type: "number",
          minimum: 0,
          maximum: 1,
          description: "Below this stated confidence the result waits for a person.",
        },
      },
    },
    confidence: {
      type: "number",
      minimum: 0,
      maximum: 1,
      description:
        "How sure you are that this step is right. Below the operator's floor a person is asked before it begins.",
    },
    budget: BUDGET,
    tools: TOOLS,
    write: WRITE,
    isolate: { enum: ["worktree"], description: "Works in a git worktree, merged when it counts." },
  },
  required: ["stepId", "task"],
};

const PLAN = {
  type: "object",
  properties: {
    coordinationId: {
      type: "string",
      maxLength: BOUNDS.coordinationIdCharsMax,
      description:
        "Left out: a new one is made. The same plan with the same id is not run twice. Has letters (a to z, A to Z), digits and . _ - @ /; begins with a letter or digit.",
    },
    objective: { type: "string", maxLength: BOUNDS.objectiveCharsMax, description: "What the plan is for." },
    steps: { type: "array", items: STEP, minItems: 1, maxItems: BOUNDS.planStepsMax },
    failurePolicy: {
      type: "object",
      description: "Left out: 2 retries, go on with what can be done, ask nobody.",
      properties: {
        retryBudget: {
          type: "integer",
          minimum: 0,
          maximum: BOUNDS.retryBudgetMax,
          description: "The most retries of any one step, and what a step without retry has.",
        },
        timeoutPolicy: {
          type: "string",
          enum: ["fail_fast", "continue_with_partial"],
          description: "fail_fast: one failed step ends the plan.",
        },
        escalationPolicy: {
          type: "string",
          enum: ["none", "hitl"],
          description: "hitl: a step without retries left waits for a person.",
        },
      },
    },
    conflictPolicy: {
      type: "object",
      description: "Who gets a resource that several steps write. Left out: as the operator decided.",
      properties: {
        strategy: { type: "string", enum: ["owner_wins", "priority_wins", "merge_if_safe", "manual_review"] },
        overrides: {
          type: "array",
          maxItems: BOUNDS.policyOverridesMax,
          items: {
            type: "object",
            properties: { resource: { type: "string" }, strategy: { type: "string" } },
            required: ["resource", "strategy"],
          },
        },
        highRisk: { type: "array", items: { type: "string" }, maxItems: BOUNDS.policyOverridesMax },
      },
    },
    deadlineMs: declareDuration(
      "How long the whole plan may take. Each chain of stated timeouts must fit into it.",
    ),
    defaults: {
      type: "object",
      description: "For steps that do not say these themselves.",
      properties: {
        priority: PRIORITY,
        timeoutMs: declareDuration("How long one attempt may take."),
        retry: RETRY,
        deliveryMode: DELIVERY_MODE,
        lane: LANE,
      },
    },
    budget: BUDGET,
    confidence: {
      type: "number",
      minimum: 0,
      maximum: 1,
      description:
        "How sure you are of the whole plan. Below the operator's floor a person is asked before it begins.",
    },
    successCriteria: {
      type: "array",
      maxItems: BOUNDS.successCriteriaMax,
      description: "What the plan is to reach. Where one is not met the plan ends as partial, as a give-up.",
      items: {
        type: "object",
        properties: {
          key: { type: "string", maxLength: BOUNDS.nameCharsMax },
          when: {
            type: "string",
            description:
              '"{{steps.ID.outputs.PATH}}": met where that output is true. Left out: met where all steps completed.',
          },
        },
        required: ["key"],
      },
    },
  },
  required: ["objective", "steps"],
};

/** The plan in the description of `coordination_plan`; a test runs it. */
export const PLAN_EXAMPLE = {
  plan: {
    objective: "Compare two databases",
    steps: [
      {
        stepId: "sqlite",
        task: "Collect what speaks for SQLite as an event store. Report outputs {points: string[]}.",
        outputSchema: {
          type: "object",
          required: ["points"],
          properties: { points: { type: "array", items: { type: "string" } } },
        },
        timeoutMs: 600_000,
      },
      {
        stepId: "postgres",
        task: "Collect what speaks for PostgreSQL as an event store. Report outputs {points: string[]}.",
        retry: { budget: 1, backoffMs: 5_000 },
      },
      {
        stepId: "compare",
        task: "Compare the points of the input and recommend one database.",
        dependsOn: ["sqlite", "postgres"],
        fanIn: "all",
        input: { sqlite: "{{steps.sqlite.outputs.points}}", postgres: "{{steps.postgres.outputs.points}}" },
      },
    ],
  },
};

const PLAN_DESCRIPTION = `Runs a plan of several steps, each done by a subagent, with dependencies, retries and timeouts. It goes on when your turn ends, also over a restart of the gateway. You are told the result once, in this session, when the plan has ended; do not wait or poll for it.
Use it when work has parts that depend on each other, run in parallel or must not be lost; for one subagent use sessions_spawn.
A plan with problems is not run: all of them come back with path and sentence; correct them and call again.
Example: ${JSON.stringify(PLAN_EXAMPLE)}`;

const REPORT_DESCRIPTION = `Reports the result of the coordination step that this session works on. Call it once, when the work is done or cannot be done, before your final answer. If the answer is "invalid", correct the outputs at the named paths and report again; the newest report counts.`;

const STATUS_DESCRIPTION = `Shows how coordinations of this session stand: their steps, attempts, errors and next tries, and as questions what your subagents ask this session. With outputsOf it also gives the outputs of one step: its result, or the reason that its agent reported for not doing it.`;

const REPORT = {
  type: "object",
  properties: {
    outcome: {
      type: "string",
      enum: ["completed", "failed"],
      description: "failed: the work could not be done; say why in outputs.reason.",
    },
    outputs: {
      type: "object",
      description: "The result, as the step's output schema asks for it where there is one.",
    },
    confidence: { type: "number", minimum: 0, maximum: 1, description: "How sure you are of the result." },
    evidence: {
      type: "array",
      items: { type: "string", maxLength: BOUNDS.resourceCharsMax },
      maxItems: BOUNDS.resourcesPerStepMax,
      description: "What the result rests on: files, addresses, commands.",
    },
  },
  required: ["outcome", "outputs"],
};

const STATUS = {
  type: "object",
  properties: {
    coordinationId: {
      type: "string",
      maxLength: BOUNDS.coordinationIdCharsMax,
      description: "Left out: the newest coordinations of this session.",
    },
    outputsOf: {
      type: "string",
      maxLength: BOUNDS.idCharsMax,
      description: "The id of a step whose outputs are wanted; needs coordinationId.",
    },
  },
};

export const TOOL_DECLARATIONS: readonly ToolDeclaration[] = [
  {
    name: "coordination_plan",
    label: "Run a plan",
    description: PLAN_DESCRIPTION,
    parameters: { type: "object", properties: { plan: PLAN }, required: ["plan"] },
  },
  {
    name: "coordination_report",
    label: "Report a step",
    description: REPORT_DESCRIPTION,
    parameters: REPORT,
  },
  {
    name: "coordination_status",
    label: "Coordination status",
    description: STATUS_DESCRIPTION,
    parameters: STATUS,
  },
  RESULT_DECLARATION,
  {
    name: "coordination_escalate",
    label: "Ask a person",
    description: ESCALATE_DESCRIPTION,
    parameters: ESCALATE,
  },
  {
    name: "coordination_progress",
    label: "Tell progress",
    description: PROGRESS_DESCRIPTION,
    parameters: PROGRESS,
  },
  {
    name: "coordination_answer",
    label: "Answer a subagent",
    description: ANSWER_DESCRIPTION,
    parameters: ANSWER,
  },
];
