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
  failStep,
  judge,
  recordNotice,
  recordNoVerdict,
  openPlan,
  planStep,
  planScene,
  report,
  retry,
  runOut,
  nameSessionOfAttempt,
  skip,
  startStep,
  stopChildOf,
  recordTold,
  TRIP,
  recordFinding,
  withhold,
  type PlanSetup,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";

/** A plan of two steps: `x` waits for `root`. */
export const createWaiting =
  (fields: StepFields = {}, opened: Partial<PlanSetup> = {}) =>
  (): PlanScene =>
    planScene(
      openPlan({ steps: 2, ...opened }),
      admit(planStep("root"), planStep("x", { after: ["root"], ...fields })),
    );
const createAfter =
  (make: () => PlanScene, ...commands: readonly Command[]) =>
  (): PlanScene =>
    make().then(...commands);

const ROOT = [dispatch("root"), startStep("root"), finish("root")];
export const ready = createAfter(createWaiting(), ...ROOT);
const dispatched = createAfter(ready, dispatch("x"));
export const running = createAfter(dispatched, startStep("x"));
export const retried = createAfter(createWaiting({ retryBudget: 1 }), ...ROOT, dispatch("x"), startStep("x"));
const asking = createAfter(
  createWaiting({}, { policy: { escalationPolicy: "hitl" } }),
  ...ROOT,
  dispatch("x"),
  startStep("x"),
);

const FORKED_FROM = { coordinationId: "co-source" as CoordinationId, sequence: 9 };
const CARRIED = { eventId: createEventId(FORKED_FROM.coordinationId, 7) };
const forked = createWaiting({ carried: CARRIED }, { forkedFrom: FORKED_FROM });

const GATED = { gate: { threshold: 7_000, checks: ["lint"], revisionsMax: 1 } };
export const holders = createAfter(createWaiting(GATED), ...ROOT, dispatch("x"), startStep("x"), finish("x"));
export const HELD = holders().step("x");

export const SITUATIONS = {
  waiting: createWaiting(),
  ready,
  dispatched,
  running,
  reported: createAfter(running, report("x")),
  backoff: createAfter(retried, failStep("x")),
  "long backoff": createAfter(
    createWaiting({ retryBudget: 1, backoffMs: 600_000 }),
    ...ROOT,
    ...[dispatch("x"), startStep("x"), failStep("x")],
  ),
  again: createAfter(retried, failStep("x"), dispatch("x", 2)),
  blocked: createAfter(asking, failStep("x")),
  completed: createAfter(running, finish("x")),
  carried: forked,
  failed: createAfter(running, failStep("x")),
  timedOut: createAfter(running, runOut("x")),
  cancelled: createAfter(running, failStep("x", 1, "child_cancelled")),
  skipped: createAfter(createWaiting(), cancel("x")),
  doubted: createAfter(createWaiting({ decision: { confidence: 4_000, floor: 5_000 } }), ...ROOT),
  held: holders,
  asked: createAfter(holders, recordNoVerdict(HELD)),
  revised: createAfter(holders, recordFinding(HELD, { verdict: "revise" })),
  released: createAfter(holders, recordFinding(HELD)),
} as const satisfies Record<string, () => PlanScene>;
export type Situation = keyof typeof SITUATIONS;

export const COMMANDS: Readonly<Record<string, Command>> = {
  open: OPEN,
  admit: admit(planStep("root"), planStep("x", { after: ["root"] })),
  "admit too many": admit(planStep("y")),
  "admit carried": admit(planStep("y", { carried: CARRIED })),
  spawn: spawn("a"),
  "dispatch 1": dispatch("x", 1),
  "dispatch 2": dispatch("x", 2),
  "dispatch 3": dispatch("x", 3),
  acknowledge: startStep("x"),
  "acknowledge elsewhere": startStep("x", 1, nameSessionOfAttempt("elsewhere")),
  complete: finish("x"),
  fail: failStep("x"),
  refuse: failStep("x", 1, "spawn_refused"),
  "cancel child": failStep("x", 1, "child_cancelled"),
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
  "stop child": stopChildOf("x"),
  settle: SETTLE,
  withhold: withhold("x"),
  pass: recordFinding(HELD),
  revise: recordFinding(HELD, { verdict: "revise" }),
  reject: recordFinding(HELD, { verdict: "fail" }),
  "rule on itself": recordFinding(HELD, { self: true }),
  "no verdict": recordNoVerdict(HELD),
  "another check": recordFinding(HELD, { check: "other" }),
  "another target": { ...recordFinding(HELD), target: createEventId(RUN, 1) },
  approve: answer(),
  deny: answer(1, "deny"),
  answer: answer(1, "answer"),
  ask: ask(OWNER),
  notice: recordNotice(),
  told: recordTold("answer:escalation-1"),
  judge: judge(),
};

