/** Owns: where a path leads once something above it is removed. */
import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { createRealFiles } from "../../src/infra/files/real-files.ts";
import { createTempFolder } from "../support/temp-ledger.ts";

it("is below the place of what is removed, which no link leads away from then", async () => {
  using folder = createTempFolder();
  const files = createRealFiles();
  const root = `file:${realpathSync(folder.path)}`;
  mkdirSync(folder.file("real/inner"), { recursive: true });
  writeFileSync(folder.file("real/tool"), "x");
  symlinkSync("real/inner", folder.file("way"));
  symlinkSync("real", folder.file("again"));
  const locate = (path: string, namesBelowRemoved: number): Promise<string | undefined> =>
    files.locate(path, folder.path, { namesBelowRemoved });
  expect(await locate("way/a/b.ts", 2)).toBe(`${root}/way/a/b.ts`);
  expect(await locate("again/tool/a/b.ts", 2)).toBe(`${root}/real/tool/a/b.ts`);
  expect(await locate("again/inner/a.ts", 1)).toBe(`${root}/real/inner/a.ts`);
  expect(await locate("missing/a.ts", 1)).toBe(`${root}/missing/a.ts`);
  expect(await files.locate("real/tool/a.ts", folder.path)).toBeUndefined();
});
