/** Owns: how many steps of plans are at work in a lane at once, by the log alone. */
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { EventCheck } from "./check-log.ts";
import { isDisturbed } from "./check-steps.ts";
import { listBroken } from "./list-broken.ts";
import type { PayloadOf } from "./journal.ts";
import type { World } from "./world.ts";

const DELIVERY = "@delivery";

interface LaneStep {
  readonly runId: string;
  readonly agentId: string;
}

interface Books {
  readonly world: World;
  /** Steps of plans in the lane `data`, by run and step. */
  readonly steps: Map<string, LaneStep>;
  readonly atWork: Set<string>;
  /** When the time of a plan is over. */
  readonly deadlines: Map<string, number>;
  /** Runs whose steps may be stopped: one gives its place back while its agent is told so. */
  readonly stopping: Set<string>;
}

export function createLaneCheck(world: World): EventCheck {
  const books: Books = {
    world,
    steps: new Map(),
    atWork: new Set(),
    deadlines: new Map(),
    stopping: new Set(),
  };
  return {
    see: (event) => {
      seeStep(books, event);
      if (isStopping(books, event)) books.stopping.add(event.runId);
      return [];
    },
    rest: () => checkLane(books),
  };
}

function seeStep({ steps, atWork, deadlines }: Books, event: RunEvent): void {
  switch (event.type) {
    case "coordination.created":
      deadlines.set(event.runId, event.payload.plan?.deadlineAtMs ?? Infinity);
      break;
    case "step.admitted":
      if (isCounted(event.payload)) steps.set(nameOf(event), { ...event.payload, runId: event.runId });
      // A step whose agent has spawned gives its place back.
      else if (event.payload.parentStepId) steps.delete(`${event.runId}/${event.payload.parentStepId}`);
      break;
    case "step.dispatched":
      if (steps.has(nameOf(event))) atWork.add(nameOf(event));
      break;
    case "step.completed":
    case "step.failed":
    case "step.timed_out":
    case "result.held":
      atWork.delete(nameOf(event));
      break;
    default:
  }
}

/** Somebody cancels, people refuse, a bound is reached, or a step fails that no retry follows. */
function isStopping({ stopping }: Books, { type, runId, payload }: RunEvent): boolean {
  if (stopping.has(runId)) return true;
  if (type === "escalation.closed")
    return payload.resolution === "denied" || payload.resolution === "expired";
  if (type === "step.failed" || type === "step.timed_out") return payload.retryAtMs === undefined;
  return type === "coordination.cancel_requested" || type.includes("budget");
}

function isCounted({ planned, lane, stepId }: PayloadOf<"step.admitted">): boolean {
  return planned !== undefined && lane === "data" && stepId !== DELIVERY;
}

interface AboutStep {
  readonly runId: string;
  readonly payload: { readonly stepId: string };
}

function nameOf({ runId, payload: { stepId } }: AboutStep): string {
  return `${runId}/${stepId}`;
}

/** Checks one gateway in which nothing failed: another one, or the process before, has lanes of its own. */
function checkLane({ world, steps, atWork, deadlines, stopping }: Books): string[] {
  const { gateways, lanes } = world.schedule.setup;
  if (gateways > 1 || isDisturbed(world)) return [];
  const nowMs = world.clock.now();
  const counted = [...atWork]
    .flatMap((name) => steps.get(name) ?? [])
    .filter(({ runId }) => !stopping.has(runId) && (deadlines.get(runId) ?? 0) > nowMs);
  const ofAgents = Map.groupBy(counted, ({ agentId }) => agentId);
  const most = Math.max(0, ...[...ofAgents.values()].map(({ length }) => length));
  return listBroken({
    [`${counted.length} steps are at work in a lane of ${lanes.concurrency}`]:
      counted.length > lanes.concurrency,
    [`${most} steps of one agent are at work, and ${lanes.perAgentMax} may be`]:
      most > (lanes.perAgentMax ?? Infinity),
  });
}
