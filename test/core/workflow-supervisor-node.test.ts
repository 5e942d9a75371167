/** Owns: the turns of a supervisor as a node: who decides, which decision waits for people, and how it is carried out. */
import { describe, expect, it } from "vitest";
import { addMs, createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { OrchestratorDecision } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { NodePlay, NodeStep } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { supervisor } from "../../src/agents/coordination/workflow/nodes/supervisor.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import type {
  InterruptAnswer,
  Interrupt,
  OrchestratorState,
} from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { createPlay, createView, REPLAY_ORIGIN, type Scene } from "./workflow-node-view-scene.ts";
import { NOW, RUN } from "./workflow-view-scene.ts";

const MODEL: Values = { model: "large" };
const SEND: OrchestratorDecision = { kind: "next-worker", nextWorkerIds: ["writer", "editor"] };
const DOUBTED: OrchestratorDecision = { ...SEND, confidence: 0.4 };
const END: OrchestratorDecision = { kind: "terminate", reason: "all is there" };
const MODELLESS =
  "node a is a supervisor without a model to decide: give it config.prompt, config.systemPrompt or config.model";

const step = (scene: Scene = {}): NodeStep => supervisor.step(createView(scene));
const withPlay = (change: Partial<NodePlay> = {}): Pick<Scene, "settings"> => ({
  settings: { play: createPlay(change) },
});
/** A script decides. */
const withTurn = (decision: OrchestratorDecision) =>
  withPlay({ playTurn: () => ({ kind: "decided", decision }) });
const withOrchestrator = (change: Partial<OrchestratorState>): NonNullable<Scene["run"]> => ({
  orchestrator: { decided: 0, revisions: 0, ...change },
});
const withHeldDecision = (decision: OrchestratorDecision, sequence = 5): NonNullable<Scene["run"]> =>
  withOrchestrator({ decided: 2, held: [{ nodeId: "a", decision, sequence }] });

const createDecided = (decision: OrchestratorDecision, change: Values = {}) => ({
  type: "runOrchestrator.decided",
  nodeId: "a",
  payload: { agentId: "node:a", decision, iteration: 1, ...change },
});
const showSent = (decision: OrchestratorDecision, change: Values = {}) => ({
  kind: "complete",
  outputs: { decision },
  before: [createDecided(decision, change)],
});

describe("the configuration of a supervisor", () => {
  function check(config: Values, scene: Scene = {}) {
    const { node, graph, settings } = createView({ config, ...scene });
    return supervisor.check?.(node, graph, settings);
  }

  it("wants to say what a model is asked, unless scripts may decide", () => {
    expect(check({})).toStrictEqual([MODELLESS]);
    expect(check(MODEL)).toStrictEqual([]);
    expect(check({}, withPlay())).toStrictEqual([]);
  });
});

describe("who decides", () => {
  it("is the model that is configured", () => {
    for (const scene of [{ config: MODEL }, { config: MODEL, ...withPlay() }])
      expect(step(scene)).toMatchObject({ kind: "act", effect: { kind: "ask_model", id: "a:1:decide" } });
  });

  it("is the script where it has a turn", () => {
    expect(step({ config: MODEL, ...withTurn(SEND) })).toStrictEqual(showSent(SEND));
  });

  it("are the people whom the script asks first", () => {
    const wait: NodeStep = { kind: "wait" };
    expect(step(withPlay({ playTurn: () => ({ kind: "doubted", step: wait }) }))).toBe(wait);
  });

  it.each<[title: string, scene: Scene]>([
    ["there is no play", {}],
    ["the script has no turn", withPlay()],
  ])("is nobody without a model where %s: the node fails", (_title, scene) => {
    expect(step(scene)).toStrictEqual({
      kind: "fail",
      error: { code: "not_configured", message: MODELLESS },
    });
  });

  it("is nobody any more where the loop is over its limit: the run ends", () => {
    const play = createPlay({ playTurn: () => ({ kind: "decided", decision: SEND }) });
    const ended = step({
      config: MODEL,
      run: withOrchestrator({ decided: 3 }),
      settings: { play, loopIterationsMax: 3 },
    });
    expect(ended).toMatchObject({
      kind: "end",
      drafts: [
        { type: "cap.breached", payload: { kind: "loop-iterations", limit: 3, observed: 4 } },
        { type: "node.failed" },
        { type: "run.failed" },
      ],
    });
  });
});

describe("a decision", () => {
  it("is on record before a worker begins, as the next one of the agent that decided before", () => {
    const run = withOrchestrator({ agentId: "acme.boss", decided: 2 });
    const members = { agent: { agentId: "acme.other" } };
    expect(step({ run, members, ...withTurn(SEND) })).toStrictEqual(
      showSent(SEND, { agentId: "acme.boss", iteration: 3 }),
    );
  });

  it("is that of the node's agent where nobody decided before", () => {
    const members = { agent: { agentId: "acme.other" } };
    expect(step({ members, ...withTurn(SEND) })).toStrictEqual(showSent(SEND, { agentId: "acme.other" }));
  });

  it("to end comes behind the end of the node", () => {
    expect(step(withTurn(END))).toStrictEqual({
      kind: "complete",
      outputs: { decision: END },
      after: [createDecided(END)],
    });
  });

  it.each<[title: string, decision: OrchestratorDecision]>([
    ["that states no confidence", SEND],
    ["as sure as the floor", { ...SEND, confidence: 0.5 }],
    ["to ask the user", { kind: "ask-user", prompt: "why?" }],
  ])("%s is carried out", (_title, decision) => {
    expect(step(withTurn(decision))).toStrictEqual(showSent(decision));
  });

  it("to ask the user is carried out whatever the floor is", () => {
    const decision: OrchestratorDecision = { kind: "ask-user", prompt: "why?" };
    const { settings } = withTurn(decision);
    expect(step({ settings: { ...settings, confidenceFloor: 1 } })).toStrictEqual(showSent(decision));
  });
});

