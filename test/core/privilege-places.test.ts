/** Owns: where the paths and globs lead by which a session's writes are held. */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { PrivilegeBound } from "../../src/agents/coordination/privileges/privilege-bound.ts";
import type { PathEnd } from "../../src/agents/coordination/ports/resource-files.ts";
import type { WriteTarget } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import { findWriteRefusal } from "../../src/agents/coordination/runtime/privileges/write-bounds.ts";
import { createRealFiles } from "../../src/infra/files/real-files.ts";
import { createTempFolder } from "../support/temp-ledger.ts";

const files = createRealFiles();

/** The rule that refuses a call of a session held by the globs; `undefined` for one that may happen. */
async function findRule(
  folder: string,
  globs: readonly string[],
  target: Pick<WriteTarget, "ends"> & { readonly path: string },
): Promise<string | undefined> {
  const { path, ends } = target;
  const bound = { by: "spawn", privilege: { write: globs } } as unknown as PrivilegeBound;
  const at = { path, folder };
  const refusal = await findWriteRefusal(
    { files, folderOf: () => folder },
    { bounds: [bound], worktrees: [] },
    { tool: "apply_patch", targets: [{ at, replaces: true, ...(ends && { ends }) }] },
  );
  return refusal?.rule;
}

describe("a symbolic link that a session deletes", () => {
  it("lies where the link is, not where it leads to", async () => {
    using folder = createTempFolder();
    mkdirSync(folder.file("src"));
    for (const name of ["src/v1.json", "v2.json"]) writeFileSync(folder.file(name), "x");
    symlinkSync("src/v1.json", folder.file("current"));
    symlinkSync("../v2.json", folder.file("src/next"));
    const find = (path: string, ...ends: readonly PathEnd[]): Promise<string | undefined> =>
      findRule(folder.path, ["src/**"], { path, ...(ends.length > 0 && { ends }) });
    expect(await find("current")).toBeUndefined();
    expect(await find("current", "entry")).toBe("write");
    expect(await find("src/next")).toBe("write");
    expect(await find("src/next", "entry")).toBeUndefined();
    expect(await find("current", "entry", "target")).toBe("write");
    expect(await find("src/next", "entry", "target")).toBe("write");
    expect(await find("src/v1.json", "entry", "target")).toBeUndefined();
  });
});

describe("a glob that begins with ~", () => {
  it("begins at the home of the user whom the gateway runs as", async () => {
    const { home } = files;
    if (home === undefined) throw new Error("no home");
    for (const glob of ["~/notes-of-a-test/**", "~/notes-of-a-test", "~"]) {
      expect(
        await findRule("/nowhere", [glob], { path: join(home, "notes-of-a-test/a.md") }),
      ).toBeUndefined();
      expect(await findRule("/nowhere", [glob], { path: "/nowhere/~/notes-of-a-test/a.md" })).toBe("write");
    }
    expect(await findRule("/nowhere", ["~x"], { path: "/nowhere/~x" })).toBeUndefined();
  });
});
