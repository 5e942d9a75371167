import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { describe, expect, it } from "vitest";
import { COMPOSING, ENTRY, IMPORTS, SDK, type ImportRule } from "./import-table.ts";
import { importsOf, listSourceFiles, SRC, type Import } from "./read-imports.ts";

const files = listSourceFiles();
const code = files.filter((file) => file.endsWith(".ts"));
const imports = code.flatMap((file) => importsOf(file));

/** Why an import breaks the table, or nothing. */
function findBrokenRules({ file, line, target, isPackage, kind }: Import): string[] {
  const folder = posix.dirname(file);
  const rule = IMPORTS[folder];
  const at = `${file}:${line} imports ${target} (${kind})`;
  if (!rule) return [`${at}: ${folder} is not in the table`];
  if (isPackage) return mayImport(rule, target, file) ? [] : [`${at}: ${folder} may not`];
  const allowed = [folder, ...listAllowedFolders(rule, kind)];
  return allowed.includes(posix.dirname(target)) ? [] : [`${at}: ${folder} may not`];
}

function listAllowedFolders(
  { folders = [], types = [], lazy = [] }: ImportRule,
  kind: Import["kind"],
): readonly string[] {
  if (kind === "value") return folders;
  return [...folders, ...(kind === "types" ? types : lazy)];
}

function mayImport({ packages = [] }: ImportRule, specifier: string, file: string): boolean {
  if (specifier.startsWith("node:")) return packages.includes("node:*");
  const name = specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
  return packages.includes(name) && (name !== "openclaw" || file === SDK);
}

/** Returns the circles that a walk along all edges meets, each as the nodes on its way. */
function findCircles(edges: readonly (readonly [from: string, to: string])[]): string[] {
  const targets = new Map<string, string[]>();
  for (const [from, to] of edges) targets.set(from, [...(targets.get(from) ?? []), to]);
  const finished = new Set<string>();
  const circles: string[] = [];
  const visit = (node: string, path: readonly string[]): void => {
    if (path.includes(node)) circles.push([...path.slice(path.indexOf(node)), node].join(" > "));
    if (finished.has(node) || path.includes(node)) return;
    for (const target of targets.get(node) ?? []) visit(target, [...path, node]);
    finished.add(node);
  };
  for (const node of targets.keys()) visit(node, []);
  return circles;
}

describe("the import table", () => {
  it("has a line for every folder with code, and for no other", () => {
    const folders = new Set(code.map((file) => posix.dirname(file)));
    expect([...folders].filter((folder) => !IMPORTS[folder])).toEqual([]);
    expect(Object.keys(IMPORTS).filter((folder) => !folders.has(folder))).toEqual([]);
  });

  it("is kept by every import", () => {
    expect(imports.length).toBeGreaterThan(100);
    expect(imports.flatMap(findBrokenRules)).toEqual([]);
  });

  it("allows nothing that no file needs any more", () => {
    const used = new Set(
      imports.map(({ file, target }) => `${posix.dirname(file)} ${posix.dirname(target)}`),
    );
    const unused = Object.entries(IMPORTS).flatMap(([folder, { folders = [] }]) =>
      folders.filter((target) => !used.has(`${folder} ${target}`)).map((target) => `${folder} ${target}`),
    );
    expect(unused).toEqual([]);
  });

  const from = (file: string, text: string): string[] => importsOf(file, text).flatMap(findBrokenRules);

  it.each([
    ["agents/coordination/ledger/x.ts", 'import { decide } from "../dispatch/decide.ts";'],
    ["agents/coordination/dispatch/x.ts", 'import { createRunLog } from "../runtime/log/run-log.ts";'],
    ["agents/coordination/dispatch/x.ts", 'import type { Clock } from "../ports/clock.ts";'],
    ["agents/coordination/contracts/x.ts", 'import type { Step } from "../ledger/state.ts";'],
    ["agents/coordination/contracts/x.ts", 'import { join } from "node:path";'],
    ["agents/coordination/runtime/x.ts", 'import { nothing } from "../ports/clock.ts";'],
    [
      "agents/coordination/runtime/x.ts",
      'import { systemClock } from "../../../infra/clock/system-clock.ts";',
    ],
    ["agents/coordination/runtime/x.ts", 'export * from "pino";'],
    ["agents/coordination/gates/x.ts", 'import { z } from "zod";'],
    ["infra/log/x.ts", 'import type { RunLog } from "../../agents/coordination/runtime/log/run-log.ts";'],
    ["infra/lanes/x.ts", 'import pino from "pino";'],
    ["infra/lanes/x.ts", 'type P = import("pino").Logger;'],
    ["plugins/openclaw/index.ts", 'import { pQueueLanes } from "../../infra/lanes/p-queue-lanes.ts";'],
    ["plugins/openclaw/index.ts", 'import { addCoordinationCommands } from "../cli/add-commands.ts";'],
    ["plugins/openclaw/index.ts", 'import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";'],
    ["plugins/openclaw/index.ts", 'const later = () => import("openclaw/plugin-sdk/config");'],
    ["plugins/cli/x.ts", 'import { openSqliteLedger } from "../../infra/sqlite/sqlite-ledger-store.ts";'],
    ["plugins/cli/x.ts", 'import { fakeClock } from "../../../test/support/fake-clock.ts";'],
    ["plugins/cli/x.ts", 'const later = () => import("../../infra/sqlite/database/migrate.ts");'],
  ])("would notice in %s: %s", (file, text) => {
    expect(from(file, text)).toHaveLength(1);
  });

  it.each([
    ["plugins/openclaw/index.ts", 'import type { LedgerReader } from "../compose.ts";'],
    ["plugins/openclaw/index.ts", 'const later = () => import("../compose.ts");'],
    ["plugins/openclaw/host/sdk.ts", 'export { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";'],
    ["agents/coordination/runtime/x.ts", 'import { type Clock } from "../ports/clock.ts";'],
  ])("allows in %s: %s", (file, text) => {
    expect(from(file, text)).toEqual([]);
  });
});

