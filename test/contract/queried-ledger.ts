/** Owns: ledgers of any size to be queried: coordinations of several sessions, agents and times, and what each has. */
import type {
  AgentId,
  CoordinationId,
  EpochMs,
  SessionKey,
  StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { AppendRequest, LedgerStore } from "../../src/agents/coordination/ports/ledger-store.ts";
import { createAuthor, nameChildSession, openingOf, runIdOf, spawnOf } from "../support/ledger-fixtures.ts";
import { TEST_EPOCH_MS } from "../support/temp-ledger.ts";

export const LEDGER = "ledger.sqlite";

interface QueriedStep {
  readonly stepId: string;
  readonly session: SessionKey;
  readonly agent: AgentId;
  readonly child: SessionKey;
}

export interface QueriedRun {
  readonly runId: CoordinationId;
  readonly traceId: string;
  readonly session: SessionKey;
  readonly agent: AgentId;
  readonly steps: readonly QueriedStep[];
  /** The coordinations that it followed from. */
  readonly causes: readonly CoordinationId[];
  readonly startedAtMs: number;
  readonly hasEnded: boolean;
  readonly events: readonly RunEvent[];
}

const SESSIONS = 5;
const AGENTS = 3;
const APPENDS_UNDER_WAY = 200;

/** Three coordinations in a row have one trace. */
export const nameTrace = (run: number): string => `trace-${Math.floor(run / 3)}`;
export const nameSession = (run: number): SessionKey => `agent:main:direct:${run % SESSIONS}` as SessionKey;
export const nameAgent = (run: number): AgentId => `agent-${run % AGENTS}` as AgentId;
export const nameChild = (run: number, step: string): SessionKey => nameChildSession(`${run}-${step}`);
/** When a coordination is appended: every second one, and each ends an hour after it was opened. */
export const timeAppended = (run: number): EpochMs => (TEST_EPOCH_MS + run * 1_000) as EpochMs;
const HOUR_MS = 3_600_000;

interface PreparedRun {
  readonly run: QueriedRun;
  readonly requests: readonly AppendRequest[];
}

/** Appends so many coordinations, and returns what is in them. */
export async function fillQueried(store: LedgerStore, runs: number): Promise<QueriedRun[]> {
  const filled: QueriedRun[] = [];
  for (let number = 0; number < runs; number += 1) {
    const { run, requests } = prepareRun(number);
    for (const request of requests) await store.append(request);
    filled.push(run);
  }
  return filled;
}

/** Appends coordinations from a number on until there are so many events; returns the next number. */
export async function growQueried(
  store: LedgerStore,
  { from, events }: { readonly from: number; readonly events: number },
): Promise<number> {
  let number = from;
  for (let left = events; left > 0;) {
    const requests: AppendRequest[] = [];
    while (left > 0 && requests.length < APPENDS_UNDER_WAY) {
      const [begin, end] = prepareRun(number).requests;
      if (!begin || !end) break;
      const all = { ...end, events: [...begin.events, ...end.events] };
      requests.push({ ...all, references: [...begin.references, ...end.references] });
      left -= all.events.length;
      number += 1;
    }
    await Promise.all(requests.map((request) => store.append(request)));
  }
  return number;
}

function prepareRun(number: number): PreparedRun {
  const session = nameSession(number);
  const agent = nameAgent(number);
  const causes = number % 3 === 0 ? [] : [runIdOf(number - 1)];
  const [causalRef] = causes;
  const steps = [
    { stepId: "step-1", session, agent, child: nameChild(number, "step-1") },
    // The child of the first step spawns the second one.
    {
      stepId: "step-2",
      session: nameChild(number, "step-1"),
      agent: "worker" as AgentId,
      child: nameChild(number, "step-2"),
    },
  ];
  const writer = createAuthor(number);
  const opening = openingOf(nameTrace(number), session) as Extract<Command, { type: "openCoordination" }>;
  const open: Command = {
    ...opening,
    ownerAgent: agent,
    trace: { ...opening.trace, ...(causalRef && { causalRef }) },
  };
  const begin = steps.flatMap((step) => beginStep(step));
  const hasEnded = number % 4 !== 0;
  const startedAtMs = timeAppended(number);
  const requests = [
    moveTo(writer.append(open, ...begin), startedAtMs, startedAtMs),
    moveTo(writer.append(...endSteps(steps, hasEnded)), startedAtMs + HOUR_MS, startedAtMs),
  ];
  const events = requests.flatMap((request) => request.events);
  const { runId } = writer;
  const traceId = nameTrace(number);
  return { run: { runId, traceId, session, agent, steps, causes, startedAtMs, hasEnded, events }, requests };
}

function beginStep({ stepId, session, agent, child }: QueriedStep): Command[] {
  return [
    { ...spawnOf(`call-${stepId}`), sourceSession: session, agentId: agent } as Command,
    {
      type: "acknowledgeStep",
      stepId: stepId as StepId,
      attempt: 1,
      childSessionKey: child,
      childRunId: `run-of-${stepId}`,
      via: "hook",
    },
  ];
}

function endSteps(steps: readonly QueriedStep[], hasEnded: boolean): Command[] {
  const ended = hasEnded ? steps : steps.slice(1);
  const completions = ended.map(({ stepId }): Command => ({
    type: "completeStep",
    stepId: stepId as StepId,
    attempt: 1,
    via: "hook",
  }));
  return hasEnded ? [...completions, { type: "settleCoordination" }] : completions;
}

function moveTo(
  { events, summary, ...request }: AppendRequest,
  atMs: number,
  startedAtMs: number,
): AppendRequest {
  const timestamp = new Date(atMs).toISOString();
  return {
    ...request,
    events: events.map((event) => ({ ...event, timestamp })),
    summary: { ...summary, createdAtMs: startedAtMs as EpochMs },
  };
}
