/** Owns: running a plan: its text is checked as it is typed or dropped, its graph is shown, then it is run. */
import { html, nothing, type TemplateResult } from "lit";
import { formatCount } from "../../../../agents/coordination/std/quantities.ts";
import type { PlacedProblem, PlanCheck, PlanRun } from "../../contract/actions.ts";
import { formatVisibleLine } from "../../drawing/visible-text.ts";
import type { ActionOutcome } from "../app/action.ts";
import { formatAddress } from "../app/address.ts";
import { describeProblem } from "../app/page-api.ts";
import { PageElement, showActionButton, type PageContext } from "../app/page-element.ts";
import "./work-graph.ts";

const TYPING_MS = 300;
const BYTES_MAX = 1_000_000;

/** A check with the text that it is of: no other text is run by it. */
interface CheckedText {
  readonly text: string;
  readonly check: PlanCheck;
}

class PlanView extends PageElement {
  static override properties = {
    page: { attribute: false },
    text: { state: true },
    checked: { state: true },
    problem: { state: true },
  };

  declare page: PageContext;
  declare text: string;
  /** Absent while the text is another one than was checked. */
  declare checked: CheckedText | undefined;
  declare problem: string | undefined;
  #typing: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    super();
    this.text = "";
  }

  protected override render(): TemplateResult {
    const { problem, checked } = this;
    return html`<h1>Run a plan</h1>
      <div
        class="drop"
        @dragover=${(event: DragEvent) => event.preventDefault()}
        @drop=${(event: DragEvent) => this.#onDrop(event)}
      >
        <label class="field"
          >The plan, YAML or JSON: paste it, or drop a file here
          <textarea
            class="mono"
            rows="18"
            spellcheck="false"
            .value=${this.text}
            @input=${(event: InputEvent) => this.#onInput(event)}
          ></textarea>
        </label>
        <label class="button"
          >Choose a file
          <input
            class="unseen"
            type="file"
            accept=".yaml,.yml,.json"
            @change=${(event: Event) => this.#onFile(event)}
        /></label>
      </div>
      <div aria-live="polite">
        ${problem === undefined ? nothing : html`<p class="problem">${problem}</p>`}
        ${checked ? this.#showCheck(checked) : nothing}
      </div>`;
  }

  #showCheck({ text, check }: CheckedText): TemplateResult {
    return check.ok ? this.#showPlan(check, text) : this.#showProblems(check.problems);
  }

  #showProblems(problems: readonly PlacedProblem[]): TemplateResult {
    return html`<h2>${formatCount(problems.length, "problem")}</h2>
      <ol class="problems">
        ${problems.map(
          ({ line, column, path, message }) =>
            html`<li>
              ${
                line === undefined
                  ? nothing
                  : html`<button type="button" class="plain" @click=${() => this.#showLine(line)}>
                      line ${line}${column === undefined ? "" : `:${column}`}
                    </button>`
              }
              <span class="mono">${formatVisibleLine(path, 120)}</span> ${formatVisibleLine(message)}
              ${line === undefined ? nothing : html`<pre>${formatVisibleLine(this.text.split("\n")[line - 1] ?? "", 200)}</pre>`}
            </li>`,
        )}
      </ol>`;
  }

  #showPlan(check: Extract<PlanCheck, { ok: true }>, text: string): TemplateResult {
    const { id, objective, plan } = check;
    return html`<h2>${formatVisibleLine(objective, 200)}</h2>
      <p>
        ${formatCount(plan.steps.length, "step")}, no problem.
        ${showActionButton(this.page, {
          label: "Run it",
          right: "write",
          className: "primary",
          action: () => ({
            title: "Run the plan",
            before: `${formatCount(plan.steps.length, "step")} will run as ${id}, the first ones at once, with what they may cost. A plan of this id that ran before is not run twice.`,
            confirm: "Run the plan",
            perform: () => this.#run(text),
          }),
        })}
      </p>
      <work-graph .plan=${plan}></work-graph>`;
  }

  async #run(text: string): Promise<ActionOutcome> {
    const { id, happened } = await this.page.api.post<PlanRun>("plans/run", { text });
    return { happened, address: formatAddress({ place: "runs", id }) };
  }

  #onInput(event: InputEvent): void {
    if (event.target instanceof HTMLTextAreaElement) this.#take(event.target.value);
  }

  #onDrop(event: DragEvent): void {
    event.preventDefault();
    void this.#read(event.dataTransfer?.files[0]);
  }

  #onFile(event: Event): void {
    const { target } = event;
    if (!(target instanceof HTMLInputElement)) return;
    void this.#read(target.files?.[0]);
    // A browser does not tell of the choice that is there already, as of a file that was changed.
    target.value = "";
  }

  async #read(file: File | undefined): Promise<void> {
    if (!file) return;
    if (file.size > BYTES_MAX) {
      this.problem = "The file is larger than 1 MB, more than a plan may have.";
      return;
    }
    try {
      this.#take(await file.text());
    } catch {
      this.problem =
        "The file cannot be read: it is a folder, or was changed or removed meanwhile. Choose it again.";
    }
  }

  #take(text: string): void {
    this.text = text;
    this.checked = undefined;
    this.problem = undefined;
    clearTimeout(this.#typing);
    this.#typing = setTimeout(() => void this.#check(text), TYPING_MS);
  }

  async #check(text: string): Promise<void> {
    if (text.trim() === "") return;
    try {
      const check = await this.page.api.post<PlanCheck>("plans/check", { text });
      if (text === this.text) this.checked = { text, check };
    } catch (error) {
      if (text === this.text) this.problem = describeProblem(error);
    }
  }

  /** Puts the cursor at a line and selects it. */
  #showLine(line: number): void {
    const area = this.querySelector("textarea");
    if (!area) return;
    const lines = this.text.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    area.focus();
    area.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  }
}

customElements.define("plan-view", PlanView);
