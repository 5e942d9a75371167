/** Owns: the picture of a tree of agents on a terminal. */
import {
  formatDuration,
  formatInstant,
  formatTokens,
  formatUsd,
} from "../../../agents/coordination/std/quantities.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import { paintFor, type Paint } from "../terminal/paint.ts";
import { cellsOf, fit, formatPrintable, shorten } from "../terminal/printable.ts";
import { describeBudget, describeStop } from "./budget-text.ts";
import { describeGateway } from "../../reports/gateway-report.ts";
import type { AgentTree, TreeNode } from "../../reports/tree.ts";

const COLUMNS = { min: 60, max: 200, withAgent: 80, withModel: 110 } as const;
const STATE_CELLS = 10;
const TOKENS_CELLS = 7;
const COST_CELLS = 8;
const TIME_CELLS = 7;
const LANE_CELLS = 10;

interface Row {
  readonly node: TreeNode;
  /** The name with the branches of the tree before it. */
  readonly label: string;
}

/** The picture, without a line break at its end. `objective`: `null` once the text was deleted. */
export function renderTree(picture: AgentTree, objective: string | null, terminal: Terminal): string {
  const paint = paintFor(terminal);
  const columns = Math.min(Math.max(terminal.columns, COLUMNS.min), COLUMNS.max);
  const rows = listRows(picture.tree, terminal.unicode);
  return [
    ...renderHeader(picture, objective, { paint, terminal, columns }),
    "",
    ...renderRows(rows, { paint, terminal, columns }),
    ...(picture.budgetStops ?? []).map((stop) =>
      paint.tone("warning", formatPrintable(describeStop(stop), terminal.unicode)),
    ),
  ].join("\n");
}

interface Page {
  readonly paint: Paint;
  readonly terminal: Terminal;
  readonly columns: number;
}

function renderHeader(
  picture: AgentTree,
  objective: string | null,
  { paint, terminal, columns }: Page,
): string[] {
  const { coordinationId, status, startedAtMs, usage, budget, tree } = picture;
  const { unicode } = terminal;
  const print = (text: string): string => formatPrintable(text, unicode);
  const dot = unicode ? " · " : " | ";
  const title = objective === null ? "(the objective is no longer kept)" : print(objective);
  const facts = [
    `${paint.coordinationStatus(status)} ${paint.tone("strong", formatDuration(tree.durationMs ?? 0))}`,
    `${formatTokens(usage.tokens)} tokens, ${paint.tone("strong", formatUsd(usage.costMicroUsd))}`,
    `started ${formatInstant(startedAtMs)}`,
  ];
  const gateway = describeGateway(picture);
  const ids = [coordinationId, ...(gateway === "" ? [] : [`gateway ${gateway}`])];
  return [
    paint.tone("strong", shorten(title, columns, unicode)),
    facts.join(dot),
    ...(budget ? [`budget ${print(describeBudget(budget))}`] : []),
    paint.tone("faint", ids.map(print).join(dot)),
  ];
}

function listRows(root: TreeNode, unicode: boolean): Row[] {
  const branch = unicode
    ? { more: "├╴", last: "└╴", through: "│ ", none: "  " }
    : { more: "|-", last: "`-", through: "| ", none: "  " };
  const rows: Row[] = [{ node: root, label: formatPrintable(root.name, unicode) }];
  const addChildren = ({ children }: TreeNode, before: string): void => {
    for (const [index, node] of children.entries()) {
      const isLast = index === children.length - 1;
      const label = before + (isLast ? branch.last : branch.more) + formatPrintable(node.name, unicode);
      rows.push({ node, label });
      addChildren(node, before + (isLast ? branch.none : branch.through));
    }
  };
  addChildren(root, "");
  return rows;
}

interface Layout {
  readonly name: number;
  /** 0: left out. */
  readonly agent: number;
  readonly lane: number;
  readonly model: number;
}

function layOut(rows: readonly Row[], columns: number): Layout {
  const measureWidest = (texts: readonly string[], max: number): number =>
    Math.min(
      max,
      texts.reduce((cells, text) => Math.max(cells, cellsOf(text)), 5),
    );
  const isWide = columns >= COLUMNS.withModel;
  const agents = rows.map(({ node }) => node.agentId ?? "");
  const agent = columns >= COLUMNS.withAgent ? measureWidest(agents, 14) : 0;
  const lane = isWide ? LANE_CELLS : 0;
  const model = isWide
    ? measureWidest(
        rows.map(({ node }) => nameModel(node)),
        32,
      )
    : 0;
  const optional = [agent, lane, model].filter((cells) => cells > 0);
  const optionalCells = optional.reduce((sum, cells) => sum + cells + 2, 0);
  const fixed = 2 + STATE_CELLS + TOKENS_CELLS + COST_CELLS + TIME_CELLS + 4 * 2;
  const name = measureWidest(
    rows.map(({ label }) => label),
    Math.max(12, columns - optionalCells - fixed),
  );
  return { name, agent, lane, model };
}

function renderRows(rows: readonly Row[], { paint, terminal, columns }: Page): string[] {
  const { unicode } = terminal;
  const layout = layOut(rows, columns);
  const head = joinCells(layout, unicode, {
    name: "SESSION",
    agent: "AGENT",
    lane: "LANE",
    state: "STATE",
    model: "MODEL",
    tokens: "TOKENS",
    cost: "COST",
    time: "TIME",
  });
  const lines = rows.map(({ node, label }) => {
    const { status, usage, durationMs } = node;
    const line = joinCells(layout, unicode, {
      name: label,
      agent: formatPrintable(node.agentId ?? "", unicode),
      lane: node.lane ?? "",
      state: status.replace("_", " "),
      model: formatPrintable(nameModel(node), unicode),
      tokens: usage ? formatTokens(usage.tokens) : "-",
      cost: usage ? formatUsd(usage.costMicroUsd) : "-",
      time: durationMs === undefined ? "-" : formatDuration(durationMs),
    });
    return `${paint.sign(status)} ${line}`;
  });
  return [paint.tone("faint", `  ${head}`.trimEnd()), ...lines];
}

interface Cells {
  readonly name: string;
  readonly agent: string;
  readonly lane: string;
  readonly state: string;
  readonly model: string;
  readonly tokens: string;
  readonly cost: string;
  readonly time: string;
}

/** A step's progress has its place behind its state. */
function joinCells({ name, agent, lane, model }: Layout, unicode: boolean, cells: Cells): string {
  return [
    fit(cells.name, name, unicode),
    ...(agent > 0 ? [fit(cells.agent, agent, unicode)] : []),
    ...(lane > 0 ? [fit(cells.lane, lane, unicode)] : []),
    fit(cells.state, STATE_CELLS, unicode),
    ...(model > 0 ? [fit(cells.model, model, unicode)] : []),
    cells.tokens.padStart(TOKENS_CELLS),
    cells.cost.padStart(COST_CELLS),
    cells.time.padStart(TIME_CELLS),
  ].join("  ");
}

/** The model that was called last, and how many others were. */
function nameModel({ usage }: TreeNode): string {
  const { models = [] } = usage ?? {};
  const others = models.length > 1 ? ` +${models.length - 1}` : "";
  return `${models.at(-1) ?? "-"}${others}`;
}
