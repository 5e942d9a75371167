import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  isMatchingPattern,
  splitRootedPattern,
} from "../../src/agents/coordination/arbitration/matches-pattern.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 5_000);
/** Well above what the product of both lengths takes, and far below what backtracking would. */
const HOSTILE_MS = 500;

describe("a pattern", () => {
  it.each([
    // From the root.
    ["/repo/a.md", "file:/repo/a.md"],
    ["file:/repo/a.md", "file:/repo/a.md"],
    ["/repo/*.md", "file:/repo/a.md"],
    ["/repo/*", "file:/repo/.env"],
    ["/repo/**", "file:/repo/a/b/c.md"],
    ["/repo/**", "file:/repo"],
    ["/repo/**/c.md", "file:/repo/c.md"],
    ["/repo/**/c.md", "file:/repo/a/b/c.md"],
    ["/**/b/**/d", "file:/b/a/b/c/d"],
    ["/repo/**/**/c.md", "file:/repo/c.md"],
    ["/repo//./a.md", "file:/repo/a.md"],
    ["/repo/a.md/", "file:/repo/a.md"],
    // A pattern that fits a folder fits all that is in it.
    ["/repo", "file:/repo/deep/a.md"],
    ["/repo/*", "file:/repo/deep/a.md"],
    ["secrets", "file:/repo/secrets/key"],
    ["secrets/", "file:/repo/secrets/deep/key"],
    ["deep/a.md", "file:/repo/deep/a.md/part"],
    ["c:/repo", "file:c:/repo/a.md"],
    ["/", "file:/"],
    // Below any folder.
    ["a.md", "file:/a.md"],
    ["a.md", "file:/repo/deep/a.md"],
    ["deep/a.md", "file:/repo/deep/a.md"],
    ["./deep/a.md", "file:/repo/deep/a.md"],
    [".env*", "file:/repo/.env.local"],
    ["**/secrets/**", "file:/repo/secrets/deep/key"],
    ["secrets/**", "file:/repo/secrets/key"],
    ["file:*.md", "file:/repo/a.md"],
    // Within a name.
    ["?.md", "file:/a.md"],
    ["?.md", "file:/😀.md"],
    ["a*b*c", "file:/abbc"],
    ["*", "file:/repo/a"],
    ["a**b", "file:/axxb"],
    // Letters.
    ["/Repo/*.MD", "file:/repo/a.md"],
    ["/repo/a.md", "file:/REPO/A.md"],
    ["FILE:/repo/a.md", "file:/repo/a.md"],
    ["caf\u0065\u0301.md", "file:/caf\u00e9.md"],
    ["caf\u00e9.md", "file:/caf\u0065\u0301.md"],
    ["caf\u0065\u0301.md", "file:/caf\u0065\u0301.md"],
    // Resources of other kinds.
    ["session:agent:main:*", "session:agent:main:subagent:1"],
    ["session:*", "session:agent:main:main"],
    ["queue:build-?", "queue:build-1"],
    ["queue:*", "queue:a/b"],
    ["Queue:Build", "queue:build"],
    ["board:*", "board:card-7"],
    ["my_db:*", "my_db:customers"],
    ["c:*", "file:c:x"],
  ])("%s fits %s", (pattern, resource) => {
    expect(isMatchingPattern(resource, pattern)).toBe(true);
  });

  it.each([
    ["/repo/*.md", "file:/repo/deep/a.md"],
    ["/repo/?.md", "file:/repo/ab.md"],
    ["/repo/?", "file:/repo"],
    ["/repo/*", "file:/repo"],
    ["", "file:/repo/a.md"],
    [".", "file:/repo/a.md"],
    ["file:", "file:/repo/a.md"],
    ["/a.md", "file:/repo/a.md"],
    ["/repo/**/c.md", "file:/repo/a/c.md.bak"],
    ["a.md", "file:/repo/ba.md"],
    ["deep/a.md", "file:/repo/deep/er/a.md"],
    ["secrets/**", "file:/repo/mysecrets/key"],
    ["*.md", "queue:a.md"],
    ["*", "session:agent:main:main"],
    ["session:agent:*", "queue:agent:1"],
    ["session:agent:main", "session:agent:main:main"],
    ["queue:*", "file:/queue"],
    ["queue:build", "queue:build-1"],
    ["[ab].md", "file:/a.md"],
    ["(a|b)", "file:/a"],
    ["a.d", "file:/abd"],
  ])("%s does not fit %s", (pattern, resource) => {
    expect(isMatchingPattern(resource, pattern)).toBe(false);
  });
});

describe("the beginning of a pattern, before its first wildcard", () => {
  it.each([
    ["/repo/a.md", "/repo/a.md", []],
    ["file:/repo/a.md", "/repo/a.md", []],
    ["/repo/src/**/*.ts", "/repo/src", ["**", "*.ts"]],
    ["/repo/v?/a.md", "/repo", ["v?", "a.md"]],
    ["/repo/", "/repo/", []],
    ["/**/a.md", "/", ["**", "a.md"]],
    ["/", "/", []],
    ["C:/repo/*.md", "C:/repo", ["*.md"]],
  ])("of %s is %s", (pattern, root, rest) => {
    expect(splitRootedPattern(pattern)).toEqual({ root, rest });
  });

  it("is of the machine that the pattern names", () => {
    expect(splitRootedPattern("file:@build-1:/srv/*")).toEqual({
      machine: "build-1",
      root: "/srv",
      rest: ["*"],
    });
  });

  it.each(["repo/a.md", "**/a.md", "", "file:", "file:a.md", "queue:/mail", "x/c:/repo"])(
    "is none of %j, which does not begin at a root",
    (pattern) => {
      expect(splitRootedPattern(pattern)).toBeUndefined();
    },
  );
});

