/**
 * Writes dist/sbom.cdx.json, a CycloneDX list of what the package consists of: what it installs, and what the last build bundled into it.
 * npm makes the list of everything that is installed here; what is only used to develop is left out.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../package.json" with { type: "json" };

const ROOT = join(import.meta.dirname, "..");
const LICENCES = join(ROOT, "dist", "THIRD-PARTY-LICENSES.md");
const SBOM = join(ROOT, "dist", "sbom.cdx.json");
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

interface Component {
  readonly "bom-ref": string;
  readonly name: string;
  readonly version: string;
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

interface Sbom {
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[];
}

/** Reads which packages the last build bundled, as `name@version`. */
function readBundled(): Set<string> {
  if (!existsSync(LICENCES)) throw new Error("There is no build: run `npm run build` first.");
  const sections = readFileSync(LICENCES, "utf8").matchAll(/^## (?<name>\S+) (?<version>\S+) \(/gmu);
  return new Set([...sections].map(({ groups }) => `${groups?.["name"]}@${groups?.["version"]}`));
}

function listInstalled(): Sbom {
  const text = execFileSync("npm", ["sbom", "--sbom-format", "cyclonedx", "--loglevel=error"], {
    cwd: ROOT,
    encoding: "utf8",
    maxBuffer: OUTPUT_BYTES_MAX,
  });
  return JSON.parse(text) as Sbom;
}

const isForDevelopment = ({ properties = [] }: Component): boolean =>
  properties.some(({ name }) => name === "cdx:npm:package:development");

/** Leaves out what neither is installed with the package nor lies in its bundle. */
function keepShipped(sbom: Sbom, bundled: ReadonlySet<string>): Sbom {
  const components = sbom.components.filter(
    (component) => !isForDevelopment(component) || bundled.has(`${component.name}@${component.version}`),
  );
  const root = sbom.metadata.component["bom-ref"];
  const shipped = new Set([root, ...components.map((component) => component["bom-ref"])]);
  const dependencies = sbom.dependencies
    .filter(({ ref }) => shipped.has(ref))
    .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((other) => shipped.has(other)) }));
  return {
    ...sbom,
    metadata: { ...sbom.metadata, component: { ...sbom.metadata.component, name: packageJson.name } },
    components,
    dependencies,
  };
}

const bundled = readBundled();
const sbom = keepShipped(listInstalled(), bundled);
const listed = new Set(sbom.components.map(({ name, version }) => `${name}@${version}`));
const missing = [...bundled].filter((name) => !listed.has(name));
if (missing.length > 0)
  throw new Error(`The list of npm lacks what the build bundled: ${missing.join(", ")}.`);
writeFileSync(SBOM, `${JSON.stringify(sbom, null, 2)}\n`);
console.log(`dist/sbom.cdx.json: ${sbom.components.length} components, ${bundled.size} of them bundled`);
