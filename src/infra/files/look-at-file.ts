/** Owns: what is in a file now, and the version that tells it from what was in it before. */
import { isUtf8 } from "node:buffer";
import { hash } from "node:crypto";
import { BOUNDS } from "../../agents/coordination/contracts/bounds.ts";
import type { FileLook } from "../../agents/coordination/ports/resource-files.ts";
import { readSystemErrorCode } from "../../platform/system-error.ts";
import type { FileCalls, FileFacts, CallManner, OpenFile } from "./file-calls.ts";

/** A file that changes under each of them is unreadable. */
const READS_MAX = 3;

/** A file of at most this size is read without other threads, where its disk is quick. */
const QUICK_BYTES_MAX = 65_536;

/** A disk is quick that told the facts of the file and opened it within this time. */
const QUICK_MS_MAX = 3;

/** The unit of `blocks`. */
const BLOCK_BYTES = 512n;

/**
 * Returns what is at a path and its version, with the text of a plain text file; `absent` or `unreadable` in place of
 * an error. Only plain files are opened: opening a device may act, and reading a FIFO takes from it.
 */
export async function lookAtFile(calls: FileCalls, path: string): Promise<FileLook> {
  try {
    const beganAtMs = performance.now();
    const facts = await calls.stat(path);
    const unread = lookWithoutReading(facts);
    if (unread) return unread;
    const file = await calls.open(path);
    return await lookAtContent(file, chooseManner(facts, performance.now() - beganAtMs));
  } catch (error) {
    const isAbsent = ["ENOENT", "ENOTDIR"].includes(readSystemErrorCode(error) ?? "");
    return isAbsent ? { kind: "absent", version: "absent" } : { kind: "unreadable" };
  }
}

/**
 * Chooses the calling thread for a small file on a quick disk: each ruling on a write and each record of one reads such
 * a file, and the way to other threads and back takes longer than its four calls. Opening, for which a network or what
 * looks for viruses may take long, has been done by then. A file that is elsewhere, for which something else stands on
 * this disk, has no blocks: reading it may take as long as a network does.
 */
function chooseManner({ size, blocks }: FileFacts, tookMs: number): CallManner {
  const isOnDisk = blocks * BLOCK_BYTES >= size;
  return isOnDisk && size <= QUICK_BYTES_MAX && tookMs <= QUICK_MS_MAX ? "this thread" : "threads";
}

/** Returns what is known of a folder, a device or a file that is too large; `undefined` for a file to be read. */
function lookWithoutReading(facts: FileFacts): FileLook | undefined {
  if (facts.isDirectory()) return { kind: "folder", version: "folder" };
  if (!facts.isFile()) return { kind: "other", version: formatStatVersion(facts), because: "not_text" };
  if (facts.size > BOUNDS.mergeBytesMax)
    return { kind: "other", version: formatStatVersion(facts), because: "too_large" };
  return undefined;
}

/** Formats a version from a file's identity, size and time, for a file whose content is not read. */
function formatStatVersion({ dev, ino, size, mtimeNs }: FileFacts): string {
  return `stat:${dev}-${ino}-${size}-${mtimeNs}`;
}

/**
 * Reads an open file, closes it, and returns its content and version; reads it again where it changes meanwhile, three
 * times at most, after which it is `unreadable`.
 */
async function lookAtContent(file: OpenFile, by: CallManner): Promise<FileLook> {
  try {
    let before = await file.facts(by);
    for (let reads = 0; reads < READS_MAX; reads += 1) {
      const unread = lookWithoutReading(before);
      if (unread) return unread;
      const bytes = await readBytes(file, Number(before.size), by);
      const after = await file.facts(by);
      if (bytes.length === Number(after.size) && formatStatVersion(before) === formatStatVersion(after))
        return createContentLook(bytes);
      before = after;
    }
    return { kind: "unreadable" };
  } finally {
    await file.close(by);
  }
}

/** Reads a file's bytes, and one more than there should be, to see that there is none. */
async function readBytes(file: OpenFile, size: number, by: CallManner): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(size + 1);
  return bytes.subarray(0, await file.read(bytes, size, by));
}

/** Returns bytes as text where they are UTF-8 without a NUL; the version is their hash. */
function createContentLook(bytes: Buffer): FileLook {
  const version = `sha256:${hash("sha256", bytes, "hex")}`;
  if (!isUtf8(bytes) || bytes.includes(0)) return { kind: "other", version, because: "not_text" };
  return { kind: "text", version, text: bytes.toString("utf8") };
}
