/** Owns: reading a text that a person names, from a file or the standard input, in bounded size. */
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { nameFileKind } from "../../../platform/plain-file.ts";
import { assertPath, describeReadFault } from "./named-path.ts";

const STDIN = "-";

interface ReadLimit {
  readonly bytesMax: number;
  /** For a file with more. */
  readonly tooLarge: () => CoordinationError;
}

/**
 * Returns the text of a file, or of the standard input for `-`. `tooLarge`: makes the error for more than `bytesMax`
 * bytes. @throws CoordinationError `INPUT_INVALID` where no path was typed, or the file cannot be read, is no plain
 * file, is too large or is not UTF-8
 */
export async function readTextFile(file: string, { bytesMax, tooLarge }: ReadLimit): Promise<string> {
  assertPath(file);
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    const stream = file === STDIN ? process.stdin : await openPlainFile(file);
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > bytesMax) break;
    }
  } catch (cause) {
    if (cause instanceof CoordinationError) throw cause;
    throw new CoordinationError("INPUT_INVALID", `${file}: ${describeReadFault(cause)}`, { cause });
  }
  if (size > bytesMax) throw tooLarge();
  return decodeUtf8(file, Buffer.concat(chunks));
}

/** Opens a plain file to be read, and throws for any other. It never waits for the other end of a pipe. */
async function openPlainFile(file: string): Promise<AsyncIterable<Buffer>> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  const found = await handle.stat();
  if (found.isFile()) return handle.createReadStream();
  await handle.close();
  const advice = "name a plain file, or - for the standard input";
  throw new CoordinationError("INPUT_INVALID", `${file}: this is ${nameFileKind(found)}; ${advice}`);
}

function decodeUtf8(file: string, content: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch (cause) {
    throw new CoordinationError("INPUT_INVALID", `${file}: the file is not UTF-8 text`, { cause });
  }
}
