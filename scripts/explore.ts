/**
 * Plays the properties with histories that no run has played, round after round, until one is broken or `EXPLORE_ROUNDS` (20)
 * rounds are over. The arguments name the tests, all that draw histories by default. A round's seed plays it again.
 */
import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const ROOT = join(import.meta.dirname, "..");
const ROUNDS = Number(process.env["EXPLORE_ROUNDS"] ?? 20);
const DRAWS = /"fast-check"|SWEEP_SEED/u;

function run(named: readonly string[]): number {
  const files =
    named.length > 0 ? named : globSync("test/**/*.test.ts", { cwd: ROOT }).filter(isDrawing).sort();
  for (let round = 1; round <= ROUNDS; round += 1) {
    const seed = String(randomInt(2 ** 31));
    console.log(`\nround ${round} of ${ROUNDS}: PROPERTY_SEED=${seed} SWEEP_SEED=${seed}`);
    const status = runTests(files, { PROPERTY_SEED: seed, SWEEP_SEED: seed });
    if (status === 0) continue;
    console.error(
      `\nPlay it again with\n  PROPERTY_SEED=${seed} SWEEP_SEED=${seed} npm run test:fast -- FILE\n` +
        "and make an example test of the counterexample.",
    );
    return status;
  }
  return 0;
}

/** Whether a test, or a suite that it runs, draws its histories. */
function isDrawing(file: string): boolean {
  if (file.includes("node_modules")) return false;
  const source = readFileSync(join(ROOT, file), "utf8");
  return (
    DRAWS.test(source) ||
    [...source.matchAll(/"(?<suite>\.[^"]*\.suite\.ts)"/gu)].some(({ groups }) =>
      isDrawing(join(dirname(file), groups?.["suite"] ?? "")),
    )
  );
}

function runTests(files: readonly string[], env: Record<string, string>): number {
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "--project", "!e2e", "--reporter=dot"];
  const { status, signal } = spawnSync(process.execPath, [...vitest, ...files], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: "inherit",
  });
  return status ?? (signal ? 130 : 1);
}

process.exitCode = run(process.argv.slice(2));
