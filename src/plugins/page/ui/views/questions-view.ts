/** Owns: the open questions and answering them, by the keyboard too: up and down, A approves, D denies. */
import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { formatCount, formatDuration } from "../../../../agents/coordination/std/quantities.ts";
import type { AnswerBody, ActionResult } from "../../contract/actions.ts";
import type { QuestionDetail, QuestionsList, ShownQuestion } from "../../contract/questions.ts";
import {
  formatCheck,
  describeAnswers,
  describeCause,
  describeClosing,
  describeEffect,
  describeExpiry,
  describeNotice,
  describeSubject,
} from "../../../reports/question-lines.ts";
import { describeShownResource } from "../../../reports/shown-resource.ts";
import { separateWords } from "../../drawing/row-marks.ts";
import { formatVisibleLine, formatVisibleText } from "../../drawing/visible-text.ts";
import { formatAddress } from "../app/address.ts";
import { describeProblem } from "../app/page-api.ts";
import { LoadedElement, showActionButton, type PageContext } from "../app/page-element.ts";
import type { Action } from "../app/action.ts";
import { showSentenceIf, showFields, showInstant } from "../parts/words.ts";

/** A kind of answer that a question allows. */
type OfferedAnswer = ShownQuestion["answers"][number];

class QuestionsView extends LoadedElement<QuestionsList> {
  static override properties = {
    ...LoadedElement.properties,
    query: { attribute: false },
    chosen: { state: true },
    detail: { state: true },
    detailProblem: { state: true },
  };

  declare query: Readonly<Record<string, string>>;
  declare chosen: string | undefined;
  declare detail: QuestionDetail | undefined;
  declare detailProblem: string | undefined;

