/** Owns: the host's names of its tools: their one spelling, and what is in a group. */
import { TOOL_GROUPS } from "../../../agents/coordination/contracts/privilege.ts";
import type { ExpandTools } from "../../../agents/coordination/privileges/tool-rule.ts";
import { createOnceLoader } from "../../../agents/coordination/std/load-once.ts";
import { loadHarness } from "../host/sdk.ts";

export interface ToolNames {
  readonly expand: ExpandTools;
  /** Every tool of the host itself that is in a group. */
  readonly hostTools: readonly string[];
}

/** Loaded with the first call of a session that is held to something. */
export const loadToolNames: () => Promise<ToolNames> = createOnceLoader(async () => {
  const { toolPolicy } = await loadHarness();
  const expand: ExpandTools = (entries) => toolPolicy.expandToolGroups([...entries]);
  return { expand, hostTools: expand(TOOL_GROUPS) };
});
