/**
 * Owns: the one form of an agent's id that OpenClaw uses. The contracts have the same rule (`parseHostAgentId`), which this folder
 * cannot load; a test holds them together.
 */
const CHARS_MAX = 64;
const DEFAULT = "main";

/** Returns the form of an agent's id that OpenClaw uses, for whichever spelling an author wrote. */
export function normalizeAgentId(spelling: string): string {
  const name = spelling
    .trim()
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]+/gu, "-")
    .replaceAll(/^-+|-+$/gu, "");
  return name.slice(0, CHARS_MAX) || DEFAULT;
}
