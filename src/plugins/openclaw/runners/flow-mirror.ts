/**
 * Owns: showing running plans in the host's list of Task Flows, and hearing that one was cancelled there. The ledger is the
 * truth; a flow is a picture of it, and what goes wrong with a picture is logged and no more.
 *
 * The host protects nothing: progress would revive a flow that was cancelled. So every write looks first, is bound to the
 * revision that it saw, and leaves flows alone that are cancelled or ended.
 */
import { z } from "zod";
import type { TerminalStatus } from "../../../agents/coordination/contracts/facts.ts";
import {
  addMs,
  type CoordinationId,
  type EpochMs,
  type SessionKey,
} from "../../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import { formatErrorSentence, type HostRuntime } from "../host/host-runs.ts";

export interface FlowSnapshot {
  readonly coordinationId: CoordinationId;
  readonly ownerSession: SessionKey;
  readonly objective: string;
  readonly status: "running" | TerminalStatus;
  readonly stepsTotal: number;
  readonly stepsEnded: number;
  /** The steps that are at work. */
  readonly running: readonly string[];
}

export interface FlowMirror {
  /** Takes the newest state of a plan; returns at once. The last call for a plan names how it ended. */
  show(snapshot: FlowSnapshot): void;
  /** Writes what is still to be written and looks no more. */
  stop(): Promise<void>;
}

export interface FlowMirrorDependencies {
  readonly runtime: HostRuntime;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called once for each plan whose flow was cancelled in the host. */
  readonly cancel: (coordinationId: CoordinationId) => Promise<void>;
}

const CONTROLLER = "coordination";
/** A plan's flow is written at most this often, and looked at this often while the plan runs. */
const WRITE_EVERY_MS = 1_000;
const LOOK_EVERY_MS = 3_000;
/** Another writer of the same flow moved its revision: look again, but not for ever. */
const WRITES_MAX = 3;
/** The end of a plan is tried to be written for half a minute. */
const FAILURES_MAX = 10;
const GOAL_CHARS_MAX = 300;
const NAMED_STEPS_MAX = 5;

const OPEN: ReadonlySet<string> = new Set(["queued", "running", "waiting", "blocked"]);
const GOOD: ReadonlySet<FlowSnapshot["status"]> = new Set(["success", "partial"] as const);

const stateSchema = z
  .object({ coordinationId: z.string() })
  .transform(({ coordinationId }) => coordinationId);

type BoundFlows = ReturnType<HostRuntime["tasks"]["async"]["managedFlows"]["bindSession"]>;
/** A flow of the host. */
type HostFlow = NonNullable<Awaited<ReturnType<BoundFlows["get"]>>>;

/** A plan that a flow of the host mirrors, and how far the flow is behind it. */
interface MirroredPlan {
  snapshot: FlowSnapshot;
  flowId: string | undefined;
  /** The newest snapshot is not in the flow yet. */
  due: boolean;
  /** Not before this time is the flow written again. */
  nextWriteAtMs: EpochMs;
  /** Failures in a row. */
  failures: number;
  /** Those of them from before the plan ended. */
  failuresBeforeEnd: number;
  /** It was told that its flow is cancelled. */
  told: boolean;
  /** One write or look at a time. */
  work: Promise<void>;
  sleep: (() => void) | undefined;
}

/**
 * Creates the mirror that keeps each plan's entry in the host's list of flows up to date, and cancels the plan where
 * its flow was cancelled there.
 */
