/** Owns: forking a plan or a workflow run: what is kept and what runs anew is shown before. */
import { html, type TemplateResult } from "lit";
import type { ForkResult, ForkPreview } from "../../contract/actions.ts";
import { formatCount } from "../../../../agents/coordination/std/quantities.ts";
import { formatVisibleLine } from "../../drawing/visible-text.ts";
import { formatAddress } from "../app/address.ts";
import { describeProblem } from "../app/page-api.ts";
import type { PageContext } from "../app/page-element.ts";

interface ForkRequest {
  /** The run's path below the API. */
  readonly path: string;
  readonly event: number;
  readonly kind: "plan" | "run";
}

/**
 * Reads what a fork would keep and run anew, and opens the dialog that offers it, or one that says why it cannot be
 * made; nothing is forked before the person confirms.
 */
export async function offerFork(page: PageContext, { path, event, kind }: ForkRequest): Promise<void> {
  const title = `Fork from event ${event}`;
  const { rights, refusals } = page.session;
  if (!rights.write) {
    page.act({ title, before: refusals.write ?? "Your session has no right to fork.", isRefused: true });
    return;
  }
  try {
    const preview = await page.api.get<ForkPreview>(`${path}/fork-preview`, { event: String(event) });
    page.act({
      title,
      before: `A new ${kind} begins. It keeps ${formatCount(preview.kept.length, "result")} and runs ${formatCount(preview.anew.length, kind === "plan" ? "step" : "node")} anew. This one stays as it is.`,
      confirm: "Run the fork",
      details: () => showForkPreview(preview),
      perform: async () => {
        const { id, happened } = await page.api.post<ForkResult>(`${path}/fork`, { event });
        return { happened, address: formatAddress({ place: "runs", id }) };
      },
    });
  } catch (error) {
    page.act({ title, before: describeProblem(error), isRefused: true });
  }
}

function showForkPreview({ kept, anew }: ForkPreview): TemplateResult {
  return html`<div class="columns">${showNameList("Kept", kept)} ${showNameList("Anew", anew)}</div>`;
}

function showNameList(title: string, names: readonly string[]): TemplateResult {
  return html`<div>
    <h3>${title} (${names.length})</h3>
    <ul>
      ${names.slice(0, 40).map((name) => html`<li class="mono">${formatVisibleLine(name, 80)}</li>`)}
      ${names.length > 40 ? html`<li>and ${names.length - 40} more</li>` : ""}
    </ul>
  </div>`;
}
