/**
 * Owns: finding OpenClaw's state folder without loading OpenClaw. The rule is the host's `resolveStateDir`; a test holds
 * them equal.
 */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

export type Environment = Readonly<Record<string, string | undefined>>;

export function resolveStateDir(env: Environment, osHome: () => string = homedir): string {
  const home = homeOf(env, osHome);
  const override = env["OPENCLAW_STATE_DIR"]?.trim();
  if (override) return resolve(override.replace(/^~(?=$|[\\/])/, () => home));
  const current = join(home, ".openclaw");
  const legacy = join(home, ".clawdbot");
  return !existsSync(current) && existsSync(legacy) ? legacy : current;
}

function homeOf(env: Environment, osHome: () => string): string {
  const home = present(env["HOME"]) ?? present(env["USERPROFILE"]) ?? osHome();
  const explicit = present(env["OPENCLAW_HOME"]);
  return resolve(explicit === undefined ? home : explicit.replace(/^~(?=$|[\\/])/, () => home));
}

/** Returns a variable that is set. Some launchers export an unset one as the text `undefined` or `null`. */
function present(value: string | undefined): string | undefined {
  const trimmed = value?.trim();
  return trimmed && trimmed !== "undefined" && trimmed !== "null" ? trimmed : undefined;
}
