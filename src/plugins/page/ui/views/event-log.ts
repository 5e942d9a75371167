/** Owns: the log of a coordination or workflow run: cause and effect linked, filtered, as raw JSON, to be saved. */
import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { formatCount } from "../../../../agents/coordination/std/quantities.ts";
import type { EventsPage, LoggedEvent, ReadableEvent } from "../../contract/runs.ts";
import { formatVisibleLine, formatVisibleText } from "../../drawing/visible-text.ts";
import { describeProblem } from "../app/page-api.ts";
import { PageElement, type PageContext } from "../app/page-element.ts";
import { saveFile, showSaveButton } from "../parts/words.ts";

const PAGE_EVENTS = 200;
const SAVED_PAGE_EVENTS = 1_000;
const SAVED_EVENTS_MAX = 100_000;
const ALL_EVENTS =
  "The command `events` prints all of them with `--json`; the command `runs` those of a workflow run.";

class EventLog extends PageElement {
  static override properties = {
    page: { attribute: false },
    runId: { attribute: false },
    sequence: { attribute: false },
    isForkable: { attribute: false },
    events: { state: true },
    next: { state: true },
    filter: { state: true },
    problem: { state: true },
    marked: { state: true },
  };

  declare page: PageContext;
  declare runId: string;
  /** The sequence of the newest event that the page was told of. */
  declare sequence: number;
  declare isForkable: boolean | undefined;
  declare events: readonly LoggedEvent[];
  /** After which there is more. */
  declare next: number | undefined;
  declare filter: string;
  declare problem: string | undefined;
  declare marked: number | undefined;
  #isReading = false;

  constructor() {
    super();
    this.events = [];
    this.filter = "";
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has("runId")) {
      this.events = [];
      this.next = undefined;
    }
    if (changed.has("runId") || (changed.has("sequence") && this.#isBehind)) void this.#readOn();
  }

  get #lastSequence(): number {
    return this.events.at(-1)?.sequence ?? -1;
  }

