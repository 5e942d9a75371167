/** Owns: `plan run`: checking the file here, handing the plan to the gateway and saying what became of it. */
import { requestPlan } from "./ask-about-plan.ts";
import { checkPlan } from "../../../agents/coordination/plan/check-plan.ts";
import type { PlanProblem } from "../../../agents/coordination/plan/plan-problem.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { readJsonOrYaml } from "../files/read-json-or-yaml.ts";
import { printPlanProblems } from "./plan-problems.ts";
import { waitForPlanEnd, parseWaitLimit, withWaitOptions, type WaitOptions } from "./plan-wait.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";
import { formatShellArguments } from "../../../agents/coordination/std/shell-arguments.ts";
import { runCommand, withExamples, withJsonOption, writeJson } from "../terminal/run-command.ts";

/** Adds the command `plan run`, which has the gateway run the plan of a file. */
export function addPlanRunCommand(plan: CommandGroup, host: CliHost): void {
  const run = withWaitOptions(withJsonOption(plan.command("run")))
    .description("Run a plan in the gateway; a plan that runs already is not run twice")
    .argument("<file>", "a plan in JSON or YAML; - reads it from stdin")
    .action((file: string, options: WaitOptions) =>
      runCommand(host, options, () => runPlanFile(host, file, options)),
    );
  withExamples(run, host, [
    "plan run release.yaml",
    "plan run release.yaml --wait --timeout 3600",
    "plan run release.json --json",
    "plan run - < release.yaml",
  ]);
}

/** Checks a plan and has the gateway run it; prints its problems, that it runs, or with `--wait` its end. */
async function runPlanFile(host: CliHost, file: string, options: WaitOptions): Promise<void> {
  const timeoutMs = parseWaitLimit(options);
  const loaded = await readJsonOrYaml(file, "a plan");
  const problems = loaded.ok ? listPlanProblems(loaded.value) : loaded.problems;
  if (!loaded.ok || problems.length > 0) {
    await printPlanProblems(host, problems, { options, output: host.stderr });
    return;
  }
  const accepted = await requestPlanRun(host, loaded.value, options);
  if (!accepted) return;
  if (options.wait)
    await waitForPlanEnd(host, accepted, { options, timeoutMs, head: renderAccepted(host, accepted) });
  else if (options.json) await writeJson(host, { ok: true, ...accepted });
  else await host.stdout.write(renderAccepted(host, accepted));
}

/**
 * Lists what is wrong with a plan but for its ids. The gateway checks them: a plan that it has already may have ids
 * that no new plan may have.
 */
function listPlanProblems(plan: unknown): readonly PlanProblem[] {
  const checked = checkPlan(plan);
  return checked.kind === "refused" ? checked.problems : [];
}

/** A plan that the gateway accepted. */
interface AcceptedRun {
  readonly coordinationId: string;
  readonly steps: number;
  readonly replay: boolean;
}

/** Has the gateway run a plan; `undefined` when it was refused, which was printed then. */
async function requestPlanRun(
  host: CliHost,
  plan: unknown,
  options: WaitOptions,
): Promise<AcceptedRun | undefined> {
  const payload = await requestPlan(host, { method: "coordination.plan.run", params: { plan }, options });
  if (!payload) return undefined;
  const { coordinationId, steps, replay } = payload;
  return { coordinationId: String(coordinationId), steps: Number(steps), replay: replay === true };
}

function renderAccepted(
  { program, stdout }: CliHost,
  { coordinationId, steps, replay }: AcceptedRun,
): string {
  const { unicode } = stdout.terminal;
  const id = formatPrintable(coordinationId, unicode);
  const typedId = formatPrintable(formatShellArguments(coordinationId), unicode);
  const outcome = replay ? "submitted before, not run twice:" : "running";
  return `${outcome} ${id}, ${formatCount(steps, "step")}\nSee ${program} timeline ${typedId}, or ${program} plan run with --wait\n`;
}
