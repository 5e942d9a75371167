/** Owns: a ledger with questions to people in every situation, decided by the real core and stored in the real store. */
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type {
  AgentId,
  CoordinationId,
  EpochMs,
  SessionKey,
  StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { Finding, Gate } from "../../src/agents/coordination/contracts/verification.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import { recordFacts } from "../../src/agents/coordination/dispatch/record.ts";
import { listClaimChanges } from "../../src/agents/coordination/ledger/claim-changes.ts";
import type { Coordination } from "../../src/agents/coordination/ledger/state.ts";
import { listEventReferences, summarizeCoordination } from "../../src/agents/coordination/ledger/summary.ts";
import { createPlannedSteps } from "../../src/agents/coordination/plan/create-planned-steps.ts";
import type { ContentInput } from "../../src/agents/coordination/ports/content-store.ts";
import type { LedgerStore } from "../../src/agents/coordination/ports/ledger-store.ts";
import { readState } from "../../src/agents/coordination/runtime/log/read-state.ts";
import { graphOf, step } from "../core/plan-scene.ts";
import { nameChildSession, contentOf, openingOf, OWNER } from "../support/ledger-fixtures.ts";
import { createManualClock, openTestLedger, TEST_EPOCH_MS } from "../support/temp-ledger.ts";

export const SPAWNS = "co-1f0c7a52-9e4b-4d6f-8a21-5b3c9d7e0f14" as CoordinationId;
export const OTHERS = "co-9a3b0000-0000-4000-8000-000000000001" as CoordinationId;
export const REPORT = "plan-report" as CoordinationId;
export const STRANGER = "agent:other:main" as SessionKey;
export const NASTY = '\u001b[31mWhich\u202e one?\nerror INVALID: "approve --only"';
export const HELD_TEXT = "the answer is 42\n  $ openclaw coordination approve --only";
const HOUR_MS = 3_600_000;

/** A thing that is done to a coordination, at a time that counts from `TEST_EPOCH_MS`, with the texts that it names. */
export type RecordedCommand = readonly [atMs: number, command: Command, contents?: readonly ContentInput[]];

/** Goes on from what the log has already. */
export async function recordCommands(
  store: LedgerStore,
  runId: CoordinationId,
  sayings: readonly RecordedCommand[],
): Promise<void> {
  let state = await readState(store, runId);
  for (const [atMs, command, contents = []] of sayings) {
    const now = (TEST_EPOCH_MS + atMs) as EpochMs;
    const decision = decide(state, resolveTarget(state, command), now);
    const facts = decision.kind === "replay" ? undefined : decision.facts;
    if (!facts) throw new Error(`${command.type} at ${atMs} was ${JSON.stringify(decision)}`);
    const recorded = recordFacts(state, facts, now);
    state = recorded.state;
    if (state.kind === "unopened") throw new Error("the script does not open its coordination");
    const { events } = recorded;
    const references = events.flatMap(listEventReferences);
    const claims = events.flatMap(listClaimChanges);
    await store.append({
      runId,
      events,
      summary: summarizeCoordination(state),
      references,
      claims,
      contents,
    });
  }
}

/** Verdicts name the event that they are about, which a script cannot know. */
function resolveTarget(state: Coordination, command: Command): Command {
  if (command.type !== "recordFinding" && command.type !== "recordNoVerdict") return command;
  const phase = state.kind === "unopened" ? undefined : state.steps.get(command.stepId)?.phase;
  return phase?.status === "held" ? { ...command, target: phase.target } : command;
}

/** Notices go out at once by webhook and after ten minutes by chat. */
export function createOpening(traceId: string, session: SessionKey = OWNER): Command {
  const notify = [
    { channel: "webhook:ops", afterMs: 0 },
    { channel: "chat", afterMs: 600_000 },
  ];
  return { ...openingOf(traceId, session), questions: { answerMs: HOUR_MS, notify } } as Command;
}

export function spawn(name: string, gate: Gate, session: SessionKey = OWNER): Command {
  return {
    type: "admitSpawn",
    runner: "subagent",
    agentId: "main" as AgentId,
    collect: false,
    sourceSession: session,
    name,
    gate,
    input: contentOf(`task of ${name}`).ref,
    timeoutMs: 600_000,
    call: { toolCallId: `call-${name}` },
    child: { childSessionKey: nameChildSession(name), childRunId: `run-${name}` },
  };
}

/** The owner asks people, who may take so long. */
export function createAskedByOwner(
  atMs: number,
  { text, answerMs }: { readonly text: string; readonly answerMs: number },
): RecordedCommand {
  const content = contentOf(JSON.stringify({ question: text }));
  return [
    atMs,
    {
      type: "askPeople",
      askedBy: OWNER,
      kind: "clarification",
      question: content.ref,
      hasDefault: false,
      openMax: 1_000,
      answerMs,
    },
    [content],
  ];
}

const nameAttempt = (stepId: string, attempt = 1) => ({ stepId: stepId as StepId, attempt });

export function complete(stepId: string, confidence: number, text: string): RecordedCommand[1] {
  const stated = { confidence };
  return { type: "completeStep", ...nameAttempt(stepId), via: "hook", output: contentOf(text).ref, stated };
}

export function createFinding(stepId: string, attempt: number, found: Omit<Finding, "agentId">): Command {
  const target = "" as never;
  return {
    type: "recordFinding",
    ...nameAttempt(stepId, attempt),
    target,
    finding: { agentId: "agent:critic", ...found },
  };
}

export const ASKED = contentOf(
  JSON.stringify({ question: NASTY, options: ["staging", "production"], otherwise: "staging" }),
);

const THRESHOLD: Gate = { threshold: 7_000 };
const CHECKED: Gate = { threshold: 7_000, checks: ["facts", "style"], criticThreshold: 7_000 };

/** `draft` states too little (1), an agent asks (2), `review` has a check without a verdict (3), `old` was approved (4). */
const SPAWNED: readonly RecordedCommand[] = [
  [0, createOpening("trace-1"), [contentOf("objective of trace-1")]],
  [100, spawn("draft", THRESHOLD)],
  [200, spawn("review", CHECKED)],
  [300, spawn("old", THRESHOLD)],
  [10_000, complete("step-1", 3_100, HELD_TEXT), [contentOf(HELD_TEXT)]],
  [
    10_500,
    {
      type: "recordNotice",
      escalationId: "escalation-1",
      notice: 0,
      tries: 6,
      channel: "webhook:ops",
      outcome: "failed",
    },
  ],
  [
    20_000,
    {
      type: "askPeople",
      askedBy: nameChildSession("review"),
      stepId: "step-2" as StepId,
      kind: "clarification",
      question: ASKED.ref,
      hasDefault: true,
      openMax: 10,
      answerMs: 600_000,
    },
    [ASKED],
  ],
  [30_000, complete("step-2", 9_000, "reviewed"), [contentOf("reviewed")]],
  [
    31_000,
    createFinding("step-2", 1, { check: "facts", verdict: "pass", confidence: 9_500, criteria: ["sources"] }),
  ],
  [
    32_000,
    {
      type: "recordNoVerdict",
      ...nameAttempt("step-2"),
      target: "" as never,
      check: "style",
      because: "timed_out",
    },
  ],
  [40_000, complete("step-3", 5_000, "old news"), [contentOf("old news")]],
  [
    50_000,
    {
      type: "answerEscalation",
      escalationId: "escalation-4",
      answer: "approve",
      through: "chat",
      by: { kind: "person", id: "telegram:42" },
    },
  ],
];

/** One question, of another session. */
const OTHER: readonly RecordedCommand[] = [
  [60_000, createOpening("trace-2", STRANGER)],
  [60_100, spawn("far", THRESHOLD, STRANGER)],
  [61_000, complete("step-1", 6_999, "far away"), [contentOf("far away")]],
];

const graph = graphOf([step("write"), step("publish", ["write"])], { coordinationId: REPORT });

/** `write` was revised once and then let through, `publish` is doubted by its planner and denied; the plan gives up. */
const PLANNED: readonly RecordedCommand[] = [
  [
    100_000,
    {
      ...createOpening("trace-3"),
      origin: "plan",
      plan: {
        content: contentOf(JSON.stringify(graph)).ref,
        steps: 2,
        seed: "seed",
        escalateMs: HOUR_MS,
        successCriteria: [{ key: "published" }, { key: "written" }],
      },
    } as Command,
  ],
  [
    100_100,
    {
      type: "admitPlanSteps",
      steps: createPlannedSteps(graph, {
        ownerSession: OWNER,
        runnerOf: () => "subagent",
        refOf: (text) => contentOf(text).ref,
        gateStep: ({ stepId }) =>
          stepId === "write"
            ? { gate: { threshold: 7_000, checks: ["facts"], revisionsMax: 1 } }
            : { decision: { confidence: 4_000, floor: 5_000 } },
      }),
    },
  ],
  ...createAttempt(1, 101_000),
  [112_000, createFinding("write", 1, { check: "facts", verdict: "revise", criteria: ["sources"] })],
  ...createAttempt(2, 113_000),
  [124_000, createFinding("write", 2, { check: "facts", verdict: "pass" })],
  [
    130_000,
    {
      type: "answerEscalation",
      escalationId: "escalation-1",
      answer: "deny",
      through: "cli",
      by: { kind: "operator", id: "cli" },
    },
  ],
  [
    131_000,
    {
      type: "judgePlan",
      successCriteria: [
        { key: "published", met: false },
        { key: "written", met: true },
      ],
    },
  ],
];

/** Ten seconds of work on `write`. */
function createAttempt(number: number, atMs: number): RecordedCommand[] {
  const session = nameChildSession(`write-${number}`);
  const text = JSON.stringify({ text: `version ${number}` });
  const ended = { ...nameAttempt("write", number), via: "runner" as const };
  return [
    [atMs, { type: "dispatchStep", ...nameAttempt("write", number), targetSession: session }],
    [atMs, { type: "acknowledgeStep", ...ended, childSessionKey: session, childRunId: `run-${number}` }],
    [atMs + 10_000, { type: "completeStep", ...ended, output: contentOf(text).ref }, [contentOf(text)]],
  ];
}

export async function recordQuestions(path: string): Promise<void> {
  const store = await openTestLedger(path, { clock: createManualClock() });
  await recordCommands(store, SPAWNS, SPAWNED);
  await recordCommands(store, OTHERS, OTHER);
  await recordCommands(store, REPORT, PLANNED);
  await store.close();
}
