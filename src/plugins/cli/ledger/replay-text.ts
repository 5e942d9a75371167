/** Owns: telling people how a replay came out. */
import type {
  Difference,
  NextAct,
  Point,
  ReplayedCoordination,
  ReplayedUnder,
} from "../../../agents/coordination/runtime/replay-coordination.ts";
import type { CheckedRun } from "../../../agents/coordination/runtime/workflow-host/check-replay.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import { paintFor } from "../terminal/paint.ts";
import { printable } from "../terminal/printable.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";

export type Told =
  | { readonly kind: "coordination"; readonly replayed: ReplayedCoordination }
  | { readonly kind: "run"; readonly replayed: CheckedRun };

export function replayedLines(told: Told, tookMs: number, terminal: Terminal): string[] {
  const verdict = verdictLines(told, tookMs, terminal);
  const whatIf = told.kind === "coordination" ? told.replayed.whatIf : undefined;
  return whatIf ? [...verdict, "", ...underLines(whatIf, terminal)] : verdict;
}

function verdictLines(told: Told, tookMs: number, terminal: Terminal): string[] {
  const { from, to, difference } = told.replayed;
  const paint = paintFor(terminal);
  const id = printable(idOf(told), terminal.unicode);
  if (difference) {
    const place = `${id}:${difference.sequence}  ${difference.type}${aboutOf(difference)}`;
    return [
      `${paint.tone("alarm", " DIFFERS ")}  ${place}`,
      `    ${printable(difference.why, terminal.unicode)}`,
      `    The ${formatCount(Math.max(0, to - from), "event")} before it follow from the log.`,
    ];
  }
  const derived = formatCount(Math.max(0, to - from), "event");
  const what = told.kind === "coordination" ? `, ${formatCount(told.replayed.decisions, "decision")}` : "";
  const since = from > 0 ? ` from ${from} on` : "";
  return [
    `${paint.tone("good", "ok")}  ${id}: ${derived}${what}${since} come out as recorded${speed(to - from, tookMs)}`,
  ];
}

function idOf(told: Told): string {
  return told.kind === "run" ? told.replayed.runId : told.replayed.coordinationId;
}

function aboutOf(difference: Difference | NonNullable<CheckedRun["difference"]>): string {
  const about =
    "stepId" in difference ? difference.stepId : "nodeId" in difference ? difference.nodeId : undefined;
  return about === undefined ? "" : ` of ${about}`;
}

function speed(events: number, tookMs: number): string {
  if (tookMs <= 0 || events <= 0) return "";
  return ` (${Math.round((events * 1_000) / tookMs).toLocaleString("en")} events/s)`;
}

function underLines(under: ReplayedUnder, terminal: Terminal): string[] {
  const { points, plan, leftOut, uncertain } = under;
  const text = (value: string): string => printable(value, terminal.unicode);
  const gone = plan === "deleted" ? [DELETED] : [];
  if (points.length === 0) return ["Under the policy the same would have been decided.", ...gone];
  return [
    `Under the policy ${formatCount(points.length, "decision")} would have been another:`,
    ...points.flatMap((point) => pointLines(point, terminal)),
    "",
    ...(leftOut > 0
      ? [
          `${formatCount(leftOut, "recorded fact")} left out: about work that would not have been the recorded work.`,
        ]
      : []),
    ...uncertain.map(({ stepId, why }) => `No longer certain: ${text(stepId)} (${text(why)})`),
    `Recorded: ${under.recorded}. As far as it is certain: ${under.would}.`,
    ...nextLines(under, text),
    ...gone,
  ];
}

const DELETED =
  "The text of the plan is not kept any more: what its steps ask for beyond the operator is known only as far as the ledger says.";

function pointLines(point: Point, terminal: Terminal): string[] {
  const { sequence, stepId, resource, decided, would, why, certainty } = point;
  const paint = paintFor(terminal);
  const text = (value: string): string => printable(value, terminal.unicode);
  const about = [stepId, resource].filter((part) => part !== undefined).join("  ");
  const sign = certainty === "unknown" ? "  ?" : certainty === "follows" ? "  follows" : "";
  return [
    `${String(sequence).padStart(6)}  ${paint.tone("strong", text(about || "coordination"))}${paint.tone("faint", sign)}`,
    `        decided  ${text(decided)}`,
    `        would    ${paint.tone(certainty === "unknown" ? "faint" : "warning", text(would))}`,
    `        why      ${text(why)}`,
  ];
}

const NEXT_MAX = 20;

function nextLines({ would, next }: ReplayedUnder, text: (value: string) => string): string[] {
  if (would !== "open") return [];
  if (next.length === 0) return ["Next: nothing, until somebody answers or a time is over."];
  const more = next.length > NEXT_MAX ? [`      and ${next.length - NEXT_MAX} more`] : [];
  return [...next.slice(0, NEXT_MAX).map((act) => `Next: ${text(actText(act))}`), ...more];
}

const ACTS: Readonly<Record<NextAct["act"], string>> = {
  runStep: "begin or go on with",
  stopStep: "stop",
  stopStray: "stop what may be left of",
  stopObserved: "stop",
  askHost: "ask the host about",
  verifyResult: "have the result checked of",
  admitSteps: "admit the next steps of the plan",
  skipSteps: "end what can no longer run",
  judgePlan: "judge how far the plan came",
  tripBreaker: "stop because the budget is spent",
  endCoordination: "end the coordination",
  closeReview: "close a conflict that nobody ruled on",
  expireQuestion: "close the unanswered question",
  notifyPeople: "tell people of the question",
  tellSession: "tell a session what it waits for",
};

function actText({ act, stepId, attempt, escalationId }: NextAct): string {
  const about = stepId === undefined ? (escalationId ?? "") : stepId;
  return `${ACTS[act]} ${about}${attempt === undefined ? "" : `, attempt ${attempt}`}`.trim();
}
