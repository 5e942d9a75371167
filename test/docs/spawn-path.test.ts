import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { readTableRows, unwrapText } from "./read-tables.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const page = readFileSync(join(ROOT, "docs", "spawn-path.md"), "utf8");

/** The folders that the beginnings of the page's paths stand for; the page says the same. */
const FOLDERS: Readonly<Record<string, string>> = {
  core: "src/agents/coordination",
  openclaw: "src/plugins/openclaw",
  plugins: "src/plugins",
  infra: "src/infra",
};

const withoutTicks = (cell = ""): string => cell.replaceAll("`", "");

const pathOf = (cell = ""): string => {
  const [folder = "", ...rest] = withoutTicks(cell).split("/");
  return [FOLDERS[folder] ?? folder, ...rest].join("/");
};

/** The page's escaped star, which says that a file is given and not imported, is no part of the number. */
const numberOf = (cell = ""): string => cell.replaceAll(/[\\*]/gu, "");

interface Hop {
  readonly row: string;
  readonly from: string;
  readonly isGiven: boolean;
  readonly file: string;
  readonly declared: string;
}

interface Gift {
  readonly row: string;
  readonly calledAs: string;
  readonly maker: string;
  readonly factory: string;
}

const tables = readTableRows(page, "row");
const hops: Hop[] = tables
  .filter((cells) => cells.length === 5)
  .map(([row = "", from = "", file, declared]) => ({
    row,
    from: numberOf(from),
    isGiven: from.includes("*"),
    file: pathOf(file),
    declared: withoutTicks(declared),
  }));
const gifts: Gift[] = tables
  .filter((cells) => cells.length === 4)
  .map(([row = "", calledAs, maker, factory]) => ({
    row,
    calledAs: withoutTicks(calledAs),
    maker: pathOf(maker),
    factory: withoutTicks(factory),
  }));

const read = (file: string): string =>
  existsSync(join(ROOT, file)) ? readFileSync(join(ROOT, file), "utf8") : "";

const isDeclaring = (file: string, name: string): boolean =>
  new RegExp(String.raw`^(?:export )?(?:async )?function ${name}\b`, "mu").test(read(file));

/** Whether the file imports a value of the other one, at once or when it is needed; types do not call anything. */
const isImporting = (file: string, other: string): boolean =>
  [...read(file).matchAll(/(?:^import (?!type )[^;]*? from |\bimport\()"(\.[^"]+)"/gmu)].some(
    ([, specifier = ""]) => join(dirname(file), specifier) === other,
  );

const prose = unwrapText(page);

const hopOf = (row: string): Hop | undefined => hops.find((hop) => hop.row === row);

describe("the page on the path of a spawn", () => {
  it("numbers its rows without a gap, and each comes from an earlier one", () => {
    expect(hops.map(({ row }) => row)).toEqual(hops.map((_, index) => String(index + 1)));
    expect(hops.length).toBeGreaterThan(30);
    const wrong = hops.filter(
      ({ row, from }) => !(from === "host" || (Number(from) > 0 && Number(from) < Number(row))),
    );
    expect(wrong).toEqual([]);
    expect(hops.filter(({ from }) => from === "host")).toHaveLength(1);
  });

  it("says what its short paths stand for", () => {
    for (const [short, folder] of Object.entries(FOLDERS))
      expect(prose).toMatch(new RegExp(`\`${short}/\` (?:stands )?for \`${folder}/\``, "u"));
  });

  it.each(hops)("row $row: $file declares $declared", ({ file, declared }) => {
    expect(read(file)).not.toBe("");
    expect(isDeclaring(file, declared)).toBe(true);
  });

  it.each(hops.filter(({ from, isGiven }) => from !== "host" && !isGiven))(
    "row $row: $file is imported by the file of row $from",
    ({ from, file }) => {
      const caller = hopOf(from)?.file ?? "";
      if (caller === file) return;
      expect(isImporting(caller, file)).toBe(true);
    },
  );

  it("says of every file that is given by whom, and of no other", () => {
    const values = hops.filter(({ isGiven }) => isGiven).map(({ row }) => row);
    expect(gifts.map(({ row }) => row)).toEqual(values);
  });

  it.each(gifts)("row $row: $maker gives it, with $factory", ({ row, calledAs, maker, factory }) => {
    const hop = hopOf(row);
    const caller = hopOf(hop?.from ?? "")?.file ?? "";
    expect(read(caller)).toContain(calledAs);
    expect(isDeclaring(hop?.file ?? "", factory)).toBe(true);
    expect(read(maker)).toMatch(new RegExp(String.raw`\b${factory}\(`, "u"));
  });

  it("counts the files of the way out", () => {
    const end = hops.findIndex(({ declared }) => declared === "handOverEnvelope");
    const files = new Set(hops.slice(0, end).map(({ file }) => file));
    expect(prose).toContain(`These are ${files.size} files.`);
    const [, count, list = ""] = /goes on through (\d+) of them: rows ([^.]+)\./u.exec(prose) ?? [];
    const rows = [...list.matchAll(/\d+/gu)].map(([row]) => hopOf(row));
    expect(rows).not.toContain(undefined);
    expect(new Set(rows.map((hop) => hop?.file)).size).toBe(Number(count));
  });

  it("says the budget of the path and the bound of each wait", () => {
    const readSeconds = (file: string, name: string): number => {
      const [, ms = ""] = new RegExp(String.raw`const ${name} = ([\d_]+);`, "u").exec(read(file)) ?? [];
      return Number(ms.replaceAll("_", "")) / 1_000;
    };
    const handlers = pathOf("openclaw/spawns/spawn-handlers.ts");
    expect(prose).toContain(
      `one budget of ${readSeconds(handlers, "SPAWN_BUDGET_MS")} s (\`SPAWN_BUDGET_MS\`)`,
    );
    expect(prose).toContain(
      `ends ${readSeconds(handlers, "ADMISSION_MS")} s before the budget (\`ADMISSION_MS\`)`,
    );
    const waits = readTableRows(page, "wait for");
    expect(waits).toHaveLength(4);
    for (const [, time, bound, file] of waits)
      expect(`${readSeconds(pathOf(file), withoutTicks(bound))} s`).toBe(time);
  });

  it("draws only operations that the code has, and only events that it records", () => {
    const [, diagram = ""] = /```mermaid\n(.+?)```/su.exec(page) ?? [];
    const requests = read("src/agents/coordination/runtime/spawns/spawn-requests.ts");
    for (const [, name = ""] of diagram.matchAll(/P->>C: (\w+)$/gmu))
      expect(requests).toMatch(new RegExp(String.raw`^ {2}${name}\(`, "mu"));
    const hooks = read("src/plugins/openclaw/register-hooks.ts");
    for (const [, name = ""] of diagram.matchAll(/H->>P: (\w+)/gu)) expect(hooks).toContain(`"${name}"`);
    const facts = read("src/agents/coordination/contracts/facts.ts");
    for (const [, name = ""] of diagram.matchAll(/\b((?:step|coordination)\.\w+)/gu))
      expect(facts).toContain(`"${name}"`);
  });
});
