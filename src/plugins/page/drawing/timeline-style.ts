/** Owns: the colours and lines of timelines, in light and dark, for the page and for files. */
export const TIMELINE_STYLE = `
:root { color-scheme: light dark;
  --ink: #1b1f24; --soft: #57606a; --faint: #6b7480; --paper: #ffffff; --sheet: #f6f7f9; --line: #d8dde3;
  --accent: #0b5cad; --good: #1a6e35; --bad: #b3261e; --warn: #855600; --hold: #6a3fa0; --idle: #8b95a1;
  --row: #f3f5f8; --on: #e3eefb; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #e6eaef; --soft: #a9b3be; --faint: #98a3af; --paper: #14171b; --sheet: #1b1f25; --line: #333a43;
  --accent: #6fb1f5; --good: #5fc27e; --bad: #ff8a80; --warn: #e5b567; --hold: #c3a1f2; --idle: #75808c;
  --row: #191d22; --on: #1c3047; } }
.drawing { display: block; font: 12px/1.4 ui-sans-serif, system-ui, "Segoe UI", sans-serif; }
.drawing text { fill: var(--ink); font-size: 12px; }
.drawing .axis text, .drawing .tick-label { fill: var(--soft); font-size: 11px; }
.drawing .tick { stroke: var(--line); fill: none; shape-rendering: crispEdges; }
.drawing .stripe { fill: var(--row); }
.drawing .chosen { fill: var(--on); }
.drawing .end { fill: var(--soft); font-size: 11px; paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
.drawing .sign, .drawing .end { font-variant-numeric: tabular-nums; }
.drawing .span { rx: 2px; }
.drawing .work { fill: var(--accent); }
.drawing .work.completed { fill: var(--good); }
.drawing .work.failed, .drawing .work.timed_out { fill: var(--bad); }
.drawing .work.cancelled { fill: var(--idle); }
.drawing .work.held { fill: var(--good); }
.drawing .waits, .drawing .backoff { fill: var(--idle); }
.drawing .queue { fill: none; stroke: var(--idle); stroke-dasharray: 2 2; }
.drawing .begins { rx: 0; fill: none; stroke: var(--accent); }
.drawing .tried { fill: url(#tried); stroke: var(--bad); }
.drawing .span.held { fill: url(#held); stroke: var(--hold); }
.drawing .asked { fill: var(--hold); }
.drawing .moment { stroke: var(--paper); stroke-width: 1; fill: var(--warn); }
.drawing .moment.question { fill: var(--hold); }
.drawing .moment.failed { fill: var(--bad); }
.drawing .moment.refused { stroke: var(--bad); stroke-width: 2; fill: none; }
.drawing .moment.passed { stroke: var(--ink); stroke-width: 2; fill: none; }
.drawing .sign.failed, .drawing .sign.timed_out { fill: var(--bad); }
.drawing .sign.completed { fill: var(--good); }
.drawing .sign.held, .drawing .sign.blocked { fill: var(--hold); }
.drawing .sign.running, .drawing .sign.dispatched { fill: var(--accent); }
.drawing .hatch-held { stroke: var(--hold); stroke-width: 2; }
.drawing .hatch-tried { stroke: var(--bad); stroke-width: 2; }
`;

/** Hatches, told apart by their direction. */
export const PATTERNS = [
  { id: "held", turn: "rotate(45)" },
  { id: "tried", turn: "rotate(-45)" },
] as const;