  get #isBehind(): boolean {
    return this.next === undefined && this.sequence > this.#lastSequence;
  }

  /** Reads once more where the page was told of further events meanwhile. */
  async #readOn(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    let sequence: number;
    do {
      sequence = this.sequence;
      await this.#readNext();
    } while (sequence !== this.sequence && this.#isBehind);
    this.#isReading = false;
  }

  async #readNext(): Promise<void> {
    try {
      const { events, next } = await this.#readPage(this.#lastSequence, PAGE_EVENTS);
      this.events = [...this.events, ...events];
      this.next = next;
      this.problem = undefined;
    } catch (error) {
      this.problem = describeProblem(error);
    }
  }

  #readPage(after: number, limit: number): Promise<EventsPage> {
    return this.page.api.get(`runs/${encodeURIComponent(this.runId)}/events`, {
      limit: String(limit),
      ...(after >= 0 && { after: String(after) }),
    });
  }

  protected override render(): TemplateResult {
    const wanted = this.filter.toLowerCase();
    const shown = wanted === "" ? this.events : this.events.filter((event) => hasEventText(event, wanted));
    const effects = Map.groupBy(this.events.filter(isReadableEvent), ({ causationId = "" }) => causationId);
    return html`<p class="tools">
        <label
          >Filter
          <input
            type="search"
            placeholder="type, step, text"
            @input=${(event: InputEvent) => this.#onFilter(event)}
        /></label>
        ${showSaveButton("Save as JSON lines", () => void this.#save())}
        <span class="quiet"
          >${shown.length} of ${this.events.length}
          read${this.next === undefined ? "" : ", there are more"}</span
        >
      </p>
      ${this.problem === undefined ? nothing : html`<p class="problem" role="alert">${this.problem}</p>`}
      <ol class="log">
        ${shown.map((event) => this.#showEvent(event, effects))}
      </ol>
      ${this.next === undefined ? nothing : html`<button type="button" @click=${() => void this.#readOn()}>Read on</button>`}`;
  }

  #showEvent(event: LoggedEvent, effects: ReadonlyMap<string, readonly ReadableEvent[]>): TemplateResult {
    if (!isReadableEvent(event))
      return html`<li class="damaged" id=${`event-${event.sequence}`}>
        <span class="sequence">${event.sequence}</span>
        <strong>Damaged:</strong> ${formatVisibleLine(event.damage)}
      </li>`;
    const { sequence, type, timestamp, nodeId, payload } = event;
    const stepId = (payload as { readonly stepId?: unknown }).stepId ?? nodeId;
    const caused = effects.get(`${event.runId}:${sequence}`) ?? effects.get(event.eventId) ?? [];
    return html`<li id=${`event-${sequence}`} class=${sequence === this.marked ? "marked" : ""} tabindex="-1">
      <span class="sequence">${sequence}</span>
      <time class="quiet" datetime=${timestamp}>${timestamp.slice(11, 23)}</time>
      <strong class="mono">${formatVisibleLine(type, 80)}</strong>
      ${typeof stepId === "string" ? html`<span class="mono quiet">${formatVisibleLine(stepId, 40)}</span>` : nothing}
      <span class="links">${this.#showCause(event)} ${this.#showEffects(caused)}</span>
      ${
        this.isForkable
          ? html`<button
              type="button"
              class="small"
              @click=${() => this.dispatchEvent(new CustomEvent("fork", { detail: sequence }))}
            >
              Fork here
            </button>`
          : nothing
      }
      <details>
        <summary>JSON</summary>
        <pre>${formatVisibleText(JSON.stringify(event, null, 2))}</pre>
      </details>
    </li>`;
  }

  #showCause({ causationId }: ReadableEvent): TemplateResult | typeof nothing {
    if (causationId === undefined) return nothing;
    const cause = this.events.find(
      (event) =>
        isReadableEvent(event) &&
        (event.eventId === causationId || `${event.runId}:${event.sequence}` === causationId),
    );
    if (!cause)
      return html`<span class="quiet" title=${formatVisibleLine(causationId)}>caused elsewhere</span>`;
    return html`<button type="button" class="plain" @click=${() => this.#mark(cause.sequence)}>
      because of ${cause.sequence}
    </button>`;
  }

  #showEffects(caused: readonly ReadableEvent[]): TemplateResult | typeof nothing {
    const [first] = caused;
    if (!first) return nothing;
    const label =
      caused.length === 1 ? `led to ${first.sequence}` : `led to ${caused.length}, first ${first.sequence}`;
    return html`<button type="button" class="plain" @click=${() => this.#mark(first.sequence)}>
      ${label}
    </button>`;
  }

  #mark(sequence: number): void {
    this.marked = sequence;
    const line = this.querySelector<HTMLElement>(`#event-${sequence}`);
    line?.scrollIntoView({ block: "center" });
    line?.focus();
  }

  #onFilter(event: InputEvent): void {
    if (event.target instanceof HTMLInputElement) this.filter = event.target.value;
  }

  async #save(): Promise<void> {
    const lines: string[] = [];
    let after: number | undefined = -1;
    try {
      while (after !== undefined && lines.length < SAVED_EVENTS_MAX) {
        const { events, next }: EventsPage = await this.#readPage(after, SAVED_PAGE_EVENTS);
        lines.push(...events.map((event) => JSON.stringify(event)));
        after = next;
      }
      saveFile(`events-${this.runId}.jsonl`, `${lines.join("\n")}\n`, "application/jsonl");
      const saved = formatCount(lines.length, "event");
      const verb = lines.length === 1 ? "was" : "were";
      if (after === undefined) this.page.announce(`${saved} ${verb} saved as a file.`);
      this.problem = after === undefined ? undefined : `Only the first ${saved} were saved. ${ALL_EVENTS}`;
    } catch (error) {
      this.problem = describeProblem(error);
    }
  }
}

function isReadableEvent(event: LoggedEvent): event is ReadableEvent {
  return "eventId" in event;
}

/** True where the event's JSON contains the text, which is in lower case. */
function hasEventText(event: LoggedEvent, wanted: string): boolean {
  return JSON.stringify(event).toLowerCase().includes(wanted);
}

customElements.define("event-log", EventLog);
