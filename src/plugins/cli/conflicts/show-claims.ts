/** Owns: what `show` tells of the conflicts and claims of a coordination. */
import { describeResource } from "./resource-text.ts";
import type { CoordinationView } from "../../../agents/coordination/runtime/log/coordination-view.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import type { ChangeLog } from "../../reports/conflict-log.ts";
import { nameParty } from "../../reports/step-name.ts";
import { describeConflictOutcome, OUTCOME_TONES, nameRequester } from "./conflict-text.ts";
import { shortenConflictId, classifyOutcome, type StepNames } from "../../reports/conflict-outcome.ts";
import { createPaint } from "../terminal/paint.ts";
import { formatPrintable, shortenStart } from "../terminal/printable.ts";
import { formatDuration, formatInstant } from "../../../agents/coordination/std/quantities.ts";

/** The newest ones; `conflicts` and `claims` list all. */
const LINES_MAX = 10;
const RESOURCE_CELLS_MAX = 60;

/** Returns how many claims a coordination holds, like `2, and 1 expired`; an empty text where there is none. */
export function describeClaimCount({ claims = [] }: CoordinationView, now: number): string {
  const expired = claims.filter(({ expiresAtMs }) => expiresAtMs <= now).length;
  if (claims.length === 0) return "";
  return `${claims.length - expired}${expired > 0 ? `, and ${expired} expired` : ""}`;
}

/** Returns the lines of a titled list of the newest conflicts, the newest first; empty where there is none. */
export function renderConflictLines({ conflicts, names }: ChangeLog, terminal: Terminal): string[] {
  const { unicode } = terminal;
  const paint = createPaint(terminal);
  const lines = conflicts
    .toReversed()
    .slice(0, LINES_MAX)
    .map((conflict) => {
      const resource = shortenResource(conflict.resource, unicode);
      const sentence = `${nameRequester(names, conflict)} asked, ${describeConflictOutcome(names, conflict)}`;
      const painted = paint.tone(
        OUTCOME_TONES[classifyOutcome(conflict)],
        formatPrintable(sentence, unicode),
      );
      const number = formatPrintable(shortenConflictId(conflict), unicode);
      return `  ${formatInstant(conflict.detectedAtMs)}  ${number}  ${resource}  ${painted}`;
    });
  return withTitle("conflicts, newest first", lines, conflicts.length);
}

/**
 * Returns the lines of a titled list of claims whose lease has not ended: the first ten, and how many more there are;
 * empty where there is none.
 */
export function renderClaimLines(
  { claims = [] }: CoordinationView,
  { names, now, terminal }: { readonly names: StepNames; readonly now: number; readonly terminal: Terminal },
): string[] {
  const { unicode } = terminal;
  const active = claims.filter(({ expiresAtMs }) => expiresAtMs > now);
  const lines = active.slice(0, LINES_MAX).map(({ token, resource, stepId, acquiredAtMs, expiresAtMs }) => {
    const holder = formatPrintable(nameParty(names, { stepId }), unicode);
    const times = `since ${formatInstant(acquiredAtMs)}, for ${formatDuration(expiresAtMs - now)} more`;
    return `  ${token}  ${shortenResource(resource, unicode)}  ${holder}  ${times}`;
  });
  return withTitle("claims", lines, active.length);
}

/** Puts a title above the lines and the count of those left out below them; empty where there are no lines. */
function withTitle(title: string, lines: readonly string[], all: number): string[] {
  if (lines.length === 0) return [];
  const more = all > lines.length ? [`  and ${all - lines.length} more`] : [];
  return ["", title, ...lines, ...more];
}

function shortenResource(resource: string, unicode: boolean): string {
  return shortenStart(formatPrintable(describeResource(resource), unicode), RESOURCE_CELLS_MAX, unicode);
}
