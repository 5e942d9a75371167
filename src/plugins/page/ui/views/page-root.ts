/** Owns: the page as a whole: signing in, the places that it has, whether it is live, and what is read out. */
import { html, nothing, type TemplateResult } from "lit";
import {
  formatAddress,
  isOneTimeLink,
  parseAddress,
  takeOneTimeLink,
  type Address,
  type PagePlace,
} from "../app/address.ts";
import { LiveFeed, type FeedState } from "../app/live-feed.ts";
import { describeProblem, signIn } from "../app/page-api.ts";
import { PageElement, type PageContext } from "../app/page-element.ts";
import "../parts/action-dialog.ts";
import type { Action, LateOutcome } from "../app/action.ts";
import "./conflicts-view.ts";
import "./health-view.ts";
import "./plan-view.ts";
import "./questions-view.ts";
import "./run-list.ts";
import "./run-page.ts";

const NAMES: Readonly<Record<PagePlace, string>> = {
  runs: "Work",
  questions: "Questions",
  conflicts: "Conflicts and claims",
  health: "Health",
  plan: "Run a plan",
};

const FEED_WORDS: Readonly<Record<FeedState, string>> = {
  connecting: "Connecting …",
  live: "Live",
  lost: "Connection lost. What you see may be old; the page tries again by itself.",
  paused: "Paused. What you see stays as it is.",
  ended: "The session has ended. Open the page with a new link.",
};

const FEED_SIGNS: Readonly<Record<FeedState, string>> = {
  connecting: "◌",
  live: "●",
  lost: "!",
  paused: "‖",
  ended: "✕",
};

class PageRoot extends PageElement {
  static override properties = {
    page: { state: true },
    address: { state: true },
    feedState: { state: true },
    problem: { state: true },
    action: { state: true },
    sentence: { state: true },
    lateOutcomes: { state: true },
  };

  declare page: PageContext | undefined;
  declare address: Address;
  declare feedState: FeedState;
  declare problem: string | undefined;
  declare action: Action | undefined;
  declare sentence: string;
  declare lateOutcomes: readonly LateOutcome[];

  constructor() {
    super();
    const link = takeOneTimeLink();
    this.address = parseAddress(location.hash);
    this.feedState = "connecting";
    this.sentence = "";
    this.lateOutcomes = [];
    void this.#enter(link);
    window.addEventListener("hashchange", () => {
      // Somebody pasted a new link, as where the session has ended.
      if (isOneTimeLink(location.hash)) location.reload();
      else this.address = parseAddress(location.hash);
    });
  }

  async #enter(link: string | undefined): Promise<void> {
    if (link === undefined) {
      this.problem =
        "This page opens with a one-time link. `openclaw coordination page` prints one, and so does `serve`.";
      return;
    }
    try {
      const { api, session } = await signIn(link);
      const feed = new LiveFeed(api, session.nowMs);
      feed.listen({
        onChange: () => undefined,
        onBeat: () => undefined,
        onState: (state) => {
          this.feedState = state;
        },
      });
      this.page = {
        api,
        feed,
        session,
        act: (action) => {
          this.action = action;
        },
        announce: (sentence) => {
          this.sentence = sentence;
        },
        tellLate: (outcome) => {
          this.sentence = outcome.sentence;
          this.lateOutcomes = [...this.lateOutcomes, outcome];
        },
      };
      feed.start();
    } catch (error) {
      this.problem = describeProblem(error);
    }
  }

  protected override render(): TemplateResult {
    const { page } = this;
    if (!page)
      return html`<main class="entrance">
        <h1>Coordination</h1>
        ${
          this.problem === undefined
            ? html`<p role="status">Signing in …</p>`
            : html`<p class="problem" role="alert">${this.problem}</p>`
        }
      </main>`;
    return html`<a class="skip" href="#content" @click=${(event: Event) => this.#onSkip(event)}
        >Skip to the content</a
      >
      ${this.#showHeader(page)}
      <main id="content" tabindex="-1">${this.#showPlace(page)}</main>
      ${this.#showLateOutcomes()}
      <action-dialog
        .page=${page}
        .action=${this.action}
        @closed=${() => {
          this.action = undefined;
        }}
      ></action-dialog>
      <p class="unseen" role="status" aria-live="polite">${this.sentence}</p>`;
  }

  #showLateOutcomes(): TemplateResult | typeof nothing {
    if (this.lateOutcomes.length === 0) return nothing;
    return html`<section class="late" aria-label="Actions that have ended">
      ${this.lateOutcomes.map(
        (outcome) =>
          html`<p class=${outcome.isDone ? "happened" : "problem"}>
            ${outcome.isDone ? "✓ " : ""}${outcome.sentence}
            ${outcome.address === undefined ? nothing : html`<a href=${outcome.address}>Show it</a>`}
            <button type="button" @click=${() => this.#forget(outcome)}>Dismiss</button>
          </p>`,
      )}
    </section>`;
  }

  #forget(outcome: LateOutcome): void {
    this.lateOutcomes = this.lateOutcomes.filter((each) => each !== outcome);
    this.querySelector("main")?.focus();
  }

  #onSkip(event: Event): void {
    event.preventDefault();
    this.querySelector("main")?.focus();
  }

  #showHeader(page: PageContext): TemplateResult {
    const { place } = this.address;
    const { name, version, home } = page.session.product;
    return html`<header class="top">
      <p class="brand">
        <strong>Coordination</strong>
        <span class="quiet" title=${`${name} ${version}`}>${version} · ${home}</span>
      </p>
      <nav aria-label="Places">
        ${Object.entries(NAMES).map(
          ([each, words]) =>
            html`<a
              href=${formatAddress({ place: each as PagePlace })}
              aria-current=${each === place ? "page" : nothing}
              >${words}</a
            >`,
        )}
      </nav>
      ${this.#showFeed(page)}
    </header>`;
  }

  #showFeed({ feed }: PageContext): TemplateResult {
    const state = this.feedState;
    const isPaused = state === "paused";
    return html`<div class="feed ${state}">
      <span role="status"><span aria-hidden="true">${FEED_SIGNS[state]}</span> ${FEED_WORDS[state]}</span>
      ${
        state === "ended"
          ? nothing
          : html`<button type="button" @click=${() => (isPaused ? feed.resume() : feed.pause())}>
              ${isPaused ? "Go on" : "Pause"}
            </button>`
      }
    </div>`;
  }

  #showPlace(page: PageContext): TemplateResult {
    const { place, id, tab, query } = this.address;
    switch (place) {
      case "runs":
        return id === undefined
          ? html`<run-list .page=${page} .query=${query}></run-list>`
          : html`<run-view .page=${page} .runId=${id} .tab=${tab} .query=${query}></run-view>`;
      case "questions":
        return html`<questions-view .page=${page} .query=${query}></questions-view>`;
      case "conflicts":
        return html`<conflicts-view .page=${page}></conflicts-view>`;
      case "health":
        return html`<health-view .page=${page}></health-view>`;
      case "plan":
        return html`<plan-view .page=${page}></plan-view>`;
    }
  }
}

customElements.define("coordination-page", PageRoot);
