/** Owns: submitting plans, forking them, asking to cancel or retry them, and reports of agents that come too late. */
import type { AgentId, CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { HostRun } from "../crash/plan-host.ts";
import { planOf, stepOf } from "../crash/plan-schedule.ts";
import type { Move } from "./moves.ts";
import { pickGateway } from "./perform-move.ts";
import { planFor } from "./make-plan.ts";
import { planIdOf } from "./make-small-plan.ts";
import type { ForkPromise, PlanPromise, RequestPromise } from "./promises.ts";
import { callGateway, countEvents, type Gateway, type World } from "./world.ts";

export function submitPlan(world: World, move: Extract<Move, { kind: "submit" }>): void {
  const { plans } = world.promises;
  const coordinationId = planIdOf(move.plan);
  const first = plans.find((each) => each.coordinationId === coordinationId);
  // The same plan is the same wherever it is submitted again.
  const gateway = pickGateway(world, move.gateway);
  const plan =
    move.as === "other" || !first
      ? planFor(world.schedule, { plan: move.plan, owner: gateway.owner, isOther: move.as === "other" })
      : first.plan;
  const isLater = plans.some(
    (each) => each.coordinationId === coordinationId && each.answer?.kind === "accepted",
  );
  const promise: PlanPromise = { coordinationId, plan, as: first ? move.as : "first", isLater };
  plans.push(promise);
  void callGateway(gateway, async ({ coordinator }) => {
    promise.answer = await coordinator.submitPlan({ plan, ownerAgent: "main" as AgentId });
    // A plan that uses a check which nobody defines any more is refused.
    promise.isCalm = !gateway.life.isDisturbed && gateway.setup.gates?.hasLint !== false;
  });
}

export function forkPlan(world: World, move: Extract<Move, { kind: "fork" }>): void {
  const { journal, promises } = world;
  const sources = journal.filter("coordination.created").filter(({ payload }) => payload.plan);
  const source = sources[move.run % Math.max(1, sources.length)]?.runId;
  if (source === undefined) return;
  const { length } = journal.eventsOf(source);
  const { permille, isPreview } = move;
  const from = permille === undefined ? {} : { from: Math.round((length * permille) / 1_000) };
  const coordinationId = `fork-${move.fork}`;
  const isLater = promises.forks.some(
    (each) => each.coordinationId === coordinationId && each.answer?.kind === "accepted",
  );
  const promise: ForkPromise = { coordinationId, source, ...from, isPreview, isLater };
  promises.forks.push(promise);
  void callGateway(pickGateway(world, move.gateway), async ({ coordinator }) => {
    promise.answer = await coordinator.forkPlan({
      ...from,
      source: source,
      coordinationId: coordinationId as CoordinationId,
      isPreview,
    });
  });
}

export function requestChange(
  world: World,
  { kind, gateway, run, step }: Extract<Move, { kind: "cancel" | "retry" }>,
): void {
  const runIds = world.journal.runIds();
  const runId = runIds[run % Math.max(1, runIds.length)];
  if (runId === undefined) return;
  const steps = world.journal
    .eventsOf(runId)
    .flatMap((event) => (event.type === "step.admitted" ? [event.payload.stepId] : []));
  const stepId = step === undefined ? undefined : steps[step % Math.max(1, steps.length)];
  const askedFrom = countEvents(world);
  const promise: RequestPromise = { kind, runId, askedFrom, ...(stepId !== undefined && { stepId }) };
  world.promises.requests.push(promise);
  void callGateway(pickGateway(world, gateway), async ({ coordinator }) => {
    promise.answer = await coordinator[kind]({
      coordinationId: runId as CoordinationId,
      by: "operator",
      ...(stepId !== undefined && { stepId: stepId }),
    });
    promise.answeredBy = countEvents(world);
  });
}

/** An agent that is at work submits a plan of its own. */
/** Finds an agent of a plan that is at work, with its gateway. */
export function pickAgentAtWork(
  { gateways }: World,
  index: number,
): (Pick<HostRun, "order"> & { readonly gateway: Gateway }) | undefined {
  const working = gateways.flatMap((gateway) =>
    gateway.agents.runs
      .filter(({ isDelivery, ending }) => !isDelivery && !ending)
      .map(({ order }) => ({ gateway, order })),
  );
  return working[index % Math.max(1, working.length)];
}

export function nestPlan(world: World, move: Extract<Move, { kind: "nest" }>): void {
  const agent = pickAgentAtWork(world, move.agent);
  if (!agent) return;
  const steps = Array.from({ length: move.steps }, (_, index) => stepOf(`n${index + 1}`));
  const { childSessionKey: ownerSession, agentId: ownerAgent } = agent.order;
  const plan = planOf(steps, {
    coordinationId: `inside-${move.plan}`,
    ownerSession,
    ...(move.spawns !== undefined && { budget: { spawns: move.spawns } }),
  });
  void callGateway(agent.gateway, ({ coordinator }) =>
    coordinator.submitPlan({ plan, submittedBy: ownerSession, ownerAgent }),
  );
}

/** An agent of an attempt that may be long over reports to whatever process there is. */
export function reportLate(world: World, move: Extract<Move, { kind: "late report" }>): void {
  const gateway = pickGateway(world, move.gateway);
  const runs = gateway.agents.runs.filter(({ isDelivery }) => !isDelivery);
  const run = runs[move.attempt % Math.max(1, runs.length)];
  if (!run) return;
  const outputs = { n: run.number * 1_000_000, good: true };
  run.reports.push({ outputs, outcome: "completed" });
  void callGateway(gateway, ({ coordinator }) =>
    coordinator.report(run.order.childSessionKey, { outcome: "completed", outputs: { ...outputs } }),
  );
}
