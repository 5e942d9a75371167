/**
 * Builds the package: dist has one bundle of src and its dependencies for all that package.json exports, the declarations
 * of those exports, the SQL migrations, the operator's page, and the licences of what was bundled.
 *
 * It is a bundle because OpenClaw copies every file of a plugin and of its dependencies each time that it loads it: as
 * 8,800 files the plugin made each start of a gateway 20 s longer. Types are not checked here: `npm run types` does.
 */
import { chmodSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { rolldown, type OutputChunk } from "rolldown";
import { buildPage } from "./build-page.ts";
import { writeDeclarations } from "./declarations.ts";
import packageJson from "../package.json" with { type: "json" };

const ROOT = join(import.meta.dirname, "..");
const DIST = join(ROOT, "dist");
const MODULES = join(ROOT, "node_modules");

/** Native, or the host's own. */
const NOT_BUNDLED = [/^openclaw(\/|$)/u, ...Object.keys(packageJson.dependencies)];

rmSync(DIST, { recursive: true, force: true });
const moduleIds = [
  ...(await bundleSources()).flatMap((chunk) => chunk.moduleIds),
  ...(await buildPage(join(DIST, "page"))),
];
writeFileSync(join(DIST, "THIRD-PARTY-LICENSES.md"), formatLicences(listBundledPackages(moduleIds)));
cpSync(join(ROOT, "src", "infra", "sqlite", "migrations"), join(DIST, "migrations"), { recursive: true });
cpSync(join(ROOT, "src", "infra", "postgres", "migrations"), join(DIST, "postgres", "migrations"), {
  recursive: true,
});
chmodSync(join(DIST, "plugins", "cli", "main.js"), 0o755);
writeDeclarations("compare");

async function bundleSources(): Promise<OutputChunk[]> {
  const bundle = await rolldown({
    cwd: ROOT,
    input: Object.fromEntries(listEntries().map((entry) => [entry, join("src", `${entry}.ts`)])),
    platform: "node",
    external: NOT_BUNDLED,
    tsconfig: "tsconfig.json",
    // The file that a package calls its main may load its parts in a way that no bundler sees.
    resolve: { mainFields: ["module", "main"] },
  });
  const { output } = await bundle.write({
    dir: DIST,
    format: "esm",
    chunkFileNames: "chunks/[name]-[hash].js",
  });
  await bundle.close();
  return output.filter((part) => part.type === "chunk");
}

/** Lists what the package exports and its programs, as paths below src without their ending. */
function listEntries(): string[] {
  const exported = Object.values(packageJson.exports).flatMap((target) =>
    typeof target === "string" ? [] : [target.default],
  );
  return [...exported, ...Object.values(packageJson.bin)].map((path) =>
    path.replace(/^\.\/dist\//u, "").replace(/\.js$/u, ""),
  );
}

function listBundledPackages(moduleIds: readonly string[]): string[] {
  const modules = moduleIds.filter((id) => id.includes(MODULES));
  const folders = modules.map((id) => {
    const [scopeOrName = "", name = ""] = relative(MODULES, id.slice(id.indexOf(MODULES))).split(sep);
    return scopeOrName.startsWith("@") ? join(scopeOrName, name) : scopeOrName;
  });
  return [...new Set(folders)].toSorted();
}

function formatLicences(packages: readonly string[]): string {
  const sections = packages.map((name) => {
    const folder = join(MODULES, name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
      readonly version: string;
      readonly license: string;
    };
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/iu.test(entry));
    const text = file === undefined ? "" : `\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
    return `## ${name} ${version} (${license})\n${text}`;
  });
  return ["# Licences of bundled packages\n", ...sections].join("\n");
}
