/** Owns: a plan as a graph with its fan-in, and spawns as a tree. */
import { Graph, layout } from "@dagrejs/dagre";
import { html, nothing, svg, type SVGTemplateResult, type TemplateResult } from "lit";
import {
  formatCount,
  formatDuration,
  formatTokens,
  formatUsd,
} from "../../../../agents/coordination/std/quantities.ts";
import type { TreeNode } from "../../../reports/tree.ts";
import type { CoordinationDetail, PlanShape } from "../../contract/runs.ts";
import { STATUS_SIGNS } from "../../drawing/draw-row.ts";
import { formatWords } from "../../drawing/row-marks.ts";
import { showLine } from "../../drawing/visible-text.ts";
import { formatAddress } from "../app/address.ts";
import { PageElement } from "../app/page-element.ts";
import { showStatus } from "../parts/words.ts";

const NODE = { width: 168, height: 44 } as const;
/** Laying out more would hold up the page, and nobody could read it. */
const NODES_MAX = 400;
const CHILDREN_MAX = 200;
const NAME_CHARS = 22;

interface GraphNode {
  readonly stepId: string;
  readonly name: string;
  readonly status: string;
  readonly dependsOn: readonly string[];
  readonly isCritical: boolean;
  /** Such as `1 of 3`. */
  readonly fanIn: string | undefined;
}

type Step = CoordinationDetail["view"]["steps"][number];

/** Reads the graph of a plan's text, with the fate of each step where it is known. */
export function readGraph(plan: PlanShape, detail?: CoordinationDetail): GraphNode[] {
  const steps = new Map<string, Step>(detail?.view.steps.map((step) => [step.stepId, step]));
  const critical = new Set(plan.criticalPath);
  return plan.steps.map(({ stepId, dependsOn, fanIn }) => ({
    stepId,
    name: steps.get(stepId)?.name ?? stepId,
    status: steps.get(stepId)?.status ?? "waiting",
    dependsOn,
    isCritical: critical.has(stepId),
    fanIn: fanIn.count < dependsOn.length ? `${fanIn.count} of ${dependsOn.length}` : undefined,
  }));
}

/** Reads a plan whose text is no longer kept from its admitted steps. */
function readAdmittedPlan(detail: CoordinationDetail | undefined): PlanShape | undefined {
  if (detail?.kind !== "plan") return undefined;
  const steps = detail.view.steps.filter(({ stepId }) => !stepId.startsWith("@"));
  return {
    steps: steps.map(({ stepId, agentId, lane, dependsOn = [], fanIn = dependsOn.length }) => ({
      stepId,
      agent: agentId,
      lane,
      dependsOn,
      fanIn: { kind: "min", count: fanIn },
      timeoutMs: 0,
    })),
    criticalPath: [],
  };
}

class WorkGraph extends PageElement {
  static override properties = {
    detail: { attribute: false },
    plan: { attribute: false },
    chosen: { attribute: false },
  };
  declare detail: CoordinationDetail | undefined;
  /** Before it runs: what the text says. */
  declare plan: PlanShape | undefined;
  declare chosen: string | undefined;

  protected override render(): TemplateResult {
    const plan = this.detail?.plan ?? this.plan ?? readAdmittedPlan(this.detail);
    if (plan) return this.#showPlan(readGraph(plan, this.detail));
    const tree = this.detail?.tree;
    return html`${
      tree
        ? html`<ul class="tree">
            ${this.#showNode(tree.tree)}
          </ul>`
        : nothing
    }`;
  }

  #showPlan(nodes: readonly GraphNode[]): TemplateResult {
    if (nodes.length > NODES_MAX)
      return html`<p class="quiet">
        ${formatCount(nodes.length, "step")}: the graph is drawn up to ${NODES_MAX}. The timeline shows all of
        them.
      </p>`;
    const graph = layOut(nodes);
    const { width = 0, height = 0 } = graph.graph() as { readonly width?: number; readonly height?: number };
    return html`<div class="graph" tabindex="0" role="region" aria-label="Graph of the plan">
      <svg
        class="drawing"
        role="group"
        width=${width + 24}
        height=${height + 24}
        viewBox="-12 -12 ${width + 24} ${height + 24}"
      >
        ${graph.edges().map((edge) => showEdge(graph.edge(edge) as { readonly points: readonly Point[] }))}
        ${nodes.map((node) => this.#showGraphNode(node, graph.node(node.stepId) as Point))}
      </svg>
    </div>`;
  }

