import { linkSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import { describe, expect, it } from "vitest";
import { nodeFileCalls, type FileCalls } from "../../src/infra/files/file-calls.ts";
import { createRealFiles } from "../../src/infra/files/real-files.ts";
import { createTempFolder } from "../support/temp-ledger.ts";

/** A real folder as a file system shows it that does not tell upper from lower case below `top`. */
function createCallsIgnoringCase(top: string): FileCalls {
  const foldCase = (name: string): string => name.normalize("NFC").toLowerCase().replaceAll("ς", "σ");
  const findActualPath = (path: string): string => {
    if (!path.startsWith(top + sep)) return path;
    let real = top;
    for (const name of path.slice(top.length + 1).split(sep)) real = join(real, findEntryLike(real, name));
    return real;
  };
  const findEntryLike = (folder: string, name: string): string => {
    try {
      return readdirSync(folder).find((entry) => foldCase(entry) === foldCase(name)) ?? name;
    } catch {
      return name;
    }
  };
  return {
    ...nodeFileCalls,
    lstat: (path) => nodeFileCalls.lstat(findActualPath(path)),
    stat: (path) => nodeFileCalls.stat(findActualPath(path)),
    readlink: (path) => nodeFileCalls.readlink(findActualPath(path)),
    // As Linux answers: the names stay as they were asked for.
    realpath: async (path) => {
      const real = await nodeFileCalls.realpath(findActualPath(path));
      return real === findActualPath(path) ? path : real;
    },
    someNames: (path, count) => nodeFileCalls.someNames(findActualPath(path), count),
    open: (path) => nodeFileCalls.open(findActualPath(path)),
  };
}

/** The same as one shows it that does, whatever this machine does. */
function createCallsTellingCase(): FileCalls {
  return {
    ...nodeFileCalls,
    lstat: async (path) => {
      const name = basename(path);
      const isThere = name === "" || (await readdir(dirname(path))).includes(name);
      if (!isThere) throw Object.assign(new Error("ENOENT"), { code: "ENOENT" });
      return nodeFileCalls.lstat(path);
    },
  };
}

/** Files of this machine, with the paths that are looked at. */
function createNotingFiles(): { files: ReturnType<typeof createRealFiles>; requests: string[] } {
  const requests: string[] = [];
  const noteAndLstat: FileCalls["lstat"] = (path) => {
    requests.push(path);
    return nodeFileCalls.lstat(path);
  };
  return { files: createRealFiles({ ...nodeFileCalls, lstat: noteAndLstat }), requests };
}

describe("where a file system does not tell upper from lower case", () => {
  it("nor do resources, of what is there and of what is not", async () => {
    using folder = createTempFolder();
    mkdirSync(folder.file("Src"));
    writeFileSync(folder.file("Src/ReadMe.md"), "text");
    const files = createRealFiles(createCallsIgnoringCase(folder.path));
    const [root, readme, later] = [
      `file:${folder.path}`,
      `file:${folder.path}/src/readme.md`,
      `file:${folder.path}/src/new/σίσυφοσ.é`,
    ];
    for (const path of ["Src/ReadMe.md", "src/readme.MD", "SRC/README.md"])
      expect(await files.locate(path, folder.path)).toBe(readme);
    for (const path of ["Src/New/ΣΊΣΥΦΟΣ.É", "src/new/Σίσυφος.e\u0301", "SRC/NEW/ΣΊΣΥΦΟΣ.E\u0301"])
      expect(await files.locate(path, folder.path)).toBe(later);
    expect(await files.look(readme)).toMatchObject({ kind: "text", text: "text" });
    expect(await files.look(later)).toMatchObject({ kind: "absent" });
    expect(await files.locate(".", folder.path)).toBe(root);
  });

  it("links lead to one resource, however their names and targets are written", async () => {
    using folder = createTempFolder();
    mkdirSync(folder.file("Real"));
    symlinkSync("REAL/Deep", folder.file("Link"));
    const files = createRealFiles(createCallsIgnoringCase(folder.path));
    const expected = `file:${folder.path}/real/deep/a`;
    expect(await files.locate("LINK/A", folder.path)).toBe(expected);
    expect(await files.locate("real/DEEP/a", folder.path)).toBe(expected);
  });

  it("only names in it are folded, not those of the folders above on another", async () => {
    using folder = createTempFolder();
    mkdirSync(folder.file("Mount/Some"), { recursive: true });
    const files = createRealFiles(createCallsIgnoringCase(folder.file("Mount")));
    expect(await files.locate("Mount/SOME/File", folder.path)).toBe(`file:${folder.path}/Mount/some/file`);
    expect(await files.locate("Other/File", folder.path)).toBe(`file:${folder.path}/Other/File`);
  });

  it("a folder with nothing that tells is as the one that it is in", async () => {
    using folder = createTempFolder();
    mkdirSync(folder.file("2024/12"), { recursive: true });
    writeFileSync(folder.file("letters"), "");
    const files = createRealFiles(createCallsIgnoringCase(folder.path));
    expect(await files.locate("2024/12/A", folder.path)).toBe(`file:${folder.path}/2024/12/a`);
  });

  it("a letter whose other case is more than a letter is left as it is", async () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("x"), "");
    const files = createRealFiles(createCallsIgnoringCase(folder.path));
    for (const path of ["İ.TXT", "I\u0307.TXT"])
      expect(await files.locate(path, folder.path)).toBe(`file:${folder.path}/İ.txt`);
    expect(await files.locate("ẞ.TXT", folder.path)).toBe(`file:${folder.path}/ß.txt`);
  });
});

