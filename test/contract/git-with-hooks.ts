/**
 * Owns: a call of git that changes a branch, with the hooks which version 2.54 runs: those that the settings name, but for any that
 * is turned off by its name. All the rest is the git of this machine, which may be older.
 */
import { spawnSync } from "node:child_process";

const args = process.argv.slice(2);
const command = args.findIndex((arg, at) => !arg.startsWith("-") && args[at - 1] !== "-c");

for (const key of readSetting("-z", "--name-only", "--get-regexp", "^hook\\..*\\.command$").split("\0"))
  if (key !== "") runHook(key);
process.exitCode = spawnSync("git", args, { stdio: "inherit" }).status ?? 1;

function runHook(key: string): void {
  const name = key.slice("hook.".length, -".command".length);
  const enabled = readSetting("--type=bool", "--default=true", "--get", `hook.${name}.enabled`);
  if (enabled === "true\n") spawnSync("sh", ["-c", readSetting("--get", key)]);
}

/** Reads the settings that hold in the call, with those that its options have. */
function readSetting(...query: string[]): string {
  return spawnSync("git", [...args.slice(0, command), "config", ...query], { encoding: "utf8" }).stdout;
}
