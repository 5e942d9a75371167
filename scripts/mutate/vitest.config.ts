/** Runs the tests of one area (`MUTATE_TESTS`, globs as JSON) for each mutant, in one process. */
import { defineConfig } from "vitest/config";
import { SLOW_TESTS } from "./areas.ts";

const include = JSON.parse(process.env["MUTATE_TESTS"] ?? "[]") as string[];

export default defineConfig({
  test: {
    include,
    exclude: SLOW_TESTS,
    isolate: false,
    testTimeout: 120_000,
    setupFiles: ["test/support/property-seed.ts"],
    // A mutant must not be killed by another history than the one that it was tested with before.
    env: { PROPERTY_SEED: "1" },
  },
});
