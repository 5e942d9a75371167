/** Owns: small plans for crashes at every call, and the traps that plans once fell into. */
import type { FactPayloads } from "../../src/agents/coordination/contracts/facts.ts";
import { LINT, rulePassing } from "./plan-gates.ts";
import { GOOD, type Manner } from "./plan-manner.ts";
import { GROUPS, type Crash, type PlanProcess } from "./plan-process.ts";
import { NUMBERED, planOf, stepOf, type Fields, type Schedule } from "./plan-schedule.ts";

/** Every call of every port in turn, before and after it. */
export function listCrashesAt(calls: PlanProcess["calls"]): Crash[] {
  return GROUPS.filter((group) => group !== "all").flatMap((group) =>
    Array.from({ length: calls[group] }, (_, index) => index + 1).flatMap((atCall) =>
      // There is no before and after where a call has no effect; an append may also fail.
      (group === "clock" ? (["dies before"] as const) : KINDS)
        .filter((kind) => kind !== "fails" || group === "append")
        .map((kind): Crash => ({ kind, group, atCall, downMs: 100 })),
    ),
  );
}

const KINDS = ["dies before", "dies after", "fails"] as const;

/** Manners by `step:attempt`; the others are good. */
function scheduleFor(
  name: string,
  plan: Fields,
  manners: Readonly<Record<string, Partial<Manner>>> = {},
  rest: Partial<Schedule> = {},
): Schedule {
  return {
    name,
    plan,
    mannerOf: (key) => ({ ...GOOD, ...manners[key.slice(key.indexOf(":") + 1)] }),
    ruler: rulePassing,
    asked: [],
    crashes: [],
    lanes: { concurrency: 2, queueMax: 4 },
    ...rest,
  };
}

const createPolicy = (timeoutPolicy: string, escalationPolicy: string, retryBudget = 1): Fields => ({
  failurePolicy: { retryBudget, timeoutPolicy, escalationPolicy },
});

export const SMALL: readonly Schedule[] = [
  scheduleFor(
    "a diamond with a binding, a contract and a retry",
    planOf([
      stepOf("a", [], { outputSchema: NUMBERED }),
      stepOf("b", ["a"], { input: { v: "{{steps.a.outputs.n}}" } }),
      stepOf("c", ["a"], { retry: { budget: 1, backoffMs: 500 } }),
      stepOf("d", ["b", "c"]),
    ]),
    { "c:1": { ending: "failed" }, "a:1": { report: { afterMs: 100, says: "completed" } } },
  ),
  scheduleFor(
    "a time-out, its stray and a second attempt",
    planOf([stepOf("a", [], { timeoutMs: 3_000, retry: { budget: 1, backoffMs: 500 } })]),
    { "a:1": { endsAfterMs: 60_000 } },
  ),
  scheduleFor(
    "a step that is sent only once, and one that does not need all before it",
    planOf([
      stepOf("a", [], { deliveryMode: "best_effort" }),
      stepOf("b"),
      stepOf("c", ["a", "b"], { fanIn: "any", input: { v: "{{steps.a.outputs.n}}" } }),
    ]),
    { "a:1": { start: "hangs after", endsAfterMs: 8_000 } },
  ),
  scheduleFor(
    "a question that a person answers",
    planOf(
      [stepOf("a", [], { retry: { budget: 0 } }), stepOf("b", ["a"])],
      createPolicy("continue_with_partial", "hitl"),
    ),
    { "a:1": { ending: "failed" } },
    { asked: [{ afterMs: 10_000, subject: "retry", stepId: "a" }] },
  ),
  scheduleFor(
    "a plan that is cancelled at work",
    planOf([stepOf("a"), stepOf("b"), stepOf("c", ["a"])]),
    { "a:1": { endsAfterMs: 60_000 }, "b:1": { endsAfterMs: 60_000, cancel: "unreachable" } },
    { asked: [{ afterMs: 2_000, subject: "cancel" }] },
  ),
  scheduleFor(
    "a result that is revised once, and one that people let through",
    planOf([
      stepOf("a", [], { verify: { checks: { lint: LINT }, revisionsMax: 1 } }),
      stepOf("b", [], { verify: { requireConfidence: true } }),
      stepOf("c", ["a", "b"], { confidence: 0.4 }),
    ]),
    {},
    {
      ruler: (request) =>
        request.result.attempt === 1
          ? Promise.resolve({ kind: "verdict", verdict: "revise", criteria: ["x"], agentId: "check:lint" })
          : rulePassing(request),
      asked: [5_000, 6_000, 12_000, 13_000].map((afterMs) => ({ afterMs, subject: "approve" as const })),
    },
  ),
  scheduleFor("an owner who is told though the answer is lost", planOf([stepOf("a")]), {
    "@delivery:1": { start: "hangs after" },
  }),
];

