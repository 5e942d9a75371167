/** Packs and installs the plugin once for all end-to-end tests, as an operator would get it, and deletes what they leave behind. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { installInto, packProject } from "../../scripts/pack.ts";
import { HOST_ENTRY } from "../support/gateway.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The packed plugin. */
    tarball: string;
    /** The same, unpacked, with its dependencies. */
    pluginDir: string;
    /** The homes of gateways that several files use. */
    homesDir: string;
  }
}

export default async function setUp(project: TestProject): Promise<() => void> {
  completeHostInstallation();
  const folder = mkdtempSync(join(tmpdir(), "coordination-packed-"));
  const tarball = await packProject(folder);
  project.provide("tarball", tarball);
  const pluginDir = await installInto(join(folder, "plugin"), tarball);
  leaveOutOtherBuilds(join(pluginDir, "node_modules", "better-sqlite3"));
  project.provide("pluginDir", pluginDir);
  const homesDir = join(folder, "homes");
  mkdirSync(homesDir);
  project.provide("homesDir", homesDir);
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

/**
 * Lets the host end its own installation, which it does at its first command where npm ran no scripts. One of two first
 * commands at once may refuse ("owner cannot be verified").
 */
function completeHostInstallation(): void {
  execFileSync(process.execPath, [HOST_ENTRY, "--version"], { stdio: "inherit" });
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
