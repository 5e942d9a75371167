/**
 * Owns: what a spawn asks its child to be held to, `coordination: {tools, write}` among its parameters. They are a model's words:
 * they can only narrow, and words that cannot be understood stop the spawn, because the child would have more than was meant.
 */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { privilegeSchema, type Privilege } from "../../../agents/coordination/contracts/privilege.ts";
import {
  describeProblems,
  ENVELOPE_BOUNDS,
  parseBounded,
} from "../../../agents/coordination/contracts/validation.ts";
import { isRecord } from "../../../agents/coordination/std/is-record.ts";

export interface AskedPrivilege {
  readonly asked?: Privilege;
  /** Why it cannot be understood, in words for the model. */
  readonly problem?: string;
  /** The rest of the parameter; nothing of it is authority (H3). */
  readonly rest: unknown;
}

/** Reads the parameter `coordination` of a spawn. */
export function readAskedPrivilege(parameter: unknown): AskedPrivilege {
  const value = readJsonText(parameter);
  if (!isRecord(value)) return { rest: parameter };
  const { tools, write, ...others } = value;
  const rest = Object.keys(others).length > 0 ? others : undefined;
  if (tools === undefined && write === undefined) return { rest: parameter };
  const fields = { ...(tools !== undefined && { tools }), ...(write !== undefined && { write }) };
  const parsed = parseBounded(privilegeSchema, fields, ENVELOPE_BOUNDS);
  if (parsed.ok) return { asked: parsed.value, rest };
  const problem = `what the child may do cannot be understood (coordination: ${describeProblems(parsed.problems.slice(0, 3))}); write {"tools": {"allow": [...], "deny": [...]}, "write": [...]} and spawn again`;
  return { problem, rest };
}

/** Models write objects as JSON texts, too. */
function readJsonText(value: unknown): unknown {
  if (typeof value !== "string" || value.length > BOUNDS.envelopeCharsMax) return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}
