/** Owns: what the protocol's conformance suite asks of a host beyond the protocol. */
import type { CoordinationId } from "../../contracts/ids.ts";
import { firstUnfit } from "../../workflow/fit-for-log.ts";
import { isEndedPhase } from "../../workflow/state.ts";
import { refuse } from "./create-run.ts";
import type { RunDriver } from "./drive-runs.ts";
import type { HostRefusal, WorkflowSeams } from "./workflow-host.ts";

export function workflowSeams(
  runs: RunDriver,
): WorkflowSeams & { readonly isOff: (capability: string) => boolean } {
  const overlay = new Map<string, unknown>();
  return {
    isOff: (capability) => overlay.get(capability) === false,
    toggle: (change) => {
      if (change === "reset") overlay.clear();
      else if (change && change.value !== null) overlay.set(change.name, change.value);
      return Object.fromEntries(overlay);
    },
    setVariables: async ({ tenant }, runId, variables) => {
      const gone: HostRefusal = refuse("not_found", `there is no run ${runId}`);
      const known = await runs.newest(runId as CoordinationId);
      if (known?.run.started.owner.tenant !== tenant) return gone;
      const drafts = Object.entries(variables).map(
        ([name, next]) => ({ type: "variable.changed", payload: { name, next } }) as const,
      );
      const unfit = firstUnfit(drafts);
      if (unfit) return refuse("validation_error", `the variables cannot be kept: ${unfit.problem}`);
      const answered = await runs.ask(runId as CoordinationId, ({ run }) =>
        isEndedPhase(run.phase) ? { refused: refuse("run_not_pausable", "the run has ended") } : { drafts },
      );
      return answered?.refused ?? (answered ? { kind: "done", value: { runId } } : gone);
    },
  };
}
