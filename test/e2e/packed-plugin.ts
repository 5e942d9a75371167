/** Packs and installs the plugin once for all end-to-end tests, as an operator would get it, and deletes what they leave behind. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { installInto, packProject } from "../../scripts/pack.ts";

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
  const folder = mkdtempSync(join(tmpdir(), "coordination-packed-"));
  const tarball = await packProject(folder);
  project.provide("tarball", tarball);
  project.provide("pluginDir", await installInto(join(folder, "plugin"), tarball));
  const homesDir = join(folder, "homes");
  mkdirSync(homesDir);
  project.provide("homesDir", homesDir);
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
