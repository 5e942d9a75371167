/** Owns: the simulated world of workflow runs: several processes of a host over one ledger, on one virtual clock. */
import type { CoordinationId, EpochMs } from "../../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowEvent } from "../../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type {
  Caller,
  WorkflowHost,
} from "../../../src/agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { createFakeClock, START_MS, type FakeClock } from "../../support/fake-clock.ts";
import {
  createMemoryWorkflowLedger,
  type MemoryWorkflowLedger,
} from "../../support/memory-workflow-store.ts";
import { createMachineClock, type MachineClock } from "../machine-clock.ts";
import { createLife, endLife, failWrites, type Life } from "../process-life.ts";
import { callProcess, countWork, settleLives } from "../simulated-processes.ts";
import { makeWorkflows } from "./make-workflows.ts";
import { composeHost } from "./simulated-host.ts";
import { createOutside, type Outside } from "./simulated-outside.ts";
import type { CallerName, WorkflowSchedule } from "./workflow-moves.ts";
import { createWorkflowPromises, type WorkflowPromises } from "./workflow-promises.ts";

export const CALLERS: Readonly<Record<CallerName, Caller>> = {
  alice: { tenant: "acme", principal: "alice" },
  bob: { tenant: "acme", principal: "bob" },
  stranger: { tenant: "other", principal: "mallory" },
};

export interface SimulatedHost {
  readonly name: string;
  /** Tells the time of its machine. */
  readonly clock: MachineClock;
  life: Life;
  host: WorkflowHost;
  processes: number;
}

export interface WorkflowWorld {
  readonly schedule: WorkflowSchedule;
  readonly clock: FakeClock;
  readonly ledger: MemoryWorkflowLedger;
  readonly hosts: readonly SimulatedHost[];
  readonly outside: Outside;
  readonly promises: WorkflowPromises;
  readonly problems: string[];
  readonly lines: string[];
  readonly endedProcesses: Set<string>;
  /** The clock was put back at some time: what is compared by it may be off. */
  hasGoneBack: boolean;
  /** Counts calls of ports and timers. */
  work: number;
  /** Until when nobody can write. */
  fullUntilMs: number;
  /** Nothing goes wrong any more. */
  isCalm: boolean;
}

export function createWorkflowWorld(schedule: WorkflowSchedule): WorkflowWorld {
  const { seed, setup } = schedule;
  const hosts: SimulatedHost[] = [];
  const clock = createFakeClock(START_MS, () => settleLives(hosts.map(({ life }) => life)));
  const world: WorkflowWorld = {
    schedule,
    clock,
    ledger: createMemoryWorkflowLedger(),
    hosts,
    outside: createOutside({
      seed,
      clock,
      isRough: () => setup.outside === "rough" && !world.isCalm,
      hearCall: createCallCheck(() => world),
    }),
    promises: createWorkflowPromises(),
    problems: [],
    lines: [],
    endedProcesses: new Set(),
    hasGoneBack: false,
    fullUntilMs: 0,
    work: 0,
    isCalm: false,
  };
  for (let index = 0; index < setup.hosts; index += 1)
    hosts.push({
      name: `h${index + 1}`,
      clock: createMachineClock(clock),
      life: createLife(clock, () => undefined),
      host: undefined as unknown as WorkflowHost,
      processes: 0,
    });
  return world;
}

/** D2: a call is made once where nothing takes it back: no trouble, and no pause of its run. */
function createCallCheck(readWorld: () => WorkflowWorld): (callId: string) => void {
  const heard = new Set<string>();
  return (callId) => {
    const world = readWorld();
    const isHeld = world.schedule.moves.some(({ kind }) => kind === "hold");
    const isTwice = heard.has(callId);
    heard.add(callId);
    if (isTwice && !isHeld && isUndisturbed(world))
      world.problems.push(`D2: the call ${callId} is made twice`);
  };
}

const JUMPS: ReadonlySet<string> = new Set(["jump", "answer at the deadline"]);

/** One process, in which nothing failed: what is asked of it is done before anything else happens. */
export function isUndisturbed({ hosts, schedule }: WorkflowWorld): boolean {
  const isAlone = schedule.setup.hosts === 1 && !schedule.moves.some(({ kind }) => JUMPS.has(kind));
  return isAlone && hosts.every(({ life, processes }) => processes === 1 && !life.isDisturbed);
}

/** A supervisor starts a process again that could not begin. */
const RESTART_MS = 5_000;

