/** Packs the package as it would be published, and installs it as the host does. */
import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "..");

/** Builds, packs into `folder` and returns the tarball's path. */
export async function packProject(folder: string): Promise<string> {
  mkdirSync(folder, { recursive: true });
  await runCommand(process.execPath, ["scripts/build.ts"], ROOT);
  const packed = await runCommand(
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
export async function installInto(folder: string, tarball: string): Promise<string> {
  mkdirSync(folder, { recursive: true });
  await runCommand("tar", ["-xzf", tarball, "-C", folder, "--strip-components=1"], ROOT);
  const flags = [
    "--omit=dev",
    "--omit=peer",
    "--legacy-peer-deps",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
  ];
  await runCommand("npm", ["install", ...flags, "--no-package-lock", "--loglevel=error"], folder);
  return folder;
}

async function runCommand(command: string, args: readonly string[], cwd: string): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(command, args, { cwd, maxBuffer: 64 * 1024 * 1024 });
    return stdout;
  } catch (cause) {
    const { stdout = "", stderr = "" } = cause as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(" ")} failed:\n${stdout}${stderr}`, { cause });
  }
}
