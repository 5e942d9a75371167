/**
 * Owns: finding the files that come with the package. A module lies in another folder in the sources than in the built
 * package, where it is bundled with others; what it looks for lies above it in both.
 */
import { existsSync, readFileSync } from "node:fs";

const HERE = import.meta.url;

/**
 * Returns the URL of the nearest file or folder of a name in the folder of a module (by default this one) or in one
 * above it. @throws Error where the package has none
 */
export function findPackageFile(name: string, from = HERE): URL {
  const folder = new URL(".", from);
  const found = new URL(name, folder);
  if (existsSync(found)) return found;
  const above = new URL("..", folder);
  if (above.href === folder.href) throw new Error(`the package lacks ${name}; install it again`);
  return findPackageFile(name, above.href);
}

/** Returns the version of this package, from its package.json. */
export function readPackageVersion(): string {
  const { version } = JSON.parse(readFileSync(findPackageFile("package.json"), "utf8")) as {
    readonly version: string;
  };
  return version;
}
