/** Owns: listing a folder that a person names. */
import { readdir } from "node:fs/promises";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { assertPath } from "./named-path.ts";

const PROBLEMS: Readonly<Partial<Record<string, string>>> = {
  ENOENT: "there is no such folder",
  ENOTDIR: "this is not a folder",
};

/**
 * Returns the names of what is in a folder that a person named, sorted. @throws CoordinationError `INPUT_INVALID`
 * where no path was typed, or it cannot be read
 */
export async function listFolder(folder: string): Promise<string[]> {
  assertPath(folder, "", "folder");
  try {
    return (await readdir(folder)).toSorted();
  } catch (cause) {
    const { code = "?" } = cause as NodeJS.ErrnoException;
    const problem = PROBLEMS[code] ?? `the folder cannot be read (${code})`;
    throw new CoordinationError("INPUT_INVALID", `${folder}: ${problem}`, { cause });
  }
}
