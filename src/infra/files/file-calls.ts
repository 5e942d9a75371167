/** Owns: the calls to the file system that looking at files takes. Does not own: what their answers mean. */
import { constants, realpath, type BigIntStats, type Dirent } from "node:fs";
import { lstat, open, opendir, readlink, stat } from "node:fs/promises";
import nodePath, { type PlatformPath } from "node:path";
import { promisify } from "node:util";

export interface FileCalls {
  /** How paths are written on this system. */
  readonly path: PlatformPath;
  lstat(path: string): Promise<FileFacts>;
  stat(path: string): Promise<FileFacts>;
  readlink(path: string): Promise<string>;
  /** The path of the same place without a link in it. Rejects where nothing is there. */
  realpath(path: string): Promise<string>;
  /** The first names in a folder, at most `count`. */
  someNames(folder: string, count: number): Promise<readonly string[]>;
  /** The entries of a folder, in no order. */
  entries(folder: string): AsyncIterable<FolderEntry>;
  /** Never waits for a writer, as opening a FIFO otherwise would. */
  open(path: string): Promise<OpenFile>;
}

export type FileFacts = Pick<
  BigIntStats,
  "dev" | "ino" | "nlink" | "size" | "mtimeNs" | "ctimeNs" | "isFile" | "isDirectory" | "isSymbolicLink"
>;

export interface FolderEntry {
  readonly name: string;
  readonly kind: "folder" | "file" | "other";
}

export interface OpenFile {
  facts(): Promise<FileFacts>;
  /** From the file's start into `bytes`, until there are `enough` or the file ends. The answer is how many there are. */
  read(bytes: Buffer, enough: number): Promise<number>;
  close(): Promise<void>;
}

export const nodeFileCalls: FileCalls = {
  path: nodePath,
  lstat: (path) => lstat(path, { bigint: true }),
  stat: (path) => stat(path, { bigint: true }),
  readlink: (path) => readlink(path),
  realpath: promisify(realpath.native),
  someNames: listSomeNames,
  entries: listEntries,
  open: openForReading,
};

async function listSomeNames(folder: string, count: number): Promise<readonly string[]> {
  const names: string[] = [];
  await using entries = await opendir(folder);
  for (let entry = await entries.read(); entry !== null && names.length < count; entry = await entries.read())
    names.push(entry.name);
  return names;
}

async function* listEntries(folder: string): AsyncGenerator<FolderEntry> {
  for await (const entry of await opendir(folder))
    yield { name: entry.name, kind: classifyFolderEntry(entry) };
}

function classifyFolderEntry(entry: Dirent): FolderEntry["kind"] {
  if (entry.isDirectory()) return "folder";
  return entry.isFile() ? "file" : "other";
}

async function openForReading(path: string): Promise<OpenFile> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return {
    facts: () => file.stat({ bigint: true }),
    read: async (bytes, enough) => {
      let length = 0;
      for (;;) {
        const { bytesRead } = await file.read(bytes, length, bytes.length - length, length);
        length += bytesRead;
        if (bytesRead === 0 || length >= enough) return length;
      }
    },
    close: () => file.close(),
  };
}
