/** Owns: what `show` tells of the conflicts and claims of a coordination. */
import type { CoordinationView } from "../../../agents/coordination/runtime/log/coordination-view.ts";
import { formatResource } from "../../../agents/coordination/contracts/resource-names.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import type { ChangeLog } from "./conflict-log.ts";
import {
  numberOf,
  outcomeOf,
  outcomeText,
  OUTCOME_TONES,
  partyName,
  requesterName,
  type Names,
} from "./conflict-text.ts";
import { paintFor } from "../terminal/paint.ts";
import { printable, shortenStart } from "../terminal/printable.ts";
import { formatDuration, formatInstant } from "../../../agents/coordination/std/quantities.ts";

/** The newest ones; `conflicts` and `claims` list all. */
const LINES_MAX = 10;
const RESOURCE_CELLS_MAX = 60;

export function conflictsText({ conflicts }: ChangeLog): string {
  const open = conflicts.filter(({ resolution }) => !resolution).length;
  if (conflicts.length === 0) return "";
  return `${conflicts.length}${open > 0 ? `, ${open} open` : ""}`;
}

export function claimsText({ claims = [] }: CoordinationView, now: number): string {
  const expired = claims.filter(({ expiresAtMs }) => expiresAtMs <= now).length;
  if (claims.length === 0) return "";
  return `${claims.length - expired}${expired > 0 ? `, and ${expired} expired` : ""}`;
}

/** One line each, newest first. */
export function conflictLines({ conflicts, names }: ChangeLog, terminal: Terminal): string[] {
  const { unicode } = terminal;
  const paint = paintFor(terminal);
  const lines = conflicts
    .toReversed()
    .slice(0, LINES_MAX)
    .map((conflict) => {
      const resource = shortened(conflict.resource, unicode);
      const who = `${requesterName(names, conflict)} asked, ${outcomeText(names, conflict)}`;
      const said = paint.tone(OUTCOME_TONES[outcomeOf(conflict)], printable(who, unicode));
      const number = printable(numberOf(conflict), unicode);
      return `  ${formatInstant(conflict.detectedAtMs)}  ${number}  ${resource}  ${said}`;
    });
  return withTitle("conflicts, newest first", lines, conflicts.length);
}

/** One line for each claim whose lease has not ended, by token. */
export function claimLines(
  { claims = [] }: CoordinationView,
  { names, now, terminal }: { readonly names: Names; readonly now: number; readonly terminal: Terminal },
): string[] {
  const { unicode } = terminal;
  const active = claims.filter(({ expiresAtMs }) => expiresAtMs > now);
  const lines = active.slice(0, LINES_MAX).map(({ token, resource, stepId, acquiredAtMs, expiresAtMs }) => {
    const who = printable(partyName(names, { stepId }), unicode);
    const times = `since ${formatInstant(acquiredAtMs)}, for ${formatDuration(expiresAtMs - now)} more`;
    return `  ${token}  ${shortened(resource, unicode)}  ${who}  ${times}`;
  });
  return withTitle("claims", lines, active.length);
}

function withTitle(title: string, lines: readonly string[], all: number): string[] {
  if (lines.length === 0) return [];
  const more = all > lines.length ? [`  and ${all - lines.length} more`] : [];
  return ["", title, ...lines, ...more];
}

function shortened(resource: string, unicode: boolean): string {
  return shortenStart(printable(formatResource(resource), unicode), RESOURCE_CELLS_MAX, unicode);
}
