/**
 * Owns: what this host says that it can do, and the discovery document that says so (capabilities.schema.json).
 *
 * D1 Only what works is advertised. A feature that is not in `AdvertisedHost` cannot be.
 * D2 Every family lies at the root; the mirror under `capabilities` is for older readers.
 */
import { hash } from "node:crypto";
import type { AgentSource } from "../../../agents/coordination/contracts/workflows/agent-events.ts";
import { WORKFLOW_BOUNDS } from "../../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import { HTTP_BOUNDS } from "./http-bounds.ts";

/** The features that a host says it has. */
interface AdvertisedFeatures {
  /** Decisions below it wait for people: 0.5 to 1. */
  readonly confidenceEscalationFloor: number;
  /** Events at most that each turn of a supervisor is told. */
  readonly transcriptWindow: number;
  /** So long after their end runs can be forked; milliseconds. */
  readonly retentionMs: number;
  /** Agents of manifests are installed. */
  readonly agentInventory: boolean;
  /** How agents of manifests are invoked, where live models play them. */
  readonly liveAgents?: readonly AgentSource[];
}

/** The host and the features that its discovery document tells of. */
export interface AdvertisedHost extends AdvertisedFeatures {
  readonly implementation: { readonly name: string; readonly version: string; readonly vendor?: string };
}

/** The features of a host that is not configured otherwise. */
export const DEFAULTS: AdvertisedFeatures = {
  confidenceEscalationFloor: 0.5,
  transcriptWindow: WORKFLOW_BOUNDS.transcriptWindow,
  retentionMs: WORKFLOW_BOUNDS.replayRetentionMs,
  agentInventory: false,
};

export interface DiscoveryDocument {
  readonly text: string;
  /** Strong, with its quotes. */
  readonly etag: string;
}

/**
 * Creates the discovery document of the host as JSON text with its entity tag. `fixtures`: ids of the conformance
 * workflows that are there. `transports`: those besides this protocol's own.
 */
export function createDiscoveryDocument(
  advertised: AdvertisedHost,
  hostId: string,
  fixtures: readonly string[],
  transports: readonly string[] = [],
): DiscoveryDocument {
  const families = {
    runs: { pauseResume: { supported: true, drainPolicies: ["immediate", "drain-current-node"] } },
    multiAgent: { executionModel: describeExecutionModel(advertised, hostId) },
    agents: describeAgents(advertised),
    subWorkflow: { inputMapping: true },
    replay: describeReplay(advertised),
    memory: MEMORY,
    workspace: WORKSPACE,
    toolHooks: TOOL_HOOKS,
  };
  const text = JSON.stringify({
    protocolVersion: "1.1",
    implementation: advertised.implementation,
    supportedEnvelopes: ["clarification.request", "schema.request", "schema.response", "error"],
    schemaVersions: {},
    limits: LIMITS,
    supportedTransports: ["rest", ...transports],
    ...(fixtures.length > 0 && { fixtures: [...new Set(fixtures)].toSorted() }),
    ...families,
    capabilities: families,
  });
  return { text, etag: `"${hash("sha256", text).slice(0, 32)}"` };
}

const LIMITS = {
  clarificationRounds: 5,
  schemaRounds: 3,
  envelopesPerTurn: 32,
  maxNodeExecutions: WORKFLOW_BOUNDS.nodeExecutionsMax,
  maxRunDurationMs: WORKFLOW_BOUNDS.runDurationMsMax,
  maxLoopIterations: WORKFLOW_BOUNDS.loopIterationsMax,
  maxRequestBodyBytes: HTTP_BOUNDS.bodyBytesMax,
};

/** RFC 0064: of every call of a tool, by an agent or by a node. */
const TOOL_HOOKS = {
  supported: true,
  prePostEvents: true,
  perToolAuthorization: true,
  perToolRateLimit: true,
};

const MEMORY = {
  supported: true,
  ttlSupported: true,
  maxEntrySizeBytes: WORKFLOW_BOUNDS.memoryEntryBytesMax,
  attribution: { supported: true, emitsWriteEvents: true },
};

const WORKSPACE = {
  supported: true,
  versioned: true,
  maxFileBytes: WORKFLOW_BOUNDS.workspaceFileBytesMax,
  maxFiles: WORKFLOW_BOUNDS.workspaceFilesMax,
  maxVersions: WORKFLOW_BOUNDS.workspaceVersionsMax,
};

/** Describes the execution model. Each level includes those below it. */
function describeExecutionModel(
  { confidenceEscalationFloor, transcriptWindow }: AdvertisedHost,
  hostId: string,
): Record<string, unknown> {
  return {
    supported: true,
    version: 6,
    confidenceEscalationFloor,
    confidenceEscalationInterruptKind: "approval",
    crossChildMemoryConcurrency: "strict",
    crossHostCausation: { supported: true, hostId, ancestryEndpointSupported: true },
    replayDeterminism: {
      supported: true,
      llmCacheKeyRecipe: "spec-rfc-0041",
      refusalDivergenceEmission: true,
    },
    statefulResume: true,
    transcriptWindow,
    verifier: { supported: true, gating: true },
  };
}

function describeReplay({ retentionMs }: AdvertisedHost): Record<string, unknown> {
  return {
    supported: true,
    modes: ["replay", "branch"],
    sideEffectSuppression: "recorded-outcome",
    retention: { windowSeconds: Math.floor(retentionMs / 1_000) },
  };
}

function describeAgents({ agentInventory, liveAgents }: AdvertisedHost): Record<string, unknown> {
  return {
    supported: true,
    orchestrator: true,
    dispatch: true,
    dispatchMapping: true,
    memoryBackends: ["long-term"],
    subRunAttestation: true,
    ...(agentInventory && {
      manifestRuntime: { supported: true, handoffValidation: true, installScope: "host" },
    }),
    ...(liveAgents && {
      liveRuntime: {
        supported: true,
        structuredOutput: true,
        confidenceEscalation: true,
        sources: liveAgents,
      },
    }),
  };
}
