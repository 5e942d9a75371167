/** Owns: `plan` with its subcommands, and of them `validate` and `graph`. */
import { laneSchema } from "../../../agents/coordination/contracts/envelope.ts";
import { checkNewPlan } from "../../../agents/coordination/plan/check-new-plan.ts";
import { checkPlan } from "../../../agents/coordination/plan/check-plan.ts";
import type { Compilation } from "../../../agents/coordination/plan/compile-plan.ts";
import { formatChain } from "../../../agents/coordination/plan/plan-problem.ts";
import { isGlobOfAll } from "../../../agents/coordination/privileges/write-rule.ts";
import type { StepGraph } from "../../../agents/coordination/plan/step-graph.ts";
import { summarizePlan } from "../../openclaw/plans/checked-plan.ts";
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { createPaint } from "../terminal/paint.ts";
import { readJsonOrYaml } from "../files/read-json-or-yaml.ts";
import { renderMermaidFlowchart } from "./plan-mermaid.ts";
import { printPlanProblems } from "./plan-problems.ts";
import { addPlanRunCommand } from "./plan-run-command.ts";
import { addPlanCancelCommand } from "./request-command.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { formatCount, formatDuration } from "../../../agents/coordination/std/quantities.ts";
import {
  runCommand,
  withExamples,
  withJsonOption,
  writeJson,
  type JsonOption,
} from "../terminal/run-command.ts";

const FILE = "a plan in JSON or YAML; - reads it from stdin";

/** Adds the group of commands `plan`: validate, graph, run and the rest. */
export function addPlanCommands(parent: CommandGroup, host: CliHost): void {
  const plan = parent.command("plan").description("Check plans, draw them and run them");
  const validate = withJsonOption(plan.command("validate"))
    .description("Name everything that is wrong with a plan; exit code 1 when something is")
    .argument("<file>", FILE)
    .action((file: string, options: JsonOption) =>
      runCommand(host, options, () => validatePlan(host, file, options)),
    );
  const examples = ["plan validate release.yaml", "plan validate release.json --json"];
  withExamples(validate, host, [...examples, "plan validate - < release.yaml"]);
  const graph = withJsonOption(plan.command("graph"))
    .description("Print a plan's graph as a Mermaid flowchart, or as JSON")
    .argument("<file>", FILE)
    .action((file: string, options: JsonOption) =>
      runCommand(host, options, () => printPlanGraph(host, file, options)),
    );
  withExamples(graph, host, ["plan graph release.yaml", "plan graph release.yaml --json"]);
  addPlanRunCommand(plan, host);
  addPlanCancelCommand(plan, host);
  withExamples(plan, host, [...examples, "plan graph release.yaml", "plan run release.yaml --wait"]);
}

async function validatePlan(host: CliHost, file: string, options: JsonOption): Promise<void> {
  const checked = await checkPlanFile(file, checkNewPlan);
  if (checked.kind === "refused")
    await printPlanProblems(host, checked.problems, { options, output: host.stdout });
  else if (options.json) {
    const warnings = listWarnings(checked.graph);
    await writeJson(host, {
      ok: true,
      problems: [],
      ...(warnings.length > 0 && { warnings }),
      summary: summarizePlan(checked.graph),
    });
  } else await host.stdout.write(renderPlanSummary(checked.graph, host.stdout.terminal));
}

async function printPlanGraph(host: CliHost, file: string, options: JsonOption): Promise<void> {
  const checked = await checkPlanFile(file, checkPlan);
  if (checked.kind === "refused")
    await printPlanProblems(host, checked.problems, { options, output: host.stderr });
  else if (options.json) await writeJson(host, checked.graph);
  else await host.stdout.write(renderMermaidFlowchart(checked.graph));
}

async function checkPlanFile(file: string, check: (value: unknown) => Compilation): Promise<Compilation> {
  const loaded = await readJsonOrYaml(file, "a plan");
  return loaded.ok ? check(loaded.value) : { kind: "refused", problems: loaded.problems };
}

function renderPlanSummary(graph: StepGraph, terminal: Terminal): string {
  const paint = createPaint(terminal);
  const { steps, depth, criticalPathMs, criticalPath, lanes } = summarizePlan(graph);
  const used = laneSchema.options
    .filter((lane) => lanes[lane])
    .map((lane) => paint.lane(lane, `${lane} ${lanes[lane] ?? 0}`));
  const chain = formatPrintable(formatChain(criticalPath), terminal.unicode);
  const lines = [
    `${paint.tone("good", "ok")}  ${formatCount(steps, "step")}, depth ${depth}, lanes: ${used.join(", ")}`,
    `    critical path, by timeouts: ${formatDuration(criticalPathMs)}  ${paint.tone("faint", chain)}`,
    ...(graph.budget ? [`    budget: ${describePlanBudget(graph.budget)}`] : []),
    ...listWarnings(graph).map(
      (warning) => `${paint.tone("warning", "warning")}  ${formatPrintable(warning, terminal.unicode)}`,
    ),
  ];
  return `${lines.join("\n")}\n`;
}

const WARNINGS_MAX = 20;

/** Lists a sentence for each write pattern that catches every file, so that it narrows nothing; at most 20. */
function listWarnings({ steps }: StepGraph): string[] {
  return steps
    .flatMap(({ stepId, privilege }) =>
      (privilege?.write ?? [])
        .filter(isGlobOfAll)
        .map((glob) => `step ${stepId}: write ${glob} catches every file, so it narrows nothing`),
    )
    .slice(0, WARNINGS_MAX);
}

function describePlanBudget({
  spawns,
  tokens,
  costMicroUsd,
  wallMs,
}: NonNullable<StepGraph["budget"]>): string {
  return [
    ...(spawns === undefined ? [] : [formatCount(spawns, "spawn")]),
    ...(tokens === undefined ? [] : [formatCount(tokens, "token")]),
    ...(costMicroUsd === undefined ? [] : [`${costMicroUsd / 1_000_000} USD`]),
    ...(wallMs === undefined ? [] : [formatDuration(wallMs)]),
  ].join(", ");
}
