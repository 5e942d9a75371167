/** Owns: a chart of the last day, with the same numbers as a table. */
import { html, type PropertyValues, type TemplateResult } from "lit";
import type uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { HourCounts } from "../../contract/health.ts";
import { PageElement } from "../app/page-element.ts";

export interface Curve {
  readonly name: Exclude<keyof HourCounts, "startMs">;
  /** A colour of the style sheet. */
  readonly color: string;
  /** Told apart without colours. */
  readonly dash: readonly number[];
}

const HEIGHT = 170;
/** Between two lines of the grid: nothing is counted in halves. */
const WHOLE_STEPS = Array.from({ length: 10 }, (_, zeros) => 10 ** zeros).flatMap((size) => [
  size,
  2 * size,
  5 * size,
]);

/** Between two hours that are named, in seconds. */
const HOUR_STEPS = [1, 2, 3, 4, 6, 12, 24].map((hours) => hours * 3_600);

/**
 * Returns the labels of the time axis in UTC, as all times of the page. The library cannot do that in hours that the
 * clocks of the browser skip.
 */
function formatHourLabels(_plot: uPlot, seconds: readonly number[]): string[] {
  return seconds.map((each) => {
    const instant = new Date(each * 1_000).toISOString();
    const hour = instant.slice(11, 16);
    return hour === "00:00" ? `${hour}\n${instant.slice(0, 10)}` : hour;
  });
}

class HoursChart extends PageElement {
  static override properties = { title: {}, hours: { attribute: false }, curves: { attribute: false } };
  declare title: string;
  declare hours: readonly HourCounts[];
  declare curves: readonly Curve[];
  #plot: uPlot | undefined;
  #resize: ResizeObserver | undefined;
  readonly #scheme = matchMedia("(prefers-color-scheme: dark)");
  readonly #repaint = (): void => void this.#draw();

  override connectedCallback(): void {
    super.connectedCallback();
    this.#scheme.addEventListener("change", this.#repaint);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#scheme.removeEventListener("change", this.#repaint);
    this.#resize?.disconnect();
    this.#plot?.destroy();
  }

  protected override updated(changed: PropertyValues<this>): void {
    if (changed.has("hours")) void this.#draw();
  }

  /** Loads the library when there is something to draw; it fails where the browser has a language that is none. */
  async #draw(): Promise<void> {
    const { default: Plot } = await import("uplot");
    const place = this.querySelector<HTMLElement>(".plot");
    if (!place || !this.isConnected) return;
    this.#plot?.destroy();
    const style = getComputedStyle(document.documentElement);
    const axis = {
      stroke: style.getPropertyValue("--soft"),
      grid: { stroke: style.getPropertyValue("--line"), width: 1 },
    };
    this.#plot = new Plot(
      {
        width: Math.max(200, place.clientWidth),
        height: HEIGHT,
        legend: { show: false },
        cursor: { show: false },
        scales: { x: { time: false }, y: { range: (_plot, _min, max) => [0, Math.max(4, max * 1.1)] } },
        axes: [
          { ...axis, incrs: HOUR_STEPS, values: formatHourLabels },
          { ...axis, size: 44, incrs: WHOLE_STEPS },
        ],
        series: [
          {},
          ...this.curves.map(({ name, color, dash }) => ({
            label: name,
            stroke: style.getPropertyValue(color),
            dash: [...dash],
            width: 2,
            points: { show: false },
          })),
        ],
      },
      [
        this.hours.map(({ startMs }) => startMs / 1_000),
        ...this.curves.map(({ name }) => this.hours.map((hour) => hour[name])),
      ],
      place,
    );
    this.#resize ??= new ResizeObserver(() =>
      this.#plot?.setSize({ width: Math.max(200, place.clientWidth), height: HEIGHT }),
    );
    this.#resize.observe(place);
  }

  protected override render(): TemplateResult {
    const { title, hours, curves } = this;
    return html`<figure class="chart">
      <figcaption>
        <strong>${title}</strong>
        ${curves.map(
          ({ name, color, dash }) =>
            html`<span
              ><svg width="24" height="8" aria-hidden="true">
                <path
                  d="M0 4h24"
                  stroke=${`var(${color})`}
                  stroke-width="2"
                  stroke-dasharray=${dash.join(" ")}
                ></path>
              </svg>
              ${name}</span
            >`,
        )}
      </figcaption>
      <div class="plot" role="img" aria-label=${`${title}, by hour; the table below has the numbers`}></div>
      <details>
        <summary>Numbers</summary>
        <table>
          <thead>
            <tr>
              <th scope="col">Hour</th>
              ${curves.map(({ name }) => html`<th scope="col">${name}</th>`)}
            </tr>
          </thead>
          <tbody>
            ${hours.map(
              (hour) =>
                html`<tr>
                  <td>${new Date(hour.startMs).toISOString().slice(0, 13)}:00Z</td>
                  ${curves.map(({ name }) => html`<td class="number">${hour[name]}</td>`)}
                </tr>`,
            )}
          </tbody>
        </table>
      </details>
    </figure>`;
  }
}

customElements.define("hours-chart", HoursChart);
