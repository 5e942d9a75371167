/** Owns: conflicts over resources with their rulings, and what is claimed now. */
import { html, nothing, type TemplateResult } from "lit";
import { formatCount, formatDuration } from "../../../../agents/coordination/std/quantities.ts";
import { formatShellArguments } from "../../../../agents/coordination/std/shell-arguments.ts";
import type { ActionResult } from "../../contract/actions.ts";
import type { ClaimsList, ConflictsList, ShownClaim, ShownConflict } from "../../contract/questions.ts";
import { separateWords } from "../../drawing/row-marks.ts";
import { describeShownResource } from "../../../reports/shown-resource.ts";
import { formatVisibleLine } from "../../drawing/visible-text.ts";
import { formatAddress } from "../app/address.ts";
import { LoadedElement, showActionButton } from "../app/page-element.ts";
import { showSentenceIf, showInstant } from "../parts/words.ts";

interface Contention {
  readonly openConflicts: ConflictsList;
  /** Open ones, too. */
  readonly newestConflicts: ConflictsList;
  readonly claims: ClaimsList;
}

class ConflictsView extends LoadedElement<Contention> {
  protected override async read(): Promise<Contention> {
    const { api } = this.page;
    const [openConflicts, newestConflicts, claims] = await Promise.all([
      api.get<ConflictsList>("conflicts", { which: "open" }),
      api.get<ConflictsList>("conflicts", { which: "all" }),
      api.get<ClaimsList>("claims"),
    ]);
    return { openConflicts, newestConflicts, claims };
  }

  protected override isAffectedBy({ types }: { readonly types: readonly string[] }): boolean {
    return types.some((type) => /^(?:conflict|claim|resource|coordination)\./u.test(type));
  }

  protected override showLoaded({ openConflicts, newestConflicts, claims }: Contention): TemplateResult {
    const settled = newestConflicts.conflicts.filter(({ resolution }) => resolution);
    const settledIds = new Set(settled.map(({ conflictId }) => conflictId));
    const stillOpen = openConflicts.conflicts.filter(({ conflictId }) => !settledIds.has(conflictId));
    const unreadable = Math.max(openConflicts.unreadable ?? 0, newestConflicts.unreadable ?? 0);
    const isEmpty = stillOpen.length + settled.length + unreadable === 0;
    const damaged = `The conflicts of at least ${formatCount(unreadable, "damaged coordination")} cannot be read: run \`verify\`.`;
    return html`<h1>Conflicts and claims</h1>
      <h2>Conflicts</h2>
      ${showSentenceIf(isEmpty, "No two steps wanted the same thing yet.")}
      ${showSentenceIf(unreadable > 0, damaged)} ${showConflictTable("Open conflicts", stillOpen)}
      ${showSentenceIf(openConflicts.isMore, MORE_OPEN)} ${showConflictTable("Settled conflicts", settled)}
      ${showSentenceIf(newestConflicts.isMore, MORE_SETTLED)}
      <h2>Claims</h2>
      ${showSentenceIf(claims.claims.length === 0, "Nothing is claimed.")}
      ${claims.claims.length === 0 ? nothing : this.#showClaims(claims.claims)}
      ${showSentenceIf(claims.isMore, "There are more claims; the command `claims` lists them all.")}`;
  }

  #showClaims(claims: ClaimsList["claims"]): TemplateResult {
    return html`<div class="table" tabindex="0" role="region" aria-label="Claims">
      <table>
        <thead>
          <tr>
            <th scope="col">Token</th>
            <th scope="col">Resource</th>
            <th scope="col">Step</th>
            <th scope="col">Since</th>
            <th scope="col">Until</th>
            <th scope="col"><span class="unseen">Actions</span></th>
          </tr>
        </thead>
        <tbody>
          ${claims.map((claim) => this.#showClaim(claim))}
        </tbody>
      </table>
    </div>`;
  }

  #showClaim(claim: ShownClaim): TemplateResult {
    const { token, resource, coordinationId, stepId, acquiredAtMs, expiresAtMs } = claim;
    const leftMs = expiresAtMs - this.page.feed.nowMs;
    const release = showActionButton(this.page, {
      label: "Release",
      right: "write",
      action: () => ({
        title: `Release the claim ${token}`,
        before: describeClaimRelease(claim),
        confirm: "Release the claim",
        isDangerous: true,
        perform: () =>
          this.page.api.post<ActionResult>(`claims/${encodeURIComponent(String(token))}/release`, {}),
        onDone: () => this.reload(),
      }),
    });
    return html`<tr>
      <td class="number">${token}</td>
      <td class="mono wide">${formatVisibleLine(describeShownResource(resource))}</td>
      <td>
        <a href=${formatAddress({ place: "runs", id: coordinationId, query: { step: stepId } })}
          >${formatVisibleLine(stepId, 40)}</a
        >
      </td>
      <td>${showInstant(acquiredAtMs)}</td>
      <td>${leftMs > 0 ? `in ${formatDuration(leftMs)}` : "expired"}</td>
      <td>${release}</td>
    </tr>`;
  }
}

/** Says what releasing a claim does to its holder. */
function describeClaimRelease({ resource, coordinationId, stepId, isOfOwner }: ShownClaim): string {
  const holder = isOfOwner ? "The owner's session" : `Step ${stepId}`;
  const free = `${formatVisibleLine(describeShownResource(resource), 200)} becomes free for other steps.`;
  const effect = `${holder} keeps working, and its next write there is ruled on anew.`;
  if (isOfOwner) return `${free} ${effect}`;
  const command = `cancel ${formatShellArguments(coordinationId, stepId)}`;
  return `${free} ${effect} To stop the step, cancel it: \`${command}\`.`;
}

const MORE_OPEN =
  "There are older open conflicts; the command `conflicts --open` lists them with a larger `--limit`.";
const MORE_SETTLED = "There are older conflicts; the command `conflicts` lists them with a larger `--limit`.";

function showConflictTable(
  name: string,
  conflicts: readonly ShownConflict[],
): TemplateResult | typeof nothing {
  if (conflicts.length === 0) return nothing;
  return html`<h3>${name}</h3>
    <div class="table" tabindex="0" role="region" aria-label="${name}, newest first">
      <table>
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Resource</th>
            <th scope="col">Who asked</th>
            <th scope="col">Outcome</th>
            <th scope="col">Because</th>
          </tr>
        </thead>
        <tbody>
          ${conflicts.map(
            ({ detectedAtMs, resource, requesterName, outcome, coordinationId, contest, resolution }) =>
              html`<tr>
                <td>${showInstant(detectedAtMs)}</td>
                <td class="mono wide">${formatVisibleLine(describeShownResource(resource))}</td>
                <td>
                  <a
                    href=${formatAddress({ place: "runs", id: coordinationId, query: { step: contest?.requester } })}
                    >${formatVisibleLine(requesterName, 60)}</a
                  >
                </td>
                <td>◆ ${formatVisibleLine(outcome)}</td>
                <td>
                  ${resolution ? separateWords(formatVisibleLine(resolution.because)) : "people are asked"}
                </td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>`;
}

customElements.define("conflicts-view", ConflictsView);
