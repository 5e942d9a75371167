/** The command `npm run mutate`: breaks an area of the core at one place after the other, and tells what no test notices. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { AREAS, type Area } from "./areas.ts";
import { EXPLAINED } from "./explained.ts";
import { runStryker } from "./run-stryker.ts";
import { formatTally, tallyMutants } from "./tally-mutants.ts";

const ROOT = join(import.meta.dirname, "../..");

const HELP = `npm run mutate -- <area> [options]

Changes the source of an area at one place after the other, in a copy, and runs the tests of the area for each change.
A change that no test notices survives: a test is missing, the code is not needed, or the change changes nothing.

Areas: ${Object.keys(AREAS).join(", ")}

  --file <glob>   only these files, from the folder of the area on
  --tests <glob>  these tests in place of all of the area, to see what they notice by themselves; may be repeated
  --json          for programs
  --help          show this

It takes a second for each mutant or less: minutes for a small area, an hour for a large one.
Mutants that change nothing are explained in scripts/mutate/explained.ts; they count as not killed.
Exit code 1 when a mutant survives that is not explained.

Examples:
  npm run mutate -- lanes
  npm run mutate -- dispatch --file decide-claims.ts
  npm run mutate -- workflow --file 'state/*.ts' --json
  npm run mutate -- workflow --file run-diff.ts --tests test/core/run-diff.test.ts
`;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

async function runCommand(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      file: { type: "string", default: "**/*.ts" },
      tests: { type: "string", multiple: true },
    },
  });
  if (values.help) {
    print(HELP);
    return 0;
  }
  const name = readName(positionals);
  const area = chooseTests(AREAS[name]!, values.tests);
  assertFilesExist(area, values.file);
  const startedAt = performance.now();
  const mutants = await runStryker(area, values.file, (file) => readFileSync(join(ROOT, file), "utf8"));
  if (mutants.length === 0)
    throw new Error(`nothing in ${JSON.stringify(values.file)} of ${name} can be changed: name other files`);
  const tally = tallyMutants(mutants, EXPLAINED);
  const minutes = Math.round((performance.now() - startedAt) / 6_000) / 10;
  if (values.json) print(JSON.stringify({ area: name, minutes, ...tally }, null, 2));
  else print(`${name}: ${formatTally(tally)}\nin ${minutes} minutes`);
  return tally.survivors.length > 0 ? 1 : 0;
}

function readName(positionals: readonly string[]): string {
  const [name = "", ...more] = positionals;
  if (more.length > 0) throw new Error("one area at a time; `--file <glob>` takes some of its files");
  if (Object.hasOwn(AREAS, name)) return name;
  const there = `the areas are ${Object.keys(AREAS).join(", ")}`;
  throw new Error(
    name === "" ? `name an area: ${there}` : `there is no area ${JSON.stringify(name)}; ${there}`,
  );
}

function chooseTests(area: Area, tests: readonly string[] = area.tests): Area {
  for (const glob of tests)
    if (!globSync(glob, { cwd: ROOT }).some((path) => path.endsWith(".test.ts")))
      throw new Error(
        `there is no test file ${JSON.stringify(glob)}; name it from the root of the project on`,
      );
  return { ...area, tests };
}

function assertFilesExist({ folder }: Area, file: string): void {
  if (globSync(file, { cwd: join(ROOT, folder) }).some((path) => path.endsWith(".ts"))) return;
  throw new Error(`${folder} has no source file ${JSON.stringify(file)}`);
}

try {
  process.exitCode = await runCommand();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