export function createFlowMirror(dependencies: FlowMirrorDependencies): FlowMirror {
  const { clock } = dependencies;
  const plans = new Map<CoordinationId, MirroredPlan>();
  let stopped = false;

  const wake = (plan: MirroredPlan): void => {
    plan.sleep?.();
    plan.sleep = undefined;
  };
  const run = (plan: MirroredPlan): Promise<void> => {
    wake(plan);
    plan.work = plan.work.then(() => updateFlow(dependencies, plan)).then(() => schedule(plan));
    return plan.work;
  };
  const schedule = (plan: MirroredPlan): void => {
    if (stopped || plan.sleep) return;
    if (mayBeForgotten(plan)) {
      plans.delete(plan.snapshot.coordinationId);
      return;
    }
    const atMs = plan.due ? plan.nextWriteAtMs : addMs(clock.now(), LOOK_EVERY_MS);
    plan.sleep = clock.wakeAt(atMs, () => void run(plan));
  };
  return {
    show: (snapshot) => {
      if (stopped) return;
      const plan = plans.get(snapshot.coordinationId) ?? createShownPlan(snapshot, clock.now());
      plans.set(snapshot.coordinationId, plan);
      if (plan.snapshot.status === "running") plan.failuresBeforeEnd = plan.failures;
      plan.snapshot = snapshot;
      if (!plan.due) wake(plan);
      plan.due = true;
      schedule(plan);
    },
    stop: async () => {
      stopped = true;
      await Promise.all([...plans.values()].map((plan) => (plan.due ? run(plan) : plan.work)));
      plans.forEach(wake);
      plans.clear();
    },
  };
}

function createShownPlan(snapshot: FlowSnapshot, now: EpochMs): MirroredPlan {
  return {
    snapshot,
    flowId: undefined,
    due: false,
    nextWriteAtMs: now,
    failures: 0,
    failuresBeforeEnd: 0,
    told: false,
    work: Promise.resolve(),
    sleep: undefined,
  };
}

/** True when the plan's end is in its flow, or could not be brought there for long enough. */
function mayBeForgotten({ snapshot, due, failures, failuresBeforeEnd }: MirroredPlan): boolean {
  const isGivenUp = failures - failuresBeforeEnd >= FAILURES_MAX;
  return snapshot.status !== "running" && (!due || isGivenUp);
}

/**
 * Writes the plan to its flow where that is due, else looks whether the flow was cancelled. A failure is logged once,
 * and tried again.
 */
async function updateFlow(dependencies: FlowMirrorDependencies, plan: MirroredPlan): Promise<void> {
  const { clock, logger } = dependencies;
  const isWriteDue = plan.due;
  plan.due = false;
  plan.nextWriteAtMs = addMs(clock.now(), WRITE_EVERY_MS);
  try {
    await (isWriteDue ? writeFlow(dependencies, plan) : cancelWithFlow(dependencies, plan));
    plan.failures = 0;
    plan.failuresBeforeEnd = 0;
  } catch (error) {
    plan.due ||= isWriteDue;
    plan.nextWriteAtMs = addMs(clock.now(), LOOK_EVERY_MS);
    plan.failures += 1;
    if (plan.failures > 1) return;
    const { coordinationId: runId } = plan.snapshot;
    logger.warn({ runId }, `the plan is not in the host's list of flows: ${formatErrorSentence(error)}`);
  }
}

/** Cancels the plan where its flow was cancelled. */
async function cancelWithFlow(dependencies: FlowMirrorDependencies, plan: MirroredPlan): Promise<void> {
  const flow = await findFlow(bindFlows(dependencies, plan), plan);
  if (flow && wasCancelled(flow)) cancelPlanOnce(dependencies, plan);
}

/**
 * Writes the newest snapshot to the plan's flow, which is created where there is none and ended where the plan has
 * ended. Cancels the plan where its flow was cancelled; leaves a flow that is over as it is. Throws when other writers
 * come first each time.
 */
async function writeFlow(dependencies: FlowMirrorDependencies, plan: MirroredPlan): Promise<void> {
  const flows = bindFlows(dependencies, plan);
  for (let tries = 0; tries < WRITES_MAX; tries += 1) {
    const { snapshot } = plan;
    const flow = (await findFlow(flows, plan)) ?? (await createFlow(flows, snapshot));
    plan.flowId = flow.flowId;
    if (wasCancelled(flow)) cancelPlanOnce(dependencies, plan);
    if (isFlowOver(flow)) return;
    const written =
      snapshot.status === "running"
        ? wasCancelled(flow) || (await writeProgress(flows, flow, snapshot)) !== undefined
        : await endFlow(dependencies, flows, flow, snapshot);
    if (written) return;
  }
  throw new Error("others keep changing it");
}

function bindFlows({ runtime }: FlowMirrorDependencies, { snapshot }: MirroredPlan): BoundFlows {
  return runtime.tasks.async.managedFlows.bindSession({ sessionKey: snapshot.ownerSession });
}

