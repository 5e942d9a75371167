/** Owns: how a host knows the workflows of the suite among those that it serves. */

/** Begins the id of each workflow of the suite. */
export const SUITE_PREFIX = "conformance-";

/** True of the id of a workflow of the conformance suite, which begins with the suite's prefix. */
export function isSuiteWorkflow(workflowId: string): boolean {
  return workflowId.startsWith(SUITE_PREFIX);
}
