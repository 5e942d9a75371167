/** Owns: putting the parts of a host of workflows together, and how they hear of each other. */
import { isEndedPhase } from "../../../workflow/state/workflow-state.ts";
import { askAgain } from "../models/ask-again.ts";
import { createAgentBook } from "../agents/agent-book.ts";
import { NO_AGENTS } from "../records/agent-parts.ts";
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
import type { WorkflowHostParts } from "../records/workflow-parts.ts";
import type { Hosting } from "./hosting.ts";

export function createHosting(parts: WorkflowHostParts): Hosting {
  const book = createRunBook(parts);
  const usage = createTenantUsage({ ...DEFAULT_QUOTAS, ...parts.quotas }, parts.clock);
  const agentHost = parts.agents ?? NO_AGENTS;
  const agentBook = createAgentBook(parts, agentHost, book);
  const ownRuns = createOwnRuns({ ...parts, owners: parts.store.owners });
  const runs: RunDriver = createRunDriver({
    ...parts,
    ownRuns,
    book,
    usage,
    perform: (loadedRun, effect, signal, deliver) => perform(loadedRun, effect, signal, deliver),
    askAgain: (loadedRun, call, signal) => askAgain(parts, loadedRun, call, signal),
  });
  const watching = createRunWatch(parts);
  const performing = createPerform({
    ...parts,
    book,
    usage,
    agentBook,
    agentHost,
    toolRates: createToolRates(parts.clock, agentHost.toolRate),
    driver: runs,
    awaitEnd: awaitEndWith({ runs, watching }),
    abandon: async (runId, parent) => {
      await endAbandoned(hosting, { runId, ...parent });
    },
  });
  const perform = endRunsWithUnwritableOutcome(performing);
  const hosting: Hosting = {
    ...parts,
    book,
    usage,
    ownRuns,
    agentBook,
    runs,
    watching,
    ...(parts.conformance && { seams: parts.conformance.openSeams({ ...parts, runs }) }),
  };
  runs.onAppended(({ run }) => {
    watching.changed(run.runId);
    if (isEndedPhase(run.phase)) void cancelChildren(hosting, run);
  });
  return hosting;
}
