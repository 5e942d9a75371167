/** Owns: how it reads what was asked of a child, what really ran, and where the two differ. */
import type {
  CoordinationView,
  StepView,
} from "../../../agents/coordination/runtime/log/coordination-view.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";
import { nameStep } from "../../reports/step-name.ts";
import { describeDifference } from "../../reports/question-lines.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import type { Paint } from "../terminal/paint.ts";
import { formatPrintable, shorten } from "../terminal/printable.ts";

const LINES_MAX = 10;

/**
 * Returns the fields of a step for `show` about its child, as names with values: what was asked for, what ran, where
 * the two differ; a value is empty where there is none.
 */
export function listTruthFields({
  requested,
  ran,
  differences = [],
}: StepView): [name: "asked" | "ran" | "differs", value: string][] {
  const { tools } = ran ?? {};
  return [
    ["asked", describeChildSettings(requested?.model, requested?.thinking, requested?.folder)],
    [
      "ran",
      [
        describeChildSettings(ran?.model, ran?.thinking, ran?.folder),
        ...(tools ? [`${formatCount(tools.count, "tool")} offered`] : []),
      ]
        .filter((part) => part !== "")
        .join(", "),
    ],
    ["differs", differences.map(describeDifference).join("; ")],
  ];
}

function describeChildSettings(model = "", thinking = "", folder = ""): string {
  return [model, thinking && `thinking ${thinking}`, folder && `in ${folder}`]
    .filter((part) => part !== "")
    .join(", ");
}

/**
 * Returns the lines under a timeline for the last steps whose child did not run as it was asked to; empty where all
 * did.
 */
export function renderTruthNotes(
  { steps }: CoordinationView,
  { terminal: { unicode }, paint, columns }: { terminal: Terminal; paint: Paint; columns: number },
): string[] {
  const differing = steps.filter(({ differences = [] }) => differences.length > 0);
  const lines = differing.slice(-LINES_MAX).map((step) => {
    const sentence = `${nameStep(step)}: ${(step.differences ?? []).map(describeDifference).join("; ")}`;
    return paint.tone("warning", shorten(`! ${formatPrintable(sentence, unicode)}`, columns, unicode));
  });
  const left = differing.length - lines.length;
  if (lines.length === 0) return [];
  return [...(left > 0 ? [`  and ${left} before`] : []), ...lines, ""];
}
