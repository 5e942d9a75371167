/** Owns: asking the gateway to run a plan, and telling what it has against it. */
import type { PlanProblem } from "../../../agents/coordination/plan/plan-problem.ts";
import type { GatewayAnswer } from "../../openclaw/host/gateway-call.ts";
import { requestGatewayAnswer, throwGatewayRefusal } from "../ledger/ask-gateway.ts";
import type { CliHost } from "../terminal/cli-host.ts";
import { printPlanProblems } from "./plan-problems.ts";
import type { JsonOption } from "../terminal/run-command.ts";

interface AskedAboutPlan {
  readonly method: "coordination.plan.run" | "coordination.plan.fork";
  readonly params: object;
  readonly options: JsonOption;
}

/**
 * Calls a method of the gateway that takes a plan and returns its payload; where the plan is refused, prints its
 * problems, sets exit code 1 and returns `undefined`. @throws CoordinationError for any other refusal
 */
export async function requestPlan(
  host: CliHost,
  { method, params, options }: AskedAboutPlan,
): Promise<(GatewayAnswer & { readonly ok: true })["payload"] | undefined> {
  const answer = await requestGatewayAnswer(host, method, params);
  if (answer.ok) return answer.payload;
  const problems = parseRefusalProblems(answer.details);
  if (answer.code !== "PLAN_REFUSED" || problems.length === 0) return throwGatewayRefusal(answer);
  await printPlanProblems(host, problems, { options, output: host.stderr });
  return undefined;
}

/** Returns the problems of a refusal, as they are: the gateway may know more than this program. */
function parseRefusalProblems(details: unknown): readonly PlanProblem[] {
  const { problems } = (details ?? {}) as { problems?: unknown };
  const isProblem = (value: unknown): value is PlanProblem =>
    typeof value === "object" &&
    value !== null &&
    ["path", "code", "message"].every((key) => typeof (value as Record<string, unknown>)[key] === "string");
  return Array.isArray(problems) ? problems.filter(isProblem) : [];
}
