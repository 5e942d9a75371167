/** Owns: `plan run`: checking the file here, handing the plan to the gateway and saying what became of it. */
import { askAboutPlan } from "./ask-about-plan.ts";
import { checkPlan } from "../../../agents/coordination/plan/check-plan.ts";
import type { PlanProblem } from "../../../agents/coordination/plan/plan-problem.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { loadPlanFile } from "../files/plan-file.ts";
import { tellProblems } from "./plan-problems.ts";
import { waitFor, waitLimit, withWait, type WaitOptions } from "./plan-wait.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";
import { formatShellArguments } from "../../../agents/coordination/std/shell-arguments.ts";
import { runCommand, withExamples, withJson, writeJson } from "../terminal/run-command.ts";

export function addPlanRun(plan: CommandGroup, host: CliHost): void {
  const run = withWait(withJson(plan.command("run")))
    .description("Run a plan in the gateway; a plan that runs already is not run twice")
    .argument("<file>", "a plan in JSON or YAML; - reads it from stdin")
    .action((file: string, options: WaitOptions) =>
      runCommand(host, options, () => runPlan(host, file, options)),
    );
  withExamples(run, host, [
    "plan run release.yaml",
    "plan run release.yaml --wait --timeout 3600",
    "plan run release.json --json",
    "plan run - < release.yaml",
  ]);
}

async function runPlan(host: CliHost, file: string, options: WaitOptions): Promise<void> {
  const timeoutMs = waitLimit(options);
  const loaded = await loadPlanFile(file);
  const problems = loaded.ok ? listProblems(loaded.value) : loaded.problems;
  if (!loaded.ok || problems.length > 0) {
    await tellProblems(host, problems, { options, output: host.stderr });
    return;
  }
  const accepted = await submit(host, loaded.value, options);
  if (!accepted) return;
  if (options.wait)
    await waitFor(host, accepted, { options, timeoutMs, head: renderAccepted(host, accepted) });
  else if (options.json) await writeJson(host, { ok: true, ...accepted });
  else await host.stdout.write(renderAccepted(host, accepted));
}

/** The ids are checked by the gateway: a plan that it has already may have ids that no new plan may have. */
function listProblems(plan: unknown): readonly PlanProblem[] {
  const checked = checkPlan(plan);
  return checked.kind === "refused" ? checked.problems : [];
}

interface Accepted {
  readonly coordinationId: string;
  readonly steps: number;
  readonly replay: boolean;
}

async function submit(host: CliHost, plan: unknown, options: WaitOptions): Promise<Accepted | undefined> {
  const payload = await askAboutPlan(host, { method: "coordination.plan.run", params: { plan }, options });
  if (!payload) return undefined;
  const { coordinationId, steps, replay } = payload;
  return { coordinationId: String(coordinationId), steps: Number(steps), replay: replay === true };
}

function renderAccepted({ program, stdout }: CliHost, { coordinationId, steps, replay }: Accepted): string {
  const { unicode } = stdout.terminal;
  const id = formatPrintable(coordinationId, unicode);
  const typedId = formatPrintable(formatShellArguments(coordinationId), unicode);
  const outcome = replay ? "submitted before, not run twice:" : "running";
  return `${outcome} ${id}, ${formatCount(steps, "step")}\nSee ${program} timeline ${typedId}, or ${program} plan run with --wait\n`;
}
