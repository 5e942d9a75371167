/** Owns: a plan that goes wrong the first time, forks of it, and looking at what came of them. */
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { isCoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { isFact, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import {
  readCoordination,
  type CoordinationView,
} from "../../src/agents/coordination/runtime/log/coordination-view.ts";
import type { ForkRequest, PlanForked } from "../../src/agents/coordination/runtime/plans/plan-requests.ts";
import { settled } from "../support/fake-clock.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { done, failing, type Scripted } from "../support/scripted-runner.ts";
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
export const diamond = (fields: Fields = {}): Fields => plan(STEPS, fields);

export type Scripts = Readonly<Record<string, readonly Scripted[]>>;

/** `c` goes wrong the first time, so `d` is skipped. */
export const BROKEN: Scripts = {
  a: [done({ from: "a" })],
  b: [done({ from: "b" })],
  c: [failing("no luck"), done({ from: "c" })],
};

export const run = (scripts: Scripts = BROKEN, given = diamond()): Promise<PlanRun> =>
  runPlan(scripts, given);

export const fork = async (
  { coordinator }: PlanRun,
  request: Partial<ForkRequest> = {},
): Promise<Exclude<PlanForked, { kind: "refused" }>> => {
  const forked = await coordinator.forkPlan({ source: PLAN_ID, coordinationId: FORK, ...request });
  if (forked.kind === "refused") throw new Error(JSON.stringify(forked.problems));
  await settled();
  return forked;
};

export const refusal = async (
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
  { it: { ledger, clock } }: PlanRun,
  id: CoordinationId,
): Promise<CoordinationView> => {
  const view = await readCoordination(ledger.open(clock), id);
  if (!view) throw new Error(`no ${id}`);
  return view;
};

export const fatesOf = async (it: PlanRun, id: CoordinationId): Promise<Record<string, string>> =>
  Object.fromEntries((await viewOf(it, id)).steps.map(({ stepId, status }) => [stepId, status]));

export const logOf = ({ it: { ledger } }: PlanRun, id: CoordinationId): RunEvent[] =>
  ledger.events().find(([first]) => first?.runId === id) ?? [];

export const placeOf = (it: PlanRun, type: RunEvent["type"], stepId?: string): number => {
  const found = logOf(it, PLAN_ID).find(
    (event) =>
      event.type === type &&
      (!stepId || (isFact(event) && "stepId" in event.payload && event.payload.stepId === stepId)),
  );
  if (!found) throw new Error(`no ${type} of ${stepId ?? "any"}`);
  return found.sequence;
};

/** Who was asked for a step of which coordination. */
export const startsOf = ({ it: { plans } }: PlanRun, id: CoordinationId): string[] =>
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
      coordinationId === PLAN_ID && isFailing(stepId) ? failing() : done({ from: stepId }),
    plan([...LARGE_IDS.map((stepId) => step(stepId)), ...more]),
  );

/** The process that forks dies when the first of its steps are admitted. */
export const forkInPart = async ({ coordinator, it }: PlanRun): Promise<void> => {
  await coordinator.stop();
  const first = it.start(dyingAt(2, "before").wrap);
  await first.start();
  await first.forkPlan({ source: PLAN_ID, coordinationId: FORK });
  await settled();
  await Promise.race([first.stop(), settled()]);
};

/** A store whose process dies at an append: before it is on the disk, or after it, without an answer. */
export function dyingAt(at: number, when: "before" | "after") {
  let appends = 0;
  let isDead = false;
  const never = new Promise<never>(() => undefined);
  const alive = <T>(work: () => Promise<T>): Promise<T> => (isDead ? never : work());
  const wrap = (store: MemoryStore): MemoryStore => ({
    ...store,
    read: (...given) => alive(() => store.read(...given)),
    append: (request) =>
      alive(async () => {
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
