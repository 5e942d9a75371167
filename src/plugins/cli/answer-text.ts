/** Owns: where the text of an answer comes from: an argument, a file or the standard input, in bounded size. */
import { createReadStream } from "node:fs";
import { BOUNDS } from "../../agents/coordination/contracts/bounds.ts";
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";

const STDIN = "-";
/** No character takes more bytes. */
const UTF8_BYTES_MAX = 4;

interface Given {
  readonly text: string | undefined;
  readonly file: string | undefined;
}

/** @throws CoordinationError `INPUT_INVALID` */
export async function answerText({ text, file }: Given): Promise<string> {
  if (text !== undefined && file !== undefined)
    throw invalid("--file: the text is given already; leave one of them out");
  const given = file === undefined ? (text ?? "") : (await readText(file)).replace(/\r?\n$/u, "");
  if (given.trim() === "")
    throw invalid("text: expected what to answer, as an argument or with --file, got nothing");
  if (given.length > BOUNDS.answerCharsMax)
    throw invalid(`text: an answer may have at most ${BOUNDS.answerCharsMax} characters`);
  return given;
}

async function readText(file: string): Promise<string> {
  const stream: AsyncIterable<Buffer> = file === STDIN ? process.stdin : createReadStream(file);
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of stream) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > BOUNDS.answerCharsMax * UTF8_BYTES_MAX) break;
    }
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why =
      code === "ERR_ENCODING_INVALID_ENCODED_DATA" ? "is not UTF-8 text" : `cannot be read (${code ?? "?"})`;
    throw new CoordinationError("INPUT_INVALID", `${file}: the file ${why}`, { cause });
  }
}

function invalid(message: string): CoordinationError {
  return new CoordinationError("INPUT_INVALID", message);
}
