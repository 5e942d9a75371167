/** Owns: putting the parts of a host of workflows together, and how they hear of each other. */
import { isEndedPhase } from "../../../workflow/state/workflow-state.ts";
import { checkRecordedModelCall } from "../models/ask-again.ts";
import { createAgentBook } from "../agents/agent-book.ts";
import { NO_AGENTS } from "../records/agent-dependencies.ts";
import { cancelChildren, endAbandonedChild } from "./control-runs.ts";
import { createEndAwaiter } from "../driving/await-run-end.ts";
import { createOwnRuns } from "../../ownership/own-runs.ts";
import { createRunDriver, type RunDriver } from "../driving/drive-runs.ts";
import { createEffectPerformer } from "../effects/perform-effects.ts";
import { createRunBook } from "../records/run-book.ts";
import { createToolRates } from "../agents/tool-rates.ts";
import { failUnwritableOutcomes } from "../driving/unwritable-outcome.ts";
import { createRunWatch } from "../driving/watch-runs.ts";
import { createTenantUsage } from "../records/tenant-usage.ts";
import { DEFAULT_QUOTAS } from "../../../contracts/workflows/quotas.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";
import type { HostCollaborators } from "./hosting.ts";

/**
 * Creates the parts of a workflow host, such as its stores, its driver and its watch, and connects them: watchers hear
 * of appends, and the end of a run cancels its children.
 */
export function createHosting(dependencies: WorkflowHostDependencies): HostCollaborators {
  const book = createRunBook(dependencies);
  const usage = createTenantUsage({ ...DEFAULT_QUOTAS, ...dependencies.quotas }, dependencies.clock);
  const agentHost = dependencies.agents ?? NO_AGENTS;
  const agentBook = createAgentBook(dependencies, agentHost, book);
  const ownRuns = createOwnRuns({ ...dependencies, owners: dependencies.store.owners });
  const driver: RunDriver = createRunDriver({
    ...dependencies,
    ownRuns,
    book,
    usage,
    perform: (loadedRun, effect, act) => perform(loadedRun, effect, act),
    askAgain: (loadedRun, call, signal) => checkRecordedModelCall(dependencies, loadedRun, call, signal),
  });
  const watching = createRunWatch(dependencies);
  const performing = createEffectPerformer({
    ...dependencies,
    book,
    usage,
    agentBook,
    agentHost,
    toolRates: createToolRates(dependencies.clock, agentHost.toolRate),
    driver,
    awaitEnd: createEndAwaiter({ driver, watching }),
    abandon: async (runId, parent) => {
      await endAbandonedChild(hosting, { runId, ...parent });
    },
  });
  const perform = failUnwritableOutcomes(performing);
  const hosting: HostCollaborators = {
    ...dependencies,
    book,
    usage,
    ownRuns,
    agentBook,
    driver,
    watching,
    ...(dependencies.conformance && {
      seams: dependencies.conformance.openSeams({ ...dependencies, runs: driver }),
    }),
  };
  driver.onAppended(({ run }) => {
    watching.changed(run.runId);
    if (isEndedPhase(run.phase)) void cancelChildren(hosting, run);
  });
  return hosting;
}