  get #isAll(): boolean {
    return this.query["which"] === "all";
  }

  protected override async read(): Promise<QuestionsList> {
    const which = this.#isAll ? "all" : "open";
    const list = await this.page.api.get<QuestionsList>("questions", { which });
    const isKnown = list.questions.some(({ questionId }) => questionId === this.chosen);
    if (!isKnown) this.#mark(list.questions[0]?.questionId);
    if (this.chosen !== undefined) await this.#readDetail(this.chosen);
    return list;
  }

  protected override isAffectedBy({ types }: { readonly types: readonly string[] }): boolean {
    return types.some((type) => /^(?:escalation|coordination|step|verification|gate|result)\./u.test(type));
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (changed.get("query") !== undefined) this.reloadNow();
  }

  /** Drops what is shown of another question, which no key answers from here on. */
  #mark(questionId: string | undefined): void {
    if (questionId === this.chosen) return;
    this.chosen = questionId;
    this.detail = undefined;
    this.detailProblem = undefined;
  }

  async #readDetail(questionId: string): Promise<void> {
    try {
      const detail = await this.page.api.get<QuestionDetail>(`questions/${encodeURIComponent(questionId)}`);
      if (questionId !== this.chosen) return;
      this.detail = detail;
      this.detailProblem = undefined;
    } catch (error) {
      if (questionId !== this.chosen) return;
      this.detail = undefined;
      this.detailProblem = describeProblem(error);
    }
  }

  protected override render(): TemplateResult {
    const isAll = this.#isAll;
    return html`<h1>Questions</h1>
      <p class="tools">
        <a href=${formatAddress({ place: "questions" })} aria-current=${isAll ? nothing : "true"}>Open</a>
        <a
          href=${formatAddress({ place: "questions", query: { which: "all" } })}
          aria-current=${isAll ? "true" : nothing}
          >All</a
        >
        <span class="quiet">Keys: ↑ ↓ choose, A approve, D deny, T answer with a text</span>
      </p>
      ${super.render()}`;
  }

  protected override showLoaded({ questions, isMore, unreadable = 0 }: QuestionsList): TemplateResult {
    const damaged = `The questions of ${formatCount(unreadable, "damaged coordination")} cannot be read: run \`verify\`.`;
    return html`${showSentenceIf(questions.length === 0 && unreadable === 0, "Nobody waits for an answer.")}
      ${showSentenceIf(unreadable > 0, damaged)} ${showSentenceIf(isMore, this.#isAll ? OLDER : LATER)}
      <div class="split">
        <ul
          class="cards"
          aria-label="Questions"
          tabindex=${questions.length > 0 ? "0" : nothing}
          @keydown=${(event: KeyboardEvent) => this.#onKey(event, questions)}
        >
          ${questions.map((question) => this.#showCard(question))}
        </ul>
        ${this.#showDetail()}
      </div>`;
  }

  #showCard(question: ShownQuestion): TemplateResult {
    const { questionId, cause, stepName, stepId, status, deadlineAtMs, ownerSession, contested } = question;
    const isChosen = questionId === this.chosen;
    return html`<li class=${isChosen ? "card picked" : "card"}>
      <button
        type="button"
        class="plain"
        aria-pressed=${isChosen ? "true" : "false"}
        @click=${() => this.#choose(questionId)}
      >
        <span class="kind">? ${separateWords(cause)}</span>
        <strong>${formatVisibleLine(stepName ?? stepId ?? "the coordination", 100)}</strong>
        ${contested ? html`<span class="mono">${formatVisibleLine(describeShownResource(contested.resource), 1_000)}</span>` : nothing}
        <span class="quiet">${formatVisibleLine(ownerSession, 60)}</span>
        <span class="quiet">${status === "open" ? this.#describeDeadline(deadlineAtMs) : "closed"}</span>
      </button>
    </li>`;
  }

  #choose(questionId: string): void {
    this.#mark(questionId);
    void this.#readDetail(questionId);
  }

  #onKey(event: KeyboardEvent, questions: readonly ShownQuestion[]): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = questions.findIndex(({ questionId }) => questionId === this.chosen);
    const neighbour =
      event.key === "ArrowDown" ? questions[at + 1] : event.key === "ArrowUp" ? questions[at - 1] : undefined;
    const answer = ({ a: "approve", d: "deny", t: "answer" } as Readonly<Record<string, OfferedAnswer>>)[
      event.key.toLowerCase()
    ];
    if (neighbour) this.#choose(neighbour.questionId);
    else if (answer && this.detail?.answers.includes(answer)) this.#offer(this.detail, answer);
    else return;
    event.preventDefault();
  }

  #offer(detail: QuestionDetail, answer: OfferedAnswer): void {
    const { rights, refusals } = this.page.session;
    if (rights.approve) this.page.act(createAnswerAction(this.page, detail, answer));
    else
      this.page.act({
        title: `Answer: ${answer}`,
        before: refusals.approve ?? "Your session has no right to answer questions.",
        isRefused: true,
      });
  }

  #describeDeadline(atMs: number): string {
    const leftMs = atMs - this.page.feed.nowMs;
    return leftMs <= 0 ? "its time is over" : `${formatDuration(leftMs)} left`;
  }

  #showDetail(): TemplateResult | typeof nothing {
    const { detail, detailProblem } = this;
    if (detailProblem !== undefined) return html`<p class="problem" role="alert">${detailProblem}</p>`;
    if (!detail) return nothing;
    const { coordinationId, stepId, askedAtMs, deadlineAtMs, status, answers, notices = [] } = detail;
    return html`<article class="panel" aria-label="The question">
      <h2>${formatVisibleLine(`${describeSubject(detail)}: ${describeCause(detail)}`)}</h2>
      ${showFields([
        [
          "work",
          html`<a href=${formatAddress({ place: "runs", id: coordinationId, query: { step: stepId } })}
            >${formatVisibleLine(coordinationId)}</a
          >`,
        ],
        ["asked", showInstant(askedAtMs)],
        [
          "answer by",
          status === "open"
            ? html`${showInstant(deadlineAtMs)} (${this.#describeDeadline(deadlineAtMs)}; then
              ${describeExpiry(detail)})`
            : undefined,
        ],
        ["answers", status === "open" ? describeAnswers(answers) : undefined],
        [
          "not by",
          detail.requireDifferentApprover ? "the session that it is about, or whose plan it is" : undefined,
        ],
        ["told", notices.map(describeNotice).join(", ")],
        ["closed", describeClosing(detail)],
      ])}
      ${showAgentQuestion(detail)} ${showChecks(detail)} ${this.#showHeld(detail)}
      ${
        status === "open"
          ? html`<p class="buttons">
              ${answers.map((answer) =>
                showActionButton(this.page, {
                  label: ANSWER_NAMES[answer],
                  right: "approve",
                  className: answer === "approve" ? "primary" : "",
                  action: () => createAnswerAction(this.page, detail, answer),
                }),
              )}
            </p>`
          : nothing
      }
    </article>`;
  }

  #showHeld({ heldText, isCut, result }: QuestionDetail): TemplateResult | typeof nothing {
    if (heldText === undefined)
      return result
        ? html`<p class="quiet">
            ${this.page.session.refusals.results ?? "You have no right to read the held result."}
          </p>`
        : nothing;
    if (heldText === null) return html`<p class="quiet">The held result is no longer kept.</p>`;
    return html`<h3>The held result, as it would count</h3>
      <pre class="held-text" tabindex="0" aria-label="The held result">${formatVisibleText(heldText)}</pre>
      <p class="quiet">
        ${isCut ? "Only its beginning is shown. " : ""}${result ? html`sha256 <span class="mono">${result.sha256}</span>` : nothing}
      </p>`;
  }
}

