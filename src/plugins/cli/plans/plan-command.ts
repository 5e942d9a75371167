/** Owns: `plan` with its subcommands, and of them `validate` and `graph`. */
import { laneSchema } from "../../../agents/coordination/contracts/envelope.ts";
import { checkNewPlan } from "../../../agents/coordination/plan/check-new-plan.ts";
import { checkPlan } from "../../../agents/coordination/plan/check-plan.ts";
import type { Compilation } from "../../../agents/coordination/plan/compile-plan.ts";
import { chainOf } from "../../../agents/coordination/plan/plan-problem.ts";
import { isCatchingAll } from "../../../agents/coordination/privileges/write-rule.ts";
import type { StepGraph } from "../../../agents/coordination/plan/step-graph.ts";
import { summaryOf } from "../../openclaw/plans/checked-plan.ts";
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { paintFor } from "../terminal/paint.ts";
import { loadPlanFile } from "../files/plan-file.ts";
import { mermaidOf } from "./plan-mermaid.ts";
import { tellProblems } from "./plan-problems.ts";
import { addPlanRun } from "./plan-run-command.ts";
import { addPlanCancel } from "./request-command.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { formatCount, formatDuration } from "../../../agents/coordination/std/quantities.ts";
import { runCommand, withExamples, withJson, writeJson, type JsonOption } from "../terminal/run-command.ts";

const FILE = "a plan in JSON or YAML; - reads it from stdin";

export function addPlan(parent: CommandGroup, host: CliHost): void {
  const plan = parent.command("plan").description("Check plans, draw them and run them");
  const validate = withJson(plan.command("validate"))
    .description("Name everything that is wrong with a plan; exit code 1 when something is")
    .argument("<file>", FILE)
    .action((file: string, options: JsonOption) =>
      runCommand(host, options, () => validatePlan(host, file, options)),
    );
  const examples = ["plan validate release.yaml", "plan validate release.json --json"];
  withExamples(validate, host, [...examples, "plan validate - < release.yaml"]);
  const graph = withJson(plan.command("graph"))
    .description("Print a plan's graph as a Mermaid flowchart, or as JSON")
    .argument("<file>", FILE)
    .action((file: string, options: JsonOption) =>
      runCommand(host, options, () => drawPlan(host, file, options)),
    );
  withExamples(graph, host, ["plan graph release.yaml", "plan graph release.yaml --json"]);
  addPlanRun(plan, host);
  addPlanCancel(plan, host);
  withExamples(plan, host, [...examples, "plan graph release.yaml", "plan run release.yaml --wait"]);
}

async function validatePlan(host: CliHost, file: string, options: JsonOption): Promise<void> {
  const checked = await checkFile(file, checkNewPlan);
  if (checked.kind === "refused")
    await tellProblems(host, checked.problems, { options, output: host.stdout });
  else if (options.json) {
    const warnings = listWarnings(checked.graph);
    await writeJson(host, {
      ok: true,
      problems: [],
      ...(warnings.length > 0 && { warnings }),
      summary: summaryOf(checked.graph),
    });
  } else await host.stdout.write(renderSummary(checked.graph, host.stdout.terminal));
}

async function drawPlan(host: CliHost, file: string, options: JsonOption): Promise<void> {
  const checked = await checkFile(file, checkPlan);
  if (checked.kind === "refused")
    await tellProblems(host, checked.problems, { options, output: host.stderr });
  else if (options.json) await writeJson(host, checked.graph);
  else await host.stdout.write(mermaidOf(checked.graph));
}

async function checkFile(file: string, check: (value: unknown) => Compilation): Promise<Compilation> {
  const loaded = await loadPlanFile(file);
  return loaded.ok ? check(loaded.value) : { kind: "refused", problems: loaded.problems };
}

function renderSummary(graph: StepGraph, terminal: Terminal): string {
  const paint = paintFor(terminal);
  const { steps, depth, criticalPathMs, criticalPath, lanes } = summaryOf(graph);
  const used = laneSchema.options
    .filter((lane) => lanes[lane])
    .map((lane) => paint.lane(lane, `${lane} ${lanes[lane] ?? 0}`));
  const chain = formatPrintable(chainOf(criticalPath), terminal.unicode);
  const lines = [
    `${paint.tone("good", "ok")}  ${formatCount(steps, "step")}, depth ${depth}, lanes: ${used.join(", ")}`,
    `    critical path, by timeouts: ${formatDuration(criticalPathMs)}  ${paint.tone("faint", chain)}`,
    ...(graph.budget ? [`    budget: ${budgetOf(graph.budget)}`] : []),
    ...listWarnings(graph).map(
      (warning) => `${paint.tone("warning", "warning")}  ${formatPrintable(warning, terminal.unicode)}`,
    ),
  ];
  return `${lines.join("\n")}\n`;
}

const WARNINGS_MAX = 20;

/** Lists what a plan says that has no effect, a sentence each. */
function listWarnings({ steps }: StepGraph): string[] {
  return steps
    .flatMap(({ stepId, privilege }) =>
      (privilege?.write ?? [])
        .filter(isCatchingAll)
        .map((glob) => `step ${stepId}: write ${glob} catches every file, so it narrows nothing`),
    )
    .slice(0, WARNINGS_MAX);
}

function budgetOf({ spawns, tokens, costMicroUsd, wallMs }: NonNullable<StepGraph["budget"]>): string {
  return [
    ...(spawns === undefined ? [] : [formatCount(spawns, "spawn")]),
    ...(tokens === undefined ? [] : [formatCount(tokens, "token")]),
    ...(costMicroUsd === undefined ? [] : [`${costMicroUsd / 1_000_000} USD`]),
    ...(wallMs === undefined ? [] : [formatDuration(wallMs)]),
  ].join(", ");
}
