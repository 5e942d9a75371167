import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { NODE_TYPE_IDS } from "../../src/agents/coordination/workflow/nodes/node-types.ts";
import { DEFAULTS } from "../../src/plugins/openwop/http/advertised.ts";
import { routesOf } from "../../src/plugins/openwop/route-table.ts";
import { tableRows } from "./read-tables.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/openwop.md"), "utf8");
const TESTS = join(import.meta.dirname, "../openwop");
const ID = /^(?:L[1-6M]|B)-\d\d$/u;

/** The chat is OpenClaw's, so what is demanded of it is tested with its gateway. */
const CHATS = ["../plugin/chat-mention.test.ts", "../e2e/openwop-mention.test.ts"];

function namesIn(file: string, test: RegExp): string[] {
  const text = readFileSync(join(TESTS, file), "utf8");
  return [...text.matchAll(test)].map(([, found = ""]) => found);
}

/** The tests of the levels, as "id name", in the order of their ids. */
function testNames(): string[] {
  const files = readdirSync(TESTS).filter((name) => /^levels-.*\.test\.ts$/u.test(name));
  const levels = files.flatMap((name) => namesIn(name, /\bit\(\s*"([^"]+)"/gu));
  const chats = CHATS.flatMap((name) => namesIn(name, /(?:\bit|\))\(\s*"(LM-[^"]+)"/gu));
  return [...levels, ...chats].toSorted();
}

const rows = tableRows(page, "id");
const quoted = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/gu)].map(([, name = ""]) => name);

describe("docs/openwop.md", () => {
  it("has a line for every test of the levels, and for no other", () => {
    const told = rows.map((cells) => `${quoted(cells[0] ?? "")[0] ?? ""} ${cells.at(-1) ?? ""}`);
    expect(told.toSorted()).toEqual(testNames());
  });

  it("gives every test an id of its own, and a source", () => {
    const ids = rows.map(([cell = ""]) => quoted(cell)[0] ?? "");
    expect(ids.filter((id) => !ID.test(id))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [id, source] of rows) expect(source, id).toMatch(/\S{2,}/u);
  });

  it("lists every node type, and no other", () => {
    const types = tableRows(page, "type").flatMap(([cell = ""]) => quoted(cell));
    expect(types.toSorted()).toEqual([...NODE_TYPE_IDS].toSorted());
  });

  it("lists every seam, and no other", () => {
    const seams = routesOf({ ...DEFAULTS, implementation: { name: "x", version: "0" } }, true)
      .filter(({ path }) => path.startsWith("/v1/host/sample"))
      .map(({ method, path }) => `${method} ${path.slice("/v1/host/sample".length)}`);
    const told = tableRows(page, "route").flatMap(([cell = ""]) => quoted(cell));
    expect(told.toSorted()).toEqual(seams.toSorted());
  });
});