const OLDER = "There are older questions; the command `questions --all` lists them with a larger `--limit`.";
const LATER =
  "There are more open questions, which expire later; the command `questions` lists them with a larger `--limit`.";

const ANSWER_NAMES: Readonly<Record<OfferedAnswer, string>> = {
  approve: "Approve",
  deny: "Deny",
  answer: "Answer with a text",
};

const RESOLUTIONS = { approve: "approved", deny: "denied", answer: "answered" } as const;

function createAnswerAction({ api }: PageContext, detail: QuestionDetail, answer: OfferedAnswer): Action {
  const { questionId, revision } = detail;
  const isText = answer === "answer";
  return {
    title: `${ANSWER_NAMES[answer]}: ${describeSubject(detail)}`,
    before: `By this, ${describeEffect(detail, RESOLUTIONS[answer])}. It counts only while everything is as it is shown now, and cannot be taken back.`,
    confirm: ANSWER_NAMES[answer],
    isDangerous: answer === "deny",
    ...(isText && { field: { label: "Your answer", isRequired: true } }),
    perform: (text) => {
      const body: AnswerBody = isText ? { revision, answer, text } : { revision, answer };
      return api.post<ActionResult>(`questions/${encodeURIComponent(questionId)}/answer`, body);
    },
  };
}

/** Shows what the agent asks, or why it could not do its work; a sentence where that is no longer kept or withheld. */
function showAgentQuestion({
  asked: words,
  reason,
  wordsWithheld,
}: QuestionDetail): TemplateResult | typeof nothing {
  if (reason !== undefined)
    return html`<h3>Why the agent could not do it</h3>
      <blockquote>${formatVisibleText(reason)}</blockquote>`;
  if (words === null) return html`<p class="quiet">What was asked is no longer kept.</p>`;
  if (!words)
    return wordsWithheld
      ? html`<p class="quiet">What the agent asks is withheld as its result is.</p>`
      : nothing;
  return html`<h3>The agent asks</h3>
    <blockquote>${formatVisibleText(words.question)}</blockquote>
    ${
      words.options && words.options.length > 0
        ? html`<ul>
            ${words.options.map((option) => html`<li>${formatVisibleLine(option)}</li>`)}
          </ul>`
        : nothing
    }
    ${
      words.otherwise === undefined
        ? nothing
        : html`<h3>If nobody answers, it takes</h3>
            <blockquote>${formatVisibleText(words.otherwise)}</blockquote>`
    }`;
}

function showChecks({ checks = [] }: QuestionDetail): TemplateResult | typeof nothing {
  if (checks.length === 0) return nothing;
  return html`<h3>Checks</h3>
    <ul>
      ${checks.map((check) => html`<li>${formatVisibleLine(formatCheck(check))}</li>`)}
    </ul>`;
}

customElements.define("questions-view", QuestionsView);
