/** Owns: workflows that fast-check makes up, and a world that answers their effects in an order of its own. */
import fc from "fast-check";
import { NODE_PLAY } from "../../src/plugins/openwop/conformance/node-play.ts";
import {
  type CoordinationId,
  type EpochMs,
  createEventId,
  formatTimestamp,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import type {
  WorkflowDraft,
  WorkflowEvent,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import {
  answerInterrupt,
  SUBRUN_ARTIFACT,
} from "../../src/agents/coordination/workflow/state/answer-interrupt.ts";
import { draftEffectOutcome } from "../../src/agents/coordination/workflow/workflow-commands.ts";
import { evolveWorkflow } from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import { compileWorkflow } from "../../src/agents/coordination/workflow/state/graph.ts";
import type { NodeGraph } from "../../src/agents/coordination/workflow/state/node-graph.ts";
import type {
  EffectOutcome,
  NodeEffect,
  WorkflowSettings,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { advanceRun, type RunProgress } from "../../src/agents/coordination/workflow/advance-run.ts";
import {
  isEndedPhase,
  type WorkflowRun,
} from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { START_MS } from "./fake-clock.ts";
import { createEdge, sendNextWorker, createNode, TERMINATE, createWorkflow } from "./workflow-definitions.ts";

const RULES = ["all_success", "any_success", "all_complete", "none_failed", "any_failed"] as const;

const body = fc.constantFrom<readonly [string, Readonly<Record<string, unknown>>]>(
  ["core.noop", {}],
  ["core.identity", {}],
  ["core.delay", { delayMs: 40 }],
  ["core.delay", { delayMs: 5 }],
  ["core.fail", {}],
  ["core.approvalGate", { timeoutMs: 60 }],
  ["core.clarificationGate", {}],
  ["core.subWorkflow", { workflowId: "child", onChildFailure: "absorb", outputMapping: { v: "result" } }],
  ["core.subWorkflow", { workflowId: "child" }],
  ["openclaw.memory.write", { content: "x" }],
  ["core.ai.callPrompt", { prompt: "?" }],
);

interface Shape {
  readonly bodies: readonly (readonly [string, Readonly<Record<string, unknown>>])[];
  readonly forward: readonly {
    readonly from: number;
    readonly to: number;
    readonly rule: string;
    readonly isLeft: boolean;
  }[];
  readonly back: readonly { readonly from: number; readonly to: number; readonly rule: string }[];
  readonly retries: number;
  readonly loopbacks: number;
}

function definitionOf({ bodies, forward, back, retries, loopbacks }: Shape): WorkflowDefinition {
  const ids = bodies.map((_, index) => `n${index}`);
  const drawArrow = (from: number, to: number): string => `${ids[from] ?? ""}>${ids[to] ?? ""}`;
  const edges = new Map<string, Readonly<Record<string, unknown>>>();
  for (const { from, to, rule, isLeft } of forward) {
    const [low, high] = [Math.min(from, to) % ids.length, Math.max(from, to) % ids.length];
    if (low >= high) continue;
    const left = { condition: { type: "equals", left: "nothing", right: 1 } };
    edges.set(
      drawArrow(low, high),
      createEdge(drawArrow(low, high), { triggerRule: rule, ...(isLeft && left) }),
    );
  }
  for (const { from, to, rule } of back) {
    const [low, high] = [Math.min(from, to) % ids.length, Math.max(from, to) % ids.length];
    if (low <= high) edges.set(drawArrow(high, low), createEdge(drawArrow(high, low), { triggerRule: rule }));
  }
  return createWorkflow("made-up", {
    nodes: bodies.map(([typeId, config], index) => createNode(`n${index}`, typeId, config)),
    edges: [...edges.values()],
    settings: { maxRetries: retries, maxLoopbackIterations: loopbacks },
  });
}

const place = fc.nat({ max: 6 });
const rule = fc.constantFrom(...RULES);

/** Graphs, with edges that close loops where `loops` says so. */
export function createWorkflows({ loops }: { readonly loops: boolean }): fc.Arbitrary<WorkflowDefinition> {
  return fc
    .record({
      bodies: fc.array(body, { minLength: 1, maxLength: 7 }),
      forward: fc.array(fc.record({ from: place, to: place, rule, isLeft: fc.boolean() }), { maxLength: 10 }),
      back: loops
        ? fc.array(fc.record({ from: place, to: place, rule }), { minLength: 1, maxLength: 2 })
        : fc.constant([]),
      retries: fc.nat({ max: 2 }),
      loopbacks: fc.integer({ min: 1, max: 3 }),
    })
    .map(definitionOf);
}

const decision = fc.oneof(
  fc
    .record({
      workers: fc.array(fc.constantFrom("a", "b"), { minLength: 1, maxLength: 3 }),
      confidence: fc.option(fc.constantFrom(0.1, 0.49, 0.5, 0.9), { nil: undefined }),
    })
    .map(({ workers, confidence }) => ({
      ...sendNextWorker(...workers),
      ...(confidence !== undefined && { confidence }),
    })),
  fc.constant({ kind: "ask-user", prompt: "?" }),
  fc.constant({ ...TERMINATE, confidence: 0.2 }),
);

export const supervisedWorkflows: fc.Arbitrary<WorkflowDefinition> = fc
  .record({ plan: fc.array(decision, { maxLength: 4 }), isMapped: fc.boolean(), hasOther: fc.boolean() })
  .map(({ plan, isMapped, hasOther }) =>
    createWorkflow("made-up", {
      nodes: [
        createNode("s", "core.orchestrator.supervisor", { mockDispatchPlan: plan }),
        createNode("d", "core.dispatch", isMapped ? { outputMapping: { v: "result" } } : {}),
        ...(hasOther ? [createNode("other", "core.delay", { delayMs: 30 })] : []),
      ],
      edges: [createEdge("s>d"), createEdge("d>s")],
    }),
  );

export const PLAY_SETTINGS: WorkflowSettings = {
  hostId: "h",
  confidenceFloor: 0.5,
  escalationThreshold: 0.7,
  nodeExecutionsMax: 60,
  loopIterationsMax: 20,
  runDurationMsMax: 600_000,
  play: NODE_PLAY,
};

const DEADLINE_MS = START_MS + PLAY_SETTINGS.runDurationMsMax;

/** A workflow run that was played to its end, with its graph and its log. */
export interface PlayedRun {
  readonly graph: NodeGraph;
  readonly run: WorkflowRun;
  readonly events: readonly WorkflowEvent[];
}

export type OnProgress = (planned: RunProgress, world: World) => void;

export interface World {
  readonly graph: NodeGraph;
  readonly events: readonly WorkflowEvent[];
  readonly now: EpochMs;
}

interface Play {
  readonly onProgress?: OnProgress;
  /** Work that has begun is always let end before the run's time is over. */
  readonly patient?: boolean;
}

/** Plays a run to its end. `picks` says what happens next where several things may; what each leads to it does not say. */
export function playOut(
  definition: WorkflowDefinition,
  picks: readonly number[],
  { onProgress, patient = false }: Play = {},
): PlayedRun {
  const compiled = compileWorkflow(definition, "0".repeat(64));
  if (!compiled.ok) throw new Error(compiled.problems.join());
  const { graph } = compiled;
  const first = createStartedEvent();
  const events: WorkflowEvent[] = [first];
  let now = START_MS as EpochMs;
  let planned = step(evolveWorkflow(undefined, first), []);
  for (let turn = 0; !isEndedPhase(planned.run.phase); turn += 1) {
    if (turn > 2_000) throw new Error("the run does not end");
    const next = listChoices(planned);
    const chosen = next[(picks[turn % picks.length] ?? 0) % next.length];
    if (!chosen) throw new Error("nothing can happen any more, and the run has not ended");
    const { drafts, atMs } = chosen(now);
    now = Math.max(now, atMs) as EpochMs;
    planned = step(planned.run, drafts(planned.run, now));
  }
  return { graph, run: planned.run, events };

  function step(run: WorkflowRun, drafts: readonly WorkflowDraft[]): RunProgress {
    const result = advanceRun(run, { graph, settings: PLAY_SETTINGS, now }, drafts);
    events.push(...result.events);
    onProgress?.(result, { graph, events, now });
    return result;
  }

  function listChoices({ run, effects, wakeAtMs }: RunProgress): Choice[] {
    const createContext = (at: EpochMs) => ({ graph, settings: PLAY_SETTINGS, now: at });
    return [
      ...effects.map((effect): Choice => (at) => ({
        atMs: at,
        drafts: (state, when) =>
          draftEffectOutcome(state, createContext(when), { effect, outcome: outcomeOf(effect) }),
      })),
      ...listAnswers(run),
      ...(wakeAtMs === undefined || (patient && wakeAtMs >= DEADLINE_MS)
        ? []
        : [(): TimedDrafts => ({ atMs: wakeAtMs, drafts: () => [] })]),
    ];
  }
}

interface TimedDrafts {
  readonly atMs: EpochMs;
  readonly drafts: (run: WorkflowRun, now: EpochMs) => readonly WorkflowDraft[];
}
type Choice = (now: EpochMs) => TimedDrafts;

function createStartedEvent(): WorkflowEvent {
  const runId = "run-made-up" as CoordinationId;
  return {
    eventId: createEventId(runId, 0),
    runId,
    sequence: 0,
    type: "run.started",
    timestamp: formatTimestamp(START_MS as EpochMs),
    payload: {
      workflowId: "made-up",
      inputs: {},
      transport: "rest",
      definition: "0".repeat(64),
      memoryScope: runId,
      owner: { tenant: "t", principal: "p" },
    },
  };
}

/** The same for the same effect, whenever it comes. */
function outcomeOf(effect: NodeEffect): EffectOutcome {
  // A worker that is sent back does its work.
  const isOdd = effect.id.length % 2 === 1 && !effect.id.includes(":r");
  switch (effect.kind) {
    case "run_child":
      if (effect.childRunId === undefined) return { kind: "child_created", childRunId: `child-${effect.id}` };
      return isOdd || effect.workflowId === "b"
        ? { kind: "child_ended", status: "failed", variables: {}, error: { code: "odd", message: "why" } }
        : { kind: "child_ended", status: "completed", variables: { result: effect.id } };
    case "read_memory":
      return { kind: "memory_read", entries: [[]] };
    case "ask_model":
      return { kind: "model_answered", text: "said", model: "m", usage: {} };
    case "judge_child":
      return judgeChild(effect);
    case "cause_side_effect":
      return { kind: "side_effect_caused", effectId: effect.id };
    case "call_tool":
    case "send_message":
      return { kind: "tool_answered", ok: true, text: "", content: null };
    default:
      return {
        kind: "failed",
        error: { code: "not_here", message: "no node of these workflows asks for it" },
      };
  }
}

/** A checked result says who made it. */
export const CONTENT = "content of ";

/** Each child is judged otherwise than the one before it. */
function judgeChild({
  attempt,
  childRunId,
  isAttested,
}: NodeEffect & { kind: "judge_child" }): EffectOutcome {
  const verdict = (["pass", "revise", "fail", "pass"] as const)[attempt % 4] ?? "pass";
  const isMissing = attempt % 5 === 3;
  return {
    kind: "child_judged",
    isSelf: attempt % 7 === 6,
    ...(attempt % 9 !== 8 && { variables: { result: `${CONTENT}${childRunId}` } }),
    ...(isAttested && { attestation: { checksum: "c".repeat(64), algorithm: "sha256" } }),
    ...(attempt % 6 === 5 && { actor: { agentId: "actor", confidence: 0.2 } }),
    judgements: isMissing
      ? [{ kind: "none", because: "timed_out" }]
      : [{ kind: "verdict", verdict, criteria: ["k"], confidence: attempt % 4 === 3 ? 0.3 : 0.8 }],
  };
}

const ANSWERS: Readonly<Record<string, unknown>> = { clarification: { answers: { q1: "x" } } };

function listAnswers(run: WorkflowRun): Choice[] {
  return [...run.nodes.values()].flatMap((nodeRun) => {
    const { interrupt } = nodeRun;
    if (!interrupt) return [];
    // Every third time somebody says no.
    const action = nodeRun.interrupts % 3 === 2 ? "reject" : "accept";
    const isEdited = interrupt.data["artifactType"] === SUBRUN_ARTIFACT && nodeRun.interrupts % 3 === 0;
    const value =
      ANSWERS[interrupt.kind] ??
      (isEdited ? { action: "edit-accept", editedArtifactData: { result: "edited" } } : { action });
    const answered = answerInterrupt({ node: nodeRun, interrupt, value, by: "p" });
    return answered.ok ? [(now: EpochMs): TimedDrafts => ({ atMs: now, drafts: () => answered.drafts })] : [];
  });
}
