/** Owns: conflicts over resources with their rulings, and what is claimed now. */
import { html, nothing, type TemplateResult } from "lit";
import { formatDuration } from "../../../../agents/coordination/std/quantities.ts";
import type { Done } from "../../contract/actions.ts";
import type { ClaimsList, ConflictsList, ShownConflict } from "../../contract/questions.ts";
import { formatWords } from "../../drawing/row-marks.ts";
import { describeShownResource } from "../../../reports/shown-resource.ts";
import { showLine } from "../../drawing/visible-text.ts";
import { formatAddress } from "../app/address.ts";
import { LoadedElement, showAction } from "../app/page-element.ts";
import { showEmpty, showInstant } from "../parts/words.ts";

interface Contention {
  readonly conflicts: ConflictsList["conflicts"];
  readonly claims: ClaimsList["claims"];
  readonly isMore: boolean;
}

class ConflictsView extends LoadedElement<Contention> {
  protected override async read(): Promise<Contention> {
    const [{ conflicts }, { claims, isMore }] = await Promise.all([
      this.page.api.get<ConflictsList>("conflicts", { which: "all" }),
      this.page.api.get<ClaimsList>("claims"),
    ]);
    return { conflicts, claims, isMore };
  }

  protected override isConcerned({ types }: { readonly types: readonly string[] }): boolean {
    return types.some((type) => /^(?:conflict|claim|resource|coordination)\./u.test(type));
  }

  protected override show({ conflicts, claims, isMore }: Contention): TemplateResult {
    return html`<h1>Conflicts and claims</h1>
      <h2>Conflicts</h2>
      ${showEmpty(conflicts.length === 0, "No two steps wanted the same thing yet.")}
      ${conflicts.length === 0 ? nothing : showConflicts(conflicts)}
      <h2>Claims</h2>
      ${showEmpty(claims.length === 0, "Nothing is claimed.")}
      ${claims.length === 0 ? nothing : this.#showClaims(claims)}
      ${isMore ? html`<p class="quiet">There are more claims; the command \`claims\` lists them all.</p>` : nothing}`;
  }

  #showClaims(claims: Contention["claims"]): TemplateResult {
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

  #showClaim({
    token,
    resource,
    coordinationId,
    stepId,
    acquiredAtMs,
    expiresAtMs,
    expired,
  }: Contention["claims"][number]): TemplateResult {
    const leftMs = expiresAtMs - Date.now();
    const release = showAction(this.page, {
      label: "Release",
      right: "write",
      action: () => ({
        title: `Release the claim ${token}`,
        before: `${showLine(describeShownResource(resource), 200)} becomes free for other steps. What step ${stepId} still writes there is refused, because its token no longer counts.`,
        confirm: "Release the claim",
        isDangerous: true,
        perform: () => this.page.api.post<Done>(`claims/${encodeURIComponent(String(token))}/release`, {}),
        onDone: () => this.reload(),
      }),
    });
    return html`<tr>
      <td class="number">${token}</td>
      <td class="mono wide">${showLine(describeShownResource(resource))}</td>
      <td>
        <a href=${formatAddress({ place: "runs", id: coordinationId, query: { step: stepId } })}
          >${showLine(stepId, 40)}</a
        >
      </td>
      <td>${showInstant(acquiredAtMs)}</td>
      <td>${expired ? "expired" : leftMs > 0 ? `in ${formatDuration(leftMs)}` : "now"}</td>
      <td>${release}</td>
    </tr>`;
  }
}

function showConflicts(conflicts: readonly ShownConflict[]): TemplateResult {
  return html`<div class="table" tabindex="0" role="region" aria-label="Conflicts, newest first">
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
              <td class="mono wide">${showLine(describeShownResource(resource))}</td>
              <td>
                <a
                  href=${formatAddress({ place: "runs", id: coordinationId, query: { step: contest?.requester } })}
                  >${showLine(requesterName, 60)}</a
                >
              </td>
              <td>◆ ${showLine(outcome)}</td>
              <td>${resolution ? formatWords(showLine(resolution.because)) : "people are asked"}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

customElements.define("conflicts-view", ConflictsView);
