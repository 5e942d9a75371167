/**
 * Owns: what this host says that it can do, and the discovery document that says so (capabilities.schema.json).
 *
 * D1 Only what works is advertised. What is not in `Advertised` cannot be.
 * D2 Every family lies at the root; the mirror under `capabilities` is for older readers.
 */
import { hash } from "node:crypto";
import { WORKFLOW_BOUNDS } from "../../agents/coordination/contracts/workflow-bounds.ts";
import { HTTP_BOUNDS } from "./http-bounds.ts";

export interface Advertised {
  readonly implementation: { readonly name: string; readonly version: string; readonly vendor?: string };
  readonly executionModel: {
    /** Every level up to it is implemented. */
    readonly version: 1 | 2 | 3;
    readonly confidenceEscalationFloor: number;
    readonly crossChildMemoryConcurrency: "strict" | "advisory";
  };
  /** Runs keep and read memory, and write `memory.written`. */
  readonly memory: boolean;
  /** Agents of a manifest can be listed. */
  readonly agentInventory: boolean;
  readonly reasoning?: { readonly verbosity: "summary" | "full" | "off"; readonly streaming: boolean };
  /** Typed capabilities that nodes may require. */
  readonly runtimeCapabilities?: readonly string[];
  /** More families of the schema, as they are. */
  readonly more?: Readonly<Record<string, unknown>>;
}

/** What levels 1 to 3 are. */
export const LEVEL_3: Omit<Advertised, "implementation"> = {
  executionModel: { version: 3, confidenceEscalationFloor: 0.5, crossChildMemoryConcurrency: "strict" },
  memory: true,
  agentInventory: false,
};

export interface DiscoveryDocument {
  readonly text: string;
  /** Strong, with its quotes. */
  readonly etag: string;
}

/** `fixtures`: ids of the conformance workflows that are there. */
export function discoveryDocument(
  advertised: Advertised,
  hostId: string,
  fixtures: readonly string[],
): DiscoveryDocument {
  const families = {
    runs: { pauseResume: { supported: true, drainPolicies: ["immediate", "drain-current-node"] } },
    multiAgent: { executionModel: executionModel(advertised, hostId) },
    agents: agents(advertised),
    subWorkflow: { inputMapping: true },
    ...(advertised.memory && { memory: MEMORY }),
    ...(advertised.runtimeCapabilities && { runtimeCapabilities: advertised.runtimeCapabilities }),
    ...advertised.more,
  };
  const text = JSON.stringify({
    protocolVersion: "1.1",
    implementation: advertised.implementation,
    supportedEnvelopes: ["clarification.request", "schema.request", "schema.response", "error"],
    schemaVersions: {},
    limits: LIMITS,
    supportedTransports: ["rest"],
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

const MEMORY = {
  supported: true,
  ttlSupported: true,
  maxEntrySizeBytes: WORKFLOW_BOUNDS.memoryEntryBytesMax,
  attribution: { supported: true, emitsWriteEvents: true },
};

function executionModel({ executionModel: model }: Advertised, hostId: string): Record<string, unknown> {
  return {
    supported: true,
    version: model.version,
    ...(model.version >= 2 && {
      confidenceEscalationFloor: model.confidenceEscalationFloor,
      confidenceEscalationInterruptKind: "approval",
      crossChildMemoryConcurrency: model.crossChildMemoryConcurrency,
    }),
    ...(model.version >= 3 && {
      crossHostCausation: { supported: true, hostId, ancestryEndpointSupported: true },
    }),
  };
}

function agents({ memory, reasoning, agentInventory }: Advertised): Record<string, unknown> {
  return {
    supported: true,
    orchestrator: true,
    dispatch: true,
    dispatchMapping: true,
    ...(memory && { memoryBackends: ["long-term"] }),
    ...(reasoning && { reasoning }),
    ...(agentInventory && { manifestRuntime: { supported: true } }),
  };
}
