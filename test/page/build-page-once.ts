/** Owns: building the page before its tests, once, so that they see what is shipped. */
import { join } from "node:path";
import { buildPage } from "../../scripts/build-page.ts";

export default async function buildPageOnce(): Promise<void> {
  await buildPage(join(import.meta.dirname, "..", "..", "dist", "page"));
}