type Trap = Schedule & { readonly ends: Partial<FactPayloads["coordination.terminal"]> };

/** Its only result waits for a check that never answers, past the deadline of the plan. */
export const UNASKED = scheduleFor(
  "a result about which people can be asked no more is withheld",
  planOf([stepOf("a", [], { verify: { checks: { lint: LINT } } })], { deadlineMs: 10_000 }),
  {},
  { ruler: () => new Promise(() => undefined) },
);

const OTHER = { observe: "other session", evasions: 99 } as const;

export const TRAPS: readonly Trap[] = [
  { ...UNASKED, ends: { status: "failed" } },
  {
    ...scheduleFor("what an agent reports while its end is waited for counts", planOf([stepOf("a")]), {
      "a:1": { report: { afterMs: 100, says: "completed" } },
    }),
    ends: { status: "success" },
  },
  {
    ...scheduleFor(
      "what an agent reports before its start is answered counts",
      planOf([stepOf("a", [], { retry: { budget: 0 } })]),
      {
        "a:1": { start: "slow", delayMs: 9_000, report: { afterMs: 100, says: "failed" } },
      },
    ),
    ends: { status: "failed" },
  },
  {
    ...scheduleFor(
      "an answer about another session does not deliver a result at its deadline",
      planOf([stepOf("a")]),
      {
        "@delivery:1": { ...OTHER, follow: "hangs", ending: "failed" },
      },
    ),
    ends: { status: "success", delivery: "unknown" },
  },
  {
    ...scheduleFor(
      "an answer about another session does not complete a step that is stopped",
      planOf([stepOf("a")]),
      { "a:1": { ...OTHER, follow: "running", ending: "cancelled" } },
      { asked: [{ afterMs: 2_000, subject: "cancel" }] },
    ),
    ends: { status: "cancelled" },
  },
  {
    ...scheduleFor(
      "a runner that waits for another session's end is asked besides",
      planOf([stepOf("a", [], { timeoutMs: 5_000 })]),
      { "a:1": { follow: "other session" } },
    ),
    ends: { status: "success" },
  },
  {
    ...scheduleFor(
      "a step that is stopped while it is being started leaves no agent at work",
      planOf(
        [
          stepOf("a"),
          stepOf("b", ["a"]),
          stepOf("c", ["a"], { input: { v: "{{steps.a.outputs.missing}}" } }),
        ],
        createPolicy("fail_fast", "none"),
      ),
      { "b:1": { endsAfterMs: 60_000 } },
    ),
    ends: { status: "failed" },
  },
  {
    ...scheduleFor(
      "an agent that arrives after its step was given up is stopped",
      planOf([stepOf("a", [], { deliveryMode: "best_effort" })]),
      { "a:1": { start: "late", delayMs: 70_000, pendingIs: "absent", endsAfterMs: 500_000 } },
    ),
    ends: { status: "failed" },
  },
  {
    ...scheduleFor(
      "no agent is stopped for a request that does not reach the disk",
      planOf([stepOf("a"), stepOf("b")]),
      { "a:1": { endsAfterMs: 20_000 }, "b:1": { endsAfterMs: 20_000 } },
      {
        asked: [{ afterMs: 2_000, subject: "cancel" }],
        crashes: [{ kind: "fails", group: "append", atCall: 6, downMs: 0 }],
      },
    ),
    ends: { status: "success" },
  },
  {
    ...scheduleFor(
      "an attempt that is started again is told what it was told before",
      planOf([
        stepOf("a"),
        stepOf("b"),
        stepOf("c", ["a", "b"], { fanIn: "any", input: { v: "{{steps.a.outputs.n}}" } }),
      ]),
      {
        "a:1": { endsAfterMs: 5_000 },
        "b:1": { endsAfterMs: 500 },
        "c:1": { start: "hangs before" },
      },
    ),
    ends: { status: "success" },
  },
];
