/** Owns: small things that every view shows: states, moments, sizes, lists of fields. */
import { html, nothing, type TemplateResult } from "lit";
import { formatDuration, formatInstant } from "../../../../agents/coordination/std/quantities.ts";
import { STATUS_SIGNS } from "../../drawing/draw-row.ts";
import { formatWords } from "../../drawing/row-marks.ts";
import { showLine } from "../../drawing/visible-text.ts";
import { IS_IN_TAB } from "../app/page-api.ts";

/** A sign and a word, because a colour alone tells some people nothing. */
export function showStatus(status: string): TemplateResult {
  return html`<span class="status ${/^[a-z_]+$/u.test(status) ? status : ""}"
    ><span aria-hidden="true">${STATUS_SIGNS[status] ?? "·"}</span> ${formatWords(showLine(status, 40))}</span
  >`;
}

export function showInstant(atMs: number): TemplateResult {
  const instant = formatInstant(atMs);
  return html`<time datetime=${new Date(atMs).toISOString()} title=${instant}>${instant}</time>`;
}

/** Never less than nothing: who recorded it may have another clock than the server. */
export function describeAge(atMs: number, nowMs: number): string {
  return formatDuration(Math.max(0, nowMs - atMs));
}

export type Field = readonly [name: string, value: TemplateResult | string | undefined];

/** Fields without a value are left out. */
export function showFields(fields: readonly Field[]): TemplateResult {
  const present = fields.filter(([, value]) => value !== undefined && value !== "");
  return html`<dl class="fields">
    ${present.map(
      ([name, value]) =>
        html`<div>
          <dt>${name}</dt>
          <dd>${typeof value === "string" ? showLine(value, 1_000) : value}</dd>
        </div>`,
    )}
  </dl>`;
}

export function showEmpty(isEmpty: boolean, sentence: string): TemplateResult | typeof nothing {
  return isEmpty ? html`<p class="quiet">${sentence}</p>` : nothing;
}

/** Returns a button that saves a file. In the tab it returns a sentence that says where files can be saved. */
export function showSaveButton(label: string, onSave: () => void): TemplateResult {
  if (IS_IN_TAB)
    return html`<span class="quiet"
      >Files cannot be saved here, but by the page in a window of its own: run
      <code>openclaw coordination page</code>.</span
    >`;
  return html`<button type="button" @click=${onSave}>${label}</button>`;
}

/** Gives a text to whoever reads the page as a file; nothing is sent anywhere. */
export function saveFile(name: string, text: string, type: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name.replace(/[^\w.-]+/gu, "-").slice(0, 120);
  link.click();
  URL.revokeObjectURL(address);
}
