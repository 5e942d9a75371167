/**
 * Packs and installs the plugin once for all end-to-end tests, as an operator would get it, and deletes what they leave behind.
 * The installation goes on while tests without a gateway run; `await-plugin.ts` waits for it before each file.
 */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";
import { installInto, packProject } from "../../scripts/pack.ts";
import { describeError } from "../../src/agents/coordination/std/describe-error.ts";
import { HOST_ENTRY } from "../support/gateway.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The packed plugin. */
    tarball: string;
    /** The same, unpacked, with its dependencies. */
    pluginDir: string;
    /** The homes of gateways that several files use. */
    homesDir: string;
    /** A file that is there when the plugin is installed. It says why where that failed, and is empty where it did not. */
    installedFile: string;
  }
}

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), "coordination-packed-"));
  const tarball = await packProject(folder);
  const pluginDir = join(folder, "plugin");
  const homesDir = join(folder, "homes");
  const installedFile = join(folder, "installed");
  mkdirSync(homesDir);
  project.provide("tarball", tarball);
  project.provide("pluginDir", pluginDir);
  project.provide("homesDir", homesDir);
  project.provide("installedFile", installedFile);
  const installed = install(pluginDir, tarball).then(
    () => tell(installedFile, ""),
    (error: unknown) => tell(installedFile, describeError(error)),
  );
  return async () => {
    await installed;
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
}

async function install(pluginDir: string, tarball: string): Promise<void> {
  await Promise.all([completeHostInstallation(), installInto(pluginDir, tarball)]);
  leaveOutOtherBuilds(join(pluginDir, "node_modules", "better-sqlite3"));
}

/** Renames, so that nobody reads half of it. */
function tell(file: string, text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

/**
 * Lets the host end its own installation, which it does at its first command where npm ran no scripts. One of two first
 * commands at once may refuse ("owner cannot be verified").
 */
async function completeHostInstallation(): Promise<void> {
  await promisify(execFile)(process.execPath, [HOST_ENTRY, "--version"]);
}

/**
 * Deletes the sources of better-sqlite3 and its builds for other platforms, 25 MB that the host copies each time when it
 * loads the plugin: a reload takes 2 s in place of 3 s without them.
 */
function leaveOutOtherBuilds(folder: string): void {
  const builds = join(folder, "prebuilds");
  const { platform, arch } = process;
  const others = readdirSync(builds).filter(
    (name) => !name.startsWith(platform) || !name.endsWith(`-${arch}.node`),
  );
  const unused = [join(folder, "deps"), join(folder, "src"), ...others.map((name) => join(builds, name))];
  for (const path of unused) rmSync(path, { recursive: true, force: true });
}
