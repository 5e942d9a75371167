/** Owns: how the installation is: what is open, the lanes, the ledger, and the last day as charts. */
import { html, nothing, type TemplateResult } from "lit";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatTokens,
  formatUsd,
} from "../../../../agents/coordination/std/quantities.ts";
import { describeGateways } from "../../../reports/gateway-report.ts";
import type { HealthReport, LastVerification } from "../../contract/health.ts";
import type { PageHome } from "../../contract/session.ts";
import { separateWords } from "../../drawing/row-marks.ts";
import { LoadedElement } from "../app/page-element.ts";
import { showFields, showInstant } from "../parts/words.ts";
import "./hours-chart.ts";
import "./measures-table.ts";
import type { Curve } from "./hours-chart.ts";

const OUTCOMES: readonly Curve[] = [
  { name: "opened", color: "--accent", dash: [] },
  { name: "completed", color: "--good", dash: [8, 4] },
  { name: "failed", color: "--bad", dash: [2, 3] },
];
const ATTENTION: readonly Curve[] = [
  { name: "questions", color: "--hold", dash: [] },
  { name: "conflicts", color: "--warn", dash: [6, 4] },
];
const EVENTS: readonly Curve[] = [{ name: "events", color: "--accent", dash: [] }];

class HealthView extends LoadedElement<HealthReport> {
  /** By how much the server's clock was ahead of the browser's when the report was read. */
  #aheadMs = 0;

  protected override async read(): Promise<HealthReport> {
    const report = await this.page.api.get<HealthReport>("health");
    this.#aheadMs = report.atMs - Date.now();
    return report;
  }

  protected override isAffectedBy(): boolean {
    return true;
  }

  protected override showLoaded(report: HealthReport): TemplateResult {
    const { contents, hours, isHoursCut } = report;
    return html`<h1>Health</h1>
      <ul class="tiles">
        ${showTile("running", contents.running)} ${showTile("open steps", contents.openSteps)}
        ${showTile("open questions", contents.openQuestions)}
        ${showTile("open conflicts", contents.openConflicts)}
        ${showTile("refused calls", contents.refusedCalls)} ${showTile("mismatches", contents.mismatches)}
      </ul>
      ${showLedger(report, this.#aheadMs)} ${showLanes(report, this.page.session.product.home)}
      <h2>Measures</h2>
      <measures-table .page=${this.page}></measures-table>
      <h2>The last day, in UTC</h2>
      ${isHoursCut ? html`<p class="quiet">More happened than is counted; the oldest hours are short.</p>` : nothing}
      <div class="charts">
        <hours-chart .title=${"Work"} .hours=${hours} .curves=${OUTCOMES}></hours-chart>
        <hours-chart .title=${"Attention"} .hours=${hours} .curves=${ATTENTION}></hours-chart>
        <hours-chart .title=${"Recorded events"} .hours=${hours} .curves=${EVENTS}></hours-chart>
      </div>`;
  }
}

function showTile(name: string, count: number): TemplateResult {
  return html`<li class="tile"><strong>${count}</strong> ${name}</li>`;
}

function describeLastVerification(verification: LastVerification | undefined): string | TemplateResult {
  if (!verification) return "never; run `openclaw coordination verify`";
  const { atMs, ok, problems, isCut, events } = verification;
  const outcome = ok
    ? `sound, ${formatCount(events, "event")}`
    : `DAMAGED, ${isCut ? "at least " : ""}${formatCount(problems, "problem")}`;
  return html`${showInstant(atMs)}: ${outcome}`;
}

function showLedger(
  { contents, health, ledgerBytes, claims, verification }: HealthReport,
  aheadMs: number,
): TemplateResult {
  const { runningUsage, answerByMs } = contents;
  return html`<h2>Ledger</h2>
    ${showFields([
      ["state", separateWords(health.state)],
      [
        "spawns not coordinated",
        health.uncoordinatedSpawns > 0 ? formatCount(health.uncoordinatedSpawns, "spawn") : undefined,
      ],
      ["coordinations", String(contents.coordinations)],
      ["size", formatBytes(ledgerBytes)],
      ["claims", String(claims)],
      ["gateways", describeGateways(contents.gateways)],
      ["verified", describeLastVerification(verification)],
      [
        "running work used",
        runningUsage
          ? `${formatTokens(runningUsage.tokens)} tokens, ${formatUsd(runningUsage.costMicroUsd)}`
          : undefined,
      ],
      ["next deadline of a question", answerByMs === undefined ? undefined : showInstant(answerByMs)],
      [
        "clocks",
        Math.abs(aheadMs) > CLOCK_MS_MAX
          ? `the server's clock is ${formatDuration(Math.abs(aheadMs))} ${aheadMs > 0 ? "ahead of" : "behind"} this one`
          : undefined,
      ],
    ])}`;
}

/** Smaller differences come from the network. */
const CLOCK_MS_MAX = 30_000;

const WITHOUT_LANES: Readonly<Record<PageHome, string>> = {
  gateway: "There are no lanes: this gateway coordinates nothing now.",
  serve: "Lanes are those of a gateway; this page is served without one.",
};

function showLanes({ lanes }: HealthReport, home: PageHome): TemplateResult {
  if (!lanes) return html`<p class="quiet">${WITHOUT_LANES[home]}</p>`;
  return html`<h2>Lanes</h2>
    <div class="table" tabindex="0" role="region" aria-label="Lanes">
      <table>
        <thead>
          <tr>
            ${["Lane", "Running", "Waiting", "Admitted", "Refused", "Longest wait"].map((each) => html`<th scope="col">${each}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${Object.entries(lanes).map(
            ([name, { running, concurrency, waiting, queueMax, admitted, refused, waitedMs }]) =>
              html`<tr>
                <td>${name}</td>
                <td class="number">${running} of ${concurrency}</td>
                <td class="number">${waiting} of ${queueMax}</td>
                <td class="number">${admitted}</td>
                <td class="number">${refused}</td>
                <td class="number">${formatDuration(waitedMs.max)}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
}

customElements.define("health-view", HealthView);
