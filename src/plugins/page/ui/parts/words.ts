/** Owns: small things that every view shows: states, moments, sizes, lists of fields. */
import { html, nothing, type TemplateResult } from "lit";
import { formatDuration, formatInstant } from "../../../../agents/coordination/std/quantities.ts";
import { STATUS_SIGNS } from "../../drawing/draw-row.ts";
import { separateWords } from "../../drawing/row-marks.ts";
import { formatVisibleLine } from "../../drawing/visible-text.ts";
import { IS_IN_TAB } from "../app/page-api.ts";

/** Returns the template of a status as a sign and a word, because a colour alone tells some people nothing. */
export function showStatus(status: string): TemplateResult {
  return html`<span class="status ${/^[a-z_]+$/u.test(status) ? status : ""}"
    ><span aria-hidden="true">${STATUS_SIGNS[status] ?? "·"}</span>
    ${separateWords(formatVisibleLine(status, 40))}</span
  >`;
}

/** Returns the template of a point in time as text, which the browser also knows in ISO 8601. */
export function showInstant(atMs: number): TemplateResult {
  const instant = formatInstant(atMs);
  return html`<time datetime=${new Date(atMs).toISOString()} title=${instant}>${instant}</time>`;
}

/**
 * Returns in words how long ago a moment was, by the server's clock, never less than nothing. Who recorded it may have
 * another clock than the server.
 */
export function describeAge(atMs: number, nowMs: number): string {
  return formatDuration(Math.max(0, nowMs - atMs));
}

/** A name and its value; nothing is shown without one. */
export type ShownField = readonly [name: string, value: TemplateResult | string | undefined];

/** Returns the template of a list of names with their values; fields without a value are left out. */
export function showFields(fields: readonly ShownField[]): TemplateResult {
  const present = fields.filter(([, value]) => value !== undefined && value !== "");
  return html`<dl class="fields">
    ${present.map(
      ([name, value]) =>
        html`<div>
          <dt>${name}</dt>
          <dd>${typeof value === "string" ? formatVisibleLine(value, 1_000) : value}</dd>
        </div>`,
    )}
  </dl>`;
}

/** Returns the template of the sentence as a quiet paragraph where the condition is true, else nothing. */
export function showSentenceIf(isEmpty: boolean, sentence: string): TemplateResult | typeof nothing {
  return isEmpty ? html`<p class="quiet">${sentence}</p>` : nothing;
}

/**
 * Returns the template of a button that calls `onSave`; in the host's tab, where no file can be saved, a sentence that
 * says where it can.
 */
export function showSaveButton(label: string, onSave: () => void): TemplateResult {
  if (IS_IN_TAB)
    return html`<span class="quiet"
      >Files cannot be saved here, but by the page in a window of its own: run
      <code>openclaw coordination page</code>.</span
    >`;
  return html`<button type="button" @click=${onSave}>${label}</button>`;
}

/** Makes the browser save a text as a file of that name, cleaned; nothing is sent anywhere. */
export function saveFile(name: string, text: string, type: string): void {
  const objectUrl = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = objectUrl;
  link.download = name.replace(/[^\w.-]+/gu, "-").slice(0, 120);
  link.click();
  URL.revokeObjectURL(objectUrl);
}
