/** Owns: asking the gateway to run a plan, and telling what it has against it. */
import type { PlanProblem } from "../../../agents/coordination/plan/plan-problem.ts";
import type { GatewayAnswer } from "../../openclaw/host/gateway-call.ts";
import { answerOf, throwAnswer } from "../ledger/ask-gateway.ts";
import type { CliHost } from "../terminal/cli-host.ts";
import { tellProblems } from "./plan-problems.ts";
import type { JsonOption } from "../terminal/run-command.ts";

interface AskedAboutPlan {
  readonly method: "coordination.plan.run" | "coordination.plan.fork";
  readonly params: object;
  readonly options: JsonOption;
}

/**
 * Asks the gateway about a plan; `undefined` when the plan was refused, which was printed then. @throws
 * CoordinationError
 */
export async function askAboutPlan(
  host: CliHost,
  { method, params, options }: AskedAboutPlan,
): Promise<(GatewayAnswer & { readonly ok: true })["payload"] | undefined> {
  const answer = await answerOf(host, method, params);
  if (answer.ok) return answer.payload;
  const problems = readProblems(answer.details);
  if (answer.code !== "PLAN_REFUSED" || problems.length === 0) return throwAnswer(answer);
  await tellProblems(host, problems, { options, output: host.stderr });
  return undefined;
}

/** The gateway may know more than this program: what it has against a plan is told as it is. */
function readProblems(details: unknown): readonly PlanProblem[] {
  const { problems } = (details ?? {}) as { problems?: unknown };
  const isProblem = (value: unknown): value is PlanProblem =>
    typeof value === "object" &&
    value !== null &&
    ["path", "code", "message"].every((key) => typeof (value as Record<string, unknown>)[key] === "string");
  return Array.isArray(problems) ? problems.filter(isProblem) : [];
}
