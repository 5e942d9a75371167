import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "..", "..");
const CHARS_MAX = 120;

const listPages = (folder: string): string[] =>
  readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `${folder}/${name}`);

const PAGES = [
  ...listPages("docs"),
  ...listPages("docs/adr"),
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "CHANGELOG.md",
  "examples/fleet/README.md",
  "examples/hook-plugin/README.md",
];

/** Records of what was decided then, and of what changed then, name files of their time. */
const NAMES_FILES_OF_ITS_TIME = /^(?:docs\/adr\/|CHANGELOG\.md$)/u;

const read = (page: string): string => readFileSync(join(ROOT, page), "utf8");

const findLongLines = (text: string): string[] => text.split("\n").filter((line) => line.length > CHARS_MAX);

const FOLDERS = ["src", "test", "scripts"];
const files = FOLDERS.flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).map((file) => `${folder}/${file}`),
);
const names = new Set([...files.map((file) => basename(file)), ...readdirSync(ROOT)]);

/** Whether a path that a page names is there, here or in the example plugin; a star stands for any part of a name. */
const isThere = (path: string): boolean => {
  if (!path.includes("*"))
    return [ROOT, join(ROOT, "examples/hook-plugin")].some((folder) => existsSync(join(folder, path)));
  const pattern = new RegExp(`^${path.replaceAll(".", "[.]").replaceAll("*", "[^/]*")}$`, "u");
  return files.some((file) => pattern.test(file));
};

describe("the pages", () => {
  it.each(PAGES)("%s has no line of more than 120 characters", (page) => {
    expect(findLongLines(read(page))).toEqual([]);
  });

  it("would find a line that is too long", () => {
    expect(findLongLines(`short\n${"x".repeat(CHARS_MAX)}\n${"x".repeat(CHARS_MAX + 1)}`)).toHaveLength(1);
  });

  it.each(PAGES.filter((page) => !NAMES_FILES_OF_ITS_TIME.test(page)))(
    "%s names only paths of src/ and test/ that there are",
    (page) => {
      const named = [...read(page).matchAll(/(?<![\w/])(?:src|test)\/[\w./*-]*[\w*/]/gu)].map(
        ([path]) => path,
      );
      expect(named.filter((path) => !isThere(path))).toEqual([]);
    },
  );

  it.each(PAGES.filter((page) => !NAMES_FILES_OF_ITS_TIME.test(page)))(
    "%s names only TypeScript files that there are",
    (page) => {
      const named = [...read(page).matchAll(/`(?:[\w-]+\/)*([\w-]+\.ts)`/gu)].map(([, name = ""]) => name);
      expect(named.filter((name) => !names.has(name))).toEqual([]);
    },
  );
});
