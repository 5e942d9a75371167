/** Owns: the codes of the system's errors. */

/** Returns the code that the system gave an error, such as `ENOENT`; `undefined` where it has none. */
export function readSystemErrorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/**
 * Returns the code that the system gave an error, or `unknown reason`; the error's message is not used, because it may
 * hold paths.
 */
export function nameSystemError(error: unknown): string {
  return readSystemErrorCode(error) ?? "unknown reason";
}
