/** Owns: one process of a workflow host, made of the real host over ports that can fail. */
import { hash } from "node:crypto";
import type { CoordinationId } from "../../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowDefinition } from "../../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import { WORKFLOW_BOUNDS } from "../../../src/agents/coordination/contracts/workflows/workflow-bounds.ts";
import type { WorkflowAppend, WorkflowStore } from "../../../src/agents/coordination/ports/workflow-store.ts";
import { createWorkflowHost } from "../../../src/agents/coordination/runtime/workflow-host/create-workflow-host.ts";
import type { WorkflowHost } from "../../../src/agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { createAjvOutputContract } from "../../../src/infra/json-schema/ajv-output-contract.ts";
import { createTokenSigner } from "../../../src/infra/tokens/interrupt-tokens.ts";
import type { FakeClock } from "../../support/fake-clock.ts";
import type { MemoryWorkflowLedger } from "../../support/memory-workflow-store.ts";
import { callPort, wrapClock, wrapPort, type Life } from "../process-life.ts";
import { findForeignWrite } from "../simulated-processes.ts";
import type { Outside } from "./simulated-outside.ts";

export const LEASE_MS = 10_000;
export const RUN_DURATION_MS_MAX = 600_000;
/** The least confidence with which a supervisor or a verifier decides alone. */
export const CONFIDENCE_FLOOR = 0.5;

export interface HostInput {
  readonly process: string;
  readonly clock: FakeClock;
  readonly ledger: MemoryWorkflowLedger;
  readonly definitions: readonly WorkflowDefinition[];
  readonly outside: Outside;
  readonly isProcessGone: (process: string) => boolean;
  readonly say: (line: string) => void;
  /** Hears of a broken promise. */
  readonly report: (problem: string) => void;
}

const KEY = new Uint8Array(32).fill(7);
const contract = Promise.resolve(createAjvOutputContract());

export function composeHost(input: HostInput, life: Life): WorkflowHost {
  const { process, clock, outside } = input;
  const say = (fields: unknown, message: string): void =>
    input.say(`${process}: ${message} ${JSON.stringify(fields)}`);
  let runs = 0;
  return createWorkflowHost({
    store: wrapStore(input, life),
    clock: wrapClock(life),
    steady: clock.steady,
    logger: { debug: () => undefined, info: say, warn: say, error: say },
    settings: {
      hostId: "simulated",
      confidenceFloor: CONFIDENCE_FLOOR,
      escalationThreshold: 0.7,
      nodeExecutionsMax: 200,
      loopIterationsMax: 12,
      runDurationMsMax: RUN_DURATION_MS_MAX,
    },
    definitions: input.definitions,
    newRunId: () => `run-${process}-${(runs += 1)}` as CoordinationId,
    owner: { id: `driver-${process}`, process },
    isProcessGone: input.isProcessGone,
    leaseMs: LEASE_MS,
    sha256: (text) => hash("sha256", text),
    tokens: createTokenSigner(KEY),
    baseUrl: () => "http://127.0.0.1:1",
    contract: () => contract,
    peers: () => Promise.reject(new Error("there are no peers")),
    tools: () => Promise.resolve(wrapPort(life, "runner", outside.tools)),
    chat: () => Promise.resolve(wrapPort(life, "runner", outside.chat)),
    verifier: () => Promise.resolve(wrapPort(life, "runner", outside.verifier)),
    secrets: new Map(),
    retentionMs: WORKFLOW_BOUNDS.replayRetentionMs,
  });
}

function wrapStore({ ledger, report }: HostInput, life: Life): WorkflowStore {
  const store = ledger.open();
  return {
    ...wrapPort(life, "read", store),
    append: (request: WorkflowAppend) =>
      callPort(life, "append", async () => {
        const head = ledger.runs.get(request.runId)?.owner;
        await store.append(request);
        const problem = findForeignWrite(request, head);
        if (problem !== undefined) report(problem);
      }),
    pruned: wrapPort(life, "read", store.pruned),
    memory: wrapPort(life, "read", store.memory),
    workspace: wrapPort(life, "read", store.workspace),
    requests: wrapPort(life, "read", store.requests),
    owners: wrapPort(life, "owners", store.owners),
  };
}
