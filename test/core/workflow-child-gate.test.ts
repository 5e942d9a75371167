/** Owns: which gate stands behind a child run, what a node does at it, and what the node outputs about it. */
import { describe, expect, it } from "vitest";
import { createEventId, type CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { NodeStep } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import {
  createChildOutputs,
  draftHarvestEvent,
  readNodeGate,
  listGateProblems,
  stepGate,
  type GatePlace,
} from "../../src/agents/coordination/workflow/nodes/child-gate.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import type {
  InterruptAnswer,
  Handoff,
  RecordedVerdict,
} from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import {
  createHandoff,
  createPlay,
  createVerifier,
  createView,
  REPLAY_ORIGIN,
  type Scene,
} from "./workflow-node-view-scene.ts";
import { createAsking, NOW, RUN } from "./workflow-view-scene.ts";

const CHILD = "child-1" as CoordinationId;
const CHAIN = createEventId(RUN, 2);
const CHECKSUM = { checksum: "0".repeat(64), algorithm: "sha256" } as const;

const VERIFIED: Values = { verifier: { agentId: "acme.critic" } };
const APPROVED: Values = { outputAttestation: { requireApproval: true } };
const ATTESTED: Values = { outputAttestation: { checksum: true } };
/** A gate that asks for nothing. */
const IDLE: Values = { outputAttestation: {} };
const BROKEN: Values = { verifier: { agentId: 7 } };

function createVerdict(verdict: RecordedVerdict["verdict"]): RecordedVerdict {
  return { agentId: "acme.critic", verdict };
}

function createAnswer(resumeValue: unknown, data: Values = {}): InterruptAnswer {
  return {
    interruptId: "a~1",
    kind: "approval",
    resumeValue,
    eventId: createEventId(RUN, 5),
    asked: { data },
  };
}

describe("the gate of a node", () => {
  it("is what its configuration asks for, read once", () => {
    const { node } = createView({ config: VERIFIED });
    const gate = readNodeGate(node);
    expect(gate).toStrictEqual({ verifier: createVerifier() });
    expect(readNodeGate(node)).toBe(gate);
  });

  it("is none where the configuration asks for none", () => {
    const { node } = createView();
    expect(readNodeGate(node)).toBeUndefined();
    expect(readNodeGate(node)).toBeUndefined();
  });

  it("lets nothing through where it cannot be understood", () => {
    const { node } = createView({ config: BROKEN });
    const readGate = () => readNodeGate(node);
    expect(readGate).toThrow("the gate cannot be understood");
    expect(readGate).toThrow("the gate cannot be understood");
  });
});

