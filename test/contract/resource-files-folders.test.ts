/** Owns: how full a folder is. */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { nodeFileCalls } from "../../src/infra/files/file-calls.ts";
import { createRealFiles } from "../../src/infra/files/real-files.ts";
import { createTempFolder } from "../support/temp-ledger.ts";

it("is told by a number of entries, of a folder itself only", async () => {
  using folder = createTempFolder();
  mkdirSync(folder.file("src/deep"), { recursive: true });
  writeFileSync(folder.file("src/a.ts"), "x");
  writeFileSync(folder.file("src/deep/b.ts"), "x");
  symlinkSync("src", folder.file("link"));
  const files = createRealFiles();
  const hasMoreThan = async (count: number, name: string): Promise<boolean> =>
    files.hasMoreEntries((await files.locate(name, folder.path, "entry")) ?? "nowhere", count);
  expect(await hasMoreThan(1, "src")).toBe(true);
  for (const [count, name] of [
    [2, "src"],
    [0, "link"],
    [0, "src/a.ts"],
    [0, "missing"],
  ] as const)
    expect(await hasMoreThan(count, name), name).toBe(false);
});

it("is not told of a folder that cannot be listed, nor of one on another machine", async () => {
  using folder = createTempFolder();
  writeFileSync(folder.file("a.ts"), "x");
  const files = createRealFiles({ ...nodeFileCalls, someNames: () => Promise.reject(new Error("EACCES")) });
  const resource = (await files.locate(".", folder.path)) ?? "nowhere";
  expect(await files.hasMoreEntries(resource, 0)).toBe(false);
  expect(await createRealFiles(nodeFileCalls, "build-1").hasMoreEntries(resource, 0)).toBe(false);
});
