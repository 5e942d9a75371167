import { randomInt } from "node:crypto";
import { defineConfig } from "vitest/config";

/** One for the whole run, so that what it finds can be played again. */
const seed = seedOf(process.env["PROPERTY_SEED"]);

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "fast",
          include: [
            "test/{core,contract,architecture,attacks,docs,replay,crash,cli,plugin,openwop}/**/*.test.ts",
          ],
          setupFiles: ["test/support/property-seed.ts"],
          env: { PROPERTY_SEED: String(seed) },
          testTimeout: 120_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          globalSetup: ["test/e2e/packed-plugin.ts"],
          testTimeout: 300_000,
          hookTimeout: 300_000,
          // After the fast tests, whose budgets of time a gateway would spoil.
          sequence: { groupOrder: 1 },
          // One gateway at a time: each takes a core and a gigabyte.
          fileParallelism: false,
        },
      },
    ],
  },
});

/** The same histories in every run, unless others are asked for: those of a number, or `random` ones. */
function seedOf(given: string | undefined): number {
  if (given === "random") {
    const drawn = randomInt(2 ** 31);
    console.error(`PROPERTY_SEED=${drawn}`);
    return drawn;
  }
  const known = Number(given || 1);
  if (!Number.isInteger(known))
    throw new Error(`PROPERTY_SEED is ${given}, neither a whole number nor random`);
  return known;
}
