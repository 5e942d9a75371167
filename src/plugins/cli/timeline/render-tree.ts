/** Owns: the picture of a tree of agents on a terminal. */
import {
  formatDuration,
  formatInstant,
  formatTokens,
  formatUsd,
} from "../../../agents/coordination/std/quantities.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import { createPaint, type Paint } from "../terminal/paint.ts";
import { formatPrintable, shorten } from "../terminal/printable.ts";
import { renderTable, type Column } from "../terminal/table.ts";
import { BILL_COLUMNS } from "../ledger/list-command.ts";
import { describeBudget, describeBudgetStop } from "./budget-text.ts";
import { describeGateway } from "../../reports/gateway-report.ts";
import type { AgentTree, TreeNode } from "../../reports/tree.ts";

const COLUMNS = { min: 60, max: 200, withAgent: 80, withModel: 110 } as const;
/** The sign of the status before a row, and the space behind it. */
const SIGN_CELLS = 2;

/** A node of a tree, with its label as it is drawn. */
interface TreeRow extends TreeNode {
  /** The name with the branches of the tree before it. */
  readonly label: string;
}

/**
 * Returns the text that draws the owner, its children and theirs with what each used, without a line break at its end.
 * `objective`: `null` once the text was deleted.
 */
export function renderAgentTree(picture: AgentTree, objective: string | null, terminal: Terminal): string {
  const paint = createPaint(terminal);
  const columns = Math.min(Math.max(terminal.columns, COLUMNS.min), COLUMNS.max);
  const rows = listTreeRows(picture.tree, terminal.unicode);
  return [
    ...renderHeader(picture, objective, { paint, terminal, columns }),
    "",
    ...renderRows(rows, { paint, terminal, columns }),
    ...(picture.budgetStops ?? []).map((stop) =>
      paint.tone("warning", formatPrintable(describeBudgetStop(stop), terminal.unicode)),
    ),
  ].join("\n");
}

/** The terminal that a tree is drawn on, with its colours and the columns to use. */
interface TreeCanvas {
  readonly paint: Paint;
  readonly terminal: Terminal;
  readonly columns: number;
}

function renderHeader(
  picture: AgentTree,
  objective: string | null,
  { paint, terminal, columns }: TreeCanvas,
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

function listTreeRows(root: TreeNode, unicode: boolean): TreeRow[] {
  const branch = unicode
    ? { more: "├╴", last: "└╴", through: "│ ", none: "  " }
    : { more: "|-", last: "`-", through: "| ", none: "  " };
  const rows: TreeRow[] = [{ ...root, label: formatPrintable(root.name, unicode) }];
  const addChildren = ({ children }: TreeNode, before: string): void => {
    for (const [index, node] of children.entries()) {
      const isLast = index === children.length - 1;
      const label = before + (isLast ? branch.last : branch.more) + formatPrintable(node.name, unicode);
      rows.push({ ...node, label });
      addChildren(node, before + (isLast ? branch.none : branch.through));
    }
  };
  addChildren(root, "");
  return rows;
}

function renderRows(rows: readonly TreeRow[], page: TreeCanvas): string[] {
  const { terminal, columns, paint } = page;
  const fitting = { unicode: terminal.unicode, columns: columns - SIGN_CELLS };
  const [heading = "", ...lines] = renderTable(rows, listTreeColumns(page), fitting);
  return [paint.tone("faint", " ".repeat(SIGN_CELLS) + heading), ...lines];
}

/** Lists the columns that the terminal has room for. */
function listTreeColumns({ paint, terminal: { unicode }, columns }: TreeCanvas): Column<TreeRow>[] {
  const print = (text: string): string => formatPrintable(text, unicode);
  const hasAgent = columns >= COLUMNS.withAgent;
  const hasModel = columns >= COLUMNS.withModel;
  const all: (Column<TreeRow> | false)[] = [
    {
      heading: "SESSION",
      text: ({ label }) => label,
      restMin: 12,
      paint: (cell, { status }) => `${paint.sign(status)} ${cell}`,
    },
    hasAgent && { heading: "AGENT", text: ({ agentId = "" }) => print(agentId), max: 14 },
    hasModel && { heading: "LANE", text: ({ lane = "" }) => lane, min: 10 },
    { heading: "STATE", text: ({ status }) => status.replace("_", " "), min: 10 },
    hasModel && { heading: "MODEL", text: (row) => print(nameModels(row)), max: 32 },
    ...BILL_COLUMNS,
    { heading: "TIME", text: ({ durationMs }) => describeTime(durationMs), min: 7, isNumber: true },
  ];
  return all.filter((column) => column !== false);
}

function describeTime(durationMs: number | undefined): string {
  return durationMs === undefined ? "-" : formatDuration(durationMs);
}

/** Names the model that was called last, and how many others were. */
function nameModels({ usage }: TreeNode): string {
  const { models = [] } = usage ?? {};
  const others = models.length > 1 ? ` +${models.length - 1}` : "";
  return `${models.at(-1) ?? "-"}${others}`;
}
