/**
 * Owns: that the package has no files which only this checkout has, by packing a copy of what it names, and that the README says
 * how to install its program.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createTempFolder } from "../support/temp-ledger.ts";

const ROOT = join(import.meta.dirname, "..", "..");

interface PackageJson {
  readonly name: string;
  readonly version: string;
  readonly bin: Readonly<Record<string, string>>;
}

function listPacked(folder: string): readonly string[] {
  const args = ["pack", "--dry-run", "--json", "--ignore-scripts"];
  const output = execFileSync("npm", args, { cwd: folder, encoding: "utf8", stdio: "pipe" });
  const [packed] = JSON.parse(output) as readonly { readonly files: readonly { readonly path: string }[] }[];
  return packed?.files.map(({ path }) => path) ?? [];
}

it("says in the README how the program of the packed archive gets on the path", () => {
  const { name, version, bin } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as PackageJson;
  expect(Object.keys(bin)).toEqual([name]);
  expect(readFileSync(join(ROOT, "README.md"), "utf8")).toContain(`npm install -g ./${name}-${version}.tgz`);
});

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
