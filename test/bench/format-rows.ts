/** Owns: showing results: one table with a verdict for each, and on request what is behind each figure. */
import { isMet, type BenchRow } from "./bench-row.ts";

const HEADINGS = ["verdict", "value", "target", "spread", "measured"] as const;

/** `unclear`: the rounds lie on both sides of the target. */
export type Verdict = "met" | "MISSED" | "unclear" | "";

export function judgeRow(row: BenchRow): Verdict {
  const { target, detail: { lowest, highest } = {} } = row;
  if (!target) return "";
  const isAcross =
    lowest !== undefined && highest !== undefined && lowest < target.value && highest > target.value;
  if (isAcross) return "unclear";
  return isMet(row) ? "met" : "MISSED";
}

export function formatTable(rows: readonly BenchRow[]): string {
  const lines = rows.map((row) => [
    judgeRow(row),
    `${formatNumber(row.value)} ${row.unit}`,
    row.target ? `${row.target.is} ${formatNumber(row.target.value)}` : "",
    formatSpread(row),
    row.name,
  ]);
  const widths = HEADINGS.map((heading, column) =>
    Math.max(heading.length, ...lines.map((cells) => cells[column]?.length ?? 0)),
  );
  return [[...HEADINGS], ...lines]
    .map(
      (cells) =>
        `${cells
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}

/** Shows the two things that were compared, and the figures behind the row. */
export function formatDetails(rows: readonly BenchRow[]): string {
  return rows
    .map(({ name, compares, detail = {} }) => {
      const figures = Object.entries(detail).map(([of, value]) => `${of} ${formatNumber(value)}`);
      const lines = [name, `    ${compares}`, ...(figures.length > 0 ? [`    ${figures.join(", ")}`] : [])];
      return `${lines.join("\n")}\n`;
    })
    .join("\n");
}

function formatSpread({ detail: { lowest, highest } = {} }: BenchRow): string {
  return lowest === undefined || highest === undefined
    ? ""
    : `${formatNumber(lowest)} to ${formatNumber(highest)}`;
}

function formatNumber(value: number): string {
  return value.toLocaleString("en");
}