/** The same rules in the plainest form, which may take forever. */
function matchNaively(parts: readonly string[], wanted: readonly string[], deep: boolean): boolean {
  const [want, ...rest] = wanted;
  const [part, ...others] = parts;
  if (want === undefined) return part === undefined;
  if (want === (deep ? "**" : "*"))
    return matchNaively(parts, rest, deep) || (part !== undefined && matchNaively(others, wanted, deep));
  if (part === undefined) return false;
  const isOne = deep
    ? matchNaively(Array.from(part), Array.from(want), false)
    : want === "?" || want === part;
  return isOne && matchNaively(others, rest, deep);
}

const splitFolders = (path: string): string[] =>
  path.split("/").filter((name) => name !== "" && name !== ".");

const createText = (...letters: readonly string[]): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(...letters), { maxLength: 10 }).map((chosen) => chosen.join(""));

describe("for every small pattern", () => {
  it("of files, fitting is what trying everything says", () => {
    const paths = createText("a", "b", "/", ".").map((path) => `/${path}`);
    fc.assert(
      fc.property(paths, createText("a", "b", "/", ".", "*", "**", "?", "/**/"), (path, pattern) => {
        const names = splitFolders(pattern);
        const isRooted = pattern.startsWith("/");
        const wanted = [...(isRooted ? [] : ["**"]), ...names, "**"];
        const expected = (isRooted || names.length > 0) && matchNaively(splitFolders(path), wanted, true);
        expect(isMatchingPattern(`file:${path}`, pattern)).toBe(expected);
        expect(isMatchingPattern(`file:${path}`, `file:${pattern}`)).toBe(expected);
      }),
      { numRuns: RUNS },
    );
  });

  it("of other kinds, fitting is what trying everything says", () => {
    fc.assert(
      fc.property(
        createText("a", "b", "/", ":"),
        createText("a", "b", "/", ":", "*", "?"),
        (name, pattern) => {
          const expected = matchNaively(Array.from(name), Array.from(pattern), false);
          expect(isMatchingPattern(`queue:${name}`, `queue:${pattern}`)).toBe(expected);
          expect(isMatchingPattern(`queue:${name}`, `session:${pattern}`)).toBe(false);
        },
      ),
      { numRuns: RUNS },
    );
  });

  it("a resource without wildcards fits itself as a pattern, in upper case, too", () => {
    fc.assert(
      fc.property(createText("a", "ä", "7", "/", "."), (path) => {
        const resource = `file:/${path}`;
        expect(isMatchingPattern(resource, resource)).toBe(true);
        expect(isMatchingPattern(resource, resource.toUpperCase())).toBe(true);
      }),
      { numRuns: RUNS },
    );
  });
});

describe("a hostile pattern", () => {
  const LENGTH = 1_000;
  const fillLength = (part: string, end = ""): string =>
    part.repeat(Math.floor((LENGTH - end.length) / part.length)) + end;

  it.each([
    ["stars between the same letter", fillLength("*a", "b"), `file:/${fillLength("a")}`],
    ["stars and question marks", fillLength("*?", "b"), `file:/${fillLength("a")}`],
    ["any number of folders, again and again", fillLength("**/a/", "b"), `file:/${fillLength("a/")}`],
    [
      "stars in names below any number of folders",
      fillLength("**/*a*a*/", "b"),
      `file:/${fillLength("aaaa/")}`,
    ],
    ["a long name below any folder", `**/${fillLength("*a", "b")}`, `file:/${fillLength("aaaaaaaaa/")}`],
    ["a star in every folder", fillLength("*/", "b"), `file:/${fillLength("a/")}`],
    ["one star before half the text", `*${"a".repeat(LENGTH / 2)}b`, `file:/${fillLength("a")}`],
    [
      "one star in every folder",
      fillLength(`**/*${"a".repeat(124)}b/`),
      `file:/${fillLength(`${"a".repeat(249)}/`)}`,
    ],
    ["stars in the name of a queue", `queue:${fillLength("*a", "b")}`, `queue:${fillLength("a")}`],
  ])("of %s is refused in time", (_, pattern, resource) => {
    const before = performance.now();
    expect(isMatchingPattern(resource, pattern)).toBe(false);
    expect(performance.now() - before).toBeLessThan(HOSTILE_MS);
  });

  it("that does fit in the end is found in time", () => {
    const before = performance.now();
    expect(isMatchingPattern(`file:/${fillLength("a", "b")}`, fillLength("*a", "*b"))).toBe(true);
    expect(performance.now() - before).toBeLessThan(HOSTILE_MS);
  });
});
