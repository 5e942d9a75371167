import { win32 } from "node:path";
import { describe, expect, it } from "vitest";
import type { FileCalls, FileFacts } from "../../src/infra/files/file-calls.ts";
import { createRealFiles } from "../../src/infra/files/real-files.ts";

type Entry = "folder" | "file" | { readonly target: string };

/** By the whole path in lower case. */
const tree = new Map<string, Entry>([
  ["c:\\", "folder"],
  ["c:\\users", "folder"],
  ["c:\\users\\me", "folder"],
  ["c:\\users\\me\\a.txt", "file"],
  ["c:\\users\\me\\work", { target: "D:\\Projects\\" }],
  ["c:\\users\\me\\top", { target: "\\Users" }],
  ["d:\\", "folder"],
  ["d:\\projects", "folder"],
  ["d:\\projects\\up", { target: "..\\Other" }],
  ["\\\\server\\share\\", "folder"],
  ["\\\\?\\c:\\", "folder"],
  ["\\\\?\\c:\\users", "folder"],
]);

/** A system with drives, which does not tell upper from lower case. */
const windows: FileCalls = {
  path: win32,
  lstat: (path) => answer(() => factsOf(path)),
  stat: (path) => answer(() => factsOf(path)),
  readlink: (path) => answer(() => linkOf(path)),
  realpath: () => Promise.reject(new Error("the walk tells")),
  someNames: () => Promise.resolve([]),
  entries: () => ({
    [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true, value: undefined }) }),
  }),
  open: () => Promise.reject(new Error("not needed")),
};

function answer<T>(find: () => T | undefined): Promise<T> {
  const found = find();
  return found === undefined
    ? Promise.reject(Object.assign(new Error("ENOENT"), { code: "ENOENT" }))
    : Promise.resolve(found);
}

function linkOf(path: string): string | undefined {
  const entry = tree.get(path.toLowerCase());
  return typeof entry === "object" ? entry.target : undefined;
}

function factsOf(path: string): FileFacts | undefined {
  const key = path.toLowerCase();
  const entry = tree.get(key);
  if (entry === undefined) return undefined;
  return {
    dev: 1n,
    ino: BigInt([...tree.keys()].indexOf(key)),
    nlink: 1n,
    size: 0n,
    blocks: 0n,
    mtimeNs: 0n,
    ctimeNs: 0n,
    isFile: () => entry === "file",
    isDirectory: () => entry === "folder",
    isSymbolicLink: () => typeof entry === "object",
  };
}

describe("resources on Windows", () => {
  const files = createRealFiles(windows);
  const home = "C:\\Users\\Me";

  it.each([
    ["a.txt", "file:c:/users/me/a.txt"],
    ["C:/USERS\\me/A.TXT", "file:c:/users/me/a.txt"],
    ["new\\File.txt", "file:c:/users/me/new/file.txt"],
    ["work\\Src\\A.ts", "file:d:/projects/src/a.ts"],
    ["work\\..\\A.ts", "file:c:/users/me/a.ts"],
    ["work/up", "file:d:/other"],
    ["top\\ME\\a.txt", "file:c:/users/me/a.txt"],
    ["\\Users", "file:c:/users"],
    ["d:\\", "file:d:/"],
    ["\\\\Server\\Share\\A.txt", "file://server/share/a.txt"],
    ["\\\\?\\C:\\Users\\X", "file:c:/users/x"],
  ])("of %s have one spelling", async (path, expected) => {
    expect(await files.locate(path, home)).toBe(expected);
  });

  it("have a name as the path is written, where no link is followed", async () => {
    expect(await files.spelledName("work/Src\\..\\A.ts", home)).toBe("file:c:/Users/Me/work/A.ts");
    expect(await files.spelledName("D:\\", home)).toBe("file:d:/");
  });

  it("are none for a drive that is not there", async () => {
    expect(await files.locate("E:\\a.txt", home)).toBeUndefined();
    expect(await files.locate("a.txt\\below", home)).toBeUndefined();
  });
});
