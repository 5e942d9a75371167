/** Owns: whether a tool may be called under the bounds of a session (V1 to V3 of `privilege-bound.ts`). */
import type { Privilege } from "../contracts/privilege.ts";
import type { PrivilegeBound } from "./privilege-bound.ts";

/** Returns the tools that entries stand for: groups become their members, and every name gets the host's spelling. */
export type ExpandTools = (entries: readonly string[]) => readonly string[];

export interface ToolRefusal {
  readonly rule: "tools.allow" | "tools.deny";
  readonly bound: PrivilegeBound;
}

/** Tools that only lead to others; each call that goes through them is ruled on by the name of the tool it reaches. */
export const LEADING_TOOLS: ReadonlySet<string> = new Set([
  "tool_search",
  "tool_describe",
  "tool_call",
  "tool_search_code",
]);

const COORDINATION = "coordination_";
/** A plan is work that others do, as a spawn is. */
const PLAN_TOOL = "coordination_plan";
/** By it a child gives back the result whose form the spawn asked for; the host offers it to nobody else, and to these always. */
const RESULT_TOOL = "structured_output";

/**
 * Returns the first bound that a call of the tool breaks, and its rule; `undefined` where every bound lets it be
 * called.
 */
export function findToolRefusal(
  bounds: readonly PrivilegeBound[],
  toolName: string,
  expand: ExpandTools,
): ToolRefusal | undefined {
  const [tool = ""] = expand([toolName]);
  for (const bound of bounds) {
    const rule = findBrokenRule(bound.privilege, tool, expand);
    if (rule) return { rule, bound };
  }
  return undefined;
}

function findBrokenRule(
  { tools }: Privilege,
  tool: string,
  expand: ExpandTools,
): ToolRefusal["rule"] | undefined {
  if (!tools) return undefined;
  const denied = expand(tools.deny ?? []);
  if (isUsableUnlessDeniedByName(tool))
    return denied.some((entry) => isNamingTool(entry, tool)) ? "tools.deny" : undefined;
  if (denied.some((entry) => isMatchingTool(entry, tool))) return "tools.deny";
  if (tools.allow === undefined) return undefined;
  return expand(tools.allow).some((entry) => isMatchingTool(entry, tool)) ? undefined : "tools.allow";
}

/**
 * True for a tool that a child needs to do its work at all, which no list of allowed tools and no general wildcard
 * takes from it: reporting its result, asking, and reaching tools that are not shown. Only a bound that denies it by
 * name does.
 */
export function isUsableUnlessDeniedByName(tool: string): boolean {
  if (LEADING_TOOLS.has(tool) || tool === RESULT_TOOL) return true;
  return tool.startsWith(COORDINATION) && tool !== PLAN_TOOL;
}

/** True when an entry means this very tool, or tools of the coordination, and not just everything. */
function isNamingTool(entry: string, tool: string): boolean {
  return entry === tool || (entry.startsWith(COORDINATION) && isMatchingTool(entry, tool));
}

/** True when a name or prefix with `*` in a list of tools, already expanded, matches a tool in the host's spelling. */
export function isMatchingTool(entry: string, tool: string): boolean {
  return entry.endsWith("*") ? tool.startsWith(entry.slice(0, -1)) : entry === tool;
}
