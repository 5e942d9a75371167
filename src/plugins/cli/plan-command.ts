/** Owns: `plan validate` and `plan graph`. */
import { BOUNDS } from "../../agents/coordination/contracts/bounds.ts";
import { laneSchema } from "../../agents/coordination/contracts/envelope.ts";
import { checkPlan } from "../../agents/coordination/plan/check-plan.ts";
import type { Compilation } from "../../agents/coordination/plan/compile-plan.ts";
import { chainOf, type PlanProblem } from "../../agents/coordination/plan/plan-problem.ts";
import type { StepGraph } from "../../agents/coordination/plan/step-graph.ts";
import type { CliHost, CommandGroup, Output, Terminal } from "./cli-host.ts";
import { paintFor } from "./paint.ts";
import { loadPlanFile } from "./plan-file.ts";
import { mermaidOf } from "./plan-mermaid.ts";
import { printable } from "./printable.ts";
import { count, duration } from "./quantities.ts";
import { runCommand, withExamples, withJson, writeJson, type JsonOption } from "./run-command.ts";

const FILE = "a plan in JSON or YAML; - reads it from stdin";

export function addPlan(parent: CommandGroup, host: CliHost): void {
  const plan = parent.command("plan").description("Check plans and draw them, without running them");
  const validate = withJson(plan.command("validate"))
    .description("Name everything that is wrong with a plan; exit code 1 when something is")
    .argument("<file>", FILE)
    .action((file: string, options: JsonOption) =>
      runCommand(host, options, () => validatePlan(host, file, options)),
    );
  withExamples(validate, host, [
    "plan validate release.yaml",
    "plan validate release.json --json",
    "plan validate - < release.yaml",
  ]);
  const graph = withJson(plan.command("graph"))
    .description("Print a plan's graph as a Mermaid flowchart, or as JSON")
    .argument("<file>", FILE)
    .action((file: string, options: JsonOption) =>
      runCommand(host, options, () => graphPlan(host, file, options)),
    );
  withExamples(graph, host, ["plan graph release.yaml", "plan graph release.yaml --json"]);
}

async function validatePlan(host: CliHost, file: string, options: JsonOption): Promise<void> {
  const checked = await checkFile(file);
  if (checked.kind === "refused") await refuse(host, { checked, options, output: host.stdout });
  else if (options.json) await writeJson(host, { ok: true, problems: [], summary: summaryOf(checked.graph) });
  else await host.stdout.write(renderSummary(checked.graph, host.stdout.terminal));
}

async function graphPlan(host: CliHost, file: string, options: JsonOption): Promise<void> {
  const checked = await checkFile(file);
  if (checked.kind === "refused") await refuse(host, { checked, options, output: host.stderr });
  else if (options.json) await writeJson(host, checked.graph);
  else await host.stdout.write(mermaidOf(checked.graph));
}

async function checkFile(file: string): Promise<Compilation> {
  const loaded = await loadPlanFile(file);
  return loaded.ok ? checkPlan(loaded.value) : { kind: "refused", problems: loaded.problems };
}

async function refuse(
  host: CliHost,
  refusal: {
    readonly checked: { readonly problems: readonly PlanProblem[] };
    readonly options: JsonOption;
    readonly output: Output;
  },
): Promise<void> {
  const { checked, options, output } = refusal;
  const { problems } = checked;
  host.failWith(1);
  if (options.json) await writeJson(host, { ok: false, problems });
  else await output.write(renderProblems(problems, output.terminal));
}

function summaryOf({ coordinationId, steps, depth, criticalPathMs, criticalPath }: StepGraph) {
  const lanes = Object.fromEntries(
    laneSchema.options.map((lane) => [lane, steps.filter((step) => step.lane === lane).length]),
  );
  const dependencies = steps.reduce((sum, { dependsOn }) => sum + dependsOn.length, 0);
  return { coordinationId, steps: steps.length, dependencies, depth, criticalPathMs, criticalPath, lanes };
}

function renderSummary(graph: StepGraph, terminal: Terminal): string {
  const paint = paintFor(terminal);
  const { steps, depth, criticalPathMs, criticalPath, lanes } = summaryOf(graph);
  const used = laneSchema.options
    .filter((lane) => lanes[lane])
    .map((lane) => paint.lane(lane, `${lane} ${lanes[lane] ?? 0}`));
  const chain = printable(chainOf(criticalPath), terminal.unicode);
  const lines = [
    `${paint.tone("good", "ok")}  ${count(steps, "step")}, depth ${depth}, lanes: ${used.join(", ")}`,
    `    critical path, by timeouts: ${duration(criticalPathMs)}  ${paint.tone("faint", chain)}`,
  ];
  return `${lines.join("\n")}\n`;
}

function renderProblems(problems: readonly PlanProblem[], terminal: Terminal): string {
  const paint = paintFor(terminal);
  const text = (value: string): string => printable(value, terminal.unicode);
  const lines = problems.map(
    ({ path, code, message }) =>
      `${paint.tone("strong", text(path))}  ${paint.tone("bad", code)}  ${text(message)}`,
  );
  const isCut = problems.length >= BOUNDS.planProblemsMax;
  const verdict = `${paint.tone("alarm", " REFUSED ")}  ${count(problems.length, "problem")}${isCut ? " or more" : ""}`;
  return `${[verdict, ...lines].join("\n")}\n`;
}
