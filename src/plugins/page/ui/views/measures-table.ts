/** Owns: the measures of the last seven days, with their targets. */
import { html, nothing, type TemplateResult } from "lit";
import { formatCount } from "../../../../agents/coordination/std/quantities.ts";
import { createMeasureWords } from "../../../reports/measure-words.ts";
import type { MeasuresReport } from "../../contract/measures-report.ts";
import { LoadedElement } from "../app/page-element.ts";

class MeasuresTable extends LoadedElement<MeasuresReport> {
  protected override read(): Promise<MeasuresReport> {
    return this.page.api.get("measures");
  }

  /** Returns false for every change: numbers of a week need not be counted anew with each event. */
  protected override isAffectedBy(): boolean {
    return false;
  }

  protected override showLoaded({
    measures,
    coordinations,
    isCut,
    unreadable = 0,
  }: MeasuresReport): TemplateResult {
    return html`<p class="quiet">
        ${isCut ? "The newest " : ""}${formatCount(coordinations, "coordination")} of the last seven days.
        ${unreadable > 0 ? `Left out, because their logs are damaged: ${unreadable}.` : nothing}
      </p>
      <div class="table" tabindex="0" role="region" aria-label="Measures">
        <table>
          <thead>
            <tr>
              ${["Measure", "Value", "Target", "Verdict", "Of"].map((each) => html`<th scope="col">${each}</th>`)}
            </tr>
          </thead>
          <tbody>
            ${measures.map((measure) => {
              const { name, value, target, verdict, countedOf } = createMeasureWords(measure);
              return html`<tr>
                <td>${name}</td>
                <td class="number">${value}</td>
                <td>${target}</td>
                <td class=${measure.verdict === "few" ? "quiet" : `status ${measure.verdict}`}>${verdict}</td>
                <td>${countedOf}</td>
              </tr>`;
            })}
          </tbody>
        </table>
      </div>`;
  }
}

customElements.define("measures-table", MeasuresTable);