describe("the problems of a gate", () => {
  function listProblems(scene: Scene): readonly string[] {
    const { node, graph, settings } = createView(scene);
    return listGateProblems(node, graph, settings);
  }

  const NAMELESS = { verifier: { agentId: "acme.critic", criteria: ["is it good?"] } };

  it("are none where there is no gate, or one that can be understood", () => {
    expect(listProblems({})).toEqual([]);
    expect(listProblems({ config: { ...VERIFIED, ...APPROVED } })).toEqual([]);
  });

  it("tell each member that cannot be understood", () => {
    const config = { ...BROKEN, outputAttestation: { checksum: "yes" } };
    expect(listProblems({ config })).toEqual([
      expect.stringMatching(/^node a: verifier\.agentId: ./),
      expect.stringMatching(/^node a: outputAttestation\.checksum: ./),
    ]);
  });

  it("tell that criteria of a critic have no names, which those of a script need not have", () => {
    const problems = [expect.stringMatching(/^node a: verifier: a critic's criteria are named by letters/)];
    expect(listProblems({ config: NAMELESS })).toEqual(problems);
    expect(listProblems({ config: NAMELESS, settings: { play: createPlay({}) } })).toEqual(problems);
    const play = createPlay({ isVerdictPlayed: ({ node: { id } }) => id === "a" });
    expect(listProblems({ config: NAMELESS, settings: { play } })).toEqual([]);
  });
});

const AGAIN: NodeStep = { kind: "record", drafts: [] };
const MAPPING = { report: "result" };

interface GateScene extends Scene {
  readonly outputMapping?: Readonly<Record<string, string>>;
}

/** Returns the next step for a child that completed. */
function step(handoff: Partial<Handoff>, { outputMapping = {}, ...scene }: GateScene = {}) {
  const place: GatePlace = { outputMapping, ordinal: "1:0", again: () => AGAIN };
  const child = { phase: "ended", childRunId: CHILD, childStatus: "completed" } as const;
  return stepGate(createView(scene), createHandoff({ ...child, ...handoff }), place);
}

/** Asks that the outputs of the child are read, and nobody rules on them. */
const READING = {
  kind: "judge_child",
  id: "a:1:0:judge",
  nodeId: "a",
  workerId: "writer",
  childRunId: CHILD,
  target: CHAIN,
  attempt: 1,
  isAttested: false,
};

describe("a node at its gate", () => {
  it("has nothing to do where there is no gate, or the child did not complete", () => {
    expect(step({}, { outputMapping: MAPPING })).toBeUndefined();
    expect(step({ childStatus: "failed" }, { config: VERIFIED })).toBeUndefined();
  });

  it("waits for people who were asked", () => {
    const { interrupt } = createAsking("a");
    if (!interrupt) throw new Error("nobody was asked");
    const nodeRun = { interrupt: { ...interrupt, timeoutMs: 5 } };
    expect(step({}, { config: VERIFIED, nodeRun })).toStrictEqual({ kind: "wait", atMs: NOW + 5 });
  });

  it("has the verifier asked about what the child produced", () => {
    expect(step({}, { config: VERIFIED })).toStrictEqual({
      kind: "act",
      effect: { ...READING, verifier: createVerifier() },
    });
  });

  it("has outputs read that nobody rules on, where they are merged", () => {
    expect(step({}, { config: IDLE, outputMapping: MAPPING })).toStrictEqual({
      kind: "act",
      effect: READING,
    });
    expect(step({}, { config: IDLE })).toBeUndefined();
  });

  it("has outputs read that people rule on, or that are attested, also where none are merged", () => {
    expect(step({}, { config: APPROVED })).toStrictEqual({ kind: "act", effect: READING });
    expect(step({}, { config: ATTESTED })).toStrictEqual({
      kind: "act",
      effect: { ...READING, isAttested: true },
    });
  });

  it("names the host of the child, how many completed, and whether a script rules", () => {
    const play = createPlay({ isVerdictPlayed: ({ node: { id } }) => id === "a" });
    const scene = {
      config: { ...APPROVED, peerUrl: "https://peer.example" },
      settings: { play },
      nodeRun: { completedChildren: 3 },
    };
    expect(step({}, scene)).toStrictEqual({
      kind: "act",
      effect: { ...READING, attempt: 3, peerUrl: "https://peer.example", isPlayed: true },
    });
    expect(step({}, { config: APPROVED, settings: { play: createPlay({}) } })).toStrictEqual({
      kind: "act",
      effect: READING,
    });
  });

  it("names no child where the log does not know it", () => {
    const view = createView({ config: VERIFIED });
    const handoff = createHandoff({ phase: "ended", childStatus: "completed" });
    const place = { outputMapping: {}, ordinal: "1:0", again: () => AGAIN };
    expect(stepGate(view, handoff, place)).toHaveProperty("effect.childRunId", "");
  });
});

describe("a node with a verdict", () => {
  const SENT_BACK: Values = { verifier: { agentId: "acme.critic", revisionsMax: 2 } };

  it("drops what failed", () => {
    expect(
      step({ verdict: createVerdict("fail") }, { config: VERIFIED, outputMapping: MAPPING }),
    ).toBeUndefined();
  });

  it("has what passed read where it is merged, and asks for no other verdict", () => {
    const verdict = createVerdict("pass");
    expect(step({ verdict }, { config: VERIFIED, outputMapping: MAPPING })).toStrictEqual({
      kind: "act",
      effect: READING,
    });
    expect(step({ verdict }, { config: VERIFIED })).toBeUndefined();
  });

  it.each<[title: string, config: Values, revision: number]>([
    ["as often as needed where the gate does not say", VERIFIED, 1_000],
    ["below the bound of the gate", SENT_BACK, 1],
  ])("sends the worker back to be revised %s", (_title, config, revision) => {
    expect(step({ verdict: createVerdict("revise"), revision }, { config })).toBe(AGAIN);
  });

  it("has the work read that may be revised no more, so that people rule on it", () => {
    const handoff = { verdict: createVerdict("revise"), revision: 2 };
    expect(step(handoff, { config: SENT_BACK })).toStrictEqual({ kind: "act", effect: READING });
  });
});

describe("a node with the answer of people", () => {
  const SHOWN = { artifactData: { result: "dry", note: "n" } };
  const MERGING: GateScene = { config: VERIFIED, outputMapping: MAPPING };

  function createMerged(next: unknown, more: Values = {}) {
    return {
      kind: "record",
      drafts: [
        { type: "variable.changed", nodeId: "a", payload: { name: "report", next, nodeId: "a" } },
        createHarvested(["report"], more),
      ],
    };
  }

  function createHarvested(harvestedKeys: readonly string[], more: Values = {}) {
    const names = { workerId: "writer", parentRunId: RUN, childRunId: CHILD };
    const payload = { phase: "output.harvested", ...names, harvestedKeys, ...more };
    return { type: "core.workflowChain.event", nodeId: "a", causationId: CHAIN, payload };
  }

  it("merges what they were shown", () => {
    const answer = createAnswer({ action: "accept" }, SHOWN);
    expect(step({ answer }, MERGING)).toStrictEqual(createMerged("dry"));
  });

  it("merges what they put in its place", () => {
    const edited = { action: "edit-accept", editedArtifactData: { result: "wet" } };
    expect(step({ answer: createAnswer(edited, SHOWN) }, MERGING)).toStrictEqual(createMerged("wet"));
    expect(step({ answer: createAnswer(edited) }, MERGING)).toStrictEqual(createMerged("wet"));
  });

  it("merges nothing where what they put in its place is no object", () => {
    const edited = { action: "edit-accept", editedArtifactData: "wet" };
    const merged = step({ answer: createAnswer(edited, SHOWN) }, MERGING);
    expect(merged).toStrictEqual({ kind: "record", drafts: [createHarvested([])] });
  });

  it("reads what they agreed to, where it is not in the log, and asks nobody else", () => {
    const answer = createAnswer({ action: "accept" });
    expect(step({ answer }, MERGING)).toStrictEqual({ kind: "act", effect: READING });
  });

  it("merges nothing without their yes, or without anything to merge", () => {
    expect(step({ answer: createAnswer({ action: "reject" }, SHOWN) }, MERGING)).toBeUndefined();
    const answer = createAnswer({ action: "accept" }, SHOWN);
    expect(step({ answer }, { config: VERIFIED })).toBeUndefined();
  });

  it("tells the checksum that they were shown before the values", () => {
    const answer = createAnswer({ action: "accept" }, { ...SHOWN, attestation: CHECKSUM });
    const { drafts } = createMerged("dry", { attestation: CHECKSUM });
    expect(step({ answer }, MERGING)).toStrictEqual({ kind: "record", drafts: drafts.toReversed() });
    expect(step({ answer }, { config: ATTESTED })).toStrictEqual({
      kind: "record",
      drafts: [createHarvested([], { attestation: CHECKSUM })],
    });
  });

  it.each<[attestation: unknown]>([
    [CHECKSUM.checksum],
    [{ checksum: 7, algorithm: "sha256" }],
    [{ ...CHECKSUM, algorithm: "md5" }],
    [null],
  ])("tells no checksum that is none: %j", (attestation) => {
    const answer = createAnswer({ action: "accept" }, { ...SHOWN, attestation });
    expect(step({ answer }, MERGING)).toStrictEqual(createMerged("dry"));
  });
});

describe("the record of a harvest", () => {
  it("is that of the source's run in a replay, and names no child that the log does not know", () => {
    const view = createView({ run: { origin: REPLAY_ORIGIN } });
    const causationId = createEventId(RUN, 7);
    expect(draftHarvestEvent(view, createHandoff(), { keys: ["report"], causationId })).toStrictEqual({
      type: "core.workflowChain.event",
      nodeId: "a",
      causationId,
      payload: {
        phase: "output.harvested",
        workerId: "writer",
        parentRunId: "source-1",
        harvestedKeys: ["report"],
      },
    });
  });
});

describe("the outputs of a node about its gate", () => {
  const EDITED = createAnswer({ action: "edit-accept" });

  it.each<[title: string, handoff: Partial<Handoff>, outputs: Values]>([
    ["the fate of work without a verdict", {}, { merged: false }],
    ["the verdict", { verdict: createVerdict("revise") }, { verdict: "revise", merged: false }],
    ["that it was merged", { phase: "harvested" }, { merged: true }],
    [
      "that it was merged as people were shown it",
      { phase: "harvested", answer: createAnswer({ action: "accept" }) },
      { merged: true },
    ],
    ["that people edited it", { phase: "harvested", answer: EDITED }, { merged: true, edited: true }],
    ["no edit of what was not merged", { answer: EDITED }, { merged: false }],
    ["its checksum", { attestation: CHECKSUM }, { merged: false, attestation: CHECKSUM }],
    ["that the child gave up", { gaveUp: true }, { childGoalSatisfied: false, merged: false }],
    ["nothing of a child that did not complete", { childStatus: "failed", phase: "harvested" }, {}],
  ])("tell %s", (_title, handoff, outputs) => {
    const child = createHandoff({ phase: "ended", childStatus: "completed", ...handoff });
    const { childStatus } = child;
    expect(createChildOutputs(createView({ config: VERIFIED }), child)).toStrictEqual({
      childStatus,
      ...outputs,
    });
  });

  it("tell nothing of a child that there is not", () => {
    expect(createChildOutputs(createView({ config: VERIFIED }), undefined)).toStrictEqual({});
  });

  it("tell no verdict where there is no gate, but that the child gave up", () => {
    const child = createHandoff({ phase: "harvested", childStatus: "completed", gaveUp: true });
    expect(createChildOutputs(createView(), child)).toStrictEqual({
      childStatus: "completed",
      childGoalSatisfied: false,
    });
  });
});
