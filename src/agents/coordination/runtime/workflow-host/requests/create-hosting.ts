/** Owns: putting the parts of a host of workflows together, and how they hear of each other. */
import { isEndedPhase } from "../../../workflow/state/workflow-state.ts";
import { askAgain } from "../models/ask-again.ts";
import { createAgentBook } from "../agents/agent-book.ts";
import { NO_AGENTS } from "../records/agent-dependencies.ts";
import { cancelChildren, endAbandoned } from "./control-runs.ts";
import { awaitEndWith } from "../driving/await-run-end.ts";
import { createOwnRuns } from "../../ownership/own-runs.ts";
import { createRunDriver, type RunDriver } from "../driving/drive-runs.ts";
import { createPerform } from "../effects/perform-effects.ts";
import { createRunBook } from "../records/run-book.ts";
import { createToolRates } from "../agents/tool-rates.ts";
import { endRunsWithUnwritableOutcome } from "../driving/unwritable-outcome.ts";
import { createRunWatch } from "../driving/watch-runs.ts";
import { createTenantUsage } from "../records/tenant-usage.ts";
import { DEFAULT_QUOTAS } from "../../../contracts/workflows/quotas.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";
import type { Hosting } from "./hosting.ts";

export function createHosting(dependencies: WorkflowHostDependencies): Hosting {
  const book = createRunBook(dependencies);
  const usage = createTenantUsage({ ...DEFAULT_QUOTAS, ...dependencies.quotas }, dependencies.clock);
  const agentHost = dependencies.agents ?? NO_AGENTS;
  const agentBook = createAgentBook(dependencies, agentHost, book);
  const ownRuns = createOwnRuns({ ...dependencies, owners: dependencies.store.owners });
  const runs: RunDriver = createRunDriver({
    ...dependencies,
    ownRuns,
    book,
    usage,
    perform: (loadedRun, effect, act) => perform(loadedRun, effect, act),
    askAgain: (loadedRun, call, signal) => askAgain(dependencies, loadedRun, call, signal),
  });
  const watching = createRunWatch(dependencies);
  const performing = createPerform({
    ...dependencies,
    book,
    usage,
    agentBook,
    agentHost,
    toolRates: createToolRates(dependencies.clock, agentHost.toolRate),
    driver: runs,
    awaitEnd: awaitEndWith({ runs, watching }),
    abandon: async (runId, parent) => {
      await endAbandoned(hosting, { runId, ...parent });
    },
  });
  const perform = endRunsWithUnwritableOutcome(performing);
  const hosting: Hosting = {
    ...dependencies,
    book,
    usage,
    ownRuns,
    agentBook,
    runs,
    watching,
    ...(dependencies.conformance && { seams: dependencies.conformance.openSeams({ ...dependencies, runs }) }),
  };
  runs.onAppended(({ run }) => {
    watching.changed(run.runId);
    if (isEndedPhase(run.phase)) void cancelChildren(hosting, run);
  });
  return hosting;
}
