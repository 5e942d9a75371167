/** Owns: telling people how a replay came out. */
import type {
  Difference,
  NextAct,
  DivergencePoint,
  ReplayedCoordination,
  ReplayedUnder,
} from "../../../agents/coordination/runtime/replay-coordination.ts";
import type { CheckedRun } from "../../../agents/coordination/runtime/workflow-host/check-replay.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import { createPaint } from "../terminal/paint.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";

export type ReplayOutcome =
  | { readonly kind: "coordination"; readonly replayed: ReplayedCoordination }
  | { readonly kind: "run"; readonly replayed: CheckedRun };

/**
 * Returns the lines that show the outcome of a replay, and what would have been decided otherwise where another policy
 * was given.
 */
export function renderReplay(outcome: ReplayOutcome, tookMs: number, terminal: Terminal): string[] {
  const verdict = renderVerdict(outcome, tookMs, terminal);
  const whatIf = outcome.kind === "coordination" ? outcome.replayed.whatIf : undefined;
  return whatIf ? [...verdict, "", ...renderUnderPolicy(whatIf, terminal)] : verdict;
}

function renderVerdict(outcome: ReplayOutcome, tookMs: number, terminal: Terminal): string[] {
  const { from, to, difference } = outcome.replayed;
  const paint = createPaint(terminal);
  const id = formatPrintable(readReplayedId(outcome), terminal.unicode);
  if (difference) {
    const about = formatPrintable(findDifferingStep(difference), terminal.unicode);
    const place = `${id}:${difference.sequence}  ${difference.type}${about === "" ? "" : ` of ${about}`}`;
    return [
      `${paint.tone("alarm", " DIFFERS ")}  ${place}`,
      `    ${formatPrintable(difference.why, terminal.unicode)}`,
      `    The ${formatCount(Math.max(0, to - from), "event")} before it follow from the log.`,
    ];
  }
  const derived = formatCount(Math.max(0, to - from), "event");
  const counted =
    outcome.kind === "coordination" ? `, ${formatCount(outcome.replayed.decisions, "decision")}` : "";
  const since = from > 0 ? ` from ${from} on` : "";
  return [
    `${paint.tone("good", "ok")}  ${id}: ${derived}${counted}${since} come out as recorded${describeSpeed(to - from, tookMs)}`,
  ];
}

function readReplayedId(outcome: ReplayOutcome): string {
  return outcome.kind === "run" ? outcome.replayed.runId : outcome.replayed.coordinationId;
}

/** Returns the id of the step or node that a difference is about; empty where it is about none. */
function findDifferingStep(difference: Difference | NonNullable<CheckedRun["difference"]>): string {
  const about =
    "stepId" in difference ? difference.stepId : "nodeId" in difference ? difference.nodeId : undefined;
  return about ?? "";
}

function describeSpeed(events: number, tookMs: number): string {
  if (tookMs <= 0 || events <= 0) return "";
  return ` (${Math.round((events * 1_000) / tookMs).toLocaleString("en")} events/s)`;
}

/** Renders which decisions the policy would have made otherwise, and what would have come of them. */
function renderUnderPolicy(under: ReplayedUnder, terminal: Terminal): string[] {
  const { points, leftOut, uncertain } = under;
  const print = (value: string): string => formatPrintable(value, terminal.unicode);
  const limits = under.limits.map(print);
  if (points.length === 0) return ["Under the policy the same would have been decided.", ...limits];
  return [
    `Under the policy ${formatCount(points.length, "decision")} would have been another:`,
    ...points.flatMap((point) => renderChangedDecision(point, terminal)),
    "",
    ...(leftOut > 0
      ? [
          `${formatCount(leftOut, "recorded fact")} left out: about work that would not have been the recorded work.`,
        ]
      : []),
    ...uncertain.map(({ stepId, why }) => `No longer certain: ${print(stepId)} (${print(why)})`),
    `Recorded: ${under.recorded}. As far as it is certain: ${under.would}.`,
    ...renderNextActs(under, print),
    ...limits,
  ];
}

/**
 * Returns the lines that show one decision that would have been another under a policy: where it stands, what was
 * decided, what would be, and why.
 */
export function renderChangedDecision(point: DivergencePoint, terminal: Terminal): string[] {
  const { sequence, stepId, resource, decided, would, why, certainty } = point;
  const paint = createPaint(terminal);
  const print = (value: string): string => formatPrintable(value, terminal.unicode);
  const about = [stepId, resource].filter((part) => part !== undefined).join("  ");
  const sign = certainty === "unknown" ? "  ?" : certainty === "follows" ? "  follows" : "";
  return [
    `${String(sequence).padStart(6)}  ${paint.tone("strong", print(about || "coordination"))}${paint.tone("faint", sign)}`,
    `        decided  ${print(decided)}`,
    `        would    ${paint.tone(certainty === "unknown" ? "faint" : "warning", print(would))}`,
    `        why      ${print(why)}`,
  ];
}

const NEXT_MAX = 20;

function renderNextActs({ would, next }: ReplayedUnder, text: (value: string) => string): string[] {
  if (would !== "open") return [];
  if (next.length === 0) return ["Next: nothing, until somebody answers or a time is over."];
  const more = next.length > NEXT_MAX ? [`      and ${next.length - NEXT_MAX} more`] : [];
  return [...next.slice(0, NEXT_MAX).map((act) => `Next: ${text(describeNextAct(act))}`), ...more];
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
  mergeWorktree: "merge the worktree back of",
  removeWorktree: "remove the worktree of",
  judgePlan: "judge how far the plan came",
  tripBreaker: "stop because the budget is spent",
  endCoordination: "end the coordination",
  closeReview: "close a conflict that nobody ruled on",
  expireQuestion: "close the unanswered question",
  notifyPeople: "tell people of the question",
  tellSession: "tell a session what it waits for",
};

function describeNextAct({ act, stepId, attempt, escalationId }: NextAct): string {
  const about = stepId === undefined ? (escalationId ?? "") : stepId;
  return `${ACTS[act]} ${about}${attempt === undefined ? "" : `, attempt ${attempt}`}`.trim();
}
