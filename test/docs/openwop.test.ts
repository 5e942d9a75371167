import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { NODE_TYPE_IDS } from "../../src/agents/coordination/workflow/nodes/node-types.ts";
import { DEFAULTS } from "../../src/plugins/openwop/http/advertised.ts";
import { listRoutes } from "../../src/plugins/openwop/route-table.ts";
import { CONFORMANCE_SUITE } from "../../src/plugins/openwop/conformance/conformance-suite.ts";
import { formatRequirementPage, readRequirements, readTestNames } from "../openwop/requirement-page.ts";
import { readTableRows } from "./read-tables.ts";

const DOCS = join(import.meta.dirname, "../../docs");
const page = readFileSync(join(DOCS, "openwop.md"), "utf8");
const ID = /^(?:L[1-6M]|B)-\d\d$/u;

const requirements = readRequirements().flatMap((group) => group.requirements);
const listQuoted = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/gu)].map(([, name = ""]) => name);

describe("docs/openwop-requirements.md", () => {
  it("has an entry for every test of the levels, and for no other", () => {
    expect(requirements.map(({ id }) => id).toSorted()).toEqual([...readTestNames().keys()].toSorted());
  });

  it("gives every entry an id of its own, and a source", () => {
    const ids = requirements.map(({ id }) => id);
    expect(ids.filter((id) => !ID.test(id))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { id, source } of requirements) expect(source, id).toMatch(/\S{2,}/u);
  });

  it("is the page that the requirements and the names of the tests make", () => {
    expect(readFileSync(join(DOCS, "openwop-requirements.md"), "utf8")).toBe(formatRequirementPage());
  });
});

describe("docs/openwop.md", () => {
  it("lists every node type, and no other", () => {
    const types = readTableRows(page, "type").flatMap(([cell = ""]) => listQuoted(cell));
    expect(types.toSorted()).toEqual(
      [...NODE_TYPE_IDS, ...Object.keys(CONFORMANCE_SUITE.nodePlay.nodeTypes)].toSorted(),
    );
  });

  it("lists every seam, and no other", () => {
    const seams = listRoutes(
      { ...DEFAULTS, implementation: { name: "x", version: "0" } },
      CONFORMANCE_SUITE.face,
    )
      .filter(({ path }) => path.startsWith("/v1/host/sample"))
      .map(({ method, path }) => `${method} ${path.slice("/v1/host/sample".length)}`);
    const messages = readTableRows(page, "route").flatMap(([cell = ""]) => listQuoted(cell));
    expect(messages.toSorted()).toEqual(seams.toSorted());
  });
});
