/** Owns: the resource of a folder, and calls to the file system that fail for one path. */
import { nodeFileCalls, type FileCalls } from "../../src/infra/files/file-calls.ts";
import { createRealFiles } from "../../src/infra/files/real-files.ts";
import type { TempFolder } from "../support/temp-ledger.ts";

/** The resource of the folder: what comes before `/` in those in it. */
export async function rootOf(folder: TempFolder): Promise<string> {
  return (await createRealFiles().locate(".", folder.path)) ?? "nowhere";
}

/** Calls of which one fails with a code of the system at one path. */
export function createFailingCalls(code: string, call: "lstat" | "stat" | "open", at: string): FileCalls {
  const fail = (path: string): boolean => path === at;
  return {
    ...nodeFileCalls,
    [call]: (path: string) =>
      fail(path) ? Promise.reject(Object.assign(new Error(code), { code })) : nodeFileCalls[call](path),
  };
}
