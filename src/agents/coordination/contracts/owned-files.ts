/**
 * Owns: which files a tool owns, by their names: lock files, which are never merged, and manifests of packages, which are merged
 * by key or not at all.
 */

const OWNERS: Readonly<Record<string, string>> = {
  "package-lock.json": "npm install",
  "npm-shrinkwrap.json": "npm install",
  "pnpm-lock.yaml": "pnpm install",
  "yarn.lock": "yarn install",
  "bun.lock": "bun install",
  "bun.lockb": "bun install",
  "deno.lock": "deno install",
  "cargo.lock": "cargo generate-lockfile",
  "poetry.lock": "poetry lock",
  "uv.lock": "uv lock",
  "pdm.lock": "pdm lock",
  "pixi.lock": "pixi lock",
  "pipfile.lock": "pipenv lock",
  "pylock.toml": "the tool that locks the project",
  "go.mod": "go mod tidy",
  "go.sum": "go mod tidy",
  "go.work.sum": "go work sync",
  "composer.lock": "composer update --lock",
  "gemfile.lock": "bundle lock",
  "mix.lock": "mix deps.get",
  "pubspec.lock": "dart pub get",
  "podfile.lock": "pod install",
  "package.resolved": "swift package resolve",
  "flake.lock": "nix flake lock",
  "gradle.lockfile": "gradle dependencies --write-locks",
  "packages.lock.json": "dotnet restore",
  ".terraform.lock.hcl": "terraform init",
  "chart.lock": "helm dependency update",
};
const OWNER_OF: ReadonlyMap<string, string> = new Map(Object.entries(OWNERS));

const MANIFESTS: ReadonlySet<string> = new Set([
  "package.json",
  "cargo.toml",
  "pyproject.toml",
  "composer.json",
  "deno.json",
  "deno.jsonc",
  "jsr.json",
  "pubspec.yaml",
]);

/**
 * Returns the command of the tool that writes a file, such as `npm install`. `undefined` for a file that people write.
 */
export function findOwningTool(path: string): string | undefined {
  return OWNER_OF.get(readLowerCaseName(path));
}

/** True for the path of a package's manifest, such as `package.json`: single lines of it say nothing alone. */
export function isPackageManifest(path: string): boolean {
  return MANIFESTS.has(readLowerCaseName(path));
}

function readLowerCaseName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1).toLowerCase();
}