describe("where a file system tells upper from lower case", () => {
  it("so do resources", async () => {
    using folder = createTempFolder();
    mkdirSync(folder.file("Src"));
    const files = createRealFiles(createCallsTellingCase());
    for (const path of ["Src/A", "Src/a", "src/A", "E\u0301", "É"])
      expect(await files.locate(path, folder.path)).toBe(`file:${folder.path}/${path}`);
  });

  it("and where nothing tells whether it does, neither here nor above, it is taken to", async () => {
    const files = createRealFiles({
      ...nodeFileCalls,
      lstat: (path) => nodeFileCalls.lstat(path === "/" ? path : "/none/at/all"),
      someNames: () => Promise.reject(new Error("not allowed")),
    });
    expect(await files.locate("/New", "/")).toBe("file:/New");
  });

  it("two links to one file are two names", async () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("name"), "");
    linkSync(folder.file("name"), folder.file("second"));
    // As if `second` were `NAME`: on some machines that cannot be.
    const linked = createRealFiles({
      ...nodeFileCalls,
      lstat: (path) => nodeFileCalls.lstat(path.endsWith("NAME") ? folder.file("second") : path),
      someNames: () => Promise.resolve(["name", "NAME"]),
    });
    expect(await linked.locate("NAME", folder.path)).toBe(`file:${folder.path}/NAME`);
  });

  it.each(["replaced", "removed"])("an entry that is %s meanwhile tells nothing", async (change) => {
    using folder = createTempFolder();
    mkdirSync(folder.file("sub"));
    for (const name of ["Name", "sub/other"]) writeFileSync(folder.file(name), "");
    const view = createCallsIgnoringCase(folder.path);
    let isChanged = false;
    const changeAndLstat: FileCalls["lstat"] = async (path) => {
      if (!path.endsWith("nAME") || isChanged) return view.lstat(path);
      isChanged = true;
      if (change === "removed") renameSync(folder.file("Name"), folder.file("sub/gone"));
      const facts = await view.lstat(path);
      renameSync(folder.file("sub/other"), folder.file("Name"));
      return facts;
    };
    const files = createRealFiles({ ...view, lstat: changeAndLstat });
    expect(await files.locate("Name", folder.path)).toBe(`file:${folder.path}/name`);
    expect(isChanged).toBe(true);
  });

  it("a name in a folder that is known is found without a look at each component", async () => {
    using folder = createTempFolder();
    mkdirSync(folder.file("a/b/c/d"), { recursive: true });
    writeFileSync(folder.file("a/b/c/d/Name"), "");
    const { files, requests } = createNotingFiles();
    const resource = await files.locate("a/b/c/d/Name", folder.path);
    requests.splice(0);
    expect(await files.locate("a/b/c/d/Name", folder.path)).toBe(resource);
    expect(requests).not.toContain(folder.file("a/b"));
    expect(requests.length).toBeLessThanOrEqual(2);
  });

  it("a folder is asked once", async () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("Name"), "");
    const { files, requests } = createNotingFiles();
    await files.locate("Name", folder.path);
    const first = requests.splice(0).length;
    await files.locate("Name", folder.path);
    await files.locate("Other", folder.path);
    expect(requests.filter((path) => path.endsWith("nAME"))).toEqual([]);
    expect(first).toBeGreaterThan(requests.length / 2);
  });
});
