/** Owns: `show` and `timeline`. */
import type {
  CoordinationView,
  StepView,
} from "../../../agents/coordination/runtime/log/coordination-view.ts";
import { formatUnmetCriteria } from "../../../agents/coordination/runtime/held-results/gave-up.ts";
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { renderFields } from "../terminal/fields.ts";
import { describeForkSource, describeKeptResults } from "../ledger/kept.ts";
import { describeProgress } from "../ledger/progress-text.ts";
import { type ProgressByStep } from "../../reports/progress-report.ts";
import { describeGateway } from "../../reports/gateway-report.ts";
import { type GateLog } from "../../reports/gate-log.ts";
import { withLedger } from "../ledger/open-ledger.ts";
import { findCoordination, readKeptText } from "../../reports/find-coordination.ts";
import { createPaint, type Paint } from "../terminal/paint.ts";
import { formatMessage, formatPrintable } from "../terminal/printable.ts";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatInstant,
} from "../../../agents/coordination/std/quantities.ts";
import { describeBudget, describeBudgetLoan, describeBudgetStop, describeUsage } from "./budget-text.ts";
import {
  describeOpenCount,
  listConflictsOpen,
  listQuestionsOpen,
  renderTimeline,
} from "./render-timeline.ts";
import { saveTimeline } from "./save-timeline.ts";
import { renderClaimLines, describeClaimCount, renderConflictLines } from "../conflicts/show-claims.ts";
import {
  describeCriteria,
  listGateFields,
  renderQuestionLines,
  groupVerdictsByStep,
  type VerdictsOf,
} from "../questions/show-questions.ts";
import { type EffectivePrivileges } from "../../reports/effective-privileges.ts";
import { describeRefusedCallCount, listPrivilegeFields } from "../privileges/show-privileges.ts";
import {
  runCommand,
  withExamples,
  withReaderOptions,
  writeJson,
  type ReaderOptions,
} from "../terminal/run-command.ts";
import {
  createShowReport,
  readCoordinationDetails,
  readCoordinationTimeline,
  type CoordinationDetails,
} from "../../reports/show-report.ts";
import { isDeliveryStep, nameStep } from "../../reports/step-name.ts";
import { addUsageOfPlans } from "../../reports/tree.ts";
import { listTruthFields } from "./child-truth.ts";

/** Adds the command `show`, which prints a coordination with its steps. */
export function addShowCommand(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("show"))
    .description("Show a coordination with its steps")
    .argument("[id]", "its id or a unique prefix; the newest one when left out")
    .action((id: string | undefined, options: ReaderOptions) =>
      runCommand(host, options, () => showCoordination(host, id, options)),
    );
  withExamples(command, host, ["show", "show co-1f0c", "show co-1f0c --json"]);
}

interface TimelineOptions extends ReaderOptions {
  readonly html?: string;
}

/** Adds the command `timeline`, which draws the steps of a coordination on a time axis, or saves them as HTML. */
export function addTimelineCommand(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("timeline"))
    .description("Draw a coordination's steps on a time axis")
    .argument("[id]", "its id or a unique prefix; the newest one when left out")
    .option("--html <file>", "write it as one HTML file that needs nothing else, for a report or a ticket")
    .action((id: string | undefined, options: TimelineOptions) =>
      runCommand(host, options, () => showTimeline(host, id, options)),
    );
  withExamples(command, host, [
    "timeline",
    "timeline co-1f0c",
    "timeline --json",
    "timeline co-1f0c --html timeline.html",
  ]);
}

async function showCoordination(
  host: CliHost,
  id: string | undefined,
  options: ReaderOptions,
): Promise<void> {
  await withLedger(host, options, async (reader) => {
    const view = await addUsageOfPlans(reader, await findCoordination(reader, id));
    const details = await readCoordinationDetails(reader, view);
    if (options.json) await writeJson(host, createShowReport(details));
    else await host.stdout.write(renderCoordination(details, host));
  });
}

async function showTimeline(host: CliHost, id: string | undefined, options: TimelineOptions): Promise<void> {
  await withLedger(host, options, async (reader) => {
    const view = await addUsageOfPlans(reader, await findCoordination(reader, id));
    const { timeline, gates, log } = await readCoordinationTimeline(reader, view, host.now());
    if (options.html !== undefined) {
      const objective = await readKeptText(reader, view.objective);
      const page = { timeline, steps: view.steps, objective, writtenAtMs: host.now() };
      await saveTimeline(host, page, { file: options.html, isJson: options.json === true });
      return;
    }
    if (options.json) {
      await writeJson(host, timeline);
      return;
    }
    const objective = await readKeptText(reader, view.objective);
    const { program, stdout } = host;
    await stdout.write(
      renderTimeline({ timeline, view, objective, program, gates, ...(log && { log }) }, stdout.terminal),
    );
  });
}

