/** Owns: which memory a node or an agent of a run has. */
import type { WorkflowRun } from "./workflow-state.ts";

/**
 * Returns the scope of memory that a run uses where one is named: that one, and for an isolated run always its own,
 * because others may have the named one.
 */
export function resolveMemoryScope(
  { started }: { readonly started: WorkflowRun["started"] },
  named: string,
): string {
  return started.hasIsolatedMemory ? started.memoryScope : named;
}
