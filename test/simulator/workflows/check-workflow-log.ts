/** Owns: the life of every run and node by the log alone, read as plain text after each move. */
import type {
  OrchestratorDecision,
  WorkflowEvent,
} from "../../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { listBroken } from "../list-broken.ts";
import { createWorkflowOrderCheck } from "./check-workflow-order.ts";
import { RETRIES_MAX, WORKERS } from "./make-workflows.ts";
import { CONFIDENCE_FLOOR } from "./simulated-host.ts";
import { isEnd, readOrigin, type WorkflowWorld } from "./workflow-world.ts";

interface NodeModel {
  readonly phase: "at work" | "suspended" | "between attempts" | "taken up again" | "ended";
}

interface RunModel {
  readonly runId: string;
  readonly isFork: boolean;
  readonly nodes: Map<string, NodeModel>;
  /** Open interrupts by their id, with the node that waits. */
  readonly interrupts: Map<string, string>;
  readonly resolved: Set<string>;
  readonly eventIds: Set<string>;
  readonly children: Set<string>;
  texts: readonly string[];
  decided: number;
  lastDecision?: OrchestratorDecision;
  /** A decision below the floor, and whether people agreed to it since. */
  doubted?: { readonly decision: string; isAgreed: boolean };
  isPaused: boolean;
  hasEnded: boolean;
}

type EventOf<T extends WorkflowEvent["type"]> = Extract<WorkflowEvent, { type: T }>;

const AT_WORK: ReadonlySet<NodeModel["phase"] | undefined> = new Set([
  "at work",
  "suspended",
  "taken up again",
]);

/** Returns a check of all that was appended since the last one; problems go to the world's. */
export function createWorkflowLogCheck(world: WorkflowWorld): () => void {
  const runs = new Map<string, RunModel>();
  const checkOrder = createWorkflowOrderCheck(world);
  return () => {
    for (const [runId, { events: texts }] of world.ledger.runs) {
      const run = runs.get(runId) ?? createRunModel(world, runId);
      runs.set(runId, run);
      // Holds the store of the simulator, which is a double; `test/contract` holds the real stores to L1.
      if (run.texts.some((text, index) => texts[index] !== text))
        world.problems.push(`L1: ${runId} was changed`);
      for (const text of texts.slice(run.texts.length)) {
        const event = JSON.parse(text) as WorkflowEvent;
        const problems = [...checkPlace(run, event), ...seeEvent(run, event), ...checkOrder(runId, event)];
        world.problems.push(...problems.map((each) => `${each} (${runId}:${event.sequence})`));
      }
      run.texts = [...texts];
    }
  };
}

function createRunModel(world: WorkflowWorld, runId: string): RunModel {
  return {
    runId,
    isFork: readOrigin(world, runId) !== undefined,
    nodes: new Map(),
    interrupts: new Map(),
    resolved: new Set(),
    eventIds: new Set(),
    children: new Set(),
    texts: [],
    decided: 0,
    isPaused: false,
    hasEnded: false,
  };
}

/** Events that tell of an earlier one. */
const CAUSED: ReadonlySet<WorkflowEvent["type"]> = new Set([
  ...(["core.workflowChain.event", "agent.toolReturned", "agent.verified"] as const),
]);

/** L2, L3, and that ids are unique. */
function checkPlace(
  run: RunModel,
  { sequence, eventId, causationId, payload, type }: WorkflowEvent,
): string[] {
  const expected = run.eventIds.size;
  const isForeign = (payload as { readonly causationHostId?: unknown }).causationHostId !== undefined;
  const isCaused = causationId === undefined ? !CAUSED.has(type) : isForeign || run.eventIds.has(causationId);
  const isNew = !run.eventIds.has(eventId);
  run.eventIds.add(eventId);
  return listBroken({
    [`L2: the sequence is not ${expected}`]: sequence !== expected,
    [`L2: ${eventId} is there twice`]: !isNew,
    [`L3: ${type} is caused by ${causationId}, which is not before it`]: !isCaused,
    [`D5: ${type} follows the end`]: run.hasEnded,
  });
}

function seeEvent(run: RunModel, event: WorkflowEvent): string[] {
  if (isEnd(event)) {
    run.hasEnded = true;
    return [];
  }
  switch (event.type) {
    case "node.started":
      return startNode(run, event);
    case "node.completed":
    case "node.failed":
      return endNode(run, event.payload.nodeId, event.type);
    case "node.skipped":
    case "node.cancelled":
      run.nodes.set(event.payload.nodeId, { phase: "ended" });
      return [];
    case "node.retried":
      return retryNode(run, event);
    case "node.suspended":
      return suspendNode(run, event);
    case "interrupt.resolved":
      return resolveInterrupt(run, event);
    case "run.paused":
      run.isPaused = true;
      return [];
    case "run.resumed":
      return resumeRun(run);
    case "core.workflowChain.confidence-escalated":
      run.doubted = { decision: JSON.stringify(event.payload.originalDecision), isAgreed: false };
      return [];
    case "runOrchestrator.decided":
      return decide(run, event);
    case "node.dispatched":
      return dispatchChild(run, event);
    default:
      return [];
  }
}

