/** Owns: the calls to the file system that looking at files takes. Does not own: what their answers mean. */
import {
  close,
  closeSync,
  constants,
  fstat,
  fstatSync,
  open,
  read,
  readSync,
  realpath,
  type BigIntStats,
  type Dirent,
} from "node:fs";
import { lstat, opendir, readlink, stat } from "node:fs/promises";
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

/**
 * Whether a call about an open file goes to another thread and back, which takes 0.1 ms, or holds up this one for as long
 * as the disk takes.
 */
export type CallManner = "threads" | "this thread";

export type FileFacts = Pick<
  BigIntStats,
  | "dev"
  | "ino"
  | "nlink"
  | "size"
  | "blocks"
  | "mtimeNs"
  | "ctimeNs"
  | "isFile"
  | "isDirectory"
  | "isSymbolicLink"
>;

export interface FolderEntry {
  readonly name: string;
  readonly kind: "folder" | "file" | "other";
}

/** Answers with promises where it is called by threads. */
export interface OpenFile {
  facts(by: CallManner): FileFacts | Promise<FileFacts>;
  /** From the file's start into `bytes`, until there are `enough` or the file ends. The answer is how many there are. */
  read(bytes: Buffer, enough: number, by: CallManner): number | Promise<number>;
  close(by: CallManner): void | Promise<void>;
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

const onThreads = {
  open: promisify(open),
  facts: promisify(fstat),
  read: promisify(read),
  close: promisify(close),
};

async function openForReading(path: string): Promise<OpenFile> {
  const file = await onThreads.open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return {
    facts: (by) =>
      by === "threads" ? onThreads.facts(file, { bigint: true }) : fstatSync(file, { bigint: true }),
    read: (bytes, enough, by) =>
      by === "threads" ? readOnThreads(file, bytes, enough) : readOnThisThread(file, bytes, enough),
    close: (by) => (by === "threads" ? onThreads.close(file) : closeSync(file)),
  };
}

async function readOnThreads(file: number, bytes: Buffer, enough: number): Promise<number> {
  let length = 0;
  for (;;) {
    const { bytesRead } = await onThreads.read(file, bytes, length, bytes.length - length, length);
    length += bytesRead;
    if (bytesRead === 0 || length >= enough) return length;
  }
}

function readOnThisThread(file: number, bytes: Buffer, enough: number): number {
  let length = 0;
  for (;;) {
    const bytesRead = readSync(file, bytes, length, bytes.length - length, length);
    length += bytesRead;
    if (bytesRead === 0 || length >= enough) return length;
  }
}
