/**
 * Owns: the timeline on the screen. Only the rows in sight are drawn, so that one of ten thousand steps moves as easily as one
 * of ten.
 */
import { html, svg, type PropertyValues, type SVGTemplateResult, type TemplateResult } from "lit";
import { guard } from "lit/directives/guard.js";
import type { Timeline } from "../../../reports/timeline.ts";
import { formatDuration } from "../../../../agents/coordination/std/quantities.ts";
import {
  AXIS_HEIGHT,
  describeRow,
  drawRowName,
  drawTimelineRow,
  NAME_WIDTH,
  ROW_HEIGHT,
} from "../../drawing/draw-row.ts";
import { markTimelineRows, type AdmittedStep, type RowMarks } from "../../drawing/row-marks.ts";
import { roundToTenth, type Shape } from "../../drawing/shapes.ts";
import {
  createTimeScale,
  listTicks,
  panWindow,
  zoomWindow,
  type TimeScale,
  type TimeWindow,
} from "../../drawing/time-scale.ts";
import { PATTERNS } from "../../drawing/timeline-style.ts";
import { PageElement } from "../app/page-element.ts";
import { drawLoadPath } from "./load-curve.ts";

const OVERVIEW_HEIGHT = 34;
const MARGIN = 10;
const ZOOM = 0.7;
const PAN_SHARE = 0.15;
const ROWS_PER_PAGE = 20;

class TimeChart extends PageElement {
  static override properties = {
    timeline: { attribute: false },
    steps: { attribute: false },
    chosen: { attribute: false },
    window: { state: true },
    width: { state: true },
    height: { state: true },
    top: { state: true },
    active: { state: true },
  };

  declare timeline: Timeline;
  declare steps: readonly AdmittedStep[];
  declare chosen: string | undefined;
  /** `undefined`: all of it, also while it grows. */
  declare window: TimeWindow | undefined;
  declare width: number;
  declare height: number;
  declare top: number;
  /** The row that the keyboard is at. */
  declare active: number;
  #marks: readonly RowMarks[] = [];
  #load = "";
  #resize: ResizeObserver | undefined;
  #drag:
    | { readonly x: number; readonly window: TimeWindow; readonly isOverview: boolean; isMoved: boolean }
    | undefined;

  constructor() {
    super();
    this.width = 900;
    this.height = 480;
    this.top = 0;
    this.active = 0;
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    const isChosenAnew = changed.has("chosen") && this.chosen !== undefined;
    const activeId = isChosenAnew ? this.chosen : this.#marks[this.active]?.row.stepId;
    if (changed.has("timeline") || changed.has("steps")) {
      this.#marks = markTimelineRows(this.timeline, this.steps);
      this.#load = drawLoadPath(this.timeline, OVERVIEW_HEIGHT);
    } else if (!isChosenAnew) return;
    this.active = Math.max(
      0,
      this.#marks.findIndex(({ row }) => row.stepId === activeId),
    );
  }

