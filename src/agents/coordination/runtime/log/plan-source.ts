/** Owns: the step graphs of running plans. A graph follows from the plan's text, which the ledger keeps while it runs. */
import { CoordinationError } from "../../contracts/errors.ts";
import type { CoordinationId, StepId } from "../../contracts/ids.ts";
import type { OpenCoordination } from "../../ledger/state.ts";
import { checkPlan } from "../../plan/check-plan.ts";
import type { CompiledStep, StepGraph } from "../../plan/step-graph.ts";
import type { ContentReader } from "../../ports/content-store.ts";
import { rememberNewest } from "../../std/remember-newest.ts";

/** Graphs kept in memory; others are compiled again. */
const GRAPHS_MAX = 32;

export interface PlanSource {
  /** @throws CoordinationError `LEDGER_CORRUPT` when the plan's text is gone or is no plan any more. */
  graphOf(state: OpenCoordination): Promise<IndexedGraph>;
  /** Before its text is on disk. */
  remember(sha256: string, graph: StepGraph): void;
}

export interface IndexedGraph {
  readonly graph: StepGraph;
  readonly stepOf: ReadonlyMap<StepId, CompiledStep>;
}

/**
 * Creates the source of plans' step graphs: it compiles the kept text of a plan, and remembers the newest graphs. It
 * throws `LEDGER_CORRUPT` where the text is not kept any more or does not compile.
 */
export function createPlanSource(dependencies: {
  readonly content: ContentReader;
  readonly settings: { readonly stepTimeoutMs: number };
}): PlanSource {
  /** By the sha256 of the plan. */
  const graphs = new Map<string, IndexedGraph>();
  const keep = (sha256: string, graph: StepGraph): IndexedGraph => {
    const indexed = { graph, stepOf: new Map(graph.steps.map((step) => [step.stepId, step])) };
    rememberNewest(graphs, sha256, indexed, GRAPHS_MAX);
    return indexed;
  };
  return {
    remember: keep,
    graphOf: async ({ coordinationId, created }) => {
      const sha256 = created.plan?.content.sha256 ?? "";
      const cached = graphs.get(sha256);
      if (cached) return cached;
      const text = await dependencies.content.get(sha256);
      if (text === undefined)
        throw createUnusablePlanError(coordinationId, "the text of the plan is not kept any more");
      const checked = checkPlan(JSON.parse(text), { timeoutMs: dependencies.settings.stepTimeoutMs });
      if (checked.kind === "compiled") return keep(sha256, checked.graph);
      throw createUnusablePlanError(
        coordinationId,
        checked.problems[0]?.message ?? "the plan does not compile",
      );
    },
  };
}

function createUnusablePlanError(runId: CoordinationId, why: string): CoordinationError {
  return new CoordinationError("LEDGER_CORRUPT", `${runId}: ${why}`);
}