/** The result of each command: in every situation, but for those that are named. */
type Row = { readonly all: string } & Partial<Record<Situation, string>>;

const refuseOver = (code: string): Partial<Record<Situation, string>> => {
  const ended = [
    ...["backoff", "long backoff", "blocked", "completed", "failed", "timedOut", "cancelled"],
    ...["held", "asked", "revised", "released"],
  ];
  return Object.fromEntries(ended.map((situation) => [situation, code]));
};
const fillEach = (situations: readonly Situation[], words: string): Partial<Record<Situation, string>> =>
  Object.fromEntries(situations.map((situation) => [situation, words]));
const NOT_BEGUN = fillEach(["waiting", "ready", "skipped", "doubted", "carried"], "STALE_ATTEMPT");
/** The child ended well, whatever becomes of what it said. */
const ENDED_WELL = ["completed", "held", "asked", "revised", "released"] as const;
const LATE = "STEP_ENDED step.outcome_refused";
const STALE = "STALE_ATTEMPT step.outcome_refused";
const GRANTED = "step.retry_granted";
const CANCELLING = "coordination.cancel_requested";
const ANSWERED = "escalation.answered escalation.closed";

const ELSEWHERE = "NOT_HELD step.outcome_refused";

/** The target of a verdict on what the check of `held` was asked about. */
const createRuledRow = (words: string): Row => ({
  all: LATE,
  ...NOT_BEGUN,
  again: STALE,
  held: words,
  ...fillEach(["dispatched", "running", "reported", "asked"], ELSEWHERE),
});

const FAILING: Row = {
  all: "step.failed",
  ...refuseOver("replay"),
  ...NOT_BEGUN,
  again: STALE,
  timedOut: LATE,
  ...fillEach(ENDED_WELL, LATE),
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
    ...fillEach(["completed", "failed", "timedOut", "cancelled", "released"], "STEP_ENDED"),
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
    ...refuseOver(LATE),
    ...NOT_BEGUN,
    again: STALE,
    ...fillEach(ENDED_WELL, "replay"),
  },
  fail: FAILING,
  refuse: { ...FAILING, running: "ALREADY_RUNNING", reported: "ALREADY_RUNNING" },
  "cancel child": FAILING,
  "time out": { all: "step.timed_out", ...refuseOver(LATE), ...NOT_BEGUN, again: STALE, timedOut: "replay" },
  report: { all: "step.reported", ...refuseOver(LATE), ...NOT_BEGUN, again: STALE, reported: "replay" },
  "report else": { all: "step.reported", ...refuseOver(LATE), ...NOT_BEGUN, again: STALE },
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
    ...refuseOver("STEP_ENDED"),
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
  expire: { all: "replay", ...fillEach(["blocked", "doubted", "asked"], "NOT_READY") },
  trip: { all: "NOT_READY" },
  "stop child": { all: "replay", timedOut: "step.child_stopped" },
  settle: {
    all: "STEPS_OPEN",
    ...fillEach(["completed", "failed", "cancelled", "released"], "step.admitted"),
  },
  withhold: {
    all: "STEP_ENDED",
    ...NOT_BEGUN,
    again: "STALE_ATTEMPT",
    ...fillEach(["dispatched", "running", "reported"], "result.withheld"),
  },
  pass: createRuledRow("result.verified step.completed"),
  revise: createRuledRow("result.verified result.revised"),
  reject: createRuledRow("result.verified step.failed"),
  "rule on itself": createRuledRow("verification.failed coordination.escalated"),
  "no verdict": createRuledRow("verification.failed coordination.escalated"),
  "another check": createRuledRow(ELSEWHERE),
  "another target": createRuledRow(ELSEWHERE),
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
    ...fillEach(["blocked", "doubted"], "ANSWER_REFUSED escalation.answered"),
  },
  ask: { all: "coordination.escalated" },
  notice: { all: "replay" },
  told: { all: "replay" },
  judge: { all: "NOT_READY" },
};
