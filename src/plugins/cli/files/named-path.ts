/** Owns: telling the path of a file or a folder that somebody typed from an address, and from nothing. */
import { createInputError } from "../../../agents/coordination/contracts/errors.ts";

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
