/**
 * Runs the project's tasks on Node 24, whatever Node the machine has. Plain JavaScript without dependencies for Node 20
 * and later, because it is what installs the dependencies.
 *
 * A plain `npm ci` fails under older Nodes, where OpenClaw's install script refuses; only `node`, the dev dependency that
 * brings Node 24, needs its install script.
 */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, lstatSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const MODULES = join(ROOT, "node_modules");
const BIN = join(MODULES, ".bin");
const NODE = join(MODULES, "node", "bin", process.platform === "win32" ? "node.exe" : "node");
/** Written when an installation was completed. */
const STAMP = join(MODULES, ".setup-complete");

const VITEST = ["node_modules/vitest/vitest.mjs", "run"];
const WITHOUT_LONG = ["--project", "!long"];
const WITHOUT_GATEWAYS = [...WITHOUT_LONG, "--project", "!e2e", "--project", "!page*"];
const PRETTIER = ["node_modules/prettier/bin/prettier.cjs"];
const OXLINT = ["node_modules/oxlint/bin/oxlint"];
const TSC = ["node_modules/typescript/bin/tsc"];
/** The code of browsers has types of its own. */
const TSC_PAGE = [...TSC, "-p", "src/plugins/page/ui/tsconfig.json"];
/** The host's inspector: every hook and registrar that the plugin uses is there in the host that it names. */
const VALIDATE = [
  ...["node_modules/clawhub/bin/clawdhub.js", "package", "validate", "."],
  ...["--out", "node_modules/.cache/plugin-inspector", "--openclaw-version", readHostVersion()],
];

/** Each task is a list of Node command lines; the arguments of the call go to the last one. */
const TASKS = {
  setup: [],
  demo: [["scripts/demo.ts"]],
  test: [[...VITEST, ...WITHOUT_LONG]],
  /** Any file: `npm test -- FILE` runs it. */
  "test:file": [VITEST],
  "test:fast": [[...VITEST, ...WITHOUT_GATEWAYS]],
  "test:long": [
    [
      ...VITEST,
      ...WITHOUT_GATEWAYS,
      "test/crash",
      "test/simulator",
      "test/contract/query-times.test.ts",
      "test/openwop/metrics-large.test.ts",
      "test/openwop/page-large.test.ts",
    ],
    [...VITEST, "test/page/large-list.test.ts"],
    [...VITEST, "test/pains", "test/e2e/crash.test.ts"],
  ],
  explore: [["scripts/explore.ts"]],
  simulate: [["test/simulator/run.ts"]],
  mutate: [["scripts/mutate/run.ts"]],
  bench: [["test/bench/run.ts"]],
  cli: [["src/plugins/cli/main.ts"]],
  build: [["scripts/build.ts"]],
  prepack: [TSC, TSC_PAGE, ["scripts/build.ts"]],
  format: [[...PRETTIER, "--write", "."]],
  "format:check": [
    [...PRETTIER, "--check", "."],
    ["scripts/manifest.ts", "--check"],
    ["scripts/requirements.ts", "--check"],
  ],
  lint: [OXLINT],
  types: [TSC, TSC_PAGE],
  manifest: [["scripts/manifest.ts"]],
  requirements: [["scripts/requirements.ts"]],
  api: [["scripts/api-reports.ts"]],
  "api:check": [["scripts/api-reports.ts", "--check"]],
  reference: [["node_modules/typedoc/bin/typedoc"]],
  sbom: [["scripts/build.ts"], ["scripts/sbom.ts"]],
  "package:validate": [VALIDATE],
  "pack:smoke": [["scripts/pack-smoke.ts"]],
};

/** Variables of the environment that a task sets for its commands. */
const VARIABLES = { "test:long": { TEST_CAMPAIGN: "long" } };

