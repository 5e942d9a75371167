/** Owns: listing a folder that a person names. */
import { readdir } from "node:fs/promises";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { assertPath, describeReadFault } from "./named-path.ts";

/**
 * Returns the names of what is in a folder that a person named, sorted. @throws CoordinationError `INPUT_INVALID`
 * where no path was typed, or it cannot be read
 */
export async function listFolder(folder: string): Promise<string[]> {
  assertPath(folder, "", "folder");
  try {
    return (await readdir(folder)).toSorted();
  } catch (cause) {
    throw new CoordinationError("INPUT_INVALID", `${folder}: ${describeReadFault(cause, "folder")}`, {
      cause,
    });
  }
}
