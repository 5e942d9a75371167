/** Owns: how a host knows the workflows of the suite among those that it serves. */

/** Begins the id of each workflow of the suite. */
export const SUITE_PREFIX = "conformance-";

export function isFixture(workflowId: string): boolean {
  return workflowId.startsWith(SUITE_PREFIX);
}
