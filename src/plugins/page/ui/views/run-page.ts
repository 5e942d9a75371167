/** Owns: one coordination, plan or workflow run: its head, its actions, and which of its pictures is shown. */
import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import {
  formatCount,
  formatDuration,
  formatTokens,
  formatUsd,
} from "../../../../agents/coordination/std/quantities.ts";
import { describeGateway } from "../../../reports/gateway-report.ts";
import type { TreeNode } from "../../../reports/tree.ts";
import type { ActionResult } from "../../contract/actions.ts";
import type { LiveChange } from "../../contract/live.ts";
import type { CoordinationDetail, RunDetail, WorkflowDetail } from "../../contract/runs.ts";
import { renderTimelineHtml } from "../../drawing/timeline-document.ts";
import { formatVisibleLine } from "../../drawing/visible-text.ts";
import { formatAddress, TABS, type Tab } from "../app/address.ts";
import { ApiProblem } from "../app/page-api.ts";
import { LoadedElement, showActionButton } from "../app/page-element.ts";
import { saveFile, showFields, showInstant, showSaveButton, showStatus } from "../parts/words.ts";
import { advanceDetail, hasGrowingDurations } from "./advance-detail.ts";
import "./event-log.ts";
import { offerFork } from "./fork-action.ts";
import "./step-panel.ts";
import "./time-chart.ts";
import "./policy-differences.ts";
import "./work-graph.ts";

const TAB_NAMES: Readonly<Record<Tab, string>> = {
  timeline: "Timeline",
  graph: "Graph",
  log: "Log",
  "what-if": "What if",
};

class RunView extends LoadedElement<RunDetail> {
  static override properties = {
    ...LoadedElement.properties,
    runId: { attribute: false },
    tab: { attribute: false },
    query: { attribute: false },
  };

