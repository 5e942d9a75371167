/** Owns: a plan that goes wrong the first time, forks of it, and looking at what came of them. */
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { isCoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { isFact, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import {
  readCoordinationView,
  type CoordinationView,
} from "../../src/agents/coordination/runtime/log/coordination-view.ts";
import type { ForkRequest, PlanForked } from "../../src/agents/coordination/runtime/plans/plan-requests.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { endDone, endFailing, type ScriptedAttempt } from "../support/scripted-runner.ts";
import { plan, PLAN_ID, runPlan, step, type Fields, type PlanRun } from "./planned-world.ts";

export const DELIVERY = "@delivery";
/** More than one append takes. */
const LARGE = BOUNDS.stepsPerAppendMax * 2 + 20;
export const FORK = "plan-1-again" as CoordinationId;

/** a, then b and c, then d, which reads what b came to. */
export const STEPS = [
  step("a"),
  step("b", { dependsOn: ["a"] }),
  step("c", { dependsOn: ["a"] }),
  step("d", { dependsOn: ["b", "c"], input: { text: "{{steps.b.outputs.from}}" } }),
];
export const createDiamond = (fields: Fields = {}): Fields => plan(STEPS, fields);

export type Scripts = Readonly<Record<string, readonly ScriptedAttempt[]>>;

/** `c` goes wrong the first time, so `d` is skipped. */
export const BROKEN: Scripts = {
  a: [endDone({ from: "a" })],
  b: [endDone({ from: "b" })],
  c: [endFailing("no luck"), endDone({ from: "c" })],
};

export const run = (scripts: Scripts = BROKEN, planFields = createDiamond()): Promise<PlanRun> =>
  runPlan(scripts, planFields);

export const fork = async (
  { coordinator }: PlanRun,
  request: Partial<ForkRequest> = {},
): Promise<Exclude<PlanForked, { kind: "refused" }>> => {
  const forked = await coordinator.forkPlan({ source: PLAN_ID, coordinationId: FORK, ...request });
  if (forked.kind === "refused") throw new Error(JSON.stringify(forked.problems));
  await waitUntilSettled();
  return forked;
};

export const readRefusal = async (
  { coordinator }: PlanRun,
  request: Partial<ForkRequest> = {},
): Promise<{ code: string; message: string }> => {
  try {
    const forked = await coordinator.forkPlan({ source: PLAN_ID, coordinationId: FORK, ...request });
    return { code: forked.kind, message: "" };
  } catch (error) {
    if (!isCoordinationError(error)) throw error;
    return { code: error.code, message: error.message };
  }
};

export const viewOf = async (
  { world: { ledger, clock } }: PlanRun,
  id: CoordinationId,
): Promise<CoordinationView> => {
  const view = await readCoordinationView(ledger.open(clock), id);
  if (!view) throw new Error(`no ${id}`);
  return view;
};

export const fatesOf = async (planRun: PlanRun, id: CoordinationId): Promise<Record<string, string>> =>
  Object.fromEntries((await viewOf(planRun, id)).steps.map(({ stepId, status }) => [stepId, status]));

export const logOf = ({ world: { ledger } }: PlanRun, id: CoordinationId): RunEvent[] =>
  ledger.events().find(([first]) => first?.runId === id) ?? [];

export const placeOf = (planRun: PlanRun, type: RunEvent["type"], stepId?: string): number => {
  const found = logOf(planRun, PLAN_ID).find(
    (event) =>
      event.type === type &&
      (!stepId || (isFact(event) && "stepId" in event.payload && event.payload.stepId === stepId)),
  );
  if (!found) throw new Error(`no ${type} of ${stepId ?? "any"}`);
  return found.sequence;
};

/** Who was asked for a step of which coordination. */
export const startsOf = ({ world: { plans } }: PlanRun, id: CoordinationId): string[] =>
  plans.orders
    .filter(({ envelope }) => envelope.coordinationId === id)
    .map(({ envelope }) => envelope.stepId);

export const ALL_DONE = {
  a: "completed",
  b: "completed",
  c: "completed",
  d: "completed",
  [DELIVERY]: "completed",
};

/** More steps than one append takes, named by their places; those that fail do so in the source only. */
export const LARGE_IDS = Array.from({ length: LARGE }, (_, index) => `s${String(index).padStart(4, "0")}`);

export const runLarge = (
  isFailing: (stepId: string) => boolean,
  more: readonly Fields[] = [],
): Promise<PlanRun> =>
  runPlan(
    ({ envelope: { stepId, coordinationId } }) =>
      coordinationId === PLAN_ID && isFailing(stepId) ? endFailing() : endDone({ from: stepId }),
    plan([...LARGE_IDS.map((stepId) => step(stepId)), ...more]),
  );

/** The process that forks dies when the first of its steps are admitted. */
export const forkInPart = async ({ coordinator, world }: PlanRun): Promise<void> => {
  await coordinator.stop();
  const first = world.start(createDyingAt(2, "before").wrap);
  await first.start();
  await first.forkPlan({ source: PLAN_ID, coordinationId: FORK });
  await waitUntilSettled();
  await Promise.race([first.stop(), waitUntilSettled()]);
};

/** A store whose process dies at an append: before it is on the disk, or after it, without an answer. */
export function createDyingAt(at: number, when: "before" | "after") {
  let appends = 0;
  let isDead = false;
  const never = new Promise<never>(() => undefined);
  const workAlive = <T>(work: () => Promise<T>): Promise<T> => (isDead ? never : work());
  const wrap = (store: MemoryStore): MemoryStore => ({
    ...store,
    read: (...args) => workAlive(() => store.read(...args)),
    append: (request) =>
      workAlive(async () => {
        appends += 1;
        const isLast = appends === at;
        if (isLast && when === "before") isDead = true;
        if (!isDead) await store.append(request);
        if (isLast) isDead = true;
        return isDead ? never : undefined;
      }),
  });
  return { wrap, isDead: () => isDead };
}
