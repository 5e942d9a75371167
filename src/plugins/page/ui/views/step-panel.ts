/** Owns: all that is known of one step. */
import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatTokens,
  formatUsd,
} from "../../../../agents/coordination/std/quantities.ts";
import type { ActionResult } from "../../contract/actions.ts";
import type { CoordinationDetail, StepResult } from "../../contract/runs.ts";
import { describeDifference } from "../../../reports/question-lines.ts";
import { separateWords } from "../../drawing/row-marks.ts";
import { describeShownResource, findShownOutput } from "../../../reports/shown-resource.ts";
import { formatVisibleLine, formatVisibleText } from "../../drawing/visible-text.ts";
import { formatAddress } from "../app/address.ts";
import { describeProblem } from "../app/page-api.ts";
import { PageElement, showActionButton, type PageContext } from "../app/page-element.ts";
import { showFields, showInstant, showStatus, type ShownField } from "../parts/words.ts";

/** A step in the detail of a coordination. */
type DetailStep = CoordinationDetail["view"]["steps"][number];

class StepPanel extends PageElement {
  static override properties = {
    page: { attribute: false },
    detail: { attribute: false },
    step: { attribute: false },
    result: { state: true },
    problem: { state: true },
  };

  declare page: PageContext;
  declare detail: CoordinationDetail;
  declare step: DetailStep;
  declare result: StepResult | undefined;
  declare problem: string | undefined;

  protected override willUpdate(changed: PropertyValues<this>): void {
    const before = changed.get("step");
    if (before && identifyResult(before) !== identifyResult(this.step)) {
      this.result = undefined;
      this.problem = undefined;
    }
  }

  protected override render(): TemplateResult {
    const { step } = this;
    return html`<aside class="panel" aria-label="Step">
      <p class="buttons end">
        <button type="button" @click=${() => this.dispatchEvent(new Event("dismiss"))}>Close</button>
      </p>
      <h2>${formatVisibleLine(step.name ?? step.stepId, 120)}</h2>
      <p>
        ${showStatus(step.status)} ${step.durationMs === undefined ? "" : formatDuration(step.durationMs)}
      </p>
      ${this.#showActions()}
      ${step.error ? html`<p class="problem">${formatVisibleLine(`${step.error.code}: ${step.error.message}`)}</p>` : nothing}
      <h3>Envelope</h3>
      ${showFields(listEnvelopeFields(step))}
      <h3>Asked and ran</h3>
      ${showFields(listRequestedAndActualFields(step))}
      <h3>Attempts and times</h3>
      ${this.#showAttempts()} ${showFields(listTimeFields(step))} ${this.#showFindings()}
      ${this.#showClaims()}
      <h3>Used</h3>
      ${showFields(listUsageFields(step))}
      <h3>Result</h3>
      ${this.#showResult()}
    </aside>`;
  }

  #showActions(): TemplateResult | typeof nothing {
    const { step, detail, page } = this;
    const path = `runs/${encodeURIComponent(detail.id)}/steps/${encodeURIComponent(step.stepId)}`;
    if (step.status !== "blocked") return nothing;
    return html`<p class="buttons">
      ${showActionButton(page, {
        label: "Retry",
        right: "write",
        className: "primary",
        action: () => ({
          title: `Retry ${step.name ?? step.stepId}`,
          before: `One more attempt begins, number ${step.attempt + 1}. What the attempts before did outside is not undone.`,
          confirm: "Retry the step",
          perform: () => page.api.post<ActionResult>(`${path}/retry`, {}),
        }),
      })}
    </p>`;
  }

  #showAttempts(): TemplateResult | typeof nothing {
    const row = this.detail.timeline.rows.find(({ stepId }) => stepId === this.step.stepId);
    const earlier = row?.earlier ?? [];
    if (earlier.length === 0) return nothing;
    return html`<ol class="attempts">
      ${earlier.map(
        ({ attempt, status, startMs, durationMs }) =>
          html`<li value=${attempt}>
            ${separateWords(status)} after ${formatDuration(durationMs)}, begun at ${formatDuration(startMs)}
          </li>`,
      )}
      <li value=${this.step.attempt}>${separateWords(this.step.status)}</li>
    </ol>`;
  }

  #showFindings(): TemplateResult | typeof nothing {
    const { stepId, held: heldResult } = this.step;
    const verdicts = (this.detail.timeline.verdicts ?? []).filter((each) => each.stepId === stepId);
    if (verdicts.length === 0 && !heldResult) return nothing;
    return html`<h3>Checks</h3>
      ${heldResult ? html`<p>The result is held${heldResult.escalationId === undefined ? "" : html`; <a href=${formatAddress({ place: "questions" })}>people are asked</a>`}.</p>` : nothing}
      <ul>
        ${verdicts.map(
          ({ attempt, check, verdict, ruledMs }) =>
            html`<li>
              ${formatVisibleLine(check, 80)}: <strong>${verdict}</strong> for attempt ${attempt}, at
              ${formatDuration(ruledMs)}
            </li>`,
        )}
      </ul>`;
  }

  #showClaims(): TemplateResult | typeof nothing {
    const { stepId } = this.step;
    const claims = (this.detail.view.claims ?? []).filter((each) => each.stepId === stepId);
    const conflicts = (this.detail.timeline.conflicts ?? []).filter((each) => each.stepId === stepId);
    if (claims.length === 0 && conflicts.length === 0) return nothing;
    return html`<h3>Claims and conflicts</h3>
      <ul>
        ${claims.map(({ resource, token }) => html`<li>holds <span class="mono">${formatVisibleLine(describeShownResource(resource), 200)}</span> (token ${token})</li>`)}
        ${conflicts.map(
          ({ resource, outcome, because }) =>
            html`<li>
              ◆ <span class="mono">${formatVisibleLine(describeShownResource(resource), 200)}</span>:
              ${separateWords(outcome)}${because === undefined ? "" : `, ${separateWords(because)}`}
            </li>`,
        )}
      </ul>`;
  }

  #showResult(): TemplateResult {
    const { step, page } = this;
    const output = findShownOutput(step);
    if (!output) return html`<p class="quiet">There is none.</p>`;
    const { rights, refusals } = page.session;
    return html`<p class="quiet">
        ${formatBytes(output.bytes)}, sha256 <span class="mono">${output.sha256.slice(0, 16)}</span>
      </p>
      ${
        rights.results
          ? this.#showResultText()
          : html`<p class="quiet">${refusals.results ?? "Your session has no right to read results."}</p>`
      }`;
  }

  #showResultText(): TemplateResult {
    const { result, problem, step } = this;
    if (!result)
      return html`${problem === undefined ? nothing : html`<p class="problem" role="alert">${problem}</p>`}
        <button type="button" @click=${() => void this.#readResult()}>Show the result</button>`;
    if (result.text === null) return html`<p class="quiet">It is no longer kept.</p>`;
    return html`${step.held ? html`<p>It is held and does not count yet.</p>` : nothing}
      <pre class="held-text" tabindex="0" aria-label="The result">${formatVisibleText(result.text)}</pre>
      ${result.isCut ? html`<p class="quiet">Only its beginning is shown.</p>` : nothing}`;
  }

  async #readResult(): Promise<void> {
    const { detail, step, page } = this;
    const wanted = identifyResult(step);
    this.problem = undefined;
    try {
      const result = await page.api.get<StepResult>(
        `runs/${encodeURIComponent(detail.id)}/steps/${encodeURIComponent(step.stepId)}/result`,
      );
      if (wanted !== identifyResult(this.step)) return;
      if (result.sha256 === findShownOutput(step)?.sha256) this.result = result;
      else this.problem = "The step has another result by now.";
    } catch (error) {
      if (wanted === identifyResult(this.step)) this.problem = describeProblem(error);
    }
  }
}

