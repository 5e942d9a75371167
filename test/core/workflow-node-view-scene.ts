/** Owns: a node at work in a run, put together from its members, for tests of what nodes do, ask and tell. */
import {
  createEventId,
  type CoordinationId,
  type EpochMs,
} from "../../src/agents/coordination/contracts/ids.ts";
import type {
  AttestationConfig,
  VerifierConfig,
} from "../../src/agents/coordination/contracts/workflows/child-gate-config.ts";
import type { RunOrigin } from "../../src/agents/coordination/contracts/workflows/run-origin.ts";
import type { WorkflowVariable } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import type {
  NodePlay,
  NodeView,
  WorkflowSettings,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import type { ChildJudgedOutcome } from "../../src/agents/coordination/workflow/nodes/gate-ruling.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import type {
  Handoff,
  NodeRun,
  WorkflowRun,
} from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { createNode } from "../support/workflow-definitions.ts";
import { SETTINGS } from "../support/workflow-settings.ts";
import { LATER, RUN, createGraph, createNodeRun, createRun } from "./workflow-view-scene.ts";

/** Everything that a test says of a node at work; the rest is as with a node `a` that has just begun. */
export interface Scene {
  readonly config?: Values;
  /** Members of the node beside its configuration: its ports, its agent. */
  readonly members?: Values;
  readonly variables?: readonly WorkflowVariable[];
  readonly run?: Partial<WorkflowRun>;
  readonly started?: Partial<WorkflowRun["started"]>;
  readonly nodeRun?: Partial<NodeRun>;
  readonly settings?: Partial<WorkflowSettings>;
  readonly now?: EpochMs;
}

export function createView(scene: Scene = {}): NodeView {
  const { config = {}, members = {}, variables = [], now = LATER } = scene;
  const compiled = createGraph({ nodes: [createNode("a", "core.noop", config, members), createNode("b")] });
  const graph = { ...compiled, variables };
  const node = graph.nodes.get("a");
  if (!node) throw new Error("there is no node a");
  const run = createRun(scene.run, scene.started);
  return {
    run,
    graph,
    node,
    nodeRun: createNodeRun("a", "running", { variablesAtStart: run.variables, ...scene.nodeRun }),
    now,
    settings: { ...SETTINGS, ...scene.settings },
  };
}

export function createVariable(name: string, more: Partial<WorkflowVariable> = {}): WorkflowVariable {
  return { name, type: "string", ...more };
}

/** The origin of a replay, in whose records its source stands. */
export const REPLAY_ORIGIN: RunOrigin = {
  mode: "replay",
  sourceRunId: "source-1" as CoordinationId,
  fromSeq: 0,
  until: 0,
  identity: "source-1" as CoordinationId,
  ids: [{ before: 0, runId: RUN }],
};

/** A play in which nothing is scripted but what `change` says. */
export function createPlay(change: Partial<NodePlay>): NodePlay {
  return {
    nodeTypes: {},
    check: () => [],
    isModelPlayed: () => false,
    isVerdictPlayed: () => false,
    playVerdict: () => undefined,
    playTurn: () => undefined,
    findDoubtedDecision: () => undefined,
    ...change,
  };
}

export function createHandoff(change: Partial<Handoff> = {}): Handoff {
  const chainEventId = createEventId(RUN, 2);
  return { index: 0, phase: "running", chainEventId, workerId: "writer", revision: 0, unmet: [], ...change };
}

export function createVerifier(change: Partial<VerifierConfig> = {}): VerifierConfig {
  return {
    agentId: "acme.critic",
    criteria: [],
    timeoutMs: 60_000,
    revisionInput: "revisionCriteria",
    allowSelfVerification: false,
    onUnresolved: "ask",
    ...change,
  };
}

export function createAttestation(change: Partial<AttestationConfig> = {}): AttestationConfig {
  return { checksum: false, algorithm: "sha256", requireApproval: false, ...change };
}

export function createJudged(change: Partial<ChildJudgedOutcome> = {}): ChildJudgedOutcome {
  return { kind: "child_judged", variables: {}, isSelf: false, judgements: [], ...change };
}