/** The parts of a coordination that its steps are shown with. */
interface ShownCoordination {
  readonly paint: Paint;
  /** Makes any text safe for the terminal. */
  readonly text: (value: string) => string;
  readonly now: number;
  readonly gates: GateLog;
  readonly verdicts: VerdictsOf;
  readonly progress: ProgressByStep;
  readonly privileges: EffectivePrivileges;
}

function renderCoordination(shown: CoordinationDetails, host: CliHost): string {
  const { view, objective, log, gates, progress, privileges } = shown;
  const { terminal }: { readonly terminal: Terminal } = host.stdout;
  const paint = createPaint(terminal);
  const print = (value: string): string => formatPrintable(value, terminal.unicode);
  const { createdAtMs, endedAtMs, trace } = view;
  const verdicts = groupVerdictsByStep(gates);
  const page: ShownCoordination = {
    paint,
    text: print,
    now: host.now(),
    gates,
    verdicts,
    progress,
    privileges,
  };
  const title =
    objective === null ? "(the objective is no longer kept)" : formatMessage(objective, terminal.unicode);
  const ended =
    endedAtMs === undefined
      ? ""
      : `, ended ${formatInstant(endedAtMs)} (${formatDuration(endedAtMs - createdAtMs)})`;
  const lines = [
    `${print(view.coordinationId)}  ${paint.coordinationStatus(view.status)}`,
    paint.tone("strong", title),
    ...(view.gaveUp ? [paint.tone("warning", print(formatUnmetCriteria(view.successCriteria)))] : []),
    ...renderFields(paint, [
      ["owner", print(view.ownerSession)],
      ["gateway", print(describeGateway({ ...shown, status: view.status }))],
      ["policy", view.policy ? print(`${view.policy.name} ${view.policy.version}`) : ""],
      ["started", `${formatInstant(createdAtMs)}${ended}`],
      ["trace", print(trace.traceId ?? "")],
      ["after", print(trace.causalRef ?? "")],
      ["plan", view.plan ? describePlanExtent(view.plan) : ""],
      [
        "source",
        print([...describeForkSource(view.forkedFrom), ...describeKeptResults(view.steps)].join(", ")),
      ],
      ["conflicts", describeOpenCount(listConflictsOpen(log))],
      ["claims", describeClaimCount(view, page.now)],
      ["changes", log.changes > 0 ? formatCount(log.changes, "write") : ""],
      ["refused", describeRefusedCallCount(view)],
      ["questions", describeOpenCount(listQuestionsOpen(view))],
      ["criteria", print(describeCriteria(view))],
      ["used", describeUsage(view.usage)],
      ...listBudgetFields(view, page),
    ]),
    ...renderConflictLines(log, terminal),
    ...renderClaimLines(view, { names: log.names, now: page.now, terminal }),
    ...renderQuestionLines(view, { now: page.now, terminal }),
    ...view.steps.flatMap((step) => ["", ...renderStep(step, page)]),
  ];
  return `${lines.join("\n")}\n`;
}

function listBudgetFields(
  { budget, budgetStops = [], plan }: CoordinationView,
  { paint, text }: ShownCoordination,
): [string, string][] {
  return [
    ["budget", budget ? text(describeBudget(budget)) : ""],
    ["stopped", budgetStops.map((stop) => paint.tone("warning", text(describeBudgetStop(stop)))).join(", ")],
    ["lent", text((plan?.loans ?? []).map(describeBudgetLoan).join("; "))],
  ];
}

function describePlanExtent({ steps, deadlineAtMs }: NonNullable<CoordinationView["plan"]>): string {
  return (
    formatCount(steps, "step") + (deadlineAtMs === undefined ? "" : `, until ${formatInstant(deadlineAtMs)}`)
  );
}