function startNode(run: RunModel, { payload: { nodeId } }: EventOf<"node.started">): string[] {
  const before = run.nodes.get(nodeId)?.phase;
  run.nodes.set(nodeId, { phase: "at work" });
  return listBroken({
    [`D2: ${nodeId} begins while it is ${before}`]: before === "at work" || before === "suspended",
    [`H4: ${nodeId} begins while the run is paused`]: run.isPaused,
  });
}

/** A node that a pause cut off at once begins anew, in place of going on. */
function resumeRun(run: RunModel): string[] {
  run.isPaused = false;
  for (const [nodeId, { phase }] of run.nodes)
    if (phase === "at work") run.nodes.set(nodeId, { phase: "taken up again" });
  return [];
}

/** D4: as often as the workflow says, one after the other. */
function retryNode(run: RunModel, { payload: { nodeId, attempt } }: EventOf<"node.retried">): string[] {
  const before = run.nodes.get(nodeId)?.phase;
  run.nodes.set(nodeId, { phase: "between attempts" });
  return listBroken({
    [`D4: ${nodeId} is tried again after it was ${before}`]: !AT_WORK.has(before),
    [`D4: ${nodeId} has its attempt ${attempt}`]: attempt > RETRIES_MAX,
  });
}

function endNode(run: RunModel, nodeId: string, type: string): string[] {
  const before = run.nodes.get(nodeId)?.phase;
  run.nodes.set(nodeId, { phase: "ended" });
  return listBroken({ [`D5: ${type} of ${nodeId}, which is ${before}`]: !AT_WORK.has(before) });
}

function suspendNode(run: RunModel, { payload }: EventOf<"node.suspended">): string[] {
  const { nodeId, interruptId } = payload;
  const node = run.nodes.get(nodeId);
  run.nodes.set(nodeId, { phase: "suspended" });
  const isTwice = run.interrupts.has(interruptId) || run.resolved.has(interruptId);
  run.interrupts.set(interruptId, nodeId);
  return listBroken({
    [`E1: ${interruptId} is asked twice`]: isTwice,
    [`E1: ${nodeId} asks while it is ${node?.phase}`]: !AT_WORK.has(node?.phase),
  });
}

function resolveInterrupt(run: RunModel, { payload }: EventOf<"interrupt.resolved">): string[] {
  const { interruptId, nodeId, resumeValue } = payload;
  const isOpen = run.interrupts.get(interruptId) === nodeId;
  run.interrupts.delete(interruptId);
  run.resolved.add(interruptId);
  run.nodes.set(nodeId, { phase: "at work" });
  if (run.doubted && isYes(resumeValue)) run.doubted.isAgreed = true;
  return listBroken({ [`E2: ${interruptId} is answered and was not open`]: !isOpen });
}

function isYes(value: unknown): boolean {
  return (value as { readonly action?: unknown } | undefined)?.action === "accept";
}

/** G2, G3: a decision below the floor is made once people agreed to that one. */
function decide(run: RunModel, { payload }: EventOf<"runOrchestrator.decided">): string[] {
  const { decision, iteration } = payload;
  run.decided += 1;
  const confidence = decision.kind === "ask-user" ? 1 : (decision.confidence ?? 1);
  const isAgreed = run.doubted?.isAgreed === true && run.doubted.decision === JSON.stringify(decision);
  const workers = decision.kind === "next-worker" ? decision.nextWorkerIds : [];
  const foreign = workers.find((id) => !(WORKERS as readonly string[]).includes(id));
  const before = run.lastDecision;
  run.lastDecision = decision;
  delete run.doubted;
  return listBroken({
    [`CO-1: decision ${iteration} is the ${run.decided}.`]: iteration !== run.decided,
    [`CO-3: something is decided after the end was`]: before?.kind === "terminate",
    [`G3: a decision of ${confidence} is made and nobody agreed`]: confidence < CONFIDENCE_FLOOR && !isAgreed,
    [`H5: ${foreign} is no worker of the supervisor`]: foreign !== undefined,
  });
}

function dispatchChild(run: RunModel, { payload }: EventOf<"node.dispatched">): string[] {
  const { childRunId, childStatus } = payload;
  // A fork whose place is in the middle of a handover tells of the child of its source once more.
  const isTwice = !run.isFork && childStatus === undefined && run.children.has(childRunId);
  run.children.add(childRunId);
  return listBroken({
    [`D2: ${childRunId} is begun twice`]: isTwice,
    [`CO-3: a worker begins after the end was decided`]: run.lastDecision?.kind === "terminate",
    [`H4: ${childRunId} begins while the run is paused`]: run.isPaused,
  });
}
