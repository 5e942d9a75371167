/**
 * Owns: a coordinator on a SQLite ledger of its own whose steps do nothing, and the notes that its store and its runner
 * take: when what, in how many transactions.
 */
import { statSync } from "node:fs";
import {
  type CoordinationId,
  type EpochMs,
  DELIVERY_STEP_ID,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { AgentRunner, AttemptOrder, Start } from "../../src/agents/coordination/ports/agent-runner.ts";
import type { AppendRequest, LedgerStore } from "../../src/agents/coordination/ports/ledger-store.ts";
import { createCoordinator, type Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { createSpawnGate } from "../../src/agents/coordination/runtime/spawns/spawn-gate.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { createPQueueLanes } from "../../src/infra/lanes/p-queue-lanes.ts";
import { AGENT, OWNER, quietLogger, createSilentRunner, TEST_SETTINGS } from "../support/ledger-fixtures.ts";
import { planDependencies } from "../support/plan-dependencies.ts";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";
import { createArbitrationDependencies } from "../support/arbitration-dependencies.ts";
import { createGateDependencies } from "../support/gate-dependencies.ts";

export type PlanShape =
  /** One after the other. */
  | "chain"
  /** All at once. */
  | "wide"
  /** All at once, then one that waits for all. */
  | "joined";

/** A plan has at most 10,000 steps and a step waits for at most 1,000: there, the delivery is what waits for all. */
export function planOf(coordinationId: string, shape: PlanShape, count: number): object {
  const ids = Array.from({ length: count }, (_, index) => `step-${index}`);
  const steps = ids.map((stepId, index) => {
    const before = shape === "chain" ? ids.slice(Math.max(0, index - 1), index) : [];
    return stepOf(stepId, before);
  });
  if (shape === "joined") steps.push(stepOf("join", ids));
  const failurePolicy = {
    retryBudget: 0,
    timeoutPolicy: "continue_with_partial",
    escalationPolicy: "none",
  };
  const about = { coordinationId, objective: "to be timed", ownerSession: OWNER };
  return { ...about, conflictPolicy: {}, failurePolicy, steps };
}

function stepOf(stepId: string, dependsOn: readonly string[]): object {
  return { stepId, agent: AGENT, task: "nothing", ...(dependsOn.length > 0 && { dependsOn }) };
}

/** The stages of one plan, in milliseconds of `performance.now()`. */
export interface Notes {
  /** When the append that admitted the step was handed to the store. */
  readonly admitted: Map<string, number>;
  /** When the append with the step's end was. */
  readonly completed: Map<string, number>;
  /** When the runner was asked to start the step, and when it had ended. */
  readonly started: Map<string, number>;
  /** When the newest append with an admission was on disk. */
  admittedOnDisk: number;
  /** The most attempts that held a place of the lane at once. */
  heldMost: number;
  /** Appends that are on disk. */
  readonly ended: PromiseWithResolvers<number>;
}

export interface PlanHost extends AsyncDisposable {
  /** The ledger's file, which is deleted with the host. */
  readonly path: string;
  readonly coordinator: Coordinator;
  readonly store: LedgerStore;
  /** Takes notes of the plan that is submitted next. */
  take(): Notes;
  transactions(): number;
  /** Closes the ledger and says how large it is. */
  close(): Promise<number>;
}

export interface PlanHostOptions {
  /** Places of the lane that steps run on. */
  readonly concurrency: number;
  /** Steps begin and do not end. */
  readonly hangs?: boolean;
  /** Is called with each append that is on disk and the number of the transaction, from 1 on, that it was part of. */
  readonly onAppended?: (request: AppendRequest, transaction: number) => void;
}

export async function openPlanHost({
  concurrency,
  hangs = false,
  onAppended,
}: PlanHostOptions): Promise<PlanHost> {
  const folder = createTempFolder();
  const path = folder.file("ledger.sqlite");
  let transactions = 0;
  // The store asks for the time once per transaction.
  const countTransactionAndTellTime = (): EpochMs => {
    transactions += 1;
    return systemClock.now();
  };
  const store = await openTestLedger(path, { clock: { ...systemClock, now: countTransactionAndTellTime } });
  let notes = createNotes();
  const append = async (request: AppendRequest): Promise<void> => {
    const mine = notes;
    const admits = noteEvents(mine, request);
    await store.append(request);
    onAppended?.(request, transactions);
    if (admits) mine.admittedOnDisk = performance.now();
    if (request.summary.status !== "running") mine.ended.resolve(performance.now());
  };
  const limits = { control: 4, data: concurrency, escalation: 1, queueMax: 256 };
  const lanes = createPQueueLanes({ ...limits, agingMs: TEST_SETTINGS.agingMs }, systemClock);
  const onStart = (order: AttemptOrder): void => {
    const { stepId } = order.envelope;
    if (stepId === DELIVERY_STEP_ID) return;
    notes.started.set(stepId, performance.now());
    notes.heldMost = Math.max(notes.heldMost, lanes.metrics().data.running);
  };
  const coordinator = createCoordinator({
    store: { ...store, append },
    content: store,
    runner: createSilentRunner(),
    ...planDependencies(createIdleRunner(onStart, hangs)),
    ...createArbitrationDependencies(),
    ...createGateDependencies(),
    clock: systemClock,
    logger: quietLogger,
    lanes,
    gate: createSpawnGate({ clock: systemClock, limits: { spawnsMax: 1_000 } }),
    settings: TEST_SETTINGS,
    newCoordinationId: () => "co-unused" as CoordinationId,
  });
  await coordinator.start();
  let size: Promise<number> | undefined;
  const closeOnce = async (): Promise<number> => {
    await coordinator.stop();
    await store.close();
    return statSync(path).size;
  };
  const close = (): Promise<number> => (size ??= closeOnce());
  return {
    path,
    coordinator,
    store,
    take: () => (notes = createNotes()),
    transactions: () => transactions,
    close,
    [Symbol.asyncDispose]: async () => {
      await close();
      folder[Symbol.dispose]();
    },
  };
}

function createNotes(): Notes {
  return {
    admitted: new Map(),
    completed: new Map(),
    started: new Map(),
    admittedOnDisk: Number.NaN,
    heldMost: 0,
    ended: Promise.withResolvers(),
  };
}

/** Says whether steps of the plan are admitted. */
function noteEvents({ admitted, completed }: Notes, { events }: AppendRequest): boolean {
  const at = performance.now();
  let admits = false;
  for (const { type, payload } of events) {
    if (type === "step.completed") completed.set(payload.stepId, at);
    if (type !== "step.admitted" || payload.stepId === DELIVERY_STEP_ID) continue;
    admitted.set(payload.stepId, at);
    admits = true;
  }
  return admits;
}

/** Its steps end when they begin, with a small result of their own. */
function createIdleRunner(onStart: (order: AttemptOrder) => void, hangs: boolean): AgentRunner {
  return {
    start: (order) => {
      onStart(order);
      return Promise.resolve(createStartFor(order, hangs));
    },
    observe: () => Promise.resolve({ kind: "unknown" }),
    follow: () => new Promise(() => undefined),
    cancel: () => Promise.resolve("already_ended"),
  };
}

function createStartFor({ childSessionKey, idempotencyKey, envelope }: AttemptOrder, hangs: boolean): Start {
  const child = { childSessionKey, childRunId: idempotencyKey };
  if (hangs) return { kind: "started", child };
  return { kind: "started", child, ending: { outcome: "completed", reply: envelope.stepId } };
}
