/** Owns: plans that are run by a real coordinator with a scripted runner, and looking at what came of them. */
import { expect } from "vitest";
import type { AgentId, CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { AttemptOrder } from "../../src/agents/coordination/ports/agent-runner.ts";
import {
  readCoordinationView,
  type CoordinationView,
} from "../../src/agents/coordination/runtime/log/coordination-view.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { RuntimeSettings } from "../../src/agents/coordination/runtime/environment/runtime-dependencies.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { OWNER, createWorld, type World } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import {
  endDone,
  createScriptedRunner,
  type Script,
  type ScriptedAttempt,
} from "../support/scripted-runner.ts";

export const PLAN_ID = "plan-1" as CoordinationId;
export const AGENT = "main" as AgentId;

export type Fields = Record<string, unknown>;
export const step = (stepId: string, fields: Fields = {}): Fields => ({
  stepId,
  agent: "main",
  task: `do ${stepId}`,
  ...fields,
});

/** Continues with what is left, asks nobody, and tries nothing again unless the step says so. */
export const plan = (steps: readonly Fields[], fields: Fields = {}): Fields => ({
  coordinationId: PLAN_ID,
  objective: "try it",
  ownerSession: OWNER,
  conflictPolicy: {},
  failurePolicy: { retryBudget: 5, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
  defaults: { retry: { budget: 0 } },
  steps,
  ...fields,
});

export const createRetries = (budget: number, backoffMs = 1_000): Fields => ({
  retry: { budget, backoffMs },
});

/** The result of each start of a step, one after another; the last one stays. Steps without a script are done at once. */
export function scriptOf(scripts: Readonly<Record<string, readonly ScriptedAttempt[]>>): Script {
  const starts = new Map<string, number>();
  return ({ envelope }) => {
    const { stepId } = envelope;
    const script = scripts[stepId] ?? [endDone()];
    const start = starts.get(stepId) ?? 0;
    starts.set(stepId, start + 1);
    return script[Math.min(start, script.length - 1)] ?? endDone();
  };
}

export interface PlanRun {
  readonly world: World;
  readonly coordinator: Coordinator;
  /** Stops the coordinator and lets another one take over, as a new process would. */
  restart(between?: () => void): Promise<Coordinator>;
  advance(ms: number): Promise<void>;
  view(): Promise<CoordinationView>;
  fates(): Promise<Record<string, string>>;
  events<T extends RunEvent["type"]>(type: T): Extract<RunEvent, { type: T }>[];
  ordersOf(stepId: string): AttemptOrder[];
  /** The types of the events of every append, by append. */
  readonly appends: readonly (readonly RunEvent["type"][])[];
  /** Stops everything and proves the ledger. */
  close(): Promise<void>;
}

export async function runPlan(
  script: Script | Readonly<Record<string, readonly ScriptedAttempt[]>>,
  planFields: Fields,
  settings: Partial<RuntimeSettings> = {},
): Promise<PlanRun> {
  const runner = createScriptedRunner(typeof script === "function" ? script : scriptOf(script));
  return submitTo(createWorld(settings, runner), planFields);
}

export async function submitTo(world: World, planFields: Fields): Promise<PlanRun> {
  const appends: RunEvent["type"][][] = [];
  const countAppends = (store: MemoryStore): MemoryStore => ({
    ...store,
    append: (request) => {
      appends.push(request.events.map(({ type }) => type));
      return store.append(request);
    },
  });
  let coordinator = world.start(countAppends);
  await coordinator.start();
  const submitted = await coordinator.submitPlan({ plan: planFields, ownerAgent: AGENT });
  expect(submitted).toMatchObject({ kind: "accepted" });
  await waitUntilSettled();
  const view = async (): Promise<CoordinationView> => {
    const found = await readCoordinationView(world.ledger.open(world.clock), PLAN_ID);
    if (!found) throw new Error("no such coordination");
    return found;
  };
  return {
    world: world,
    appends,
    view,
    get coordinator() {
      return coordinator;
    },
    restart: async (between = () => undefined) => {
      await coordinator.stop();
      between();
      coordinator = world.start(countAppends);
      await coordinator.start();
      await waitUntilSettled();
      return coordinator;
    },
    advance: (ms) => world.clock.advance(ms),
    fates: async () => Object.fromEntries((await view()).steps.map(({ stepId, status }) => [stepId, status])),
    events: (type) =>
      world.ledger
        .events()
        .flat()
        .filter((event): event is Extract<RunEvent, { type: typeof type }> => event.type === type),
    ordersOf: (stepId) => world.plans.orders.filter(({ envelope }) => envelope.stepId === stepId),
    close: async () => {
      await coordinator.stop();
      expect((await verifyLedger(world.ledger.open(world.clock))).problems).toEqual([]);
      expect(world.lines.filter(({ level }) => level === "error")).toEqual([]);
    },
  };
}
