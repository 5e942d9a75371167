/** Owns: what the protocol's conformance suite asks of a host beyond the protocol. */
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { findUnfitDraft } from "../../../agents/coordination/workflow/fit-for-log.ts";
import {
  LLM_CACHE_KEY_RECIPE as recipe,
  createLlmCacheKeyText,
  readSemanticRequest,
} from "../../../agents/coordination/openwop/llm-cache-key.ts";
import { isEndedPhase } from "../../../agents/coordination/workflow/state/workflow-state.ts";
import type { SeamAccess } from "../../../agents/coordination/runtime/workflow-host/records/conformance-play.ts";
import type {
  HostRefusal,
  WorkflowSeams,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { refuseUnknownRun } from "../../../agents/coordination/runtime/workflow-host/requests/shared-refusals.ts";
import type { MockModel } from "./mock-model.ts";
import type { SideEffects } from "./side-effects.ts";
import { listTurnWorkspaces } from "./turn-workspaces.ts";

interface SeamDependencies extends SeamAccess {
  readonly mockModel: MockModel;
  readonly sideEffects: SideEffects;
}

/**
 * Creates the seams by which the conformance suite turns capabilities off, programs the played model, and reads side
 * effects.
 */
export function createWorkflowSeams({
  runs,
  mockModel,
  sideEffects,
  sha256,
  store,
}: SeamDependencies): WorkflowSeams {
  const overlay = new Map<string, unknown>();
  return {
    isOff: (capability) => overlay.get(capability) === false,
    toggle: (change) => {
      if (change === "reset") overlay.clear();
      else if (change && change.value !== null) overlay.set(change.name, change.value);
      return Object.fromEntries(overlay);
    },
    programModel: ({ tenant }, nodeId, answers) => {
      mockModel.program(tenant, nodeId, answers);
    },
    llmCacheKey: (keyRequest) => {
      const request = readSemanticRequest(keyRequest);
      const made = request && createLlmCacheKeyText(request);
      return made?.ok ? { recipe, cacheKey: sha256(made.text) } : undefined;
    },
    sideEffects: ({ tenant }) => sideEffects.caused(tenant),
    forget: ({ tenant }) => {
      mockModel.reset(tenant);
      sideEffects.reset(tenant);
    },
    turnWorkspaces: (caller, runId) => listTurnWorkspaces({ runs, store, sha256 }, caller, runId),
    setVariables: async ({ tenant }, runId, variables) => {
      const unknownRun = refuseUnknownRun(runId);
      const loadedRun = await runs.newest(runId as CoordinationId);
      if (loadedRun?.run.started.owner.tenant !== tenant) return unknownRun;
      const drafts = Object.entries(variables).map(
        ([name, next]) => ({ type: "variable.changed", payload: { name, next } }) as const,
      );
      const unfit = findUnfitDraft(drafts);
      if (unfit)
        return createHostRefusal("validation_error", `the variables cannot be recorded: ${unfit.problem}`);
      const answered = await runs.ask(runId as CoordinationId, ({ run }) =>
        isEndedPhase(run.phase)
          ? { refused: createHostRefusal("run_not_pausable", "the run has ended") }
          : { drafts },
      );
      return answered?.refused ?? (answered ? { kind: "done", value: { runId } } : unknownRun);
    },
  };
}

function createHostRefusal(code: HostRefusal["code"], message: string): HostRefusal {
  return { kind: "refused", code, message };
}
