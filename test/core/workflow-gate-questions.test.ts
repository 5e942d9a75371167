/** Owns: why and how people are asked whether a child's outputs are merged, and the limit of a supervisor's loop. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { ChildGate } from "../../src/agents/coordination/contracts/workflows/child-gate-config.ts";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import {
  draftMergeQuestion,
  listMergeHolds,
  type HoldReason,
  type HoldReasons,
} from "../../src/agents/coordination/workflow/nodes/gate-question.ts";
import type {
  ChildJudgedOutcome,
  ChildRuling,
} from "../../src/agents/coordination/workflow/nodes/gate-ruling.ts";
import { draftExceededLoopLimit } from "../../src/agents/coordination/workflow/nodes/loop-limit.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import type { RecordedVerdict } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import {
  createAttestation,
  createHandoff,
  createJudged,
  createVerifier,
  createView,
  REPLAY_ORIGIN,
  type Scene,
} from "./workflow-node-view-scene.ts";
import { createNodeRun, RUN, withNodes } from "./workflow-view-scene.ts";

describe("the reasons to ask people before outputs are merged", () => {
  const UNASKED: ChildRuling = { kind: "unasked" };

  function listHolds(
    gate: ChildGate,
    ruling: ChildRuling,
    judged: Partial<ChildJudgedOutcome> = {},
  ): HoldReason[] {
    return listMergeHolds(createView(), { gate, ruling, judged: createJudged(judged) });
  }

  function createRuling(verdict: RecordedVerdict["verdict"], confidence?: number): ChildRuling {
    const stated = confidence === undefined ? {} : { confidence };
    return { kind: "verdict", verdict: { agentId: "acme.critic", verdict, ...stated } };
  }

  it("are none where nobody was to be asked", () => {
    expect(listHolds({}, UNASKED)).toEqual([]);
    expect(listHolds({ attestation: createAttestation() }, UNASKED)).toEqual([]);
  });

  it("are several where several apply, in their order", () => {
    const attestation = createAttestation({ requireApproval: true });
    const judged: ChildJudgedOutcome = { kind: "child_judged", isSelf: false, judgements: [] };
    const ruling: ChildRuling = { kind: "missing", because: "timed_out" };
    expect(listMergeHolds(createView(), { gate: { attestation }, ruling, judged })).toStrictEqual([
      { kind: "output-unavailable" },
      { kind: "verification-missing", because: "timed_out" },
      { kind: "approval-required" },
    ]);
  });

  it("are revisions that are used up, and none for another verdict", () => {
    const gate = { verifier: createVerifier() };
    expect(listHolds(gate, createRuling("revise"))).toStrictEqual([{ kind: "revisions-exhausted" }]);
    expect(listHolds(gate, createRuling("pass"))).toEqual([]);
  });

  it("are a verdict below the floor, and not one at the floor", () => {
    const gate = { verifier: createVerifier() };
    expect(listHolds(gate, createRuling("pass", 0.49))).toStrictEqual([
      { kind: "confidence-below-floor", confidence: 0.49, agentId: "acme.critic" },
    ]);
    expect(listHolds(gate, createRuling("pass", 0.5))).toEqual([]);
  });

  it("are the doubts of the agent that did the work, where a verifier was asked", () => {
    const actor = { agentId: "acme.writer", confidence: 0.2 };
    expect(listHolds({ verifier: createVerifier() }, createRuling("pass"), { actor })).toStrictEqual([
      { kind: "confidence-below-floor", confidence: 0.2, agentId: "acme.writer" },
    ]);
    expect(listHolds({}, createRuling("pass"), { actor })).toEqual([]);
  });
});

describe("the question whether outputs are merged", () => {
  const CAUSE = createEventId(RUN, 7);

  interface Question extends Scene {
    readonly gate?: ChildGate;
    readonly holds?: HoldReasons;
    readonly judged?: Partial<ChildJudgedOutcome>;
    readonly outputMapping?: Readonly<Record<string, string>>;
  }

  function draftQuestion(question: Question = {}): WorkflowDraft[] {
    const { gate = {}, holds = [{ kind: "approval-required" }], judged, outputMapping = {} } = question;
    return draftMergeQuestion(createView(question), createHandoff({ childRunId: "child-1" }), {
      gate,
      holds,
      outputMapping,
      judged: createJudged(judged),
      cause: CAUSE,
    });
  }

  /** Returns what is asked, with how long an answer is waited for. */
  function readQuestion(question: Question): Values {
    const requested = draftQuestion(question).find(({ type }) => type === "interrupt.requested");
    return requested?.payload ?? {};
  }

  const DOUBT: HoldReason = { kind: "confidence-below-floor", confidence: 0.4, agentId: "acme.critic" };
  const LARGER_DOUBT: HoldReason = {
    kind: "confidence-below-floor",
    confidence: 0.3,
    agentId: "acme.writer",
  };

  it("is an approval, asked by the node of the worker's outputs", () => {
    expect(draftQuestion({ judged: { variables: { result: "text" } } })).toStrictEqual([
      {
        type: "node.suspended",
        nodeId: "a",
        payload: {
          nodeId: "a",
          interruptId: "a~1",
          kind: "approval",
          key: "run-1:a~1",
          reason: "approval-required",
        },
      },
      {
        type: "interrupt.requested",
        nodeId: "a",
        payload: {
          kind: "approval",
          key: "run-1:a~1",
          data: {
            artifactId: "child-1",
            artifactType: "subrun-output",
            title: "Merge what writer produced?",
            description: "It is merged only with approval.",
            artifactData: { result: "text" },
            actions: ["accept", "reject", "edit-accept"],
          },
        },
      },
    ]);
  });

  it("names the largest doubt, which is on record before it", () => {
    const holds: HoldReasons = [{ kind: "revisions-exhausted" }, DOUBT, LARGER_DOUBT];
    const [escalated, suspended] = draftQuestion({ holds, run: { origin: REPLAY_ORIGIN } });
    expect(escalated).toStrictEqual({
      type: "core.workflowChain.confidence-escalated",
      nodeId: "a",
      causationId: CAUSE,
      payload: {
        confidence: 0.3,
        floor: 0.5,
        escalationKind: "escalate",
        workerId: "writer",
        parentRunId: "source-1",
      },
    });
    expect(suspended).toMatchObject({
      type: "node.suspended",
      payload: { reason: "revisions-exhausted", agentId: "acme.writer", threshold: 0.5, observed: 0.3 },
    });
  });

  it.each<[hold: HoldReason, description: string]>([
    [{ kind: "verification-missing", because: "timed_out" }, "There is no verdict on it (timed_out)."],
    [DOUBT, "The confidence of acme.critic is 0.4, below 0.5."],
    [
      { kind: "revisions-exhausted" },
      "It was sent back as often as it may be, and is still not what it should be.",
    ],
    [{ kind: "output-unavailable" }, "What it produced cannot be read any more."],
    [{ kind: "approval-required" }, "It is merged only with approval."],
  ])("says why it is asked: $kind", (hold, description) => {
    expect(readQuestion({ holds: [hold] })).toMatchObject({ data: { description } });
  });

  it("says every reason for which it is asked", () => {
    const holds: HoldReasons = [{ kind: "output-unavailable" }, { kind: "approval-required" }];
    expect(readQuestion({ holds })).toMatchObject({
      data: {
        description: "What it produced cannot be read any more. It is merged only with approval.",
      },
    });
  });

  it.each<[title: string, gate: ChildGate, timeoutMs: number | undefined]>([
    ["for ever where the gate does not say", { verifier: createVerifier() }, undefined],
    ["as long as the verifier says", { verifier: createVerifier({ approvalTimeoutMs: 5 }) }, 5],
    ["as long as the attestation says", { attestation: createAttestation({ approvalTimeoutMs: 7 }) }, 7],
    [
      "as long as the one says that is shorter",
      {
        verifier: createVerifier({ approvalTimeoutMs: 9 }),
        attestation: createAttestation({ approvalTimeoutMs: 7 }),
      },
      7,
    ],
  ])("waits %s", (_title, gate, timeoutMs) => {
    expect(readQuestion({ gate })["timeoutMs"]).toBe(timeoutMs);
  });

  it("can only be refused or answered with other outputs where none can be read", () => {
    const judged: ChildJudgedOutcome = { kind: "child_judged", isSelf: false, judgements: [] };
    const drafts = draftMergeQuestion(createView(), createHandoff(), {
      gate: {},
      holds: [{ kind: "output-unavailable" }],
      outputMapping: {},
      judged,
      cause: CAUSE,
    });
    expect(drafts.at(-1)?.payload).toMatchObject({
      data: { artifactId: "", actions: ["reject", "edit-accept"] },
    });
    expect(JSON.stringify(drafts)).not.toContain("artifactData");
  });

  it("has the checksum of the outputs where there is one", () => {
    const attestation = { checksum: "0".repeat(64), algorithm: "sha256" } as const;
    expect(readQuestion({ judged: { attestation } })).toMatchObject({ data: { attestation } });
  });

  it("shows no sensitive output that would not be merged", () => {
    const judged = { variables: { key: "k", token: "t", note: "n" }, sensitive: ["key", "token"] };
    expect(readQuestion({ judged, outputMapping: { token: "key" } })).toHaveProperty("data.artifactData", {
      key: "k",
      note: "n",
    });
  });

  it("shows only what would be merged where the outputs are more than half of an event", () => {
    const outputMapping = { mine: "result" };
    const createLong = (length: number): Values => ({ result: "r", long: "x".repeat(length) });
    const rest = JSON.stringify(createLong(0)).length;
    const whole = createLong(600_000 - rest);
    expect(readQuestion({ judged: { variables: whole }, outputMapping })).toHaveProperty(
      "data.artifactData",
      whole,
    );
    const larger = createLong(600_001 - rest);
    expect(readQuestion({ judged: { variables: larger }, outputMapping })).toHaveProperty(
      "data.artifactData",
      { result: "r" },
    );
  });
});

