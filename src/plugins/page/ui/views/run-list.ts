/** Owns: the list of coordinations, plans and workflow runs, with its search. The filters are in the address. */
import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { formatCount, formatDuration, formatUsd } from "../../../../agents/coordination/std/quantities.ts";
import { describeGateway } from "../../../reports/gateway-report.ts";
import type { ListedRun, RunsPage } from "../../contract/runs.ts";
import { formatVisibleLine } from "../../drawing/visible-text.ts";
import { formatAddress } from "../app/address.ts";
import { LoadedElement } from "../app/page-element.ts";
import { describeAge, showSentenceIf, showStatus } from "../parts/words.ts";

const STATES = ["running", "ended", "success", "partial", "failed", "escalated", "cancelled"] as const;
const KINDS = ["coordination", "plan", "run"] as const;
const SINCE: Readonly<Record<string, number>> = { "1h": 3_600_000, "24h": 86_400_000, "7d": 604_800_000 };
/** While somebody types. */
const TYPING_MS = 250;
/** A search goes on by itself until it has found so many, or has looked through so many entries. */
const FOUND_MIN = 50;
const LOOKED_AT_MAX = 200_000;

/** Holds what was found, in one answer of the server or in several. */
interface FoundRuns extends RunsPage {
  /** Counts the entries that a search of several answers has looked through so far, at least. */
  readonly searched?: number;
}

class RunList extends LoadedElement<FoundRuns> {
  static override properties = { ...LoadedElement.properties, query: { attribute: false } };
  declare query: Readonly<Record<string, string>>;
  #typing: ReturnType<typeof setTimeout> | undefined;

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (changed.get("query") !== undefined) this.reloadNow();
  }

  protected override async read(): Promise<FoundRuns> {
    const { query } = this;
    let found: FoundRuns = await this.#readPage(query);
    while (shouldContinueSearch(found) && this.query === query && this.isConnected) {
      this.loaded = found;
      found = joinPages(found, await this.#readPage({ ...query, cursor: found.nextCursor }));
    }
    return found;
  }

  #readPage(query: Readonly<Record<string, string | undefined>>): Promise<RunsPage> {
    const { text, agent, session, state, kind, since, cursor } = query;
    const sinceMs = since === undefined ? undefined : SINCE[since];
    return this.page.api.get("runs", {
      text,
      agent,
      session,
      state,
      kind,
      cursor,
      since: sinceMs === undefined ? undefined : new Date(this.page.feed.nowMs - sinceMs).toISOString(),
    });
  }

  /** Returns false after a long search, which is not done again for each event. */
  protected override isAffectedBy(): boolean {
    return this.loaded?.searched === undefined;
  }

  protected override render(): TemplateResult {
    return html`<h1>Work</h1>
      ${this.#showSearch()} ${super.render()}`;
  }

  #showSearch(): TemplateResult {
    const { text = "", agent = "", session = "", state = "", kind = "", since = "" } = this.query;
    return html`<form
      class="search"
      role="search"
      @keydown=${(event: KeyboardEvent) => this.#onKey(event)}
      @input=${() => this.#onInput()}
    >
      <label
        >Search <input name="text" type="search" placeholder="id, objective, owner" .value=${text}
      /></label>
      <label>Agent <input name="agent" .value=${agent} /></label>
      <label>Session <input name="session" .value=${session} /></label>
      <label>State ${showSelectField("state", STATES, state)}</label>
      <label>Kind ${showSelectField("kind", KINDS, kind)}</label>
      <label>Opened ${showSelectField("since", Object.keys(SINCE), since)}</label>
    </form>`;
  }

  /** No form is sent: the frame of the Control UI's tab lets none be. */
  #onKey(event: KeyboardEvent): void {
    if (event.key !== "Enter" || !(event.target instanceof HTMLInputElement)) return;
    event.preventDefault();
    this.reloadNow();
  }

  #onInput(): void {
    clearTimeout(this.#typing);
    this.#typing = setTimeout(() => {
      const form = this.querySelector("form");
      if (!form) return;
      const entries = [...new FormData(form).entries()].map(([name, value]) => [
        name,
        typeof value === "string" ? value.trim() : "",
      ]);
      location.hash = formatAddress({
        place: "runs",
        query: Object.fromEntries(entries) as Record<string, string>,
      });
    }, TYPING_MS);
  }

  protected override showLoaded({ runs, nextCursor, lookedAt, searched }: FoundRuns): TemplateResult {
    const now = this.page.feed.nowMs;
    const isFiltered = Object.keys(this.query).length > 0;
    return html`<div class="table" tabindex="0" role="region" aria-label="Work, newest first">
        <table>
          <thead>
            <tr>
              <th scope="col">State</th>
              <th scope="col">Objective</th>
              <th scope="col">Id</th>
              <th scope="col">Owner</th>
              <th scope="col">Steps</th>
              <th scope="col">Attention</th>
              <th scope="col">Took</th>
              <th scope="col">Cost</th>
              <th scope="col">Opened</th>
            </tr>
          </thead>
          <tbody>
            ${runs.map((run) => showRunRow(run, now))}
          </tbody>
        </table>
      </div>
      ${showSentenceIf(runs.length === 0 && lookedAt === undefined, isFiltered ? "Nothing matches." : "Nothing was coordinated yet. Spawn a subagent or run a plan.")}
      ${lookedAt === undefined ? nothing : html`<p class="quiet" role="status">${formatCount(lookedAt, "entry")} looked through; there are more.</p>`}
      ${
        searched === undefined
          ? nothing
          : html`<p class="quiet">
              What happens from here on is not in this list. Press Enter in the search to search again.
            </p>`
      }
      ${
        nextCursor === undefined
          ? nothing
          : html`<p>
              <a
                class="button"
                href=${formatAddress({ place: "runs", query: { ...this.query, cursor: nextCursor } })}
                >Older</a
              >
            </p>`
      }`;
  }
}