describe("a decision below the floor", () => {
  it("is on record as such, with the first worker that it names", () => {
    expect(step(withTurn(DOUBTED))).toStrictEqual({
      kind: "record",
      drafts: [
        {
          type: "core.workflowChain.confidence-escalated",
          nodeId: "a",
          payload: {
            confidence: 0.4,
            floor: 0.5,
            escalationKind: "escalate",
            parentRunId: RUN,
            workerId: "writer",
            originalDecision: DOUBTED,
          },
        },
      ],
    });
  });

  it("names no worker where it is to end, and the source's run in a replay", () => {
    const decision: OrchestratorDecision = { ...END, confidence: 0 };
    expect(step({ run: { origin: REPLAY_ORIGIN }, ...withTurn(decision) })).toStrictEqual({
      kind: "record",
      drafts: [
        {
          type: "core.workflowChain.confidence-escalated",
          nodeId: "a",
          payload: {
            confidence: 0,
            floor: 0.5,
            escalationKind: "escalate",
            parentRunId: "source-1",
            originalDecision: decision,
          },
        },
      ],
    });
  });

  it.each<[title: string, decision: OrchestratorDecision]>([
    ["Let writer, editor begin?", DOUBTED],
    ["Let the run end here?", { ...END, confidence: 0.4 }],
  ])("is put to people once it is on record: %s", (title, decision) => {
    expect(step({ config: MODEL, run: withHeldDecision(decision) })).toStrictEqual({
      kind: "suspend",
      interrupt: {
        kind: "approval",
        reason: "confidence-below-floor",
        data: {
          artifactId: `${RUN}:a:3`,
          artifactType: "orchestrator-decision",
          title,
          description: "The supervisor's confidence is 0.4, below 0.5.",
          artifactData: decision,
          actions: ["accept", "reject", "edit-accept"],
        },
      },
    });
  });

  it("is nothing to a turn that began behind it", () => {
    const nodeRun = { startedSequence: 5 };
    expect(step({ config: MODEL, nodeRun, run: withHeldDecision(DOUBTED, 5) })).toHaveProperty("kind", "act");
    expect(step({ config: MODEL, nodeRun, run: withHeldDecision(DOUBTED, 6) })).toHaveProperty(
      "kind",
      "suspend",
    );
  });

  it("waits as long as people have time to answer", () => {
    const interrupt: Interrupt = {
      interruptId: "a~1",
      kind: "approval",
      key: "k",
      atMs: NOW,
      eventId: createEventId(RUN, 6),
      data: {},
      timeoutMs: 5_000,
      votes: [],
    };
    const run = withHeldDecision(DOUBTED);
    expect(step({ run, nodeRun: { interrupt } })).toStrictEqual({ kind: "wait", atMs: addMs(NOW, 5_000) });
  });
});

describe("the answer of people to a decision that is held", () => {
  const createAnswer = (resumeValue: unknown): InterruptAnswer => ({
    interruptId: "a~1",
    kind: "approval",
    resumeValue,
    eventId: createEventId(RUN, 7),
    asked: { data: { artifactData: END }, reason: "confidence-below-floor" },
  });
  function answer(resumeValue: unknown, scene: Scene = { run: withHeldDecision(DOUBTED) }): NodeStep {
    return step({
      ...scene,
      nodeRun: { answers: [createAnswer({ action: "reject" }), createAnswer(resumeValue)] },
    });
  }
  const refuse = (message: string): NodeStep => ({
    kind: "fail",
    error: { code: "decision_rejected", message },
  });

  it("carries the decision out, though its confidence is what it was", () => {
    expect(answer({ action: "accept" })).toStrictEqual(showSent(DOUBTED, { iteration: 3 }));
  });

  it("carries out what people put in its place", () => {
    const editedArtifactData: OrchestratorDecision = { kind: "next-worker", nextWorkerIds: ["painter"] };
    expect(answer({ action: "edit-accept", editedArtifactData })).toStrictEqual(
      showSent(editedArtifactData, { iteration: 3 }),
    );
  });

  it("takes nothing in its place where people only accept", () => {
    expect(answer({ action: "accept", editedArtifactData: END })).toStrictEqual(
      showSent(DOUBTED, { iteration: 3 }),
    );
  });

  it.each<[title: string, resumeValue: unknown]>([
    ["a no", { action: "reject" }],
    ["no record", "accept"],
    ["nothing", null],
    ["an edit that is no decision", { action: "edit-accept", editedArtifactData: { kind: "dance" } }],
    ["an edit of nothing", { action: "edit-accept" }],
  ])("fails the node where it is %s", (_title, resumeValue) => {
    expect(answer(resumeValue)).toStrictEqual(refuse("the decision was not accepted"));
  });

  it("fails the node where nobody gave it in time", () => {
    expect(answer({ action: "timeout" })).toStrictEqual(refuse("nobody agreed to the decision in time"));
  });

  it("fails the node where no decision is held", () => {
    for (const scene of [{}, withPlay()])
      expect(answer({ action: "accept" }, scene)).toStrictEqual(refuse("the decision was not accepted"));
  });

  it("carries out what the script put to people, where none is held", () => {
    const scene = withPlay({ findDoubtedDecision: () => SEND });
    expect(answer({ action: "accept" }, scene)).toStrictEqual(showSent(SEND));
    expect(answer({ action: "accept" }, { ...scene, run: withHeldDecision(DOUBTED) })).toStrictEqual(
      showSent(DOUBTED, { iteration: 3 }),
    );
  });
});
