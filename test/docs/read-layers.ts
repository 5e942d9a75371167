/** Owns: the layers of the code, and which of them may import which, by the import table. */
import { IMPORTS } from "../architecture/import-table.ts";

const CORE = "agents/coordination";

/** The first that matches is the layer of a folder. */
const LAYERS: readonly (readonly [layer: string, folders: RegExp])[] = [
  ["entry", new RegExp(`^${CORE}$`, "u")],
  ["contracts", new RegExp(`^${CORE}/(?:contracts|ports)(?:/|$)`, "u")],
  ["std", new RegExp(`^${CORE}/std$`, "u")],
  ["runtime", new RegExp(`^${CORE}/runtime(?:/|$)`, "u")],
  ["core", new RegExp(`^${CORE}/`, "u")],
  ["platform", /^platform$/u],
  ["infra", /^infra\//u],
  ["plugins", /^plugins(?:\/|$)/u],
];

function layerOf(folder: string): string {
  const found = LAYERS.find(([, folders]) => folders.test(folder));
  if (!found) throw new Error(`The folder ${folder} belongs to no layer; add it to LAYERS.`);
  return found[0];
}

/** Returns arrows between layers as Mermaid writes them; a dotted one allows only types. */
export function listLayerArrows(): string[] {
  const values = new Set<string>();
  const types = new Set<string>();
  for (const [folder, { folders = [], lazy = [], types: typesOnly = [] }] of Object.entries(IMPORTS)) {
    const layer = layerOf(folder);
    for (const imported of [...folders, ...lazy]) values.add(`${layer} --> ${layerOf(imported)}`);
    for (const imported of typesOnly) types.add(`${layer} --> ${layerOf(imported)}`);
  }
  const dotted = [...types]
    .filter((arrow) => !values.has(arrow))
    .map((arrow) => arrow.replace("-->", "-.->"));
  return [...values, ...dotted].filter((arrow) => !isWithinOneLayer(arrow)).toSorted();
}

function isWithinOneLayer(arrow: string): boolean {
  const [from, , to] = arrow.split(" ");
  return from === to;
}
