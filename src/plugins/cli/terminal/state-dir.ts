/**
 * Owns: finding OpenClaw's state folder without loading OpenClaw. The rule is the host's `resolveStateDir`; a test holds
 * them equal.
 */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the path of OpenClaw's state folder: OPENCLAW_STATE_DIR, else `.openclaw` in the home folder, or `.clawdbot`
 * where only that exists.
 */
export function resolveStateDir(env: Environment, osHome: () => string = homedir): string {
  const home = resolveHome(env, osHome);
  const override = env["OPENCLAW_STATE_DIR"]?.trim();
  if (override) return resolve(override.replace(/^~(?=$|[\\/])/, () => home));
  const current = join(home, ".openclaw");
  const legacy = join(home, ".clawdbot");
  return !existsSync(current) && existsSync(legacy) ? legacy : current;
}

function resolveHome(env: Environment, osHome: () => string): string {
  const home = readSetVariable(env["HOME"]) ?? readSetVariable(env["USERPROFILE"]) ?? osHome();
  const explicit = readSetVariable(env["OPENCLAW_HOME"]);
  return resolve(explicit === undefined ? home : explicit.replace(/^~(?=$|[\\/])/, () => home));
}

/**
 * Returns the trimmed value of a variable; `undefined` for one that is not set. Some launchers export an unset one as
 * the text `undefined` or `null`.
 */
function readSetVariable(value: string | undefined): string | undefined {
  const trimmed = value?.trim();
  return trimmed && trimmed !== "undefined" && trimmed !== "null" ? trimmed : undefined;
}
