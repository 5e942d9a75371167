/** Owns: that nothing of the play for the protocol's conformance suite is in the product, but the interface that it plugs in. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { importsOf, listSourceFiles, SRC } from "./read-imports.ts";

const FOLDER = "plugins/openwop/conformance/";
/** Names what only the play runs, so that a host without it can refuse it by name. */
const NAMES_OF_THE_SUITE = "agents/coordination/workflow/node-contract/conformance-parts.ts";

const product = listSourceFiles().filter((file) => file.endsWith(".ts") && !file.startsWith(FOLDER));

/** The file without the paths of its imports, which may have the name of the interface in them. */
function readWithoutImports(file: string): string {
  return readFileSync(join(SRC, file), "utf8").replace(/(from |import\()"[^"]*"/gu, "");
}

/** The error with which the protocol has a host refuse a mock provider is no name of the play. */
const WORDS = /mock(?!_provider_forbidden)|conformance-|core\.conformance|["'`]conformance\./giu;

describe("the conformance play", () => {
  it("is named nowhere in the product but where its parts are refused", () => {
    const named = product.flatMap((file) =>
      (readWithoutImports(file).match(WORDS) ?? []).map((word) => `${file}: ${word}`),
    );
    expect(named.filter((line) => !line.startsWith(NAMES_OF_THE_SUITE))).toEqual([]);
    expect(named).not.toEqual([]);
  });

  it("is loaded by one file, when it is asked for, and by its types by none", () => {
    const found = product
      .flatMap((file) => importsOf(file))
      .filter(({ target }) => target.startsWith(FOLDER))
      .map(({ file, target, kind }) => ({ file, target, kind }));
    expect(found).toEqual([
      { file: "plugins/load-conformance.ts", target: `${FOLDER}conformance-suite.ts`, kind: "lazy" },
    ]);
  });
});
