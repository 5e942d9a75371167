import { linkSync, mkdirSync, renameSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { createRealFiles } from "../../src/infra/files/real-files.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { createFailingCalls, rootOf } from "./file-scene.ts";

const files = createRealFiles();

describe("what a command changed", () => {
  it("is every file that is new or whose inode changed since, and nothing that tools keep for themselves", async () => {
    using folder = createTempFolder();
    mkdirSync(folder.file("deep/er"), { recursive: true });
    for (const kept of [".git", "node_modules"]) mkdirSync(folder.file(kept));
    for (const name of ["old.txt", "moved.txt", "deep/er/touched.txt"]) writeFileSync(folder.file(name), "x");
    const beforeMs = Date.now() + 100;
    while (Date.now() < beforeMs) await files.stamp("file:/");
    expect(await files.findChanged(folder.path, beforeMs)).toEqual({ paths: [], isWhole: true });
    writeFileSync(folder.file("new.txt"), "x");
    writeFileSync(folder.file(".git/index"), "x");
    writeFileSync(folder.file("node_modules/x.js"), "x");
    renameSync(folder.file("moved.txt"), folder.file("deep/moved.txt"));
    utimesSync(folder.file("deep/er/touched.txt"), 0, 0);
    const { paths, isWhole } = await files.findChanged(folder.path, beforeMs);
    expect(isWhole).toBe(true);
    const expected = ["deep/er/touched.txt", "deep/moved.txt", "new.txt"].map((name) => folder.file(name));
    expect(paths.toSorted()).toEqual(expected);
  });

  it("is more than is told where it is too much", async () => {
    using folder = createTempFolder();
    for (let number = 0; number < 300; number += 1) writeFileSync(folder.file(`${number}.txt`), "x");
    const { paths, isWhole } = await files.findChanged(folder.path, 0);
    expect([paths.length, isWhole]).toEqual([256, false]);
  });

  it("is nothing below a folder that is not there", async () => {
    expect(await files.findChanged("/no/such/folder", 0)).toEqual({ paths: [], isWhole: true });
  });

  it("shows in the stamp of a file also where its size and time are as they were", async () => {
    using folder = createTempFolder();
    const resource = `${await rootOf(folder)}/a.txt`;
    expect(await files.stamp(resource)).toBe("absent");
    writeFileSync(folder.file("a.txt"), "one");
    utimesSync(folder.file("a.txt"), 1, 1);
    const stamp = await files.stamp(resource);
    const waitUntilMs = Date.now() + 30;
    while (Date.now() < waitUntilMs) await files.stamp(resource);
    writeFileSync(folder.file("a.txt"), "two");
    utimesSync(folder.file("a.txt"), 1, 1);
    expect(await files.stamp(resource)).not.toBe(stamp);
    expect(await files.stamp(await rootOf(folder))).toBeUndefined();
  });
});

describe("the name that hard links share", () => {
  it("is the same for all of them, and none for a file with one name, a folder or nothing", async () => {
    using folder = createTempFolder();
    const root = await rootOf(folder);
    writeFileSync(folder.file("a.txt"), "a");
    expect(await files.sharedName(`${root}/a.txt`)).toBeUndefined();
    linkSync(folder.file("a.txt"), folder.file("b.txt"));
    const name = await files.sharedName(`${root}/a.txt`);
    expect(name).toMatch(/^hardlink:\d+-\d+$/u);
    expect(await files.sharedName(`${root}/b.txt`)).toBe(name);
    for (const other of [root, `${root}/none`, "queue:x"])
      expect(await files.sharedName(other)).toBeUndefined();
  });
});

describe("the name of a path as it is written", () => {
  it("is in one form, and leads through links", async () => {
    using folder = createTempFolder();
    mkdirSync(folder.file("real"));
    symlinkSync("real", folder.file("short"));
    const expected = `file:${folder.path}/short/a.txt`;
    for (const path of ["short/a.txt", "./real/..//short/a.txt", folder.file("short/a.txt")])
      expect(await files.spelledName(path, folder.path)).toBe(expected);
    expect(await files.spelledName("/", folder.path)).toBe("file:/");
    expect(await createRealFiles(undefined, "build-1").spelledName("/a", "/")).toBe("file:@build-1:/a");
    for (const nowhere of ["", "a\0", "a/".repeat(BOUNDS.resourceCharsMax / 2)])
      expect(await files.spelledName(nowhere, folder.path)).toBeUndefined();
  });
});

describe("the resource of a path", () => {
  it("is the same however the path is written", async () => {
    using folder = createTempFolder();
    mkdirSync(folder.file("src/deep"), { recursive: true });
    const root = await rootOf(folder);
    const expected = `${root}/src/a.txt`;
    expect(root).toMatch(/^file:\/.+[^/]$/u);
    for (const path of [
      "src/a.txt",
      "./src//a.txt",
      "src/deep/../a.txt",
      "src/a.txt/",
      folder.file("src/a.txt"),
    ])
      expect(await files.locate(path, folder.path)).toBe(expected);
    expect(await files.locate("../a.txt", folder.file("src/deep"))).toBe(expected);
    expect(await files.locate("a.txt", `${folder.path}/src/deep/..//`)).toBe(expected);
    expect(await files.locate("/", folder.path)).toBe("file:/");
    expect(await files.locate("/../..", folder.path)).toBe("file:/");
  });

  it("follows links, of files and folders, relative and absolute, in a row", async () => {
    using folder = createTempFolder();
    mkdirSync(folder.file("real/inner"), { recursive: true });
    writeFileSync(folder.file("real/inner/a.txt"), "a");
    symlinkSync("real/inner", folder.file("short"));
    symlinkSync(folder.file("short"), folder.file("again"));
    symlinkSync("../again/a.txt", folder.file("real/file"));
    const expected = `${await rootOf(folder)}/real/inner/a.txt`;
    for (const path of ["short/a.txt", "again/a.txt", "real/file"])
      expect(await files.locate(path, folder.path)).toBe(expected);
    expect(await files.locate("a.txt", folder.file("again"))).toBe(expected);
  });

  it("is the link itself at the end of a path whose entry is removed, in the real folder", async () => {
    using folder = createTempFolder();
    mkdirSync(folder.file("real"));
    symlinkSync("real", folder.file("way"));
    writeFileSync(folder.file("real/v1.json"), "x");
    symlinkSync("v1.json", folder.file("real/current"));
    symlinkSync("nowhere", folder.file("real/dangling"));
    const root = await rootOf(folder);
    expect(await files.locate("way/current", folder.path)).toBe(`${root}/real/v1.json`);
    for (const name of ["current", "dangling", "v1.json", "missing"])
      expect(await files.locate(`way/${name}`, folder.path, "entry")).toBe(`${root}/real/${name}`);
    expect(await files.locate("way", folder.path, "entry")).toBe(`${root}/way`);
  });

  it("takes .. of a path as text, as the host's tools do, and that in a link where the link stands", async () => {
    using folder = createTempFolder();
    const root = await rootOf(folder);
    mkdirSync(folder.file("real/inner"), { recursive: true });
    symlinkSync("real/inner", folder.file("short"));
    symlinkSync("short/../a.txt", folder.file("file"));
    expect(await files.locate("short/../a.txt", folder.path)).toBe(`${root}/a.txt`);
    expect(await files.locate("missing/../a.txt", folder.path)).toBe(`${root}/a.txt`);
    expect(await files.locate("file", folder.path)).toBe(`${root}/real/a.txt`);
  });

  it("places what does not exist in the real folder that it would be in", async () => {
    using folder = createTempFolder();
    const root = await rootOf(folder);
    mkdirSync(folder.file("real"));
    symlinkSync("real", folder.file("short"));
    symlinkSync("real/later/x", folder.file("dangling"));
    expect(await files.locate("short/new/a.txt", folder.path)).toBe(`${root}/real/new/a.txt`);
    expect(await files.locate("dangling", folder.path)).toBe(`${root}/real/later/x`);
    expect(await files.locate("dangling/y", folder.path)).toBe(`${root}/real/later/x/y`);
    expect(await files.locate("a.txt", folder.file("none/at/all"))).toBe(`${root}/none/at/all/a.txt`);
  });

  it("is none for a path that leads nowhere", async () => {
    using folder = createTempFolder();
    symlinkSync("b", folder.file("a"));
    symlinkSync("a", folder.file("b"));
    symlinkSync("self/x", folder.file("self"));
    symlinkSync("missing/../x", folder.file("over"));
    symlinkSync("file/..", folder.file("through"));
    writeFileSync(folder.file("file"), "");
    symlinkSync("file", folder.file("to-file"));
    const nowhere = [
      "a",
      "a/x",
      "self",
      "over",
      "through",
      "file/x",
      "to-file/x/y",
      "",
      "a\0b",
      "x".repeat(256),
    ];
    for (const path of nowhere) expect(await files.locate(path, folder.path)).toBeUndefined();
    expect(await files.locate("a.txt", `${folder.path}\0`)).toBeUndefined();
    expect(await files.locate("a.txt", "not/absolute")).toBeUndefined();
  });

  it("follows 40 links in a row, and not 41", async () => {
    using folder = createTempFolder();
    for (let at = 1; at <= 41; at += 1) symlinkSync(`link${at - 1}`, folder.file(`link${at}`));
    expect(await files.locate("link40", folder.path)).toBe(`${await rootOf(folder)}/link0`);
    expect(await files.locate("link41", folder.path)).toBeUndefined();
  });

  it("is none where its name is too long, however short the path", async () => {
    using folder = createTempFolder();
    const root = await rootOf(folder);
    const deep = "d/".repeat((BOUNDS.resourceCharsMax - root.length - 2) / 2);
    const longest = `${deep}${"x".repeat(BOUNDS.resourceCharsMax - root.length - 1 - deep.length)}`;
    expect(await files.locate(longest, folder.path)).toBe(`${root}/${longest}`);
    expect(await files.locate(`${longest}x`, folder.path)).toBeUndefined();
    symlinkSync(`${deep}xx/yy`, folder.file("short"));
    expect(await files.locate("short", folder.path)).toBeUndefined();
    expect(await files.locate(`${"../".repeat(20_000)}x`, folder.path)).toBeUndefined();
    expect(await files.locate(`${"d/../".repeat(1_000)}x`, folder.path)).toBe(`${root}/x`);
  });

  it("goes on as text below a folder that may not be searched", async () => {
    using folder = createTempFolder();
    const root = await rootOf(folder);
    mkdirSync(folder.file("closed"));
    const calls = createFailingCalls("EACCES", "lstat", folder.file("closed/a"));
    expect(await createRealFiles(calls).locate("closed/a/b.txt", folder.path)).toBe(`${root}/closed/a/b.txt`);
    symlinkSync("closed/a/../../open", folder.file("short"));
    expect(await createRealFiles(calls).locate("short", folder.path)).toBe(`${root}/open`);
  });

  it("is one for names that reach the file system as one", async () => {
    using folder = createTempFolder();
    const resource = await files.locate("\uFFFD", folder.path);
    expect(resource).toBe(`${await rootOf(folder)}/\uFFFD`);
    expect(await files.locate("\uD800", folder.path)).toBe(resource);
  });
});
