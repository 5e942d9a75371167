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
import { separateWords } from "../../drawing/row-marks.ts";
import { formatVisibleLine } from "../../drawing/visible-text.ts";
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

/** A step in the detail of a coordination. */
type DetailStep = CoordinationDetail["view"]["steps"][number];

/**
 * Returns the steps of a plan as nodes of the drawn graph, each with the name and status that the coordination's
 * detail has for it, else its id and `waiting`.
 */
export function createGraphNodes(plan: PlanShape, detail?: CoordinationDetail): GraphNode[] {
  const steps = new Map<string, DetailStep>(detail?.view.steps.map((step) => [step.stepId, step]));
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

/** Returns a plan's shape as its admitted steps tell it, where its text is no longer kept; `undefined` for spawns. */
function rebuildPlanShape(detail: CoordinationDetail | undefined): PlanShape | undefined {
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
  #drawing: GraphDrawing | undefined;

  protected override render(): TemplateResult {
    const plan = this.detail?.plan ?? this.plan ?? rebuildPlanShape(this.detail);
    if (plan) return this.#showPlan(createGraphNodes(plan, this.detail));
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
    const { graph, lines, arrows } = this.#draw(nodes);
    const { width = 0, height = 0 } = graph.graph() as { readonly width?: number; readonly height?: number };
    return html`<div class="graph" tabindex="0" role="region" aria-label="Graph of the plan">
      <svg
        class="drawing"
        role="group"
        width=${width + 24}
        height=${height + 24}
        viewBox="-12 -12 ${width + 24} ${height + 24}"
      >
        <path class="edge" d=${lines}></path>
        <path class="arrow" d=${arrows}></path>
        ${nodes.map((node) => this.#showGraphNode(node, graph.node(node.stepId) as GraphPoint))}
      </svg>
    </div>`;
  }

  /** Lays out steps only when they changed: hundreds of them take seconds, in which the page answers nobody. */
  #draw(nodes: readonly GraphNode[]): GraphDrawing {
    const shape = JSON.stringify(nodes.map(({ stepId, dependsOn }) => [stepId, dependsOn]));
    if (this.#drawing?.shape !== shape) {
      const graph = layOutGraph(nodes);
      const edges = graph.edges().map(({ v: before, w: after }) => drawEdge(graph, before, after));
      const lines = edges.map(({ line }) => line).join("");
      const arrows = edges.map(({ arrow }) => arrow).join("");
      this.#drawing = { shape, graph, lines, arrows };
    }
    return this.#drawing;
  }

  #showGraphNode(node: GraphNode, { x, y }: GraphPoint): SVGTemplateResult {
    const { stepId, status, isCritical, fanIn } = node;
    const name = formatVisibleLine(node.name, NAME_CHARS);
    const words = `${STATUS_SIGNS[status] ?? ""} ${separateWords(status)}${fanIn ? ` · ${fanIn}` : ""}`;
    const className = [
      "node",
      status,
      ...(isCritical ? ["critical"] : []),
      ...(stepId === this.chosen ? ["picked"] : []),
    ];
    return svg`<g class=${className.join(" ")} role="button" tabindex="0" aria-label=${`${formatVisibleLine(node.name)}: ${words}; after ${node.dependsOn.length} others`}
      transform=${`translate(${x - NODE.width / 2} ${y - NODE.height / 2})`}
      @click=${() => this.#choose(stepId)} @keydown=${(event: KeyboardEvent) => this.#onKey(event, stepId)}>
      <title>${formatVisibleLine(node.name)}</title>
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

  /** Steps of plans within the work may have the same ids. */
  #isStepHere({ stepId, coordinationId }: TreeNode): boolean {
    return stepId !== undefined && coordinationId === this.detail?.id;
  }

  #isChosen(node: TreeNode): boolean {
    return this.#isStepHere(node) && node.stepId === this.chosen;
  }

  #showName(node: TreeNode): TemplateResult {
    const { stepId, coordinationId } = node;
    const name = formatVisibleLine(node.name, 120);
    if (stepId === undefined) return html`<strong>${name}</strong>`;
    if (this.#isStepHere(node))
      return html`<button type="button" class="plain" @click=${() => this.#choose(stepId)}>${name}</button>`;
    const address = { place: "runs", id: coordinationId, tab: "graph", query: { step: stepId } } as const;
    return html`<a href=${formatAddress(address)}>${name}</a>`;
  }

  #showNode(node: TreeNode): TemplateResult {
    const { status, usage, durationMs, planId, children, agentId } = node;
    const shown = children.slice(0, CHILDREN_MAX);
    const used = usage ? `${formatTokens(usage.tokens)} tokens, ${formatUsd(usage.costMicroUsd)}` : "";
    return html`<li>
      <p class=${this.#isChosen(node) ? "leaf picked" : "leaf"}>
        ${showStatus(status)} ${this.#showName(node)}
        ${agentId === undefined ? nothing : html`<span class="quiet">${formatVisibleLine(agentId, 40)}</span>`}
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

/** A point in the drawing. */
interface GraphPoint {
  readonly x: number;
  readonly y: number;
}

/** The graph of steps as it was last laid out, with the lines between them. */
interface GraphDrawing {
  /** Each step with those that it depends on; nothing else decides where it is drawn. */
  readonly shape: string;
  readonly graph: Graph;
  /** One path of all lines between steps, and one of the arrows at their ends. */
  readonly lines: string;
  readonly arrows: string;
}

/** Returns a graph in which each step has its place, from left to right. */
function layOutGraph(nodes: readonly GraphNode[]): Graph {
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 46 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { stepId } of nodes) graph.setNode(stepId, { width: NODE.width, height: NODE.height });
  for (const { stepId, dependsOn } of nodes)
    for (const before of dependsOn) if (graph.hasNode(before)) graph.setEdge(before, stepId);
  layout(graph);
  return graph;
}

/**
 * Returns the SVG paths of a line and of the arrow at its end. Both go from side to side, because arrows point to the
 * right.
 */
function drawEdge(
  graph: Graph,
  before: string,
  after: string,
): { readonly line: string; readonly arrow: string } {
  const { points } = graph.edge(before, after) as { readonly points: readonly GraphPoint[] };
  const from = graph.node(before) as GraphPoint;
  const to = graph.node(after) as GraphPoint;
  const start = { x: from.x + NODE.width / 2, y: from.y };
  const end = { x: to.x - NODE.width / 2, y: to.y };
  const line = [start, ...points.slice(1, -1), end].map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`);
  return { line: `M${line.join("L")}`, arrow: `M${line.at(-1)}l-7 -4v8z` };
}

customElements.define("work-graph", WorkGraph);
