/** Plays every mutant of an area with the tests of that area, in a copy of the project that is thrown away. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { Stryker } from "@stryker-mutator/core";
import type { Area } from "./areas.ts";
import type { Mutant } from "./tally-mutants.ts";

const ROOT = join(import.meta.dirname, "../..");

/** Returns the mutants of an area, of all its files or those that the glob names. Progress goes to standard error. */
export async function runStryker(
  area: Area,
  file: string,
  read: (path: string) => string,
): Promise<Mutant[]> {
  const tempDirName = mkdtempSync(join(tmpdir(), "coordination-mutants-"));
  // Also where somebody presses Ctrl-C.
  process.once("exit", () => {
    rmSync(tempDirName, { recursive: true, force: true });
  });
  process.env["MUTATE_TESTS"] = JSON.stringify(area.tests);
  // Standard output is for the result.
  const writeOut = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  try {
    const results = await new Stryker({
      mutate: [`${area.folder}/${file}`],
      testRunner: "vitest",
      vitest: { configFile: "scripts/mutate/vitest.config.ts", related: false },
      plugins: ["@stryker-mutator/vitest-runner"],
      reporters: process.stderr.isTTY ? ["progress"] : ["progress-append-only"],
      coverageAnalysis: "perTest",
      concurrency: 1,
      ignorePatterns: ["/dist", "/reference", "/docs", "/examples", "/assets"],
      tempDirName,
      cleanTempDir: "always",
      allowConsoleColors: false,
    }).runMutationTest();
    return results.map((result) => {
      const path = relative(ROOT, result.fileName);
      return { file: path, ...quoteMutant(read(path), result), status: result.status };
    });
  } finally {
    process.stdout.write = writeOut;
  }
}

type StrykerResult = Awaited<ReturnType<Stryker["runMutationTest"]>>[number];

function quoteMutant(source: string, { location, replacement, mutatorName }: StrykerResult) {
  const { start, end } = location;
  const lines = source.split("\n");
  const touched = lines.slice(start.line - 1, end.line);
  touched[touched.length - 1] = touched.at(-1)?.slice(0, end.column - 1) ?? "";
  touched[0] = touched[0]?.slice(start.column - 1) ?? "";
  return {
    line: start.line,
    mutator: mutatorName,
    code: lines[start.line - 1]?.trim() ?? "",
    original: touched.join("\n"),
    replacement,
  };
}
