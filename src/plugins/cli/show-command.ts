/** Owns: `show` and `timeline`. */
import type { CoordinationView, StepView } from "../../agents/coordination/runtime/coordination-view.ts";
import type { CliHost, CommandGroup, Terminal } from "./cli-host.ts";
import { findCoordination, textOf, withLedger } from "./open-ledger.ts";
import { paintFor, type Paint } from "./paint.ts";
import { printable } from "./printable.ts";
import { bytes, duration, instant } from "./quantities.ts";
import { renderTimeline } from "./render-timeline.ts";
import { runCommand, withExamples, withReaderOptions, writeJson, type ReaderOptions } from "./run-command.ts";
import { timelineOf } from "./timeline.ts";

export function addShow(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("show"))
    .description("Show a coordination with its steps")
    .argument("[id]", "its id or a unique prefix; the newest one when left out")
    .action((id: string | undefined, options: ReaderOptions) =>
      runCommand(host, options, () => show(host, id, options)),
    );
  withExamples(command, host, ["show", "show co-1f0c", "show co-1f0c --json"]);
}

export function addTimeline(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("timeline"))
    .description("Draw a coordination's steps on a time axis")
    .argument("[id]", "its id or a unique prefix; the newest one when left out")
    .action((id: string | undefined, options: ReaderOptions) =>
      runCommand(host, options, () => timeline(host, id, options)),
    );
  withExamples(command, host, ["timeline", "timeline co-1f0c", "timeline --json"]);
}

async function show(host: CliHost, id: string | undefined, options: ReaderOptions): Promise<void> {
  await withLedger(host, options, async (reader) => {
    const view = await findCoordination(reader, id);
    const objective = await textOf(reader, view.objective);
    if (options.json) await writeJson(host, { ...view, objective });
    else await host.stdout.write(renderCoordination(view, objective, host.stdout.terminal));
  });
}

async function timeline(host: CliHost, id: string | undefined, options: ReaderOptions): Promise<void> {
  await withLedger(host, options, async (reader) => {
    const view = await findCoordination(reader, id);
    const rows = timelineOf(view, host.now());
    if (options.json) {
      await writeJson(host, rows);
      return;
    }
    const objective = await textOf(reader, view.objective);
    await host.stdout.write(renderTimeline({ timeline: rows, view, objective }, host.stdout.terminal));
  });
}

function renderCoordination(view: CoordinationView, objective: string | null, terminal: Terminal): string {
  const paint = paintFor(terminal);
  const text = (value: string): string => printable(value, terminal.unicode);
  const { createdAtMs, endedAtMs, trace } = view;
  const title = objective === null ? "(the objective is no longer kept)" : text(objective);
  const ended = endedAtMs === undefined ? "" : `, ended ${instant(endedAtMs)}`;
  const took = endedAtMs === undefined ? "" : ` (${duration(endedAtMs - createdAtMs)})`;
  const lines = [
    `${text(view.coordinationId)}  ${paint.coordinationStatus(view.status)}`,
    paint.tone("strong", title),
    ...fields(paint, [
      ["owner", text(view.ownerSession)],
      ["started", `${instant(createdAtMs)}${ended}${took}`],
      ["trace", text(trace.traceId ?? "")],
      ["after", text(trace.causalRef ?? "")],
      ["conflicts", view.conflicts.length > 0 ? String(view.conflicts.length) : ""],
      ["escalations", view.escalations.length > 0 ? String(view.escalations.length) : ""],
    ]),
    ...view.steps.flatMap((step) => ["", ...renderStep(step, paint, text)]),
  ];
  return `${lines.join("\n")}\n`;
}

function renderStep(step: StepView, paint: Paint, text: (value: string) => string): string[] {
  const { error, problems = [] } = step;
  const time = (atMs: number | undefined): string => (atMs === undefined ? "" : instant(atMs));
  return [
    stepTitle(step, paint, text),
    ...fields(paint, [
      [
        "agent",
        `${text(step.agentId)} (${step.runner})  ${paint.lane(step.lane, step.lane)} lane, ${step.priority}`,
      ],
      ["under", text(step.parentStepId ?? "")],
      ["child", text(step.childSessionKey ?? "")],
      ["run", text(step.childRunId ?? "")],
      ["input", `${bytes(step.input.bytes)}, sha256 ${step.input.sha256.slice(0, 12)}`],
      ["dispatched", time(step.dispatchedAtMs)],
      ["deadline", time(step.deadlineAtMs)],
      ["error", error ? paint.tone("bad", `${error.code}: ${text(error.message)}`) : ""],
      ["problems", problems.map(({ code, path }) => text(`${code} at ${path}`)).join(", ")],
    ]),
  ];
}

function stepTitle(step: StepView, paint: Paint, text: (value: string) => string): string {
  const parts = [
    `${paint.stepSign(step.status)} ${text(step.stepId)}`,
    ...(step.name === undefined ? [] : [paint.tone("strong", text(step.name))]),
    paint.stepStatus(step.status, step.status.replace("_", " ")),
    ...(step.durationMs === undefined ? [] : [duration(step.durationMs)]),
    ...(step.attempt > 1 ? [`attempt ${step.attempt}`] : []),
  ];
  return parts.join("  ");
}

/** Fields without a value are left out. */
function fields(paint: Paint, entries: readonly (readonly [string, string])[]): string[] {
  return entries
    .filter(([, value]) => value !== "")
    .map(([name, value]) => `  ${paint.tone("faint", name.padEnd(11))} ${value}`);
}