/** In this order; `npm test` is the slow one. */
const VERIFY = [
  "format:check",
  "lint",
  "types",
  "test",
  "build",
  "api:check",
  "package:validate",
  "pack:smoke",
];
const VERIFY_WITHOUT_TESTS = VERIFY.filter((task) => task !== "test");

function readHostVersion() {
  const { openclaw } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  return openclaw.build.openclawVersion;
}

async function main([name = "", ...args]) {
  const tasks = name === "verify" ? VERIFY : name === "verify:rest" ? VERIFY_WITHOUT_TESTS : [name];
  const unknown = tasks.find((task) => !Object.hasOwn(TASKS, task));
  if (unknown !== undefined) {
    console.error(
      `unknown task ${JSON.stringify(unknown)}; there are: ${[...Object.keys(TASKS), "verify", "verify:rest"].join(", ")}`,
    );
    return 2;
  }
  const failed = await setup();
  if (failed) return failed;
  for (const task of tasks) {
    if (tasks.length > 1) console.error(`\n== ${task}`);
    const status = runTask(task, args);
    if (status !== 0) return status;
  }
  return 0;
}

function runTask(task, args) {
  const namesFiles = args.some((arg) => !arg.startsWith("-"));
  const commands = TASKS[task === "test" && namesFiles ? "test:file" : task];
  Object.assign(process.env, VARIABLES[task]);
  for (const [index, command] of commands.entries()) {
    const status = run(NODE, index === commands.length - 1 ? [...command, ...args] : command);
    if (status !== 0) return status;
  }
  return 0;
}

/** Installs the dependencies unless they are there and no older than the lock file. */
async function setup() {
  // Installing into a link would empty the folder that it leads to, which is somebody else's.
  if (lstatSync(MODULES, { throwIfNoEntry: false })?.isSymbolicLink()) return 0;
  const lock = join(ROOT, "package-lock.json");
  const fresh = existsSync(STAMP) && existsSync(NODE) && readFileSync(STAMP, "utf8") === lockMark(lock);
  if (fresh) return 0;
  console.error("Installing dependencies (about a minute, once) ...");
  const steps = [
    ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
    ["rebuild", "node", "--loglevel=error"],
  ];
  for (const step of steps) {
    const status = await runNpm(step);
    if (status === 0) continue;
    console.error(
      `\`npm ${step.join(" ")}\` failed. Check that the npm registry can be reached, then run this again.`,
    );
    return status;
  }
  writeFileSync(STAMP, lockMark(lock));
  return 0;
}

/** Says every five seconds that it is still at work, because npm says nothing until its end. */
function runNpm(step) {
  const startedAt = performance.now();
  const timer = setInterval(() => {
    console.error(`still at \`npm ${step[0]}\` (${((performance.now() - startedAt) / 1_000).toFixed(0)} s)`);
  }, 5_000);
  const npm = spawn(process.platform === "win32" ? "npm.cmd" : "npm", step, {
    cwd: ROOT,
    stdio: ["inherit", process.stderr.fd, "inherit"],
    shell: process.platform === "win32",
  });
  return new Promise((resolve) => {
    npm.once("error", (error) => {
      console.error(`npm: ${error.message}`);
      resolve(1);
    });
    npm.once("close", (code, signal) => resolve(code ?? (signal ? 130 : 1)));
  }).finally(() => clearInterval(timer));
}

function lockMark(lock) {
  const { size, mtimeMs } = statSync(lock);
  return `${size} ${mtimeMs}\n`;
}

function run(command, args) {
  const { PATH = "" } = process.env;
  const env = { ...process.env, PATH: `${BIN}${delimiter}${PATH}` };
  const { status, signal, error } = spawnSync(command, args, {
    cwd: ROOT,
    env,
    stdio: "inherit",
  });
  if (error) console.error(`${command}: ${error.message}`);
  return status ?? (signal ? 130 : 1);
}

// Ctrl-C is for the task; it ends in its own way and this process with it.
process.on("SIGINT", () => undefined);
process.exitCode = await main(process.argv.slice(2));