/**
 * True where the server cut a search short, and so far it has neither found enough nor looked through as much as it
 * may.
 */
function shouldContinueSearch({ runs, nextCursor, lookedAt }: FoundRuns): boolean {
  const isCut = nextCursor !== undefined && lookedAt !== undefined;
  return isCut && runs.length < FOUND_MIN && lookedAt < LOOKED_AT_MAX;
}

function joinPages(found: FoundRuns, next: RunsPage): FoundRuns {
  const searched = (found.lookedAt ?? 0) + (next.lookedAt ?? 0);
  return {
    ...next,
    runs: [...found.runs, ...next.runs],
    searched,
    ...(next.lookedAt !== undefined && { lookedAt: searched }),
  };
}

function showSelectField(name: string, values: readonly string[], chosen: string): TemplateResult {
  return html`<select name=${name}>
    <option value="" ?selected=${chosen === ""}>any</option>
    ${values.map((value) => html`<option value=${value} ?selected=${value === chosen}>${value}</option>`)}
  </select>`;
}

function showRunRow(run: ListedRun, now: number): TemplateResult {
  const cells = run.kind === "run" ? createWorkflowCells(run) : createCoordinationCells(run, now);
  return html`<tr>
    <td>${showStatus(cells.status)}</td>
    <td class="wide"><a href=${formatAddress({ place: "runs", id: run.id })}>${cells.title}</a></td>
    <td class="mono" title=${formatVisibleLine(run.id)}>${formatVisibleLine(run.id, 14)}</td>
    <td class="mono" title=${cells.owner}>
      ${formatVisibleLine(cells.owner, 32)}${cells.gateway === "" ? nothing : html`<br /><span class="quiet">gateway ${cells.gateway}</span>`}
    </td>
    <td class="number">${cells.steps}</td>
    <td>${cells.attention}</td>
    <td class="number">${cells.took}</td>
    <td class="number">${cells.cost}</td>
    <td class="number">
      <time datetime=${new Date(run.createdAtMs).toISOString()}
        >${describeAge(run.createdAtMs, now)} ago</time
      >
    </td>
  </tr>`;
}

/** The texts of a run's row in the list. */
interface RunCells {
  readonly status: string;
  readonly title: string;
  readonly owner: string;
  /** Empty where there is nothing to say. */
  readonly gateway: string;
  readonly steps: string;
  readonly attention: string;
  readonly took: string;
  readonly cost: string;
}

function createCoordinationCells(run: Exclude<ListedRun, { kind: "run" }>, now: number): RunCells {
  const { status, objective, ownerSession, steps, usage, questions, conflicts, createdAtMs, endedAtMs } = run;
  const attention = [
    ...(questions > 0 ? [`? ${formatCount(questions, "question")}`] : []),
    ...(conflicts > 0 ? [`◆ ${formatCount(conflicts, "conflict")}`] : []),
  ];
  return {
    status,
    title: formatVisibleLine(objective ?? "(no longer kept)", 160),
    owner: formatVisibleLine(ownerSession, 80),
    gateway: formatVisibleLine(describeGateway(run), 80),
    steps: describeStepCounts(steps),
    attention: attention.join(", "),
    took: formatDuration(Math.max(0, (endedAtMs ?? now) - createdAtMs)),
    cost: usage ? formatUsd(usage.costMicroUsd) : "",
  };
}

function describeStepCounts({ total, open, failed }: Exclude<ListedRun, { kind: "run" }>["steps"]): string {
  const parts = [...(open > 0 ? [`${open} open`] : []), ...(failed > 0 ? [`${failed} failed`] : [])];
  return parts.length > 0 ? `${total} (${parts.join(", ")})` : String(total);
}

function createWorkflowCells(run: Extract<ListedRun, { kind: "run" }>): RunCells {
  const { status, workflowId } = run;
  return {
    status,
    title: formatVisibleLine(workflowId, 160),
    owner: "workflow",
    gateway: "",
    steps: "",
    attention: "",
    took: "",
    cost: "",
  };
}

customElements.define("run-list", RunList);