describe("the limit of a supervisor's loop", () => {
  function draftTurn(decided: number, maxLoopIterations?: unknown, scene: Scene = {}) {
    const orchestrator = { decided, revisions: 2 };
    const started = maxLoopIterations === undefined ? {} : { configurable: { maxLoopIterations } };
    const run = { orchestrator, ...scene.run };
    return draftExceededLoopLimit(createView({ settings: { loopIterationsMax: 10 }, started, run }));
  }

  it.each<[title: string, requested: unknown, limit: number]>([
    ["the host's where the caller asks for none", undefined, 10],
    ["the caller's where that is lower", 5, 5],
    ["the host's where the caller's is higher", 11, 10],
    ["whole turns of the caller's", 5.9, 5],
    ["the host's where the caller's is less than a turn", 0.9, 10],
    ["the host's where the caller's is no number", "5", 10],
  ])("is %s", (_title, requested, limit) => {
    // Two times a worker was sent back, and the turn that is to be taken.
    expect(draftTurn(limit - 3, requested)).toBeUndefined();
    expect(draftTurn(limit - 2, requested)?.[0]?.payload).toMatchObject({ limit, observed: limit + 1 });
  });

  it("may be a single turn", () => {
    const view = createView({ started: { configurable: { maxLoopIterations: 1 } } });
    expect(draftExceededLoopLimit(view)).toBeUndefined();
    expect(draftTurn(0, 1)?.[0]?.payload).toMatchObject({ limit: 1, observed: 3 });
  });

  it("ends the run and all that is at work in it, the node itself as failed", () => {
    const nodes = withNodes(createNodeRun("a", "running"), createNodeRun("b", "suspended"));
    const error = { code: "loop_limit_exceeded", message: "turn 11 of the loop is over the limit of 10" };
    expect(draftTurn(8, undefined, { run: nodes })).toStrictEqual([
      {
        type: "cap.breached",
        nodeId: "a",
        payload: { kind: "loop-iterations", limit: 10, observed: 11, nodeId: "a" },
      },
      { type: "node.failed", nodeId: "a", payload: { nodeId: "a", error } },
      { type: "node.cancelled", nodeId: "b", payload: { nodeId: "b", reason: error.message } },
      { type: "run.failed", payload: { error, failedNodeId: "a" } },
    ]);
  });
});