/** Returns a text that stays the same for a step as long as its result does. */
function identifyResult(step: DetailStep): string {
  return `${step.stepId} ${findShownOutput(step)?.sha256}`;
}

function listEnvelopeFields(step: DetailStep): ShownField[] {
  const { dependsOn = [], fanIn, retryBudget } = step;
  const names =
    dependsOn.slice(0, 20).join(", ") + (dependsOn.length > 20 ? ` and ${dependsOn.length - 20} more` : "");
  return [
    ["step", html`<span class="mono">${formatVisibleLine(step.stepId)}</span>`],
    ["under", step.parentStepId],
    ["agent", `${step.agentId} (${step.runner})`],
    ["lane", `${step.lane}, ${step.priority}`],
    ["delivery", separateWords(step.deliveryMode)],
    ["depends on", fanIn !== undefined && fanIn < dependsOn.length ? `any ${fanIn} of ${names}` : names],
    ["retries", retryBudget === undefined ? undefined : String(retryBudget)],
    ["key", html`<span class="mono">${formatVisibleLine(step.idempotencyKey)}</span>`],
    ["input", `${formatBytes(step.input.bytes)}, sha256 ${step.input.sha256.slice(0, 16)}`],
    [
      "privileges",
      step.effectivePrivilege === undefined
        ? undefined
        : formatCount(step.effectivePrivilege.length, "bound"),
    ],
    [
      "refused calls",
      step.refusedCalls
        ? step.refusedCalls.map(({ tool, rule }) => `${tool} (${rule})`).join(", ")
        : undefined,
    ],
  ];
}

function listRequestedAndActualFields({
  requested,
  ran,
  differences = [],
  childSessionKey,
}: DetailStep): ShownField[] {
  const differs = formatVisibleLine(differences.map(describeDifference).join("; "));
  return [
    ["asked", describeSubagentSettings(requested)],
    ["ran", describeSubagentSettings(ran)],
    ["differs", differs === "" ? undefined : html`<strong class="warning">! ${differs}</strong>`],
    ["child", childSessionKey],
  ];
}

interface ChildParts {
  readonly model?: string | undefined;
  readonly thinking?: string | undefined;
  readonly folder?: string | undefined;
}

/** Returns the model, the thinking and the folder of a subagent, those that are known. */
function describeSubagentSettings({ model, thinking, folder }: ChildParts = {}): string {
  return [model, thinking === undefined ? undefined : `thinking ${thinking}`, folder]
    .filter((part) => part !== undefined)
    .join(", ");
}

function listTimeFields(step: DetailStep): ShownField[] {
  const showMoment = (atMs: number | undefined): TemplateResult | undefined =>
    atMs === undefined ? undefined : showInstant(atMs);
  return [
    ["admitted", showMoment(step.admittedAtMs)],
    ["dispatched", showMoment(step.dispatchedAtMs)],
    ["confirmed", showMoment(step.acknowledgedAtMs)],
    ["ended", showMoment(step.endedAtMs)],
    ["deadline", step.endedAtMs === undefined ? showMoment(step.deadlineAtMs) : undefined],
    ["next try", showMoment(step.retryAtMs)],
    ["answer by", showMoment(step.answerByMs)],
  ];
}

function listUsageFields({ usage }: DetailStep): ShownField[] {
  if (!usage) return [["usage", "not known"]];
  return [
    ["tokens", formatTokens(usage.tokens)],
    ["cost", formatUsd(usage.costMicroUsd)],
    ["calls", String(usage.calls)],
    ["models", usage.models.join(", ")],
  ];
}

customElements.define("step-panel", StepPanel);