describe("the tree", () => {
  it("puts infra and runtime together in two files only", () => {
    const importsBoth = code.filter((file) => {
      const ownImports = imports.filter((each) => each.file === file && each.kind !== "types");
      const from = (prefix: string): boolean => ownImports.some(({ target }) => target.startsWith(prefix));
      return from("infra/") && from("agents/coordination/runtime/");
    });
    expect(importsBoth.toSorted()).toEqual(COMPOSING);
  });

  it("imports the host in one file only", () => {
    const host = imports.filter(({ target }) => target === "openclaw" || target.startsWith("openclaw/"));
    expect([...new Set(host.map(({ file }) => file))]).toEqual([SDK]);
  });

  it("reaches the parts of a running coordinator from the plugin's entry only lazily", () => {
    const reached = new Set<string>();
    const visit = (file: string): void => {
      if (reached.has(file)) return;
      reached.add(file);
      for (const each of imports)
        if (each.file === file && each.kind === "value" && !each.isPackage) visit(each.target);
    };
    visit(ENTRY);
    expect([...reached].filter((file) => COMPOSING.includes(file) || file.startsWith("infra/"))).toEqual([]);
    expect(reached.has(SDK)).toBe(true);
  });

  it("imports nothing from outside of src, and only files that are there", () => {
    const paths = imports.filter(({ isPackage }) => !isPackage).map(({ target }) => target);
    expect(paths.filter((target) => target.startsWith("..") || !existsSync(join(SRC, target)))).toEqual([]);
    const shared = code.filter((file) => readFileSync(join(SRC, file), "utf8").includes("../shared/"));
    expect(shared).toEqual([]);
  });

  it("has at most 25 files in a folder", () => {
    const byFolder = Map.groupBy(files, (file) => posix.dirname(file));
    const full = [...byFolder].filter(([, inFolder]) => inFolder.length > 25).map(([folder]) => folder);
    expect(full).toEqual([]);
  });

  it("gives no two files the same name", () => {
    const ENTRIES = ["index.ts"];
    const byName = Map.groupBy(code, (file) => posix.basename(file));
    const shared = [...byName].filter(([name, named]) => named.length > 1 && !ENTRIES.includes(name));
    expect(shared.map(([, named]) => named)).toEqual([]);
  });

  it("has no folder that could hold anything", () => {
    const vague = /(^|\/)(utils?|helpers?|common|shared|managers?|misc|lib)(\/|\.ts$)/u;
    expect(files.filter((file) => vague.test(file))).toEqual([]);
  });

  it("has files that begin with what they own", () => {
    const silent = code.filter(
      (file) => !/^(?:#!.*\n)?\/\*\*(?: |\n \* )Owns: /u.test(readFileSync(join(SRC, file), "utf8")),
    );
    expect(silent).toEqual([]);
  });

  it("names its files in kebab case", () => {
    const named =
      /^([a-z][a-z0-9-]*\/)*([a-z][a-z0-9]*(-[a-z0-9]+)*\.(?:ts|css|html)|tsconfig\.json|\d{6}_[a-z0-9_]+\.sql)$/u;
    expect(files.filter((file) => !named.test(file))).toEqual([]);
  });

  it("has no circle of imports between files, of types included", () => {
    const edges = imports.filter(({ isPackage, kind }) => !isPackage && kind !== "lazy");
    expect(findCircles(edges.map(({ file, target }) => [file, target]))).toEqual([]);
  });

  it("has no circle of imports between folders, of types and lazy ones included", () => {
    const edges = imports
      .filter(({ isPackage }) => !isPackage)
      .map(({ file, target }) => [posix.dirname(file), posix.dirname(target)] as const)
      .filter(([from, to]) => from !== to);
    expect(findCircles(edges)).toEqual([]);
  });

  it("permits no circle between folders in its table", () => {
    const edges = Object.entries(IMPORTS).flatMap(([folder, { folders = [], types = [], lazy = [] }]) =>
      [...folders, ...types, ...lazy].map((target) => [folder, target] as const),
    );
    expect(findCircles(edges)).toEqual([]);
  });

  it("would notice a circle", () => {
    expect(
      findCircles([
        ["a", "b"],
        ["b", "c"],
        ["c", "b"],
      ]),
    ).toEqual(["b > c > b"]);
  });

  it("keeps its migrations gapless", () => {
    const byFolder = Map.groupBy(
      files.filter((file) => file.endsWith(".sql")),
      (file) => posix.dirname(file),
    );
    expect(byFolder.size).toBe(2);
    for (const migrations of byFolder.values()) {
      const numbers = migrations.map((file) => Number(posix.basename(file).slice(0, 6)));
      expect(numbers).toEqual(numbers.map((_, index) => index + 1));
    }
  });
});
