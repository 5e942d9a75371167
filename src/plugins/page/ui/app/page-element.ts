/** Owns: what all elements of the page have in common: the one style sheet, and reading anew when something changed. */
import { html, LitElement, nothing, type PropertyDeclarations, type TemplateResult } from "lit";
import type { LiveChange } from "../../contract/live.ts";
import type { Rights, SignedIn } from "../../contract/session.ts";
import type { Action, LateOutcome } from "./action.ts";
import type { LiveFeed } from "./live-feed.ts";
import { describeProblem, type PageApi } from "./page-api.ts";

/** The means that the page as a whole gives to its views. */
export interface PageContext {
  readonly api: PageApi;
  readonly feed: LiveFeed;
  readonly session: SignedIn;
  /** Says what will happen, does it when it is confirmed, and says what happened. */
  act(action: Action): void;
  /** Read out by a screen reader, without moving the focus. */
  announce(sentence: string): void;
  /** Announces what became of an action whose dialog is closed, and shows it until somebody dismisses it. */
  tellLate(outcome: LateOutcome): void;
}

/** Its parts are in the document itself, so that labels reach them and one style sheet is enough. */
export abstract class PageElement extends LitElement {
  protected override createRenderRoot(): HTMLElement {
    return this;
  }
}

/** Several changes that come at once are read once. */
const PAUSE_MS = 60;
/** A page that takes the server long to tell is asked for less often, so that the one who looks does not keep it from its work. */
const PAUSE_PER_READING = 2;
const PAUSE_MS_MAX = 10_000;

/** An element that shows what the server was asked for, and asks again when that changed. */
export abstract class LoadedElement<T> extends PageElement {
  static override properties: PropertyDeclarations = {
    page: { attribute: false },
    loaded: { state: true },
    problem: { state: true },
  };

  declare page: PageContext;
  declare protected loaded: T | undefined;
  declare protected problem: string | undefined;
  #stopListening: (() => void) | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #endPause: (() => void) | undefined;
  #isReading = false;
  #isStale = false;
  /** Changes since the reading began that did not concern what was shown before it. */
  #meanwhile: LiveChange[] = [];
  /** Counts what somebody wanted to see: the answer to a reading for something before is dropped. */
  #wanted = 0;
  #failure: unknown;

  /** @throws ApiProblem */
  protected abstract read(): Promise<T>;
  /** True where a change may have changed what is shown, so that it is read again. */
  protected abstract isAffectedBy(change: LiveChange): boolean;
  protected abstract showLoaded(loaded: T): TemplateResult;

  /** Returns what is shown below the problem where nothing could be read. */
  protected showWithoutData(_problem: unknown): TemplateResult | typeof nothing {
    return nothing;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#stopListening = this.page.feed.listen({
      onChange: (change) => {
        if (!change || this.isAffectedBy(change)) this.reload();
        else if (this.#isReading) this.#meanwhile.push(change);
      },
      onState: () => undefined,
      onBeat: () => this.onBeat(),
    });
    this.reload();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#stopListening?.();
    clearTimeout(this.#timer);
  }

  /** Renders anew with each beat of the server, so that ages and remaining times go on. */
  protected onBeat(): void {
    this.requestUpdate();
  }

  /** Reads again: at once, or after the reading under way and a pause. */
  protected reload(): void {
    this.#isStale = true;
    if (!this.#isReading) void this.#readAll();
  }

  /**
   * Reads again without the pause, once the reading under way has ended, whose answer is dropped: somebody wants to
   * see something else.
   */
  protected reloadNow(): void {
    this.#wanted += 1;
    this.reload();
    this.#endPause?.();
  }

  async #readAll(): Promise<void> {
    this.#isReading = true;
    while (this.#isStale && this.isConnected) {
      this.#isStale = false;
      this.#meanwhile = [];
      const wanted = this.#wanted;
      const beganAtMs = performance.now();
      try {
        const loaded = await this.read();
        if (wanted !== this.#wanted) continue;
        this.loaded = loaded;
        this.problem = undefined;
        if (this.#meanwhile.some((change) => this.isAffectedBy(change))) this.#isStale = true;
      } catch (error) {
        if (wanted !== this.#wanted) continue;
        this.#failure = error;
        this.problem = describeProblem(error);
      }
      const readingMs = performance.now() - beganAtMs;
      const pauseMs = Math.min(PAUSE_MS_MAX, Math.max(PAUSE_MS, readingMs * PAUSE_PER_READING));
      await new Promise<void>((resolve) => {
        this.#endPause = resolve;
        this.#timer = setTimeout(resolve, pauseMs);
      });
    }
    this.#isReading = false;
  }

  protected override render(): TemplateResult {
    const { loaded, problem } = this;
    return html`${problem === undefined ? nothing : html`<p class="problem" role="alert">${problem}</p>`}
    ${
      loaded === undefined
        ? problem === undefined
          ? html`<p class="quiet" role="status">Reading …</p>`
          : this.showWithoutData(this.#failure)
        : this.showLoaded(loaded)
    }`;
  }
}

export interface ActionButton {
  readonly label: string;
  readonly right: keyof Rights;
  readonly action: () => Action;
  readonly className?: string;
}

/**
 * Returns the template of an action's button; without the right, pressing it tells why not, because a button that is
 * only grey explains nothing.
 */
export function showActionButton(
  page: PageContext,
  { label, right, action, className = "" }: ActionButton,
): TemplateResult {
  const { rights, refusals } = page.session;
  if (rights[right])
    return html`<button type="button" class=${className} @click=${() => page.act(action())}>
      ${label}
    </button>`;
  const because = refusals[right] ?? "Your session has no right to do this.";
  return html`<button
    type="button"
    class="locked"
    title=${because}
    @click=${() => page.act({ title: label, before: because, isRefused: true })}
  >
    ${label} <span class="why">why not?</span>
  </button>`;
}
