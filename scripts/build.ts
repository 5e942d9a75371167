/**
 * Builds the package: dist has one bundle of src and its dependencies for all that package.json exports, the declarations
 * of those exports, the SQL migrations, the operator's page, and the licences of what was bundled.
 *
 * It is a bundle because OpenClaw copies every file of a plugin and of its dependencies each time that it loads it: as
 * 8,800 files the plugin made each start of a gateway 20 s longer. Types are not checked here: `npm run types` does.
 */
import { chmodSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { rolldown, type OutputChunk, type RolldownBuild, type RolldownOutput } from "rolldown";
import { buildPage } from "./build-page.ts";
import { chooseChunks } from "./chunks.ts";
import { writeDeclarations } from "./declarations.ts";
import packageJson from "../package.json" with { type: "json" };

const ROOT = join(import.meta.dirname, "..");
const DIST = join(ROOT, "dist");
const MODULES = join(ROOT, "node_modules");

/** The program's beginning, and the rest of it, which the beginning loads lazily. */
const PROGRAM = { main: "plugins/cli/main", rest: "plugins/cli/program" } as const;
const REST_OF_PROGRAM = /\/program\.ts$/u;

/** Native, or the host's own. */
const NOT_BUNDLED = [/^openclaw(\/|$)/u, ...Object.keys(packageJson.dependencies)];

rmSync(DIST, { recursive: true, force: true });
const moduleIds = [
  ...(await bundleSources()).flatMap((chunk) => chunk.moduleIds),
  ...(await bundleProgram()).flatMap((chunk) => chunk.moduleIds),
  ...(await buildPage(join(DIST, "page"))),
];
writeFileSync(join(DIST, "THIRD-PARTY-LICENSES.md"), formatLicences(listBundledPackages(moduleIds)));
cpSync(join(ROOT, "src", "infra", "sqlite", "migrations"), join(DIST, "migrations"), { recursive: true });
cpSync(join(ROOT, "src", "infra", "postgres", "migrations"), join(DIST, "postgres", "migrations"), {
  recursive: true,
});
chmodSync(join(DIST, `${PROGRAM.main}.js`), 0o755);
writeDeclarations("compare");

/** Bundles twice: the first bundle tells what is loaded together, and the second has that in one chunk. */
async function bundleSources(): Promise<OutputChunk[]> {
  const entries = listEntries();
  const apart = await openBundle({ entries, isMerged: false });
  const { output } = await apart.generate({ format: "esm" });
  await apart.close();
  const chunks = chooseChunks(listChunks(output), ROOT);
  const together = await openBundle({ entries });
  const written = await together.write({
    dir: DIST,
    format: "esm",
    chunkFileNames: "chunks/[name]-[hash].js",
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [{ debugName: "loaded together", name: (moduleId) => chunks.get(moduleId) ?? null }],
    },
  });
  await together.close();
  return listChunks(written.output);
}

/**
 * Bundles the beginning of the program alone. Other chunks may import any file of the bundle of all sources, and this
 * one does its work when it is imported.
 */
async function bundleProgram(): Promise<OutputChunk[]> {
  const bundle = await openBundle({ entries: [PROGRAM.main], external: [REST_OF_PROGRAM] });
  const { output } = await bundle.write({
    dir: DIST,
    format: "esm",
    paths: (id) => (REST_OF_PROGRAM.test(id) ? `./${PROGRAM.rest}.js` : id),
  });
  await bundle.close();
  return listChunks(output);
}

interface BundleOptions {
  readonly entries: readonly string[];
  readonly external?: readonly (RegExp | string)[];
  /** False where each lazily loaded module has to have a chunk of its own. */
  readonly isMerged?: boolean;
}

function openBundle({ entries, external = [], isMerged = true }: BundleOptions): Promise<RolldownBuild> {
  return rolldown({
    cwd: ROOT,
    input: Object.fromEntries(entries.map((entry) => [entry, join("src", `${entry}.ts`)])),
    platform: "node",
    external: [...NOT_BUNDLED, ...external],
    tsconfig: "tsconfig.json",
    // The file that a package calls its main may load its parts in a way that no bundler sees.
    resolve: { mainFields: ["module", "main"] },
    // The groups need it. Only the exports that declarations name are promised.
    preserveEntrySignatures: "allow-extension",
    // Some modules are loaded lazily by one command and at once by another.
    checks: { ineffectiveDynamicImport: false },
    experimental: { chunkOptimization: isMerged },
  });
}

function listChunks(output: RolldownOutput["output"]): OutputChunk[] {
  return output.filter((part) => part.type === "chunk");
}

/** Lists what the package exports and the rest of its program, as paths below src without their ending. */
function listEntries(): string[] {
  const exported = Object.values(packageJson.exports).flatMap((target) =>
    typeof target === "string" ? [] : [target.default.replace(/^\.\/dist\//u, "").replace(/\.js$/u, "")],
  );
  return [...exported, PROGRAM.rest];
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