/** Starts a process of the host and lets it take over its work. */
export function bootHost(world: WorkflowWorld, host: SimulatedHost): void {
  const { schedule, ledger, outside, endedProcesses, lines } = world;
  const { clock } = host;
  host.processes += 1;
  const process = `${host.name}-${host.processes}`;
  const onEnd = (downMs: number): void => {
    if (schedule.setup.isOneMachine) endedProcesses.add(process);
    clock.wakeAt((clock.now() + (world.isCalm ? 0 : downMs)) as EpochMs, () => {
      if (host.life === life) bootHost(world, host);
    });
  };
  const life = createLife(
    clock,
    onEnd,
    () => countWork(world),
    (problem) => world.problems.push(problem),
  );
  host.life = life;
  if (world.clock.now() < world.fullUntilMs) failWrites(life, world.fullUntilMs - world.clock.now());
  host.host = composeHost(
    {
      process,
      clock,
      ledger,
      definitions: makeWorkflows(schedule.seed),
      outside,
      isProcessGone: (each) => endedProcesses.has(each),
      say: (line) => void lines.push(line),
      report: (problem) => void world.problems.push(problem),
    },
    life,
  );
  void host.host.start().catch((error: unknown) => {
    lines.push(`${process} could not start: ${String(error)}`);
    // As `serve` does, which its supervisor starts again.
    if (world.clock.now() < world.fullUntilMs) endLife(life, RESTART_MS);
  });
}

/** Resolves with nothing where the process died, or the call failed. */
export function callHost<T>(
  { life, host }: SimulatedHost,
  work: (host: WorkflowHost) => Promise<T>,
): Promise<T | undefined> {
  return callProcess(life, () => work(host));
}

/** The log of a run as plain text has it, so that no code of the product is needed to read it. */
export function readRun({ ledger }: Pick<WorkflowWorld, "ledger">, runId: string): WorkflowEvent[] {
  const texts = ledger.runs.get(runId as CoordinationId)?.events ?? [];
  return texts.map((text) => JSON.parse(text) as WorkflowEvent);
}

export interface Origin {
  readonly sourceRunId: string;
  readonly mode: "branch" | "replay";
  /** The first event that is the fork's own. */
  readonly fromSeq: number;
}

/** Absent for a run that is no fork. */
export function readOrigin({ ledger }: Pick<WorkflowWorld, "ledger">, runId: string): Origin | undefined {
  const origin = ledger.runs.get(runId as CoordinationId)?.origin;
  return origin === undefined ? undefined : (JSON.parse(origin) as Origin);
}

const ENDS: ReadonlySet<string> = new Set(["run.completed", "run.failed", "run.cancelled"]);

export function isEnd({ type }: Pick<WorkflowEvent, "type">): boolean {
  return ENDS.has(type);
}

export function listOpenRuns(world: Pick<WorkflowWorld, "ledger">): string[] {
  return [...world.ledger.runs.keys()].filter((runId) => !readRun(world, runId).some(isEnd));
}

export interface OpenQuestion {
  readonly runId: string;
  readonly nodeId: string;
  readonly interruptId: string;
  readonly kind: string;
  /** Absent where it waits for as long as it takes. */
  deadlineAtMs?: number;
}

/** By the log alone: what was asked and has neither been answered nor ended with its node or its run. */
export function listQuestions(world: Pick<WorkflowWorld, "ledger">): OpenQuestion[] {
  return listOpenRuns(world).flatMap((runId) => {
    const open = new Map<string, OpenQuestion>();
    for (const event of readRun(world, runId)) {
      if (event.type === "node.suspended") {
        const { nodeId, interruptId, kind } = event.payload;
        open.set(interruptId, { runId, nodeId, interruptId, kind });
      }
      if (event.type === "interrupt.requested") noteDeadline(open, event);
      if (event.type === "interrupt.resolved") open.delete(event.payload.interruptId);
      if (NODE_ENDS.has(event.type) && "nodeId" in event.payload)
        for (const [id, question] of open) if (question.nodeId === event.payload.nodeId) open.delete(id);
    }
    return [...open.values()];
  });
}

/** The time of a question is told right behind that its node is suspended. */
function noteDeadline(
  open: ReadonlyMap<string, OpenQuestion>,
  { nodeId, timestamp, payload: { timeoutMs = 0 } }: Extract<WorkflowEvent, { type: "interrupt.requested" }>,
): void {
  const question = [...open.values()].findLast((each) => each.nodeId === nodeId);
  if (question && timeoutMs > 0) question.deadlineAtMs = Date.parse(timestamp) + timeoutMs;
}

const NODE_ENDS: ReadonlySet<string> = new Set([
  "node.completed",
  "node.failed",
  "node.cancelled",
  "node.skipped",
]);
