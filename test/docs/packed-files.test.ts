/** Owns: that the package has no files which only this checkout has, by packing a copy of what it names. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createTempFolder } from "../support/temp-ledger.ts";

const ROOT = join(import.meta.dirname, "..", "..");

function listPacked(folder: string): readonly string[] {
  const args = ["pack", "--dry-run", "--json", "--ignore-scripts"];
  const output = execFileSync("npm", args, { cwd: folder, encoding: "utf8", stdio: "pipe" });
  const [packed] = JSON.parse(output) as readonly { readonly files: readonly { readonly path: string }[] }[];
  return packed?.files.map(({ path }) => path) ?? [];
}

it("packs the examples without what was installed in them", () => {
  using folder = createTempFolder();
  for (const name of ["package.json", "examples"])
    cpSync(join(ROOT, name), folder.file(name), {
      recursive: true,
      filter: (path) => !path.includes("node_modules", ROOT.length),
    });
  const installed = folder.file("examples/hook-plugin/node_modules/immutable");
  mkdirSync(installed, { recursive: true });
  writeFileSync(join(installed, "index.js"), "export {};\n");
  const packed = listPacked(folder.path);
  expect(packed).toContain("examples/hook-plugin/index.js");
  expect(packed.filter((path) => path.includes("node_modules"))).toEqual([]);
});
