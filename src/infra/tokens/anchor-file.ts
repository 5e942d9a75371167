/** Owns: anchors in files: one is replaced as a whole, and never what is no plain file. */
import { lstatSync, readFileSync, type Stats } from "node:fs";
import {
  ANCHOR_BYTES_MAX,
  createAnchorError,
  formatAnchor,
  parseAnchor,
  type LedgerAnchor,
} from "../../agents/coordination/contracts/ledger-anchor.ts";
import { createWholeFile, isTaken, replaceWholeFile } from "../../platform/whole-file.ts";

/** Returns the anchor that lies there, `undefined` where nothing does. @throws CoordinationError `INPUT_INVALID` for anything else */
export function readAnchorFile(path: string): LedgerAnchor | undefined {
  const found = findFile(path);
  if (!found) return undefined;
  if (!found.isFile())
    throw createAnchorError(path, "is there and is no plain file, so it is not replaced; name another file");
  if (found.size > ANCHOR_BYTES_MAX)
    throw createAnchorError(
      path,
      "is there and is too large for an anchor, so it is not replaced; name another file",
    );
  return parseAnchor(readText(path), path);
}

/** `replaces`: the file holds an anchor that may go. @throws CoordinationError `INPUT_INVALID` */
export function writeAnchorFile(
  path: string,
  anchor: LedgerAnchor,
  { replaces }: { readonly replaces: boolean },
): void {
  const write = replaces ? replaceWholeFile : createWholeFile;
  try {
    write(path, formatAnchor(anchor));
  } catch (cause) {
    if (isTaken(cause)) throw createAnchorError(path, "was made by somebody else meanwhile; try again");
    throw createAnchorError(path, `cannot be written (${codeOf(cause)})`);
  }
}

function findFile(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (cause) {
    throw createAnchorError(path, `cannot be looked at (${codeOf(cause)})`);
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw createAnchorError(path, `cannot be read (${codeOf(cause)})`);
  }
}

function codeOf(cause: unknown): string {
  return (cause as NodeJS.ErrnoException).code ?? "?";
}
