import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SEEN } from "../e2e/attacks-seen.ts";
import { readTableRows, unwrapText } from "./read-tables.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const FOLDER = "test/attacks/named";
/** These attacks are played in the real gateway too, where the plain host is seen. */
const IN_GATEWAY = "test/e2e/attacks.test.ts";
const MEASURED = "seen: ";
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
const rows = readTableRows(page, "attack").map(([id = "", attempt = "", without = "", here, test = ""]) => ({
  id: id.replaceAll("`", ""),
  attempt,
  without,
  here,
  tests: test.replaceAll("`", "").split(", "),
}));

interface PlayedAttack {
  readonly id: string;
  readonly attempt: string;
  readonly test: string;
}

/** The cases of one attack have a title in common, in which the page has a sign for what differs. */
function listTitles(test: string): PlayedAttack[] {
  const text = readFileSync(join(ROOT, test), "utf8");
  return [...text.matchAll(/"((?:ASI\d\d|MCP|OWN)-\d+) ([^"]+)"/gu)].map(([, id = "", attempt = ""]) => ({
    id,
    attempt: attempt.replaceAll(/%[sj#]/gu, "\u2026"),
    test,
  }));
}

const titles = FILES.flatMap(listTitles);
const inGateway = listTitles(IN_GATEWAY);

const sortById = <T extends { readonly id: string }>(attacks: readonly T[]): T[] =>
  attacks.toSorted((one, other) => (one.id < other.id ? -1 : 1));
const sortByTest = (attacks: readonly PlayedAttack[]): PlayedAttack[] =>
  sortById(attacks.toSorted((one, other) => (one.test < other.test ? -1 : 1)));

describe("docs/attacks.md", () => {
  it("has each attack that is played, word for word and with its files, and no other", () => {
    const listed = rows.flatMap(({ id, attempt, tests }) => tests.map((test) => ({ id, attempt, test })));
    expect(sortByTest(listed)).toEqual(sortByTest([...titles, ...inGateway]));
    for (const played of [titles, inGateway])
      expect(new Set(played.map(({ id }) => id)).size).toBe(played.length);
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
  });

  it("says of the plain host what was seen, in the words of the test, where it is played in the gateway", () => {
    const seen = Object.entries(SEEN).map(([id, words]) => ({ id, without: `${MEASURED}${words}` }));
    const marked = rows.filter(({ without }) => without.startsWith(MEASURED));
    expect(sortById(marked.map(({ id, without }) => ({ id, without })))).toEqual(sortById(seen));
    expect(sortById(inGateway).map(({ id }) => id)).toEqual(sortById(seen).map(({ id }) => id));
    expect(unwrapText(page)).toContain(`${inGateway.length} of them`);
    expect(inGateway.length).toBeGreaterThanOrEqual(20);
  });

  it("has each of these words at an expectation of the attack's own test", () => {
    const tests = readFileSync(join(ROOT, IN_GATEWAY), "utf8").split(/^it\(/mu);
    for (const id of Object.keys(SEEN)) {
      const test = tests.find((text) => text.trimStart().startsWith(`"${id} `));
      expect([id, test?.includes(`expectPlain("${id}"`)]).toEqual([id, true]);
    }
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