function renderStep(step: StepView, page: ShownCoordination): string[] {
  const { paint, text, gates, verdicts, now, privileges } = page;
  const { error, problems = [], output } = step;
  const progress = page.progress.get(step.stepId);
  return [
    renderStepTitle(step, page),
    ...renderFields(paint, [
      [
        "agent",
        `${text(step.agentId)} (${step.runner})  ${paint.lane(step.lane, step.lane)} lane, ${step.priority}`,
      ],
      ["under", text(step.parentStepId ?? "")],
      ["depends on", describeDependencies(step, text)],
      ["child", text(step.childSessionKey ?? "")],
      ["run", text(step.childRunId ?? "")],
      ["input", isDeliveryStep(step) ? "" : describeContent(step.input)],
      ["output", output ? describeContent(output) : ""],
      ["progress", progress ? text(describeProgress(progress, now)) : ""],
      ["long words", describeLongTexts(step)],
      ["chats", describeSuppressedMessages(step)],
      ["kept from", text(step.carriedFrom ?? "")],
      ...listTruthFields(step).map(
        ([name, value]) =>
          [name, name === "differs" ? paint.tone("warning", text(value)) : text(value)] as const,
      ),
      ["used", text(describeStepUsage(step))],
      ...listGateFields(step, gates, verdicts).map(([name, value]) => [name, text(value)] as const),
      ...listPrivilegeFields(step, privileges.get(step.stepId)).map(
        ([name, value]) => [name, text(value)] as const,
      ),
      ...listTimeFields(step, page),
      ["error", error ? paint.tone("bad", `${error.code}: ${text(error.message)}`) : ""],
      ["problems", problems.map(({ code, path }) => text(`${code} at ${path}`)).join(", ")],
    ]),
  ];
}

function describeStepUsage({ usage }: StepView): string {
  if (!usage) return "";
  const calls = usage.calls > 0 ? [formatCount(usage.calls, "model call")] : [];
  return [describeUsage(usage), ...calls, ...usage.models].join(", ");
}

const NAMED_MAX = 20;

function describeDependencies({ dependsOn = [], fanIn }: StepView, text: ShownCoordination["text"]): string {
  const names = dependsOn.slice(0, NAMED_MAX).map(text).join(", ");
  const more = dependsOn.length > NAMED_MAX ? ` and ${dependsOn.length - NAMED_MAX} more` : "";
  const isAll = fanIn === undefined || fanIn >= dependsOn.length;
  return isAll ? names + more : `${fanIn} of ${names}${more}`;
}

/** Describes a stored text by its size and the beginning of its hash. */
function describeContent({ bytes: size, sha256 }: StepView["input"]): string {
  return `${formatBytes(size)}, sha256 ${sha256.slice(0, 12)}`;
}

/**
 * Describes the texts of a step's agent that are kept to be read: long ones of which its parent was shown a part only,
 * and a released one that was withheld before.
 */
function describeLongTexts({ results = [] }: StepView): string {
  const texts = results.filter(({ kind }) => kind === "text");
  return texts.map(({ content }) => describeContent(content)).join("; ");
}

function describeSuppressedMessages({ suppressedMessages: count = 0 }: StepView): string {
  return count === 0 ? "" : `${formatCount(count, "message")} of its own did not go there`;
}

function listTimeFields(step: StepView, { paint, now }: ShownCoordination): [string, string][] {
  const time = (atMs: number | undefined): string => (atMs === undefined ? "" : formatInstant(atMs));
  const describeAhead = (atMs: number): string => (atMs > now ? ` (in ${formatDuration(atMs - now)})` : "");
  const { dispatchedAtMs, deadlineAtMs, retryAtMs, answerByMs } = step;
  const isOver = step.status === "backoff" || step.status === "blocked";
  return [
    ["dispatched", time(dispatchedAtMs)],
    ["deadline", isOver ? "" : time(deadlineAtMs)],
    ["next try", retryAtMs === undefined ? "" : time(retryAtMs) + describeAhead(retryAtMs)],
    [
      "answer by",
      answerByMs === undefined
        ? ""
        : paint.tone("warning", `${time(answerByMs)}${describeAhead(answerByMs)}: retry or cancel the step`),
    ],
  ];
}

function renderStepTitle(step: StepView, { paint, text }: ShownCoordination): string {
  const { stepId, name, status, attempt, retryBudget, durationMs, skippedBecause, carriedFrom } = step;
  const why = carriedFrom === undefined ? skippedBecause?.replace("_", " ") : "kept";
  const because = why === undefined ? "" : ` (${why})`;
  const attempts = retryBudget === undefined ? "" : ` of ${Math.max(attempt, retryBudget + 1)}`;
  const parts = [
    `${paint.stepSign(status)} ${text(nameStep({ stepId }))}`,
    ...(name === undefined || name === stepId ? [] : [paint.tone("strong", text(name))]),
    paint.stepStatus(status, status.replace("_", " ")) + because,
    ...(durationMs === undefined ? [] : [formatDuration(durationMs)]),
    ...(attempt > 1 ? [`attempt ${attempt}${attempts}`] : []),
  ];
  return parts.join("  ");
}
