import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readTableRows } from "./read-tables.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const FOLDER = "test/attacks/named";
const FILES = [
  ...readdirSync(join(ROOT, FOLDER)).map((name) => `${FOLDER}/${name}`),
  "test/plugin/approval-attacks.test.ts",
].filter((file) => file.endsWith(".test.ts"));
const CLASSES = [
  ...Array.from({ length: 10 }, (_, index) => `ASI${String(index + 1).padStart(2, "0")}`),
  "MCP",
  "OWN",
];

const page = readFileSync(join(ROOT, "docs", "attacks.md"), "utf8");
const rows = readTableRows(page, "attack").map(([id = "", attempt, without, here, test = ""]) => ({
  id: id.replaceAll("`", ""),
  attempt,
  without,
  here,
  test: test.replaceAll("`", ""),
}));

/** The cases of one attack have a title in common, in which the page has a sign for what differs. */
const titles = FILES.flatMap((test) => {
  const text = readFileSync(join(ROOT, test), "utf8");
  return [...text.matchAll(/"((?:ASI\d\d|MCP|OWN)-\d+) ([^"]+)"/gu)].map(([, id = "", attempt = ""]) => ({
    id,
    attempt: attempt.replaceAll(/%[sj#]/gu, "\u2026"),
    test,
  }));
});

const sortById = <T extends { readonly id: string }>(attacks: readonly T[]): T[] =>
  attacks.toSorted((one, other) => (one.id < other.id ? -1 : 1));

describe("docs/attacks.md", () => {
  it("has each attack that is played, word for word and with its file, and no other", () => {
    const listed = rows.map(({ id, attempt, test }) => ({ id, attempt, test }));
    expect(sortById(listed)).toEqual(sortById(titles));
    expect(new Set(titles.map(({ id }) => id)).size).toBe(titles.length);
  });

  it("has a hundred or more, and some of each class", () => {
    expect(rows.length).toBeGreaterThanOrEqual(100);
    expect(page).toContain(`These ${rows.length} attacks`);
    expect([...new Set(rows.map(({ id }) => id.replace(/-\d+$/u, "")))]).toEqual(CLASSES);
  });

  it("numbers those of a class without a gap", () => {
    for (const name of CLASSES) {
      const ids = rows.map(({ id }) => id).filter((id) => id.startsWith(`${name}-`));
      expect(ids).toEqual(ids.map((_, index) => `${name}-${index + 1}`));
    }
  });

  it("says of each what happens without the plugin and with it", () => {
    for (const { id, without, here } of rows)
      expect([id, Boolean(without), Boolean(here)]).toEqual([id, true, true]);
  });

  it("names attacks in the threat model that there are", () => {
    const model = readFileSync(join(ROOT, "docs", "security.md"), "utf8");
    const named = [...model.matchAll(/\b(?:ASI\d\d|MCP|OWN)-\d+/gu)].map(([id]) => id);
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((id) => !rows.some((row) => row.id === id))).toEqual([]);
  });
});