  #showGraphNode(node: GraphNode, { x, y }: Point): SVGTemplateResult {
    const { stepId, status, isCritical, fanIn } = node;
    const name = showLine(node.name, NAME_CHARS);
    const words = `${STATUS_SIGNS[status] ?? ""} ${formatWords(status)}${fanIn ? ` · ${fanIn}` : ""}`;
    const className = [
      "node",
      status,
      ...(isCritical ? ["critical"] : []),
      ...(stepId === this.chosen ? ["picked"] : []),
    ];
    return svg`<g class=${className.join(" ")} role="button" tabindex="0" aria-label=${`${showLine(node.name)}: ${words}; after ${node.dependsOn.length} others`}
      transform=${`translate(${x - NODE.width / 2} ${y - NODE.height / 2})`}
      @click=${() => this.#choose(stepId)} @keydown=${(event: KeyboardEvent) => this.#onKey(event, stepId)}>
      <title>${showLine(node.name)}</title>
      <rect class="card" width=${NODE.width} height=${NODE.height} rx="5"></rect>
      <text class="name" x="10" y="19">${name}</text>
      <text class="end" x="10" y="35">${words}</text>
    </g>`;
  }

  #onKey(event: KeyboardEvent, stepId: string): void {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    this.#choose(stepId);
  }

  #choose(stepId: string): void {
    this.dispatchEvent(new CustomEvent("step", { detail: stepId }));
  }

  #showNode(node: TreeNode): TemplateResult {
    const { name, stepId, status, usage, durationMs, planId, children, agentId } = node;
    const shown = children.slice(0, CHILDREN_MAX);
    const used = usage ? `${formatTokens(usage.tokens)} tokens, ${formatUsd(usage.costMicroUsd)}` : "";
    return html`<li>
      <p class=${stepId !== undefined && stepId === this.chosen ? "leaf picked" : "leaf"}>
        ${showStatus(status)}
        ${
          stepId === undefined
            ? html`<strong>${showLine(name, 120)}</strong>`
            : html`<button type="button" class="plain" @click=${() => this.#choose(stepId)}>
                ${showLine(name, 120)}
              </button>`
        }
        ${agentId === undefined ? nothing : html`<span class="quiet">${showLine(agentId, 40)}</span>`}
        <span class="quiet">${durationMs === undefined ? "" : formatDuration(durationMs)} ${used}</span>
        ${planId === undefined ? nothing : html`<a href=${formatAddress({ place: "runs", id: planId })}>its plan</a>`}
      </p>
      ${
        shown.length === 0
          ? nothing
          : html`<ul>
              ${shown.map((child) => this.#showNode(child))}
            </ul>`
      }
      ${
        children.length > shown.length
          ? html`<p class="quiet">and ${children.length - shown.length} more, which the timeline shows</p>`
          : nothing
      }
    </li>`;
  }
}

interface Point {
  readonly x: number;
  readonly y: number;
}

function layOut(nodes: readonly GraphNode[]): Graph {
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 46 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { stepId } of nodes) graph.setNode(stepId, { width: NODE.width, height: NODE.height });
  for (const { stepId, dependsOn } of nodes)
    for (const before of dependsOn) if (graph.hasNode(before)) graph.setEdge(before, stepId);
  layout(graph);
  return graph;
}

function showEdge({ points }: { readonly points: readonly Point[] }): SVGTemplateResult {
  const path = points
    .map(({ x, y }, index) => `${index === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`)
    .join("");
  const end = points.at(-1) ?? { x: 0, y: 0 };
  return svg`<path class="edge" d=${path}></path><path class="arrow" d="M${end.x} ${end.y}l-7 -4v8z"></path>`;
}

customElements.define("work-graph", WorkGraph);