  declare runId: string;
  declare tab: Tab;
  declare query: Readonly<Record<string, string>>;
  /** Plans that agents of the work run, also after its end: their steps are in its tree, and their use in its sum. */
  #planIds: ReadonlySet<string> = new Set();

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (changed.get("runId") === undefined) return;
    this.loaded = undefined;
    this.problem = undefined;
    this.reloadNow();
  }

  protected override async read(): Promise<RunDetail> {
    const detail = await this.page.api.get<RunDetail>(`runs/${encodeURIComponent(this.runId)}`);
    this.#planIds = new Set(detail.kind === "run" ? [] : listPlanIds(detail.tree.tree));
    return detail;
  }

  /**
   * True for a change of the work or of a plan within it. A plan that begins may be one of an agent of the work, or of
   * an agent of its plans.
   */
  protected override isAffectedBy({ id, parentId }: LiveChange): boolean {
    return [id, parentId].some(
      (each) => each !== undefined && (each === this.runId || this.#planIds.has(each)),
    );
  }

  /**
   * Lets the durations of ongoing work grow. Nothing is read: telling large work takes the server long, and only its
   * durations have changed.
   */
  protected override onBeat(): void {
    const detail = this.loaded;
    if (!detail || detail.kind === "run" || !hasGrowingDurations(detail)) return;
    this.loaded = advanceDetail(detail, this.page.feed.nowMs);
  }

  protected override showLoaded(detail: RunDetail): TemplateResult {
    return detail.kind === "run" ? this.#showWorkflow(detail) : this.#showCoordination(detail);
  }

  /**
   * Shows the single events of a damaged log. A log that cannot be understood as a whole can still be read, and says
   * which event is damaged.
   */
  protected override showWithoutData(problem: unknown): TemplateResult | typeof nothing {
    if (!(problem instanceof ApiProblem) || problem.code !== "refused") return nothing;
    return html`<h2>Its events</h2>
      <event-log .page=${this.page} .runId=${this.runId} .sequence=${0} .query=${this.query}></event-log>`;
  }

  #showWorkflow(detail: WorkflowDetail): TemplateResult {
    const { view, id } = detail;
    return html`<div class="head">
        <h1>${formatVisibleLine(view.workflowId, 200)}</h1>
        <p class="buttons">${this.#showCancelOfRun(detail)}</p>
      </div>
      <p class="facts">
        ${showStatus(view.status)} <span class="mono">${formatVisibleLine(id)}</span> · opened
        ${showInstant(view.createdAtMs)}
        ${
          view.fork
            ? html` · fork of
                <a class="mono" href=${formatAddress({ place: "runs", id: view.fork.sourceRunId })}
                  >${formatVisibleLine(view.fork.sourceRunId)}</a
                >
                at event ${view.fork.fromSeq}`
            : nothing
        }
      </p>
      <event-log
        .page=${this.page}
        .runId=${id}
        .sequence=${detail.sequence}
        .query=${this.query}
        .isForkable=${this.page.session.runsWorkflows}
        @fork=${(event: CustomEvent<number>) => void this.#fork(event.detail, "run")}
      ></event-log>`;
  }

  #showCancelOfRun({ hasEnded }: WorkflowDetail): TemplateResult | typeof nothing {
    if (!this.page.session.runsWorkflows || hasEnded) return nothing;
    return this.#showCancel(
      "Its nodes that run are stopped, no further ones begin, and the runs that it started are cancelled with it. It cannot be undone.",
    );
  }

  #showCancel(before: string): TemplateResult {
    const path = `runs/${encodeURIComponent(this.runId)}/cancel`;
    return showActionButton(this.page, {
      label: "Cancel",
      right: "write",
      className: "danger",
      action: () => ({
        title: "Cancel this work",
        before,
        confirm: "Cancel the work",
        isDangerous: true,
        perform: () => this.page.api.post<ActionResult>(path, {}),
      }),
    });
  }

  #showCoordination(detail: CoordinationDetail): TemplateResult {
    const { view, timeline } = detail;
    const title = formatVisibleLine(view.objective ?? "(the objective is no longer kept)", 400);
    return html`<div class="head">
        <h1>${title}</h1>
        <p class="buttons">${this.#showActions(detail)}</p>
      </div>
      <p class="facts">
        ${showStatus(timeline.status)} <strong>${formatDuration(timeline.durationMs)}</strong> ·
        ${formatCount(timeline.rows.length, "step")}
        ${
          timeline.usage
            ? html` · ${formatTokens(timeline.usage.tokens)} tokens ·
              ${formatUsd(timeline.usage.costMicroUsd)}`
            : nothing
        }
        · started ${showInstant(timeline.startedAtMs)}
      </p>
      ${showFields([
        ["id", html`<span class="mono">${formatVisibleLine(detail.id)}</span>`],
        ["owner", view.ownerSession],
        ["gateway", describeGateway(view)],
        ["trace", view.trace.traceId],
        ["fork of", this.#showSource(detail)],
      ])}
      <nav class="tabs" aria-label="Pictures of this work">${TABS.map((tab) => this.#showTab(tab))}</nav>
      <div class="split">
        <section class="picture" aria-label=${TAB_NAMES[this.tab]}>${this.#showPicture(detail)}</section>
        ${this.#showPanel(detail)}
      </div>`;
  }

  #showSource({ view }: CoordinationDetail): TemplateResult | undefined {
    const source = view.forkedFrom;
    if (!source) return undefined;
    return html`<a href=${formatAddress({ place: "runs", id: source.coordinationId })}
        >${formatVisibleLine(source.coordinationId)}</a
      >
      at event ${source.sequence}`;
  }

  #showTab(tab: Tab): TemplateResult {
    const { step } = this.query;
    return html`<a
      href=${formatAddress({ place: "runs", id: this.runId, tab, query: { step } })}
      aria-current=${tab === this.tab ? "true" : nothing}
      >${TAB_NAMES[tab]}</a
    >`;
  }

  #showPicture(detail: CoordinationDetail): TemplateResult {
    const { page, runId, query } = this;
    const onStep = (event: CustomEvent<string>): void => this.#choose(event.detail);
    switch (this.tab) {
      case "timeline":
        return html`<time-chart
          .timeline=${detail.timeline}
          .steps=${detail.view.steps}
          .chosen=${query["step"]}
          @step=${onStep}
        ></time-chart>`;
      case "graph":
        return html`<work-graph .detail=${detail} .chosen=${query["step"]} @step=${onStep}></work-graph>`;
      case "log":
        return html`<event-log
          .page=${page}
          .runId=${runId}
          .sequence=${detail.sequence}
          .query=${query}
          .isForkable=${detail.kind === "plan"}
          @fork=${(event: CustomEvent<number>) => void this.#fork(event.detail, "plan")}
        ></event-log>`;
      case "what-if":
        return html`<what-if .page=${page} .runId=${runId}></what-if>`;
    }
  }

  #choose(stepId: string): void {
    location.hash = formatAddress({ place: "runs", id: this.runId, tab: this.tab, query: { step: stepId } });
  }

  #showPanel(detail: CoordinationDetail): TemplateResult | typeof nothing {
    const stepId = this.query["step"];
    const step = detail.view.steps.find((each) => each.stepId === stepId);
    if (!step) return nothing;
    return html`<step-panel
      .page=${this.page}
      .detail=${detail}
      .step=${step}
      @dismiss=${() => {
        location.hash = formatAddress({ place: "runs", id: this.runId, tab: this.tab });
      }}
    ></step-panel>`;
  }

  #showActions(detail: CoordinationDetail): TemplateResult {
    const { steps } = detail.view;
    const openCount = steps.filter((step) => step.endedAtMs === undefined).length;
    const before = `Steps that run are stopped, steps that wait are not begun, and the work ends as cancelled. ${formatCount(openCount, "step")} of ${steps.length} will be affected. It cannot be undone.`;
    const isRunning = detail.timeline.status === "running";
    return html`${showSaveButton("Save as file", () => this.#save(detail))}
    ${isRunning ? this.#showCancel(before) : nothing}`;
  }

  #save({ id, timeline, view }: CoordinationDetail): void {
    const writtenAtMs = this.page.feed.nowMs;
    const page = { timeline, steps: view.steps, objective: view.objective, writtenAtMs };
    saveFile(`timeline-${id}.html`, renderTimelineHtml(page), "text/html");
    this.page.announce("The timeline was saved as a file.");
  }

  #fork(event: number, kind: "plan" | "run"): Promise<void> {
    return offerFork(this.page, { path: `runs/${encodeURIComponent(this.runId)}`, event, kind });
  }
}

/** Lists the ids of all coordinations and plans in a tree. */
function listPlanIds({ coordinationId, planId, children }: TreeNode): string[] {
  const ids = [coordinationId, planId].filter((id) => id !== undefined);
  return [...ids, ...children.flatMap(listPlanIds)];
}

customElements.define("run-view", RunView);
