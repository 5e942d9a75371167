/** Builds the operator's page: one document, one script and one style sheet with hashed names, and nothing from elsewhere. */
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "vite";

const PAGE = join(import.meta.dirname, "..", "src", "plugins", "page", "ui");
/** The size of all files together, as they go over the wire. */
export const PAGE_GZIP_BYTES_MAX = 90_000;

/** Returns the ids of the modules that went into it. */
export async function buildPage(folder: string): Promise<string[]> {
  // Under a test runner packages would be taken in their forms for development.
  process.env["NODE_ENV"] = "production";
  const result = await build({
    root: PAGE,
    base: "./",
    configFile: false,
    logLevel: "warn",
    build: {
      outDir: folder,
      emptyOutDir: true,
      target: "es2024",
      modulePreload: false,
      reportCompressedSize: false,
      assetsInlineLimit: 0,
    },
  });
  if (!("output" in result)) throw new Error("Vite did not say what it wrote.");
  const bytes = result.output.reduce(
    (sum, part) => sum + gzipSync(part.type === "chunk" ? part.code : part.source).length,
    0,
  );
  if (bytes > PAGE_GZIP_BYTES_MAX)
    throw new Error(
      `The page has ${bytes} bytes gzipped, and may have ${PAGE_GZIP_BYTES_MAX}: leave something out.`,
    );
  console.error(`page: ${bytes} bytes gzipped in ${result.output.length} files`);
  return result.output.flatMap((part) => (part.type === "chunk" ? Object.keys(part.modules) : []));
}
