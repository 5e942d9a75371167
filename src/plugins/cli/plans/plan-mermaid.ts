/** Owns: drawing a step graph as a Mermaid flowchart. Nothing of a plan reaches the drawing but as an escaped label. */
import type { CompiledStep, FanIn, StepGraph } from "../../../agents/coordination/plan/step-graph.ts";
import { formatPrintable, shorten } from "../terminal/printable.ts";

const LABEL_CELLS = 60;

/** Returns a plan's graph of steps as the text of a Mermaid flowchart. */
export function renderMermaidFlowchart({ steps }: StepGraph): string {
  const idOf = new Map(steps.map(({ stepId }, index) => [stepId, `s${index}`]));
  const nodes = steps.map((step, index) => `  s${index}["${renderNodeLabel(step)}"]:::${step.lane}`);
  const edges = steps.flatMap(({ dependsOn, fanIn }, index) =>
    dependsOn.map(
      (stepId) => `  ${idOf.get(stepId) ?? ""} ${renderArrow(fanIn, dependsOn.length)} s${index}`,
    ),
  );
  const styles = [
    "  classDef control stroke:#a3a,stroke-width:2px",
    "  classDef data stroke:#088",
    "  classDef escalation stroke:#b80,stroke-width:2px",
  ];
  return `${["flowchart TD", ...nodes, ...edges, ...styles].join("\n")}\n`;
}

function renderNodeLabel({ stepId, agent, priority }: CompiledStep): string {
  const details = priority === "normal" ? agent : `${agent}, ${priority}`;
  return `${escapeLabel(stepId)}<br/>${escapeLabel(details)}`;
}

/** Returns the arrow of a dependency: dotted, with a label, where not all dependencies are needed. */
function renderArrow({ kind, count }: FanIn, dependencies: number): string {
  if (kind === "all" || count >= dependencies) return "-->";
  return kind === "any" ? `-. any of ${dependencies} .->` : `-. ${count} of ${dependencies} .->`;
}

/** Cuts text to the width of a label, and writes all that could be markup as Mermaid's entities. */
function escapeLabel(text: string): string {
  return shorten(formatPrintable(text, true), LABEL_CELLS, true).replace(
    /[^\p{L}\p{N} _.,:/@+-]/gu,
    (char) => `#${char.codePointAt(0) ?? 0};`,
  );
}