/** Finds the plan's flow, also the one that a process before this one created. */
async function findFlow(
  flows: BoundFlows,
  { flowId, snapshot }: MirroredPlan,
): Promise<HostFlow | undefined> {
  if (flowId !== undefined) return flows.get(flowId);
  const all = await flows.list();
  return all.find(
    ({ controllerId, stateJson }) =>
      controllerId === CONTROLLER && stateSchema.safeParse(stateJson).data === snapshot.coordinationId,
  );
}

async function createFlow(flows: BoundFlows, snapshot: FlowSnapshot): Promise<HostFlow> {
  return flows.createManaged({
    controllerId: CONTROLLER,
    goal: snapshot.objective.replace(/\s+/gu, " ").trim().slice(0, GOAL_CHARS_MAX),
    status: "running",
    // The owner is told by us.
    notifyPolicy: "silent",
    ...formatFlowState(snapshot),
  });
}

function wasCancelled({ status, cancelRequestedAt }: HostFlow): boolean {
  return status === "cancelled" || typeof cancelRequestedAt === "number";
}

function isFlowOver({ status }: HostFlow): boolean {
  return !OPEN.has(status);
}

/** Cancels a running plan whose flow was cancelled, once, and does not wait for it. */
function cancelPlanOnce({ cancel, logger }: FlowMirrorDependencies, plan: MirroredPlan): void {
  if (plan.told || plan.snapshot.status !== "running") return;
  plan.told = true;
  const { coordinationId } = plan.snapshot;
  // Not waited for: cancelling reaches every agent of the plan, and shows the plan here meanwhile.
  cancel(coordinationId).catch((error: unknown) => {
    plan.told = false;
    logger.warn(
      { runId: coordinationId },
      `a plan was not cancelled with its flow: ${formatErrorSentence(error)}`,
    );
  });
}

/** Writes how far the plan is. Returns the flow as it is then; `undefined` when another writer was faster. */
async function writeProgress(
  flows: BoundFlows,
  flow: HostFlow,
  snapshot: FlowSnapshot,
): Promise<HostFlow | undefined> {
  const picture = formatFlowState(snapshot);
  if (flow.currentStep === picture.currentStep) return flow;
  const { flowId, revision: expectedRevision } = flow;
  const result = await flows.resume({ flowId, expectedRevision, status: "running", ...picture });
  if (!result.applied && result.code === "persist_failed") throw new Error("the host does not store it");
  return result.applied ? result.flow : undefined;
}

/** Ends the flow as its plan ended; false when another writer was faster. */
async function endFlow(
  { runtime }: FlowMirrorDependencies,
  flows: BoundFlows,
  flow: HostFlow,
  snapshot: FlowSnapshot,
): Promise<boolean> {
  const { flowId } = flow;
  if (snapshot.status === "cancelled") {
    const bound = runtime.tasks.managedFlows.bindSession({ sessionKey: snapshot.ownerSession });
    const cfg = runtime.config.current() as Parameters<typeof bound.cancel>[0]["cfg"];
    return (await bound.cancel({ flowId, cfg })).cancelled;
  }
  // The last step is shown first, because ending a flow does not change what it shows.
  const shown = wasCancelled(flow) ? flow : await writeProgress(flows, flow, snapshot);
  if (!shown) return false;
  const ending = { flowId, expectedRevision: shown.revision, stateJson: formatFlowState(snapshot).stateJson };
  const result = GOOD.has(snapshot.status)
    ? await flows.finish(ending)
    : await flows.fail({ ...ending, blockedSummary: `the plan ended as ${snapshot.status}` });
  return result.applied;
}

function formatFlowState({ coordinationId, status, stepsTotal, stepsEnded, running }: FlowSnapshot) {
  const named = running.slice(0, NAMED_STEPS_MAX).join(", ");
  const more = running.length - NAMED_STEPS_MAX;
  const atWork = running.length === 0 ? "" : `; running: ${named}${more > 0 ? ` and ${more} more` : ""}`;
  return {
    currentStep: `${stepsEnded} of ${stepsTotal} steps ended${atWork}`,
    stateJson: { coordinationId, status, stepsTotal, stepsEnded },
  };
}
