/** Owns: by which format a file is merged, by its name. */
import type { TextFormat } from "../pieces/text-format.ts";
import { jsonFormat } from "./json-format.ts";
import { markdownFormat } from "./markdown-format.ts";
import { pythonFormat } from "./python-format.ts";
import { tomlFormat } from "./toml-format.ts";
import { createTypescriptFormat } from "./typescript-format.ts";
import { yamlFormat } from "./yaml-format.ts";

const typescript = createTypescriptFormat("ts");
const typescriptWithJsx = createTypescriptFormat("ts jsx");
const javascript = createTypescriptFormat("jsx");

const FORMATS: ReadonlyMap<string, TextFormat> = new Map([
  ["json", jsonFormat],
  ["jsonc", jsonFormat],
  ["webmanifest", jsonFormat],
  ["yaml", yamlFormat],
  ["yml", yamlFormat],
  ["toml", tomlFormat],
  ["md", markdownFormat],
  ["markdown", markdownFormat],
  ["ts", typescript],
  ["mts", typescript],
  ["cts", typescript],
  ["tsx", typescriptWithJsx],
  ["js", javascript],
  ["mjs", javascript],
  ["cjs", javascript],
  ["jsx", javascript],
  ["py", pythonFormat],
  ["pyi", pythonFormat],
]);

/**
 * Returns the format by which files of a name are merged, found by the name's extension; `undefined` where they are
 * merged by line only.
 */
export function findFormat(fileName: string): TextFormat | undefined {
  const dot = fileName.lastIndexOf(".");
  return dot === -1 ? undefined : FORMATS.get(fileName.slice(dot + 1).toLowerCase());
}
