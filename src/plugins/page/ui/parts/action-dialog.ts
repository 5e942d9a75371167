/** Owns: doing something on somebody's word: what will happen is said first, what happened is said after. */
import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import type { Action, LateOutcome, OfferedAction } from "../app/action.ts";
import { ApiProblem, describeProblem } from "../app/page-api.ts";
import { PageElement, type PageContext } from "../app/page-element.ts";
import { formatVisibleLine } from "../../drawing/visible-text.ts";

/** How far the dialog is with its action. */
type DialogProgress =
  | { readonly kind: "asked" }
  | { readonly kind: "doing" }
  | { readonly kind: "done"; readonly happened: string }
  | { readonly kind: "refused"; readonly because: string };

class ActionDialog extends PageElement {
  static override properties = {
    page: { attribute: false },
    action: { attribute: false },
    progress: { state: true },
  };

  declare page: PageContext;
  declare action: Action | undefined;
  declare progress: DialogProgress;
  #opener: Element | null = null;

  constructor() {
    super();
    this.progress = { kind: "asked" };
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has("action") && this.action) this.progress = { kind: "asked" };
  }

  protected override updated(changed: PropertyValues<this>): void {
    const dialog = this.querySelector("dialog");
    if (changed.has("action") && this.action && dialog && !dialog.open) {
      this.#opener = document.activeElement;
      dialog.showModal();
    }
    if (changed.has("progress") && (this.progress.kind === "done" || this.progress.kind === "refused"))
      this.querySelector<HTMLButtonElement>(".close")?.focus();
  }

  protected override render(): TemplateResult {
    const { action } = this;
    return html`<dialog class="action" aria-labelledby="action-title" @close=${() => this.#onClose()}>
      ${
        action
          ? html`<h2 id="action-title">${formatVisibleLine(action.title, 160)}</h2>
              ${this.#showBody(action)}`
          : nothing
      }
    </dialog>`;
  }

  #showBody(action: Action): TemplateResult {
    const { progress } = this;
    if (action.isRefused)
      return html`<p>${action.before}</p>
        ${this.#showClose()}`;
    if (progress.kind === "done")
      return html`<p class="happened" role="status">✓ ${formatVisibleLine(progress.happened)}</p>
        ${this.#showClose()}`;
    const isDoing = progress.kind === "doing";
    return html`<form method="dialog" @submit=${(event: SubmitEvent) => this.#onSubmit(event, action)}>
      <p>${formatVisibleLine(action.before, 2_000)}</p>
      ${action.details?.() ?? nothing}
      ${
        action.field
          ? html`<label class="field"
              >${action.field.label}<textarea
                name="text"
                rows="3"
                ?required=${action.field.isRequired}
              ></textarea>
            </label>`
          : nothing
      }
      ${progress.kind === "refused" ? html`<p class="problem" role="alert">${formatVisibleLine(progress.because)}</p>` : nothing}
      <p class="buttons">
        <button
          type="submit"
          class=${action.isDangerous ? "danger" : "primary"}
          ?disabled=${isDoing}
          autofocus
        >
          ${isDoing ? "Working …" : action.confirm}
        </button>
        <button type="button" class="close" @click=${() => this.querySelector("dialog")?.close()}>
          ${isDoing ? "Close" : "Do nothing"}
        </button>
      </p>
    </form>`;
  }

  #showClose(): TemplateResult {
    return html`<p class="buttons">
      <button type="button" class="close" autofocus @click=${() => this.querySelector("dialog")?.close()}>
        Close
      </button>
    </p>`;
  }

  #onSubmit(event: SubmitEvent, action: OfferedAction): void {
    event.preventDefault();
    const text = this.querySelector<HTMLTextAreaElement>("textarea")?.value ?? "";
    void this.#perform(action, text);
  }

  async #perform(action: OfferedAction, text: string): Promise<void> {
    this.progress = { kind: "doing" };
    try {
      const { happened, address } = await action.perform(text);
      this.#tell(action, { isDone: true, sentence: happened, address });
      action.onDone?.();
    } catch (error) {
      this.#tell(action, { isDone: false, sentence: describeFailedAction(error) });
    }
  }

  /** The dialog may have been closed meanwhile, or be about something else: then whoever looks at the page stays where they are. */
  #tell(action: OfferedAction, { isDone, sentence, address }: LateOutcome): void {
    if (this.action !== action) {
      this.page.tellLate({ isDone, sentence: formatVisibleLine(`${action.title}: ${sentence}`), address });
      return;
    }
    this.progress = isDone ? { kind: "done", happened: sentence } : { kind: "refused", because: sentence };
    if (address !== undefined) location.hash = address;
  }

  #onClose(): void {
    this.action = undefined;
    if (this.#opener instanceof HTMLElement) this.#opener.focus();
    this.dispatchEvent(new Event("closed"));
  }
}

/**
 * Returns why an action failed, and where no answer came that it may have been done. Nothing repeats an action by
 * itself.
 */
function describeFailedAction(error: unknown): string {
  const isUnknown = error instanceof ApiProblem && error.code === "unreachable";
  return `${describeProblem(error)}${isUnknown ? " Whether it was done is not known: look, and then try again." : ""}`;
}

customElements.define("action-dialog", ActionDialog);

declare global {
  interface HTMLElementTagNameMap {
    "action-dialog": ActionDialog;
  }
}
