/** Owns: the one form of an agent's id that OpenClaw uses, of the several spellings that people write. */
import type { AgentId } from "./ids.ts";

const CHARS_MAX = 64;
const DEFAULT = "main";

/** The one form that OpenClaw has for an agent's id, of the several spellings that it takes. */
export function parseHostAgentId(spelling: string): AgentId {
  const name = spelling
    .trim()
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]+/gu, "-")
    .replaceAll(/^-+|-+$/gu, "");
  return (name.slice(0, CHARS_MAX) || DEFAULT) as AgentId;
}
