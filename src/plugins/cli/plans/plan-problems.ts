/** Owns: telling what is wrong with a plan. */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import type { PlanProblem } from "../../../agents/coordination/plan/plan-problem.ts";
import type { CliHost, CliOutput, Terminal } from "../terminal/cli-host.ts";
import { createPaint } from "../terminal/paint.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";
import { writeJson, type JsonOption } from "../terminal/run-command.ts";

/** Prints all problems of a plan at once, to stdout as JSON or to `output` as text, and sets the exit code to 1. */
export async function printPlanProblems(
  host: CliHost,
  problems: readonly PlanProblem[],
  { options, output }: { readonly options: JsonOption; readonly output: CliOutput },
): Promise<void> {
  host.failWith(1);
  if (options.json) await writeJson(host, { ok: false, problems });
  else await output.write(renderPlanProblems(problems, output.terminal));
}

function renderPlanProblems(problems: readonly PlanProblem[], terminal: Terminal): string {
  const paint = createPaint(terminal);
  const print = (value: string): string => formatPrintable(value, terminal.unicode);
  const lines = problems.map(
    ({ path, code, message }) =>
      `${paint.tone("strong", print(path))}  ${paint.tone("bad", print(code))}  ${print(message)}`,
  );
  const isCut = problems.length >= BOUNDS.planProblemsMax;
  const verdict = `${paint.tone("alarm", " REFUSED ")}  ${formatCount(problems.length, "problem")}${isCut ? " or more" : ""}`;
  return `${[verdict, ...lines].join("\n")}\n`;
}
