/** Owns: where the text of an answer comes from: an argument, a file or the standard input, in bounded size. */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { readTextFile } from "../files/read-text-file.ts";

/** No character takes more bytes. */
const UTF8_BYTES_MAX = 4;

interface AnswerSource {
  readonly text: string | undefined;
  readonly file: string | undefined;
}

/** @throws CoordinationError `INPUT_INVALID` */
export async function answerText({ text, file }: AnswerSource): Promise<string> {
  if (text !== undefined && file !== undefined)
    throw createInputError("--file: the text is given already; leave one of them out");
  const answer = file === undefined ? (text ?? "") : (await readAnswer(file)).replace(/\r?\n$/u, "");
  if (answer.trim() === "")
    throw createInputError("text: expected what to answer, as an argument or with --file, got nothing");
  if (answer.length > BOUNDS.answerCharsMax) throw createTooLongError();
  return answer;
}

function readAnswer(file: string): Promise<string> {
  return readTextFile(file, {
    bytesMax: BOUNDS.answerCharsMax * UTF8_BYTES_MAX,
    tooLarge: createTooLongError,
  });
}

function createTooLongError(): CoordinationError {
  return createInputError(`text: an answer may have at most ${BOUNDS.answerCharsMax} characters`);
}

export function createInputError(message: string): CoordinationError {
  return new CoordinationError("INPUT_INVALID", message);
}
