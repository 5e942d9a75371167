/** Packs the package as it would be published, and installs it as the host does. */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");

/** Builds, packs into `folder` and returns the tarball's path. */
export function packProject(folder: string): string {
  mkdirSync(folder, { recursive: true });
  check(process.execPath, ["scripts/build.ts"], ROOT);
  const packed = check(
    "npm",
    ["pack", "--ignore-scripts", "--json", "--loglevel=error", "--pack-destination", folder],
    ROOT,
  );
  return join(folder, readTarballName(JSON.parse(packed)));
}

/** npm 11 and older print an array, newer ones an object by package name. */
function readTarballName(printed: unknown): string {
  const packages = Array.isArray(printed) ? (printed as unknown[]) : Object.values(printed as object);
  return (packages[0] as { filename: string }).filename;
}

/** Unpacks a tarball into `folder` and installs its dependencies there, without scripts and without the host. */
export function installInto(folder: string, tarball: string): string {
  mkdirSync(folder, { recursive: true });
  check("tar", ["-xzf", tarball, "-C", folder, "--strip-components=1"], ROOT);
  const flags = [
    "--omit=dev",
    "--omit=peer",
    "--legacy-peer-deps",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
  ];
  check("npm", ["install", ...flags, "--no-package-lock", "--loglevel=error"], folder);
  return folder;
}

function check(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: "utf8" });
  if (status === 0) return stdout;
  throw new Error(`${command} ${args.join(" ")} failed:\n${stdout}${stderr}`);
}
