/** Owns: the files of the built page, read into memory once: nothing of a request becomes a path of the file system. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { extname, join } from "node:path";

export interface StaticFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly type: string;
}

export interface PageFiles {
  /** The document; absent where the page was not built. */
  readonly document?: string;
  /** By their name below `assets/`. */
  readonly assets: ReadonlyMap<string, StaticFile>;
}

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".svg": "image/svg+xml",
};

const FILES_MAX = 100;
const FILE_BYTES_MAX = 2_000_000;

/**
 * Reads `index.html` and up to 100 files of `assets/` of a folder into memory; without a document where the page was
 * not built. Other kinds of files, and those of more than 2 MB, are left out.
 */
export function readPageFiles(folder: string): PageFiles {
  const index = join(folder, "index.html");
  if (!existsSync(index)) return { assets: new Map() };
  return { document: readFileSync(index, "utf8"), assets: readAssets(join(folder, "assets")) };
}

function readAssets(folder: string): ReadonlyMap<string, StaticFile> {
  const assets = new Map<string, StaticFile>();
  if (!existsSync(folder)) return assets;
  for (const name of readdirSync(folder).slice(0, FILES_MAX)) {
    const type = TYPES[extname(name)];
    const path = join(folder, name);
    const { size } = statSync(path);
    if (type !== undefined && size <= FILE_BYTES_MAX)
      assets.set(name, { type, bytes: new Uint8Array(readFileSync(path)) });
  }
  return assets;
}
