import { expect, test } from "vitest";
import type { BenchRow } from "../bench/bench-row.ts";
import { formatTable, judgeRow } from "../bench/format-rows.ts";

const rowOf = (row: Partial<BenchRow>): BenchRow => ({
  name: "append",
  compares: "ours by theirs",
  value: 0.5,
  unit: "ratio",
  ...row,
});

test.each<[string, Partial<BenchRow>]>([
  ["met", { target: { is: "at least", value: 0.4 } }],
  ["met", { target: { is: "at most", value: 0.6 }, detail: { lowest: 0.4, highest: 0.55 } }],
  ["MISSED", { target: { is: "at least", value: 0.7 }, detail: { lowest: 0.4, highest: 0.6 } }],
  ["unclear", { target: { is: "at least", value: 0.55 }, detail: { lowest: 0.4, highest: 0.6 } }],
  ["", { detail: { lowest: 0.4, highest: 0.6 } }],
])("a benchmark's row is %j", (verdict, row) => {
  expect(judgeRow(rowOf(row))).toBe(verdict);
});

test("the table has a line for each row, with its target and its spread", () => {
  const row = rowOf({ target: { is: "at least", value: 0.7 }, detail: { lowest: 0.4, highest: 0.6 } });
  expect(formatTable([row])).toBe(
    "verdict  value      target        spread      measured\n" +
      "MISSED   0.5 ratio  at least 0.7  0.4 to 0.6  append\n",
  );
});
