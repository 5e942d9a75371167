import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "fast",
          include: ["test/{core,contract,architecture,docs,replay,crash,cli,plugin,openwop}/**/*.test.ts"],
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
