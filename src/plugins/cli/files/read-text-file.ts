/** Owns: reading a text that a person names, from a file or the standard input, in bounded size. */
import { createReadStream } from "node:fs";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";

const STDIN = "-";

interface ReadLimit {
  readonly bytesMax: number;
  /** For a file with more. */
  readonly tooLarge: () => CoordinationError;
}

/** @throws CoordinationError `INPUT_INVALID` where the file cannot be read, is too large or is not UTF-8. */
export async function readTextFile(file: string, { bytesMax, tooLarge }: ReadLimit): Promise<string> {
  const stream: AsyncIterable<Buffer> = file === STDIN ? process.stdin : createReadStream(file);
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of stream) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > bytesMax) break;
    }
  } catch (cause) {
    const { code = "?" } = cause as NodeJS.ErrnoException;
    throw new CoordinationError("INPUT_INVALID", `${file}: the file cannot be read (${code})`, { cause });
  }
  if (size > bytesMax) throw tooLarge();
  return decoded(file, Buffer.concat(chunks));
}

function decoded(file: string, content: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch (cause) {
    throw new CoordinationError("INPUT_INVALID", `${file}: the file is not UTF-8 text`, { cause });
  }
}
