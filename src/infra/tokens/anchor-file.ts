/** Owns: anchors in files: one is replaced as a whole, and never what is no plain file. */
import { lstatSync, readFileSync, type Stats } from "node:fs";
import {
  ANCHOR_BYTES_MAX,
  createAnchorError,
  formatAnchor,
  parseAnchor,
  type LedgerAnchor,
} from "../../agents/coordination/contracts/ledger-anchor.ts";
import { readSystemErrorCode } from "../../platform/system-error.ts";
import { createWholeFile, isNameTaken, replaceWholeFile } from "../../platform/whole-file.ts";

/**
 * Reads and returns the anchor in a file; `undefined` where there is no file. @throws CoordinationError
 * `INPUT_INVALID` for a file that is no plain one, too large, or no anchor
 */
export function readAnchorFile(path: string): LedgerAnchor | undefined {
  const facts = readFileFacts(path);
  if (!facts) return undefined;
  if (!facts.isFile())
    throw createAnchorError(path, "is there and is no plain file, so it is not replaced; name another file");
  if (facts.size > ANCHOR_BYTES_MAX)
    throw createAnchorError(
      path,
      "is there and is too large for an anchor, so it is not replaced; name another file",
    );
  return parseAnchor(readAnchorText(path), path);
}

/**
 * Writes an anchor into a new file, or with `replaces` over whatever is there: the caller has checked that it may go.
 * @throws CoordinationError `INPUT_INVALID`
 */
export function writeAnchorFile(
  path: string,
  anchor: LedgerAnchor,
  { replaces }: { readonly replaces: boolean },
): void {
  const write = replaces ? replaceWholeFile : createWholeFile;
  try {
    write(path, formatAnchor(anchor));
  } catch (cause) {
    if (isNameTaken(cause)) throw createAnchorError(path, "was made by somebody else meanwhile; try again");
    throw createAnchorError(path, `cannot be written (${readSystemErrorCode(cause) ?? "?"})`);
  }
}

/** Returns the facts of a path, of a link itself; `undefined` where nothing is there. */
function readFileFacts(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (cause) {
    throw createAnchorError(path, `cannot be looked at (${readSystemErrorCode(cause) ?? "?"})`);
  }
}

function readAnchorText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw createAnchorError(path, `cannot be read (${readSystemErrorCode(cause) ?? "?"})`);
  }
}
