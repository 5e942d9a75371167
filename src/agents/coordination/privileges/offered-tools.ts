/**
 * Owns: what of the host's tools a session's model is shown. It is a help for the model; a call is ruled on whatever is shown.
 *
 * The host takes names, beginnings and groups, and can only narrow. A tool that cannot be named so is shown and refused: a name that is
 * denied below a beginning that is allowed.
 */
import type { PrivilegeBound } from "./privilege-bound.ts";
import { findToolRefusal, isMatchingTool, LEADING_TOOLS, type ExpandTools } from "./tool-rule.ts";

/** Groups of the host whose members only the host knows. */
const UNLISTED = ["group:plugins", "bundle-mcp"] as const;
const WRITING_TOOLS: ReadonlySet<string> = new Set(["write", "edit", "apply_patch"]);

/** The tools that there are to offer. */
export interface OfferableTools {
  /** Every tool of the host itself. */
  readonly hostTools: readonly string[];
  /** The tools of the coordination: what is usable of them is shown whatever is allowed. */
  readonly ownTools: readonly string[];
}

/**
 * Lists, sorted, the names and wildcards of tools that a session's model is shown under its bounds; `undefined` where
 * nothing narrows what the host offers.
 */
export function listOfferedTools(
  bounds: readonly PrivilegeBound[],
  expand: ExpandTools,
  { hostTools, ownTools }: OfferableTools,
): string[] | undefined {
  const isReadOnly = bounds.some(({ privilege }) => privilege.write?.length === 0);
  const allowed = listAllowedByAll(bounds, expand);
  const isHidden = (tool: string): boolean =>
    (isReadOnly && WRITING_TOOLS.has(tool)) || findToolRefusal(bounds, tool, expand) !== undefined;
  const isNarrowed = isReadOnly || bounds.some(({ privilege }) => privilege.tools !== undefined);
  if (!isNarrowed) return undefined;
  const offered = allowed.flatMap((entry) => {
    if (entry === "*") return [...hostTools.filter((tool) => !isHidden(tool)), ...UNLISTED];
    return isHidden(entry) && !entry.endsWith("*") ? [] : [entry];
  });
  const shown = [...LEADING_TOOLS, ...ownTools].filter((tool) => !isHidden(tool));
  return [...new Set([...offered, ...shown])].sort();
}

/** Returns the entries that every list of allowed tools lets through. */
function listAllowedByAll(bounds: readonly PrivilegeBound[], expand: ExpandTools): readonly string[] {
  return bounds
    .flatMap(({ privilege }) => (privilege.tools?.allow ? [expand(privilege.tools.allow)] : []))
    .reduce<readonly string[]>(narrowEntries, ["*"]);
}

/**
 * Intersects two lists of allowed tools. Among two entries that overlap the narrower stays: one of them always lies
 * within the other.
 */
function narrowEntries(some: readonly string[], others: readonly string[]): readonly string[] {
  const common = some.flatMap((one) =>
    others.flatMap((other) => (isToolWithin(one, other) ? [one] : isToolWithin(other, one) ? [other] : [])),
  );
  return [...new Set(common)];
}

function isToolWithin(inner: string, outer: string): boolean {
  return isMatchingTool(outer, inner.endsWith("*") && outer.endsWith("*") ? inner.slice(0, -1) : inner);
}
