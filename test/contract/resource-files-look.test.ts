import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { renameSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { nodeFileCalls, type CallManner, type FileCalls } from "../../src/infra/files/file-calls.ts";
import { createRealFiles } from "../../src/infra/files/real-files.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { createFailingCalls, rootOf } from "./file-scene.ts";

const files = createRealFiles();

describe("a look at a resource", () => {
  it("tells what is absent, a folder, a text and none", async () => {
    using folder = createTempFolder();
    const root = await rootOf(folder);
    writeFileSync(folder.file("text"), "\uFEFFgrün\r\n");
    writeFileSync(folder.file("empty"), "");
    expect(await files.look(`${root}/none`)).toEqual({ kind: "absent", version: "absent" });
    expect(await files.look(`${root}/text/below`)).toEqual({ kind: "absent", version: "absent" });
    expect(await files.look(root)).toEqual({ kind: "folder", version: "folder" });
    expect(await files.look(`${root}/text`)).toEqual(createText("\uFEFFgrün\r\n"));
    expect(await files.look(`${root}/empty`)).toEqual(createText(""));
    expect(await files.look("session:agent:main:main")).toEqual({ kind: "unreadable" });
  });

  it.each([
    ["bytes that are not UTF-8", Buffer.from([0x61, 0xff])],
    ["a character in more bytes than it needs", Buffer.from([0xc0, 0xaf])],
    ["half a surrogate pair", Buffer.from([0xed, 0xa0, 0x80])],
    ["a character that is cut off", Buffer.from("é").subarray(0, 1)],
    ["a NUL", Buffer.from("a\0b")],
  ])("does not take %s for text", async (_, bytes) => {
    using folder = createTempFolder();
    writeFileSync(folder.file("file"), bytes);
    const look = await files.look(`${await rootOf(folder)}/file`);
    expect(look).toEqual({ kind: "other", version: hashBytes(bytes), because: "not_text" });
  });

  it("reads the largest file that may be merged, and no larger one", async () => {
    using folder = createTempFolder();
    const resource = `${await rootOf(folder)}/file`;
    writeFileSync(folder.file("file"), "x".repeat(BOUNDS.mergeBytesMax));
    expect(await files.look(resource)).toMatchObject({ kind: "text" });
    truncateSync(folder.file("file"), BOUNDS.mergeBytesMax + 1);
    utimesSync(folder.file("file"), 1, 1);
    const calls: FileCalls = { ...nodeFileCalls, open: () => Promise.reject(new Error("opened")) };
    const before = await createRealFiles(calls).look(resource);
    expect(before).toMatchObject({ kind: "other", because: "too_large" });
    utimesSync(folder.file("file"), 1, 2);
    const after = await createRealFiles(calls).look(resource);
    expect("version" in after && after.version).toMatch(/^stat:[\d-]{1,123}$/u);
    expect(after).not.toEqual(before);
  });

  it("does not open what is no plain file", async () => {
    using folder = createTempFolder();
    const root = await rootOf(folder);
    execFileSync("mkfifo", [folder.file("fifo")]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(folder.file("socket"), resolve));
    const calls: FileCalls = { ...nodeFileCalls, open: () => Promise.reject(new Error("opened")) };
    try {
      for (const resource of [`${root}/fifo`, `${root}/socket`, "file:/dev/null"])
        expect(await createRealFiles(calls).look(resource)).toMatchObject({
          kind: "other",
          because: "not_text",
        });
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it("does not wait for the writer of a FIFO that takes the place of a file", async () => {
    using folder = createTempFolder();
    const root = await rootOf(folder);
    writeFileSync(folder.file("file"), "x");
    execFileSync("mkfifo", [folder.file("fifo")]);
    const open = (path: string): ReturnType<FileCalls["open"]> => {
      renameSync(folder.file("fifo"), folder.file("file"));
      return nodeFileCalls.open(path);
    };
    const look = await createRealFiles({ ...nodeFileCalls, open }).look(`${root}/file`);
    expect(look).toMatchObject({ kind: "other", because: "not_text" });
  });

  it.each([
    { file: "a small file of a quick disk", bytes: 65_536, tookMs: 3, by: "this thread" },
    { file: "a larger file", bytes: 65_537, tookMs: 3, by: "threads" },
    { file: "a file of a slow disk", bytes: 65_536, tookMs: 3.1, by: "threads" },
    { file: "what stands for a file elsewhere", bytes: 4_096, tookMs: 0, blocks: 7n, by: "threads" },
  ])("reads $file by calls on: $by", async ({ bytes, tookMs, blocks, by }) => {
    using folder = createTempFolder();
    const resource = `${await rootOf(folder)}/file`;
    writeFileSync(folder.file("file"), "x".repeat(bytes));
    let nowMs = 1_000;
    using _clock = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
    const manners = new Set<unknown>();
    const note = (by: CallManner): CallManner => {
      manners.add(by);
      return by;
    };
    const calls: FileCalls = {
      ...nodeFileCalls,
      stat: async (path) => Object.assign(await nodeFileCalls.stat(path), blocks !== undefined && { blocks }),
      open: async (path) => {
        const file = await nodeFileCalls.open(path);
        nowMs += tookMs;
        return {
          facts: (by) => file.facts(note(by)),
          read: (bytes, enough, by) => file.read(bytes, enough, note(by)),
          close: (by) => file.close(note(by)),
        };
      },
    };
    expect(await createRealFiles(calls).look(resource)).toEqual(createText("x".repeat(bytes)));
    expect([...manners]).toEqual([by]);
  });

  it("tells a file that may not be read from one that is absent", async () => {
    using folder = createTempFolder();
    const root = await rootOf(folder);
    writeFileSync(folder.file("file"), "x");
    symlinkSync("loop", folder.file("loop"));
    const path = `${root}/file`.slice("file:".length);
    for (const call of ["stat", "open"] as const)
      expect(await createRealFiles(createFailingCalls("EACCES", call, path)).look(`${root}/file`)).toEqual({
        kind: "unreadable",
      });
    expect(
      await createRealFiles(createFailingCalls("ENOENT", "open", path)).look(`${root}/file`),
    ).toMatchObject({
      kind: "absent",
    });
    expect(await files.look(`${root}/loop`)).toEqual({ kind: "unreadable" });
  });

  it("reads again a file that changes meanwhile, until it rests", async () => {
    using folder = createTempFolder();
    const resource = `${await rootOf(folder)}/file`;
    const writes = ["longer", "s", "other"];
    writeFileSync(folder.file("file"), "first");
    const look = (count: number): Promise<unknown> =>
      createRealFiles(
        createCallsChangingFile(() => {
          count -= 1;
          const next = writes[count];
          if (next !== undefined) writeFileSync(folder.file("file"), next);
        }),
      ).look(resource);
    expect(await look(2)).toEqual(createText("longer"));
    expect(await look(3)).toEqual({ kind: "unreadable" });
  });

  it("closes what it opened", async () => {
    using folder = createTempFolder();
    let open = 0;
    const calls: FileCalls = {
      ...nodeFileCalls,
      open: async (path) => {
        const file = await nodeFileCalls.open(path);
        open += 1;
        const close = async (by: CallManner): Promise<void> => {
          await file.close(by);
          open -= 1;
        };
        return { ...file, read: () => Promise.reject(new Error("the disk failed")), close };
      },
    };
    writeFileSync(folder.file("file"), "x");
    expect(await createRealFiles(calls).look(`${await rootOf(folder)}/file`)).toEqual({ kind: "unreadable" });
    expect(open).toBe(0);
  });
});

/** `change` is called after each read. */
function createCallsChangingFile(change: () => void): FileCalls {
  return {
    ...nodeFileCalls,
    open: async (path) => {
      const file = await nodeFileCalls.open(path);
      const read = async (bytes: Buffer, enough: number, by: CallManner): Promise<number> => {
        const length = await file.read(bytes, enough, by);
        change();
        return length;
      };
      return { ...file, read };
    },
  };
}

const hashBytes = (bytes: Buffer): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
const createText = (content: string): unknown => ({
  kind: "text",
  version: hashBytes(Buffer.from(content)),
  text: content,
});
