/** Owns: what is wrong with the path of a file or a folder that somebody typed: it is none, or cannot be read. */
import { createInputError } from "../../../agents/coordination/contracts/errors.ts";
import { readSystemErrorCode } from "../../../platform/system-error.ts";

/** The beginning of an address: a letter and further signs before `://`. One letter is a drive: `c://Users/x` is a path. */
const ADDRESS = /^\s*[a-z][a-z\d+.-]+:\/\//iu;

/** Returns the beginning of an address, such as `https://`; `undefined` for a text that is none. */
export function findAddressScheme(text: string): string | undefined {
  return ADDRESS.exec(text)?.[0].trim();
}

/**
 * Throws where an address or nothing was typed in place of a path. The message does not quote the address, which may
 * have a password in it. `place`: begins the message, such as an option and a colon. @throws CoordinationError
 * `INPUT_INVALID`
 */
export function assertPath(text: string, place = "", kind: "file" | "folder" = "file"): void {
  const scheme = findAddressScheme(text);
  if (scheme === undefined && text.trim() !== "") return;
  const received = scheme === undefined ? "nothing" : `an address at ${scheme}`;
  throw createInputError(`${place}expected the path of a ${kind}, got ${received}`);
}

/** Describes why the system could not read what lies at a path, as the end of a sentence that begins with the path. */
export function describeReadFault(error: unknown, kind: "file" | "folder" = "file"): string {
  const code = readSystemErrorCode(error) ?? "?";
  if (code === "ENOENT") return `there is no such ${kind}`;
  return kind === "folder" && code === "ENOTDIR"
    ? "this is not a folder"
    : `the ${kind} cannot be read (${code})`;
}
