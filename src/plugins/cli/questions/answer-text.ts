/** Owns: where the text of an answer comes from: an argument, a file or the standard input, in bounded size. */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { createInputError, type CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { readTextFile } from "../files/read-text-file.ts";

/** No character takes more bytes. */
const UTF8_BYTES_MAX = 4;

interface AnswerSource {
  readonly text: string | undefined;
  readonly file: string | undefined;
}

/**
 * Returns the text of an answer, from the argument or from the file of `--file`. @throws CoordinationError
 * `INPUT_INVALID` for both, for none, or for a text that is empty or too long
 */
export async function resolveAnswerText({ text, file }: AnswerSource): Promise<string> {
  if (text !== undefined && file !== undefined)
    throw createInputError("--file: the text is given already; leave one of them out");
  const answer = file === undefined ? (text ?? "") : (await readAnswerFile(file)).replace(/\r?\n$/u, "");
  if (answer.trim() === "")
    throw createInputError("text: expected what to answer, as an argument or with --file, got nothing");
  if (answer.length > BOUNDS.answerCharsMax) throw createTooLongError();
  return answer;
}

function readAnswerFile(file: string): Promise<string> {
  return readTextFile(file, {
    bytesMax: BOUNDS.answerCharsMax * UTF8_BYTES_MAX,
    tooLarge: createTooLongError,
  });
}

function createTooLongError(): CoordinationError {
  return createInputError(`text: an answer may have at most ${BOUNDS.answerCharsMax} characters`);
}
