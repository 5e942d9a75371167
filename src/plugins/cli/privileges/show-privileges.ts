/** Owns: what people read of privileges and of calls that they refused. */
import { describeResource } from "../conflicts/resource-text.ts";
import type { PrivilegeBound } from "../../../agents/coordination/privileges/privilege-bound.ts";
import { describeBound } from "../../../agents/coordination/privileges/privilege-sentence.ts";
import type {
  CoordinationView,
  StepView,
} from "../../../agents/coordination/runtime/log/coordination-view.ts";
import { formatCount, formatDuration } from "../../../agents/coordination/std/quantities.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import { nameStep } from "../../reports/step-name.ts";
import {
  countRefusedToolCalls,
  listTimelineRefusals,
  type RefusedCall,
  type TimelineRefusal,
} from "../../reports/list-refused-calls.ts";
import type { Paint } from "../terminal/paint.ts";
import { formatPrintable, shorten } from "../terminal/printable.ts";

/** The newest ones of each step, or of a timeline. */
const LINES_MAX = 10;

/**
 * Returns the fields of a step for `show`, as names with values: what bounds its privileges, and its last refused tool
 * calls; a value is empty where there is none.
 */
export function listPrivilegeFields(
  { refusedCalls = [] }: StepView,
  bounds: readonly PrivilegeBound[] = [],
): readonly (readonly [string, string])[] {
  return [
    ["may do", bounds.map(describeBound).join("; ")],
    ["refused", refusedCalls.slice(-LINES_MAX).map(formatRefusedCall).join(", ")],
  ];
}

/** Returns how many tool calls of a coordination were refused, as text; empty where none was. */
export function describeRefusedCallCount({ steps }: CoordinationView): string {
  const count = countRefusedToolCalls(steps);
  return count > 0 ? formatCount(count, "call") : "";
}

/**
 * Returns the lines under a timeline for the newest refused tool calls, the newest last; empty where none was refused.
 */
export function renderRefusalNotes(
  view: CoordinationView,
  {
    terminal,
    paint,
    columns,
  }: { readonly terminal: Terminal; readonly paint: Paint; readonly columns: number },
): string[] {
  const refusals = listTimelineRefusals(view);
  if (refusals.length === 0) return [];
  const names = new Map(view.steps.map((step) => [step.stepId, nameStep(step)]));
  const lines = refusals.slice(-LINES_MAX).map((refusal) => {
    const at = formatDuration(refusal.refusedMs);
    const subject = names.get(refusal.stepId) ?? refusal.stepId;
    const sentence = formatPrintable(
      `${subject} at ${at}: refused ${formatRefusedCall(refusal)}`,
      terminal.unicode,
    );
    return `${paint.tone("warning", "!")} ${shorten(sentence, columns - 2, terminal.unicode)}`;
  });
  const left = refusals.length - lines.length;
  return [...(left > 0 ? [`  and ${left} before`] : []), ...lines, ""];
}

function formatRefusedCall({ tool, rule, resource }: RefusedCall | TimelineRefusal): string {
  const where = resource === undefined ? "" : ` of ${describeResource(resource)}`;
  return `${tool}${where} (${rule})`;
}
