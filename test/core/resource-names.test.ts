/** Owns: the names of resources: files of one machine are told from those of others, and lie below each other as paths do. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isMatchingPattern } from "../../src/agents/coordination/arbitration/matches-pattern.ts";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import {
  formatMachineName,
  formatOwnResource,
  formatResource,
  isClaimCovering,
  isFileResource,
  readResourceKind,
  listResourceAndAbove,
  nameFile,
  nameHardLinks,
  parseFileResource,
} from "../../src/agents/coordination/contracts/resource-names.ts";
import { normalizeResources } from "../../src/agents/coordination/plan/compile-plan.ts";
import { computeReach } from "../../src/infra/ledger/claim-rows.ts";

const roots = fc.constantFrom("/", "c:/", "//server/share/");
const names = fc.constantFrom("a", "b", "@b", "a:", "@box:", "a.md", "ä", "0", "~");
const paths = fc
  .tuple(roots, fc.array(names, { maxLength: 4 }))
  .map(([root, below]) => root + below.join("/"));
const machines = fc.constantFrom(undefined, "box", "box-1", "box.example", "b");

/** As a store looks for claims on what is above and below. */
function isReached(claimed: string, wanted: string): boolean {
  const { names: above, from, before } = computeReach(wanted);
  return above.includes(claimed) || (from <= claimed && claimed < before) || claimed === wanted;
}

describe("the name of a file", () => {
  it("is its path, with its machine where machines have files of their own", () => {
    expect(nameFile("/repo/a.md")).toBe("file:/repo/a.md");
    expect(nameFile("/repo/a.md", "box-1")).toBe("file:@box-1:/repo/a.md");
    expect(nameHardLinks(5n, 7n)).toBe("hardlink:5-7");
    expect(nameHardLinks(5n, 7n, "box-1")).toBe("hardlink:@box-1:5-7");
  });

  it("leads back to both, and is that of a file in any case", () => {
    fc.assert(
      fc.property(paths, machines, (path, machine) => {
        const name = nameFile(path, machine);
        expect(parseFileResource(name)).toEqual({ path, ...(machine !== undefined && { machine }) });
        expect([isFileResource(name), readResourceKind(name), formatOwnResource(name)]).toEqual([
          true,
          "file",
          path,
        ]);
      }),
    );
    expect(parseFileResource("queue:mail")).toBeUndefined();
    // A path that a plan names from a workspace.
    expect(parseFileResource("file:@types/a.d.ts")).toEqual({ path: "@types/a.d.ts" });
  });

  it("is read by its path alone on its machine, and with the machine elsewhere", () => {
    const name = nameFile("/repo/a.md", "box-1");
    expect(formatResource(name, "box-1")).toBe("/repo/a.md");
    expect(formatResource(name, "box-2")).toBe("/repo/a.md on box-1");
    expect(formatResource(name)).toBe("/repo/a.md on box-1");
    expect(formatResource("file:/repo/a.md", "box-1")).toBe("/repo/a.md");
    expect(formatResource("queue:mail", "box-1")).toBe("queue:mail");
  });
});

describe("a claim on a file", () => {
  it("covers on one machine what it covers where there is one only, and nothing on another one", () => {
    fc.assert(
      fc.property(paths, paths, machines, machines, (holder, wanted, one, other) => {
        const covers = isClaimCovering(nameFile(holder, one), nameFile(wanted, other));
        expect(covers).toBe(one === other && isClaimCovering(nameFile(holder), nameFile(wanted)));
      }),
    );
  });

  it("is found by the store, and by the ledger of its step, exactly where it covers", () => {
    fc.assert(
      fc.property(paths, paths, machines, machines, (claimed, wanted, one, other) => {
        const [a, b] = [nameFile(claimed, one), nameFile(wanted, other)];
        expect(isReached(a, b)).toBe(isClaimCovering(a, b) || isClaimCovering(b, a));
        expect(listResourceAndAbove(b).includes(a)).toBe(isClaimCovering(a, b));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("a pattern of a policy", () => {
  it("fits the files of every machine, or of the one that it names", () => {
    const name = nameFile("/repo/secrets/key", "box-1");
    for (const pattern of ["secrets", "/repo/**", "file:/repo", "file:@box-1:/repo", "file:@BOX-1:secrets"])
      expect(isMatchingPattern(name, pattern), pattern).toBe(true);
    for (const pattern of ["/secrets", "file:@box-2:/repo", "hardlink:*"])
      expect(isMatchingPattern(name, pattern), pattern).toBe(false);
    expect(isMatchingPattern("file:/repo/a", "file:@box-1:/repo")).toBe(false);
  });
});

describe("a resource that a plan names", () => {
  it("keeps the machine that it names", () => {
    expect(normalizeResources(["file:@box-1:/repo//./a.md", "file:repo/./a.md", "file:/x//y/"])).toEqual([
      "file:/x/y",
      "file:@box-1:/repo/a.md",
      "file:repo/a.md",
    ]);
  });
});

describe("the name of a machine", () => {
  it.each([
    ["Build-Box.Example.COM", "build-box.example.com"],
    ["_büro:1", "b-ro-1"],
    ["", "machine"],
    ["::", "machine"],
  ])("of %j is %j", (hostname, machine) => {
    expect(formatMachineName(hostname)).toBe(machine);
  });

  it("always leads back out of the name of a file", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 300, unit: "grapheme" }), (hostname) => {
        const machine = formatMachineName(hostname);
        expect(machine.length).toBeLessThanOrEqual(BOUNDS.nameCharsMax);
        expect(parseFileResource(nameFile("/a", machine))).toEqual({ path: "/a", machine });
      }),
    );
  });
});
