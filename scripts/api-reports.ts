/**
 * Writes what each export of the package offers to other programs into docs/api, or compares it with `--check`: a change there is a
 * change for whoever builds on it.
 */
import { writeDeclarations } from "./declarations.ts";

const isCheck = process.argv.includes("--check");
const changed = writeDeclarations(isCheck ? "compare" : "write");
if (changed.length > 0) {
  const names = changed.join(", ");
  console.error(
    isCheck
      ? `The exports of the package have changed (${names}): run \`npm run api\`, and say in CHANGELOG.md what changes for others.`
      : `written anew in docs/api: ${names}`,
  );
  if (isCheck) process.exitCode = 1;
}
