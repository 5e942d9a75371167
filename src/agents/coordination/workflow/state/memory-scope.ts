/** Owns: which memory a node or an agent of a run has. */
import type { WorkflowRun } from "./workflow-state.ts";

/** The scope that is named, or the run's. An isolated run has its own whatever is named, because others may have the named one. */
export function resolveMemoryScope(
  { started }: { readonly started: WorkflowRun["started"] },
  named: string,
): string {
  return started.hasIsolatedMemory ? started.memoryScope : named;
}
