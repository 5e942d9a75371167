import { randomInt } from "node:crypto";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";

/** Tests that measure time: whatever runs beside them would be measured too. */
const TIMED = [
  "test/attacks/{a2a-listing,event-loop}.test.ts",
  "test/cli/plan.test.ts",
  "test/contract/{lane-runner-properties,output-contract,sqlite-file,verifier,verifier-commands,query-times}.test.ts",
  "test/core/{arbiter-many-claims,contracts-hostile,give-way,many-questions,matches-pattern}.test.ts",
  "test/core/{plan-read-outputs,plan-size,plan-under-policy,sensitive-texts,stated-confidence}.test.ts",
  "test/openwop/{levels-streams,metrics-large,page-large}.test.ts",
  "test/plugin/{many-questions,writes-edit,writes-patch,writes-read-tool-call}.test.ts",
];

/** Frames and delays are measured. */
const TIMED_PAGES = ["test/page/{large-list,large-timeline,live-delay}.test.ts"];

/** One for the whole run, so that what it finds can be played again. */
const seed = seedOf(process.env["PROPERTY_SEED"]);

/** Processes that tests start spend most of their time compiling. */
const COMPILED = join(import.meta.dirname, "node_modules", ".cache", "compiled");

const WITHOUT_GATEWAYS = {
  setupFiles: ["test/support/property-seed.ts"],
  env: { PROPERTY_SEED: String(seed), NODE_COMPILE_CACHE: COMPILED },
  testTimeout: 120_000,
  // Starting a database server is work of a hook.
  hookTimeout: 120_000,
};

const SIDE_BY_SIDE = {
  ...WITHOUT_GATEWAYS,
  exclude: TIMED,
  // One more than cores: tests wait for processes, servers and browsers a fifth of the time.
  maxWorkers: availableParallelism() + 1,
  sequence: { groupOrder: 0 },
};

/** In a real browser, which the tests bring themselves (test/page/browser.ts). */
const PAGES = { globalSetup: ["test/page/build-page-once.ts"] };

/** Stories of two gateways each, and of each attack with the flag off and on. */
const LONG = ["test/pains/**/*.test.ts", "test/e2e/attacks.test.ts"];

const WITH_GATEWAYS = {
  // On two busy cores, threads of its own for collecting and compiling cost a process a sixth more processor time.
  env: { NODE_OPTIONS: "--v8-pool-size=0", NODE_COMPILE_CACHE: COMPILED },
  globalSetup: ["test/e2e/packed-plugin.ts"],
  setupFiles: ["test/e2e/await-plugin.ts"],
  testTimeout: 300_000,
  hookTimeout: 300_000,
  // Two gateways side by side: the host waits half of the time (1,986 s became 1,060 s on two cores).
  maxWorkers: 2,
  // Files hand their gateways on to the next (test/e2e/gateway-pool.ts).
  isolate: false,
};

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "fast",
          include: [
            "test/{core,contract,architecture,attacks,docs,replay,crash,cli,openwop,simulator}/**/*.test.ts",
          ],
          ...SIDE_BY_SIDE,
          // Files of one worker share the modules: loading them anew for each file took half of the time.
          isolate: false,
        },
      },
      {
        test: {
          name: "plugin",
          // Each file has its own modules, because the plugin keeps what outlives a reload in the global object.
          include: ["test/plugin/**/*.test.ts"],
          ...SIDE_BY_SIDE,
        },
      },
      {
        test: {
          name: "timed",
          include: TIMED,
          ...WITHOUT_GATEWAYS,
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: "page",
          include: ["test/page/**/*.test.ts"],
          ...PAGES,
          ...SIDE_BY_SIDE,
          exclude: TIMED_PAGES,
        },
      },
      {
        test: {
          name: "page-timed",
          include: TIMED_PAGES,
          ...PAGES,
          ...WITHOUT_GATEWAYS,
          fileParallelism: false,
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          exclude: LONG,
          ...WITH_GATEWAYS,
          // After the timed tests, whose budgets a gateway would spoil.
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          // `npm test` leaves these to `npm run test:long`, unless it is given their names.
          name: "long",
          include: LONG,
          ...WITH_GATEWAYS,
          fileParallelism: false,
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
});

/** The same histories in every run, unless others are asked for: those of a number, or `random` ones. */
function seedOf(variable: string | undefined): number {
  if (variable === "random") {
    const drawn = randomInt(2 ** 31);
    console.error(`PROPERTY_SEED=${drawn}`);
    return drawn;
  }
  const number = Number(variable || 1);
  if (!Number.isInteger(number))
    throw new Error(`PROPERTY_SEED is ${variable}, neither a whole number nor random`);
  return number;
}