  protected override firstUpdated(): void {
    const scroller = this.querySelector(".scroller");
    if (!scroller) return;
    this.#resize = new ResizeObserver(() => {
      this.width = scroller.clientWidth;
      this.height = scroller.clientHeight;
    });
    this.#resize.observe(scroller);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#resize?.disconnect();
  }

  get #totalMs(): number {
    return Math.max(1, this.timeline.durationMs);
  }

  get #window(): TimeWindow {
    return this.window ?? { fromMs: 0, toMs: this.#totalMs };
  }

  get #plotWidth(): number {
    return Math.max(60, this.width - NAME_WIDTH - MARGIN);
  }

  protected override render(): TemplateResult {
    const scale = createTimeScale(this.#window, this.#plotWidth);
    const rowsHeight = this.#marks.length * ROW_HEIGHT;
    return html`${this.#showTools()} ${this.#showOverview()}
      <svg class="drawing axis" aria-hidden="true" width=${this.width} height=${AXIS_HEIGHT}>
        ${listTicks(scale).map(
          ({ x, label }) => svg`<text class="tick-label" x=${NAME_WIDTH + x + 3} y="15">${label}</text>`,
        )}
      </svg>
      <div
        class="scroller"
        role="listbox"
        tabindex="0"
        aria-label="Steps on the time axis"
        aria-activedescendant=${`row-${this.active}`}
        @scroll=${(event: Event) => this.#onScroll(event)}
        @keydown=${(event: KeyboardEvent) => this.#onKey(event)}
        @wheel=${(event: WheelEvent) => this.#onWheel(event)}
      >
        <div class="stage" role="presentation">${this.#showRows(scale)}</div>
        <svg class="spacer" aria-hidden="true" width="1" height=${Math.max(1, rowsHeight)}></svg>
      </div>
      ${showLegend()}`;
  }

  #showTools(): TemplateResult {
    const { fromMs, toMs } = this.#window;
    return html`<p class="tools">
      <button type="button" @click=${() => this.#zoom(ZOOM)}>Zoom in</button>
      <button type="button" @click=${() => this.#zoom(1 / ZOOM)}>Zoom out</button>
      <button type="button" ?disabled=${this.window === undefined} @click=${() => this.#showAll()}>
        All
      </button>
      <span class="quiet"
        >${formatDuration(fromMs)} to ${formatDuration(toMs)} · drag to move, Ctrl and wheel to zoom; keys:
        arrows, + − 0, Enter</span
      >
    </p>`;
  }

  /** How many steps were at work, over the whole; what is in sight is framed. */
  #showOverview(): TemplateResult {
    const whole = createTimeScale({ fromMs: 0, toMs: this.#totalMs }, this.#plotWidth);
    const x = whole.xOf(this.#window.fromMs);
    const width = Math.max(3, whole.xOf(this.#window.toMs) - x);
    return html`<svg
      class="drawing overview"
      aria-hidden="true"
      width=${this.width}
      height=${OVERVIEW_HEIGHT}
      @pointerdown=${(event: PointerEvent) => this.#onGrab(event, true)}
      @pointermove=${(event: PointerEvent) => this.#onDrag(event)}
      @pointerup=${(event: PointerEvent) => this.#onDrop(event)}
    >
      <text x="6" y="20" class="tick-label">steps at work</text>
      <svg
        x=${NAME_WIDTH}
        width=${this.#plotWidth}
        height=${OVERVIEW_HEIGHT}
        viewBox="0 0 300 ${OVERVIEW_HEIGHT}"
        preserveAspectRatio="none"
      >
        <path class="load" d=${this.#load}></path>
      </svg>
      <rect class="frame" x=${NAME_WIDTH + x} y="1" width=${width} height=${OVERVIEW_HEIGHT - 2}></rect>
    </svg>`;
  }

  #showRows(scale: TimeScale): TemplateResult {
    const first = Math.max(0, Math.floor(this.top / ROW_HEIGHT) - 1);
    const last = Math.min(this.#marks.length, Math.ceil((this.top + this.height) / ROW_HEIGHT) + 1);
    const rows = this.#marks.slice(first, last);
    return html`<svg
      class="drawing rows"
      role="presentation"
      width=${this.width}
      height=${this.height}
      @pointerdown=${(event: PointerEvent) => this.#onGrab(event, false)}
      @pointermove=${(event: PointerEvent) => this.#onDrag(event)}
      @pointerup=${(event: PointerEvent) => this.#onDrop(event)}
      @pointercancel=${() => this.#letGo()}
    >
      ${showHatchPatterns()} ${rows.map(({ row }, index) => this.#showStripe(row.stepId, first + index))}
      ${listTicks(scale).map(({ x }) => svg`<path class="tick" d="M${NAME_WIDTH + x} 0V${this.height}"></path>`)}
      ${rows.map((marks, index) => this.#showRow(marks, { index: first + index, scale }))}
    </svg>`;
  }

  #showRow(
    marks: RowMarks,
    { index, scale }: { readonly index: number; readonly scale: TimeScale },
  ): SVGTemplateResult {
    const y = index * ROW_HEIGHT - this.top;
    const { stepId } = marks.row;
    const isChosen = stepId === this.chosen;
    return svg`<g id=${`row-${index}`} role="option" aria-selected=${isChosen ? "true" : "false"} aria-label=${guard([marks], () => describeRow(marks))} class=${index === this.active ? "active" : "row"}>
      ${drawTimelineRow(marks, { y, scale }).map(showShape)}
      <rect class=${`cover ${this.#chooseStripe(stepId, index)}`} x="0" y=${y} width=${NAME_WIDTH - 2} height=${ROW_HEIGHT}></rect>
      ${guard([marks, y], () => drawRowName(marks, y).map(showShape))}
    </g>`;
  }

  #showStripe(stepId: string, index: number): SVGTemplateResult {
    const y = index * ROW_HEIGHT - this.top;
    return svg`<rect class=${this.#chooseStripe(stepId, index)} x="0" y=${y} width=${this.width} height=${ROW_HEIGHT}></rect>`;
  }

  #chooseStripe(stepId: string, index: number): string {
    if (stepId === this.chosen) return "chosen";
    return index % 2 === 0 ? "stripe" : "bare";
  }

  #onScroll(event: Event): void {
    if (event.target instanceof HTMLElement) this.top = event.target.scrollTop;
  }

  #onWheel(event: WheelEvent): void {
    const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!event.ctrlKey && !isSideways) return;
    event.preventDefault();
    const { fromMs, toMs } = this.#window;
    const msPerPixel = (toMs - fromMs) / this.#plotWidth;
    if (isSideways) this.window = panWindow(this.#window, event.deltaX * msPerPixel, this.#totalMs);
    else this.#zoom(event.deltaY < 0 ? ZOOM : 1 / ZOOM, fromMs + this.#pixelsIntoPlot(event) * msPerPixel);
  }

  #pixelsIntoPlot(event: MouseEvent): number {
    const left = this.querySelector(".scroller")?.getBoundingClientRect().left ?? 0;
    return event.clientX - left - NAME_WIDTH;
  }

  #onGrab(event: PointerEvent, isOverview: boolean): void {
    if (event.button !== 0 || !(event.currentTarget instanceof Element)) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    this.#drag = { x: event.clientX, window: this.#window, isOverview, isMoved: false };
  }

  #onDrag(event: PointerEvent): void {
    const drag = this.#drag;
    if (!drag) return;
    const pixels = event.clientX - drag.x;
    if (Math.abs(pixels) > 3) drag.isMoved = true;
    if (!drag.isMoved) return;
    const span = drag.isOverview ? this.#totalMs : drag.window.fromMs - drag.window.toMs;
    this.window = panWindow(drag.window, (pixels * span) / this.#plotWidth, this.#totalMs);
  }

  #onDrop(event: PointerEvent): void {
    const drag = this.#drag;
    this.#letGo();
    if (!drag || drag.isMoved || drag.isOverview) return;
    const top = this.querySelector(".scroller")?.getBoundingClientRect().top ?? 0;
    this.#open(Math.floor((event.clientY - top + this.top) / ROW_HEIGHT));
  }

  #letGo(): void {
    this.#drag = undefined;
  }

  #open(index: number): void {
    const marks = this.#marks[index];
    if (!marks) return;
    this.active = index;
    this.dispatchEvent(new CustomEvent("step", { detail: marks.row.stepId }));
  }

  #showAll(): void {
    this.window = undefined;
  }

  #zoom(factor: number, aroundMs = (this.#window.fromMs + this.#window.toMs) / 2): void {
    this.window = zoomWindow(this.#window, { factor, aroundMs, totalMs: this.#totalMs });
  }

  #onKey(event: KeyboardEvent): void {
    const { fromMs, toMs } = this.#window;
    const shift = (toMs - fromMs) * PAN_SHARE;
    const actions: Readonly<Record<string, () => void>> = {
      ArrowDown: () => this.#move(1),
      ArrowUp: () => this.#move(-1),
      PageDown: () => this.#move(ROWS_PER_PAGE),
      PageUp: () => this.#move(-ROWS_PER_PAGE),
      Home: () => this.#move(-this.#marks.length),
      End: () => this.#move(this.#marks.length),
      Enter: () => this.#open(this.active),
      ArrowLeft: () => (this.window = panWindow(this.#window, -shift, this.#totalMs)),
      ArrowRight: () => (this.window = panWindow(this.#window, shift, this.#totalMs)),
      "+": () => this.#zoom(ZOOM),
      "-": () => this.#zoom(1 / ZOOM),
      "0": () => this.#showAll(),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  #move(rows: number): void {
    this.active = Math.min(this.#marks.length - 1, Math.max(0, this.active + rows));
    const scroller = this.querySelector(".scroller");
    if (!scroller) return;
    const y = this.active * ROW_HEIGHT;
    if (y < this.top) scroller.scrollTop = y;
    if (y + ROW_HEIGHT > this.top + this.height) scroller.scrollTop = y + ROW_HEIGHT - this.height;
  }
}

const LEGEND = [
  { className: "span queue", words: "waits" },
  { className: "span begins", words: "is started" },
  { className: "span work running", words: "works" },
  { className: "span work completed", words: "completed" },
  { className: "span work failed", words: "failed" },
  { className: "span tried", words: "earlier attempt" },
  { className: "span held", words: "result held" },
  { className: "span asked", words: "people are asked" },
] as const;

function showLegend(): TemplateResult {
  return html`<p class="legend">
    ${LEGEND.map(
      ({ className, words }) =>
        html`<span
          ><svg class="drawing" aria-hidden="true" width="22" height="12">
            <rect class=${className} x="1" y="2" width="20" height="8"></rect>
          </svg>
          ${words}</span
        >`,
    )}
    <span>◆ conflict</span><span>✓ △ check</span><span>✕ call refused</span>
  </p>`;
}

function showShape(shape: Shape): SVGTemplateResult {
  switch (shape.kind) {
    case "box":
      return svg`<rect class=${shape.className} x=${roundToTenth(shape.x)} y=${roundToTenth(shape.y)} width=${roundToTenth(shape.width)} height=${roundToTenth(shape.height)}><title>${shape.label ?? ""}</title></rect>`;
    case "words":
      return svg`<text class=${shape.className} x=${roundToTenth(shape.x)} y=${roundToTenth(shape.y)}>${shape.text}</text>`;
    case "outline":
      return svg`<path class=${shape.className} d=${shape.path}><title>${shape.label ?? ""}</title></path>`;
  }
}

function showHatchPatterns(): SVGTemplateResult {
  return svg`<defs>${PATTERNS.map(
    ({ id, turn }) =>
      svg`<pattern id=${id} width="6" height="6" patternUnits="userSpaceOnUse" patternTransform=${turn}><path class="hatch-${id}" d="M0 0V6"></path></pattern>`,
  )}</defs>`;
}

customElements.define("time-chart", TimeChart);
