/** Owns: folders that nothing may be removed from. Root may: of what it was allowed, only the modes can be seen. */
import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { removeFolder, unlockFolders } from "../../src/infra/files/remove-folder.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "remove-folder-"));
  mkdirSync(join(home, "cache/deep/deeper"), { recursive: true });
  mkdirSync(join(home, "outside"));
  symlinkSync(join(home, "outside"), join(home, "cache/deep/link"));
  for (const name of ["outside", "cache/deep/deeper", "cache/deep", "cache"])
    chmodSync(join(home, name), 0o500);
});
afterEach(async () => {
  await unlockFolders(home);
  rmSync(home, { recursive: true });
});

const modeOf = (name: string): number => lstatSync(join(home, name)).mode & 0o777;

it("lets their owner write to them at any depth, and to nothing that a link leads to", async () => {
  await unlockFolders(join(home, "cache"));
  for (const name of ["cache", "cache/deep", "cache/deep/deeper"]) expect(modeOf(name)).toBe(0o700);
  await unlockFolders(join(home, "cache/deep/link"));
  expect(modeOf("outside")).toBe(0o500);
});

it("removes them, and only the link to another folder", async () => {
  await removeFolder(join(home, "cache"));
  await removeFolder(join(home, "cache"));
  expect(existsSync(join(home, "cache"))).toBe(false);
  expect(existsSync(join(home, "outside"))).toBe(true);
});
