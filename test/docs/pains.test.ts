import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readTableRows } from "./read-tables.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const page = readFileSync(join(ROOT, "docs", "pains.md"), "utf8");
const rows = readTableRows(page, "pain").map(([pain = "", ...cells]) => ({
  pain: pain.replaceAll("`", ""),
  without: cells[2],
  with: cells[3],
  test: cells[4],
}));
const FOLDER = join(ROOT, "test", "pains");
const titles = readdirSync(FOLDER)
  .filter((name) => name.endsWith(".test.ts"))
  .flatMap((name) => [...readFileSync(join(FOLDER, name), "utf8").matchAll(/^it\("(P\d+ [^"]+)"/gmu)])
  .map(([, title = ""]) => title);

describe("docs/pains.md", () => {
  it("has a row for each of the thirty pains", () => {
    expect(rows.map(({ pain }) => pain)).toEqual(Array.from({ length: 30 }, (_, index) => `P${index + 1}`));
  });

  it("names the test of every pain, and no other", () => {
    expect(rows.map(({ test }) => test).toSorted()).toEqual(titles.toSorted());
    for (const { pain, test } of rows) expect(test?.split(" ")[0]).toBe(pain);
  });

  it("says of every pain what was seen without and with", () => {
    for (const { pain, ...seen } of rows)
      expect([pain, Boolean(seen.without), Boolean(seen.with)]).toEqual([pain, true, true]);
  });

  it("names for every fault a test that there is", () => {
    const faults = readTableRows(page, "fault");
    expect(faults).not.toHaveLength(0);
    for (const [fault, test = ""] of faults) {
      const [, file = "", title = ""] = /^`(.+?)`: (.+)$/u.exec(test) ?? [];
      const text = readFileSync(join(ROOT, "test", `${file}.test.ts`), "utf8");
      expect([fault, title !== "" && text.includes(title)]).toEqual([fault, true]);
    }
  });
});
