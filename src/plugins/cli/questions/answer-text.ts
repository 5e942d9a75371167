/** Owns: where the text of an answer comes from: an argument, a file or the standard input, in bounded size. */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { readTextFile } from "../files/read-text-file.ts";

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
  const given = file === undefined ? (text ?? "") : (await readAnswer(file)).replace(/\r?\n$/u, "");
  if (given.trim() === "")
    throw invalid("text: expected what to answer, as an argument or with --file, got nothing");
  if (given.length > BOUNDS.answerCharsMax) throw tooLong();
  return given;
}

function readAnswer(file: string): Promise<string> {
  return readTextFile(file, { bytesMax: BOUNDS.answerCharsMax * UTF8_BYTES_MAX, tooLarge: tooLong });
}

function tooLong(): CoordinationError {
  return invalid(`text: an answer may have at most ${BOUNDS.answerCharsMax} characters`);
}

function invalid(message: string): CoordinationError {
  return new CoordinationError("INPUT_INVALID", message);
}
