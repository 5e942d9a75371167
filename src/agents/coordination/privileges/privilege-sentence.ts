/** Owns: what the model of a refused call reads, and what a child reads of its privileges. */
import type { PrivilegeRule } from "../contracts/privilege.ts";
import type { PrivilegeBound } from "./privilege-bound.ts";

/** A call that broke a rule of one bound. */
export interface PrivilegeRefusal {
  readonly tool: string;
  readonly rule: PrivilegeRule;
  readonly bound: PrivilegeBound;
  /** The real path that it would change. */
  readonly path?: string;
}

/** Returns the sentence that tells a model which tool call was refused, what its session may do, and who set that. */
export function describeRefusedCall({ tool, rule, bound, path = "a file" }: PrivilegeRefusal): string {
  const start = "Coordination refused this call";
  const origin = describeOrigin(bound);
  switch (rule) {
    case "tools.allow":
      return `${start}: this session may not use ${tool}; it may use ${describeAllowedTools(bound)} (${origin}).`;
    case "tools.deny":
      return `${start}: this session may not use ${tool}, and may use any tool that it is offered but ${describeDeniedTools(bound)} (${origin}).`;
    case "write":
      return `${start}: ${path} lies outside of what this session may change, which is ${describeWritableFiles(bound)} (${origin}).`;
    case "write.unknown":
      return `${start}: what ${tool} would change cannot be told, and this session may change only ${describeWritableFiles(bound)} (${origin}); use write, edit or apply_patch, or let the operator declare the command (conflicts.commands).`;
    case "write.linked":
      return `${start}: ${path} is a file with several names (hard links), which may lie outside of what this session may change, which is ${describeWritableFiles(bound)} (${origin}).`;
  }
}

/** Returns the text that says who set a bound of privileges, and for which step. */
export function describeOrigin({ by, stepId, coordinationId, agentId }: PrivilegeBound): string {
  const step = `step ${stepId} of coordination ${coordinationId}`;
  if (by === "policy") return `the operator's rule for agent ${agentId}, of ${step}`;
  return by === "step" ? `set by the plan for ${step}` : `set by the spawn of ${step}`;
}

/** Returns the text that says what a bound of privileges allows and who set it. */
export function describeBound(bound: PrivilegeBound): string {
  const { tools, write } = bound.privilege;
  const parts = [
    ...(tools?.allow === undefined ? [] : [`tools: ${describeAllowedTools(bound)}`]),
    ...(tools?.deny?.length ? [`not ${describeDeniedTools(bound)}`] : []),
    ...(write === undefined ? [] : [`files that may be changed: ${describeWritableFiles(bound)}`]),
  ];
  return `${parts.join("; ")} (${describeOrigin(bound)})`;
}

const LISTED_MAX = 16;

function describeAllowedTools({ privilege: { tools } }: PrivilegeBound): string {
  return joinNames(tools?.allow ?? [], "none but those of the coordination");
}

function describeDeniedTools({ privilege: { tools } }: PrivilegeBound): string {
  return joinNames(tools?.deny ?? [], "none");
}

function describeWritableFiles({ privilege: { write } }: PrivilegeBound): string {
  return joinNames(write ?? [], "nothing");
}

function joinNames(names: readonly string[], none: string): string {
  if (names.length === 0) return none;
  const more = names.length - LISTED_MAX;
  return names.slice(0, LISTED_MAX).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
