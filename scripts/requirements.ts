/** Writes docs/openwop-requirements.md from the requirements and the names of their tests; `--check` only compares. */
import { readFileSync, writeFileSync } from "node:fs";
import { formatRequirementPage } from "../test/openwop/requirement-page.ts";

const PAGE = new URL("../docs/openwop-requirements.md", import.meta.url);
const text = formatRequirementPage();

if (!process.argv.includes("--check")) writeFileSync(PAGE, text);
else if (readFileSync(PAGE, "utf8") !== text) {
  console.error("docs/openwop-requirements.md differs from the tests: run `npm run requirements`");
  process.exitCode = 1;
}
