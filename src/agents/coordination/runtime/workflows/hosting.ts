/** Owns: the parts of a running host of workflows, and how they hear of each other. */
import { isEndedPhase } from "../../workflow/state.ts";
import { askAgain } from "./ask-again.ts";
import { createAgentBook, type AgentBook } from "./agent-book.ts";
import { NO_AGENTS } from "./agent-parts.ts";
import { cancelChildren, endAbandoned } from "./control-runs.ts";
import { awaitEndWith } from "./await-end.ts";
import { createRunDriver, type RunDriver } from "./drive-runs.ts";
import { createPerform } from "./perform-effects.ts";
import { createMockModel } from "./mock-model.ts";
import { createRunBook, type RunBook } from "./run-book.ts";
import { createSideEffects } from "./side-effects.ts";
import { createToolRates } from "./tool-rates.ts";
import { endingUnwritable } from "./unwritable-outcome.ts";
import { createRunWatch, type RunWatch } from "./watch-runs.ts";
import type { WorkflowHostParts } from "./workflow-parts.ts";
import { workflowSeams } from "./workflow-seams.ts";

export interface Hosting extends WorkflowHostParts {
  readonly book: RunBook;
  readonly agentBook: AgentBook;
  readonly runs: RunDriver;
  readonly watching: RunWatch;
  readonly seams: ReturnType<typeof workflowSeams>;
}

export function createHosting(parts: WorkflowHostParts): Hosting {
  const book = createRunBook(parts);
  const agentHost = parts.agents ?? NO_AGENTS;
  const agentBook = createAgentBook(parts, agentHost, book);
  const [mockModel, sideEffects] = [createMockModel(), createSideEffects()];
  const runs: RunDriver = createRunDriver({
    ...parts,
    book,
    perform: (known, effect, signal, deliver) => perform(known, effect, signal, deliver),
    askAgain: (known, call, signal) => askAgain({ ...parts, mockModel }, known, call, signal),
  });
  const watching = createRunWatch(parts);
  const performing = createPerform({
    ...parts,
    ...{ book, mockModel, sideEffects, agentBook, agentHost },
    toolRates: createToolRates(parts.clock, agentHost.toolRate),
    driver: runs,
    awaitEnd: awaitEndWith({ runs, watching }),
    abandon: async (runId, { run: { started, runId: parentRunId } }) => {
      await endAbandoned(it, { runId, tenant: started.owner.tenant, parentRunId });
    },
  });
  const perform = endingUnwritable(performing);
  const it: Hosting = {
    ...parts,
    book,
    agentBook,
    runs,
    watching,
    seams: workflowSeams({ ...parts, runs, mockModel, sideEffects }),
  };
  runs.onAppended(({ run }) => {
    watching.changed(run.runId);
    if (isEndedPhase(run.phase)) void cancelChildren(it, run);
  });
  return it;
}
