/** Owns: the tool `plan_run`, which hands a plan to the gateway in the operator's name. */
import { z } from "zod";
import { formatCount } from "../../agents/coordination/std/quantities.ts";
import { askGatewayAsOperator } from "./ask-operator.ts";
import { createTool, type ToolFields, type McpTool, type OperatorAccess } from "./mcp-tool.ts";

/** The plan in the description of the tool; a test runs it. */
export const PLAN_RUN_EXAMPLE = {
  coordinationId: "compare-databases-1",
  objective: "Compare two databases",
  ownerSession: "agent:main:main",
  steps: [
    { stepId: "collect", agent: "main", task: "Collect what speaks for SQLite and for PostgreSQL." },
    { stepId: "compare", agent: "main", task: "Recommend one of them.", dependsOn: ["collect"] },
  ],
  conflictPolicy: {},
  failurePolicy: { retryBudget: 2, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
};

const planSchema = z.strictObject({
  plan: z
    .record(z.string(), z.unknown())
    .describe(
      `A CoordinationPlan (docs/plans.md). All fields of this example are required, but dependsOn: ${JSON.stringify(PLAN_RUN_EXAMPLE)}. ownerSession is the session that is told the result; timeoutPolicy may be fail_fast, and escalationPolicy hitl, which asks people.`,
    ),
});

/**
 * Creates the MCP tool `plan_run`, which submits a plan to the gateway in the operator's name. Plans are run by the
 * agents of a gateway, so a host of workflows alone has no such tool.
 */
export function createPlanTool(operator: OperatorAccess): McpTool {
  const words = {
    name: "plan_run",
    title: "Run a plan of agents",
    description:
      "Runs a plan with the agents of the OpenClaw gateway. Answers with its coordinationId at once; call `status` with it as runId. A plan that runs already is not run twice. A plan with problems is not run: they come back with path and sentence.",
    isReadOnly: false,
  };
  return createTool(words, planSchema, ({ plan }) =>
    askGatewayAsOperator(operator, {
      method: "coordination.plan.run",
      params: { plan },
      describe: describeSubmission,
    }),
  );
}

function describeSubmission({ coordinationId, steps, replay }: ToolFields): string {
  const plan = `The plan ${String(coordinationId)}`;
  const next = "Call `status` with this id as runId to wait for its end.";
  return replay === true
    ? `${plan} was submitted before and is not run twice. ${next}`
    : `${plan} was begun: ${formatCount(Number(steps), "step")}. ${next}`;
}
