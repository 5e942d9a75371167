/**
 * Owns: a planned step in every situation, every command about it, and what each comes to. Does not own: playing them
 * (`planned-decide.test.ts`).
 */
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { createEventId, type CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { OPEN, OWNER, RUN, SETTLE, spawn } from "./scene.ts";
import {
  admit,
  answer,
  ask,
  cancel,
  dispatch,
  expire,
  finish,
  goWrong,
  judge,
  notice,
  noVerdict,
  openPlan,
  plannedStep,
  planScene,
  report,
  retry,
  runOut,
  sessionOfAttempt,
  skip,
  started,
  stopped,
  told,
  TRIP,
  verdict,
  withhold,
  type Opened,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";

/** A plan of two steps: `x` waits for `root`. */
export const waiting =
  (fields: StepFields = {}, opened: Partial<Opened> = {}) =>
  (): PlanScene =>
    planScene(
      openPlan({ steps: 2, ...opened }),
      admit(plannedStep("root"), plannedStep("x", { after: ["root"], ...fields })),
    );
const after =
  (make: () => PlanScene, ...commands: readonly Command[]) =>
  (): PlanScene =>
    make().then(...commands);

const ROOT = [dispatch("root"), started("root"), finish("root")];
export const ready = after(waiting(), ...ROOT);
const dispatched = after(ready, dispatch("x"));
export const running = after(dispatched, started("x"));
export const retried = after(waiting({ retryBudget: 1 }), ...ROOT, dispatch("x"), started("x"));
const asking = after(
  waiting({}, { policy: { escalationPolicy: "hitl" } }),
  ...ROOT,
  dispatch("x"),
  started("x"),
);

const FORKED_FROM = { coordinationId: "co-source" as CoordinationId, sequence: 9 };
const CARRIED = { eventId: createEventId(FORKED_FROM.coordinationId, 7) };
const forked = waiting({ carried: CARRIED }, { forkedFrom: FORKED_FROM });

const GATED = { gate: { threshold: 7_000, checks: ["lint"], revisionsMax: 1 } };
export const held = after(waiting(GATED), ...ROOT, dispatch("x"), started("x"), finish("x"));
export const HELD = held().step("x");

export const SITUATIONS = {
  waiting: waiting(),
  ready,
  dispatched,
  running,
  reported: after(running, report("x")),
  backoff: after(retried, goWrong("x")),
  "long backoff": after(
    waiting({ retryBudget: 1, backoffMs: 600_000 }),
    ...ROOT,
    ...[dispatch("x"), started("x"), goWrong("x")],
  ),
  again: after(retried, goWrong("x"), dispatch("x", 2)),
  blocked: after(asking, goWrong("x")),
  completed: after(running, finish("x")),
  carried: forked,
  failed: after(running, goWrong("x")),
  timedOut: after(running, runOut("x")),
  cancelled: after(running, goWrong("x", 1, "child_cancelled")),
  skipped: after(waiting(), cancel("x")),
  doubted: after(waiting({ decision: { confidence: 4_000, floor: 5_000 } }), ...ROOT),
  held,
  asked: after(held, noVerdict(HELD)),
  revised: after(held, verdict(HELD, { verdict: "revise" })),
  released: after(held, verdict(HELD)),
} as const satisfies Record<string, () => PlanScene>;
export type Situation = keyof typeof SITUATIONS;

export const COMMANDS: Readonly<Record<string, Command>> = {
  open: OPEN,
  admit: admit(plannedStep("root"), plannedStep("x", { after: ["root"] })),
  "admit too many": admit(plannedStep("y")),
  "admit carried": admit(plannedStep("y", { carried: CARRIED })),
  spawn: spawn("a"),
  "dispatch 1": dispatch("x", 1),
  "dispatch 2": dispatch("x", 2),
  "dispatch 3": dispatch("x", 3),
  acknowledge: started("x"),
  "acknowledge elsewhere": started("x", 1, sessionOfAttempt("elsewhere")),
  complete: finish("x"),
  fail: goWrong("x"),
  refuse: goWrong("x", 1, "spawn_refused"),
  "cancel child": goWrong("x", 1, "child_cancelled"),
  "time out": runOut("x"),
  report: report("x"),
  "report else": report("x", 1, { outcome: "failed" }),
  skip: skip("x"),
  retry: retry("x"),
  "retry all": retry(),
  cancel: cancel("x"),
  "cancel all": cancel(),
  expire: expire(),
  trip: TRIP,
  "stop child": stopped("x"),
  settle: SETTLE,
  withhold: withhold("x"),
  pass: verdict(HELD),
  revise: verdict(HELD, { verdict: "revise" }),
  reject: verdict(HELD, { verdict: "fail" }),
  "rule on itself": verdict(HELD, { self: true }),
  "no verdict": noVerdict(HELD),
  "another check": verdict(HELD, { check: "other" }),
  "another target": { ...verdict(HELD), target: createEventId(RUN, 1) },
  approve: answer(),
  deny: answer(1, "deny"),
  answer: answer(1, "answer"),
  ask: ask(OWNER),
  notice: notice(),
  told: told("answer:escalation-1"),
  judge: judge(),
};

/** What each command comes to: in every situation, but for those that are named. */
type Row = { readonly all: string } & Partial<Record<Situation, string>>;

const over = (code: string): Partial<Record<Situation, string>> => {
  const ended = [
    ...["backoff", "long backoff", "blocked", "completed", "failed", "timedOut", "cancelled"],
    ...["held", "asked", "revised", "released"],
  ];
  return Object.fromEntries(ended.map((situation) => [situation, code]));
};
const each = (situations: readonly Situation[], said: string): Partial<Record<Situation, string>> =>
  Object.fromEntries(situations.map((situation) => [situation, said]));
const NOT_BEGUN = each(["waiting", "ready", "skipped", "doubted", "carried"], "STALE_ATTEMPT");
/** The child ended well, whatever becomes of what it said. */
const ENDED_WELL = ["completed", "held", "asked", "revised", "released"] as const;
const LATE = "STEP_ENDED step.outcome_refused";
const STALE = "STALE_ATTEMPT step.outcome_refused";
const GRANTED = "step.retry_granted";
const CANCELLING = "coordination.cancel_requested";
const ANSWERED = "escalation.answered escalation.closed";

const ELSEWHERE = "NOT_HELD step.outcome_refused";

/** Of a verdict on what the check of `held` was asked about. */
const ruled = (said: string): Row => ({
  all: LATE,
  ...NOT_BEGUN,
  again: STALE,
  held: said,
  ...each(["dispatched", "running", "reported", "asked"], ELSEWHERE),
});

const FAILING: Row = {
  all: "step.failed",
  ...over("replay"),
  ...NOT_BEGUN,
  again: STALE,
  timedOut: LATE,
  ...each(ENDED_WELL, LATE),
};

export const EXPECTED: Readonly<Record<keyof typeof COMMANDS, Row>> = {
  open: { all: "ALREADY_OPENED" },
  admit: { all: "replay" },
  "admit too many": { all: "TOO_MANY_STEPS" },
  "admit carried": { all: "NOT_A_FORK", carried: "TOO_MANY_STEPS" },
  spawn: { all: "step.admitted step.dispatched" },
  "dispatch 1": {
    all: "replay",
    waiting: "NOT_READY",
    ready: "step.dispatched",
    skipped: "STEP_ENDED",
    carried: "STEP_ENDED",
    doubted: "NOT_READY",
  },
  "dispatch 2": {
    all: "NOT_READY",
    ...NOT_BEGUN,
    backoff: "step.dispatched",
    revised: "step.dispatched",
    again: "replay",
    ...each(["completed", "failed", "timedOut", "cancelled", "released"], "STEP_ENDED"),
  },
  "dispatch 3": { all: "STALE_ATTEMPT", again: "NOT_READY" },
  acknowledge: {
    all: "replay",
    ...NOT_BEGUN,
    again: "STALE_ATTEMPT",
    dispatched: "step.acknowledged",
  },
  "acknowledge elsewhere": {
    all: "OTHER_CHILD",
    ...NOT_BEGUN,
    again: "STALE_ATTEMPT",
  },
  complete: {
    all: "step.completed",
    ...over(LATE),
    ...NOT_BEGUN,
    again: STALE,
    ...each(ENDED_WELL, "replay"),
  },
  fail: FAILING,
  refuse: { ...FAILING, running: "ALREADY_RUNNING", reported: "ALREADY_RUNNING" },
  "cancel child": FAILING,
  "time out": { all: "step.timed_out", ...over(LATE), ...NOT_BEGUN, again: STALE, timedOut: "replay" },
  report: { all: "step.reported", ...over(LATE), ...NOT_BEGUN, again: STALE, reported: "replay" },
  "report else": { all: "step.reported", ...over(LATE), ...NOT_BEGUN, again: STALE },
  skip: { all: "replay" },
  retry: {
    all: "NOTHING_TO_RETRY",
    "long backoff": GRANTED,
    backoff: "replay",
    revised: "replay",
    blocked: `escalation.closed ${GRANTED}`,
  },
  "retry all": {
    all: "NOTHING_TO_RETRY",
    "long backoff": GRANTED,
    backoff: "replay",
    revised: "replay",
    blocked: `escalation.closed ${GRANTED}`,
  },
  cancel: {
    all: `${CANCELLING} step.skipped`,
    ...over("STEP_ENDED"),
    dispatched: CANCELLING,
    running: CANCELLING,
    reported: CANCELLING,
    again: CANCELLING,
    backoff: `${CANCELLING} step.skipped`,
    "long backoff": `${CANCELLING} step.skipped`,
    blocked: `${CANCELLING} escalation.closed`,
    skipped: "replay",
    carried: "STEP_ENDED",
    doubted: `${CANCELLING} escalation.closed step.skipped`,
    held: `${CANCELLING} step.failed`,
    asked: `${CANCELLING} escalation.closed step.failed`,
    revised: `${CANCELLING} step.skipped`,
  },
  "cancel all": { all: CANCELLING },
  expire: { all: "replay", ...each(["blocked", "doubted", "asked"], "NOT_READY") },
  trip: { all: "NOT_READY" },
  "stop child": { all: "replay", timedOut: "step.child_stopped" },
  settle: {
    all: "STEPS_OPEN",
    ...each(["completed", "failed", "cancelled", "released"], "step.admitted"),
  },
  withhold: {
    all: "STEP_ENDED",
    ...NOT_BEGUN,
    again: "STALE_ATTEMPT",
    ...each(["dispatched", "running", "reported"], "result.withheld"),
  },
  pass: ruled("result.verified step.completed"),
  revise: ruled("result.verified result.revised"),
  reject: ruled("result.verified step.failed"),
  "rule on itself": ruled("verification.failed coordination.escalated"),
  "no verdict": ruled("verification.failed coordination.escalated"),
  "another check": ruled(ELSEWHERE),
  "another target": ruled(ELSEWHERE),
  approve: {
    all: "UNKNOWN_QUESTION",
    doubted: ANSWERED,
    blocked: `${ANSWERED} ${GRANTED}`,
    asked: `${ANSWERED} step.completed`,
  },
  deny: {
    all: "UNKNOWN_QUESTION",
    blocked: ANSWERED,
    doubted: `${ANSWERED} step.skipped`,
    asked: `${ANSWERED} step.failed`,
  },
  answer: {
    all: "UNKNOWN_QUESTION",
    asked: `${ANSWERED} step.completed`,
    ...each(["blocked", "doubted"], "ANSWER_REFUSED escalation.answered"),
  },
  ask: { all: "coordination.escalated" },
  notice: { all: "replay" },
  told: { all: "replay" },
  judge: { all: "NOT_READY" },
};
