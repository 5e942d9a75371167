/** Owns: what would have been decided under another policy, beside what was. */
import { html, nothing, type TemplateResult } from "lit";
import { formatCount } from "../../../../agents/coordination/std/quantities.ts";
import type { WhatIfAnswer } from "../../contract/actions.ts";
import { separateWords } from "../../drawing/row-marks.ts";
import { formatVisibleLine } from "../../drawing/visible-text.ts";
import { describeShownResource } from "../../../reports/shown-resource.ts";
import { describeProblem } from "../app/page-api.ts";
import { PageElement, type PageContext } from "../app/page-element.ts";

const EXAMPLE = `{
  "gates": { "confidenceThreshold": 0.9 }
}`;

class WhatIf extends PageElement {
  static override properties = {
    page: { attribute: false },
    runId: { attribute: false },
    answer: { state: true },
    problem: { state: true },
    isAsking: { state: true },
  };

  declare page: PageContext;
  declare runId: string;
  declare answer: WhatIfAnswer | undefined;
  declare problem: string | undefined;
  declare isAsking: boolean;

  constructor() {
    super();
    this.isAsking = false;
  }

  protected override render(): TemplateResult {
    return html`<label class="field"
        >Another policy, as JSON
        <textarea class="mono" rows="6" spellcheck="false">${EXAMPLE}</textarea>
      </label>
      <p class="quiet">The log is decided again under this policy. Nothing runs and nothing is recorded.</p>
      <p class="buttons">
        <button type="button" class="primary" ?disabled=${this.isAsking} @click=${() => void this.#compare()}>
          Compare
        </button>
      </p>
      <div aria-live="polite">
        ${this.problem === undefined ? nothing : html`<p class="problem">${formatVisibleLine(this.problem, 2_000)}</p>`}
        ${this.answer ? showWhatIfAnswer(this.answer) : nothing}
      </div>`;
  }

  async #compare(): Promise<void> {
    const text = this.querySelector("textarea")?.value ?? "";
    this.isAsking = true;
    this.problem = undefined;
    this.answer = undefined;
    try {
      const policy = parsePolicyJson(text);
      this.answer = await this.page.api.post(`runs/${encodeURIComponent(this.runId)}/what-if`, { policy });
    } catch (error) {
      this.problem =
        error instanceof SyntaxError ? `This is no JSON: ${error.message}` : describeProblem(error);
    }
    this.isAsking = false;
  }
}

function parsePolicyJson(text: string): unknown {
  return JSON.parse(text) as unknown;
}

const CERTAINTIES = {
  differs: "",
  follows: " (follows from the ones before)",
  unknown: " (not known)",
} as const;

/** The history of a coordination under another policy. */
type PolicyDifferences = NonNullable<WhatIfAnswer["whatIf"]>;

function showWhatIfAnswer({ difference, whatIf }: WhatIfAnswer): TemplateResult {
  if (difference)
    return html`<p class="problem">
      Event ${difference.sequence} (${difference.type}) does not follow from the events before it:
      ${formatVisibleLine(difference.why, 2_000)}. What would follow under another policy cannot be told.
    </p>`;
  return whatIf
    ? html`${showDifferences(whatIf)}
      ${whatIf.uncertain.map(
        ({ stepId, why }) =>
          html`<p class="quiet">
            No longer certain: ${formatVisibleLine(stepId, 120)} (${formatVisibleLine(why)})
          </p>`,
      )}
      ${whatIf.limits.map((limit) => html`<p class="quiet">${formatVisibleLine(limit, 2_000)}</p>`)}`
    : html``;
}

function showDifferences({ points, recorded, would, leftOut }: PolicyDifferences): TemplateResult {
  if (points.length === 0)
    return html`<p class="happened">Under this policy the same would have been decided.</p>`;
  return html`<p>
      <strong>${formatCount(points.length, "decision")}</strong> would have been another. Recorded:
      ${separateWords(recorded)}. As far as it is certain: ${separateWords(would)}.
      ${leftOut > 0 ? `${formatCount(leftOut, "recorded fact")} left out: about work that would not have been the recorded work.` : ""}
    </p>
    <div class="table" tabindex="0" role="region" aria-label="Differences">
      <table>
        <thead>
          <tr>
            <th scope="col">Event</th>
            <th scope="col">About</th>
            <th scope="col">Decided</th>
            <th scope="col">Would be</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          ${points.map(
            (point) =>
              html`<tr>
                <td class="number">${point.sequence}</td>
                <td class="mono">${formatVisibleLine(describeDecisionSubject(point), 120)}</td>
                <td><del>${formatVisibleLine(point.decided)}</del></td>
                <td><ins>${formatVisibleLine(point.would)}</ins>${CERTAINTIES[point.certainty]}</td>
                <td>${formatVisibleLine(point.why)}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
}

/** Returns the step, the resource, or both that a decision is about; `coordination` where it is about the whole. */
function describeDecisionSubject({ stepId, resource }: PolicyDifferences["points"][number]): string {
  const parts = [...(stepId ? [stepId] : []), ...(resource ? [describeShownResource(resource)] : [])];
  return parts.join(" ") || "coordination";
}

customElements.define("what-if", WhatIf);
