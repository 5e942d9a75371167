/** Owns: listing a folder that a person names. */
import { readdir } from "node:fs/promises";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";

/**
 * Returns the names of what is in a folder that a person named, sorted. @throws CoordinationError `INPUT_INVALID`
 * where it cannot be read
 */
export async function listFolder(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).toSorted();
  } catch (cause) {
    const { code = "?" } = cause as NodeJS.ErrnoException;
    throw new CoordinationError("INPUT_INVALID", `${folder}: the folder cannot be read (${code})`, { cause });
  }
}
