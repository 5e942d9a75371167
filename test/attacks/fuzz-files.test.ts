/**
 * Commands over files that were damaged or written by nobody who means well: each ends in time, with a sentence or a true answer,
 * and a proof never calls a ledger whole whose events are others. `FUZZ_FILES` sets how many files of each kind, `FUZZ_SEED` the
 * first seed.
 */
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isCoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { readWorkflowFolder } from "../../src/plugins/cli/files/workflow-folder.ts";
import { RUNNING_PLAN } from "../cli/recorded-plan.ts";
import { runCli, type CliResult } from "../cli/run-cli.ts";
import { DEFINITIONS } from "../openwop/mcp-world.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { pickOne, type Random } from "../support/hostile-values.ts";
import { createRandom } from "../support/random.ts";
import { createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { damageBytes, forgeRows, spoilFile, type ForgedChange } from "./hostile-files.ts";
import { recordLedgers } from "./hostile-ledgers.ts";
import { findOutputFault } from "./judge-output.ts";

const FILES = chooseCampaignSize("FUZZ_FILES", { short: 40, long: 3_000 });
const SEED = Number(process.env["FUZZ_SEED"] ?? 1);
const FAULTS_MAX = 20;
const READ_MS_MAX = 1_000;

let folder: TempFolder;
let ledgers: readonly string[];
/** By the path of a ledger: all of its events, as they are printed. */
const eventsOf = new Map<string, string>();
beforeAll(async () => {
  folder = createTempFolder();
  ledgers = await recordLedgers(folder);
  for (const path of ledgers) eventsOf.set(path, (await run(["events", "--ledger", path, "--json"])).stdout);
  // The first run of a command loads it.
  for (const args of [...READERS, ...FILE_READERS]) await run([...args, "none"]);
});
afterAll(() => {
  folder[Symbol.dispose]();
});

function run(args: readonly string[]): Promise<CliResult> {
  return runCli(args, { stateDir: join(folder.path, "state"), nowMs: TEST_EPOCH_MS + 300_000 });
}

const READERS: readonly (readonly string[])[] = [
  ["list"],
  ["tree", "--all"],
  ["events"],
  ["conflicts"],
  ["claims"],
  ["questions", "--all"],
  ["runs"],
  ["stats"],
  ["status"],
  ["doctor"],
  ["verify"],
  ...["show", "timeline", "tree", "events", "conflicts", "runs", "replay"].map((name) => [name, "co-1"]),
];

const FILE_READERS: readonly (readonly string[])[] = [
  ["plan", "validate"],
  ["plan", "graph"],
  ["policy", "validate"],
  ["policy", "show"],
  ["verify", "--anchor"],
  ["replay", "co-1", "--policy"],
];

async function findCommandFault(args: readonly string[]): Promise<string | undefined> {
  const isJson = args.includes("--json");
  const start = performance.now();
  const result = await run(args);
  return findOutputFault({ ...result, ms: performance.now() - start, isJson, isPainted: false });
}

/** Describes why a proof of a damaged ledger says something wrong. */
async function findWrongProof(
  path: string,
  from: string,
  isEventChanged: boolean,
): Promise<string | undefined> {
  const { stdout, exitCode } = await run(["verify", "--ledger", path, "--json"]);
  if (exitCode !== 0) return undefined;
  if (isEventChanged) return `the proof says that it is whole: ${stdout.slice(0, 200)}`;
  const { stdout: events } = await run(["events", "--ledger", path, "--json"]);
  return events === eventsOf.get(from)
    ? undefined
    : "the proof says that it is whole, and its events are others";
}

function damage(random: Random, path: string): ForgedChange {
  return random() < 0.5
    ? { words: damageBytes(random, path), isEventChanged: false }
    : forgeRows(random, path);
}

describe("a damaged ledger", () => {
  it(`is told of by every command (${FILES})`, { timeout: 3_600_000 }, async () => {
    const faults: string[] = [];
    for (let seed = SEED; seed < SEED + FILES && faults.length < FAULTS_MAX; seed += 1) {
      const random = createRandom(seed);
      random();
      const from = pickOne(random, ledgers);
      const path = folder.file(`damaged-${seed}.sqlite`);
      copyFileSync(from, path);
      const { words, isEventChanged } = damage(random, path);
      const commands = Array.from({ length: 5 }, () => pickOne(random, READERS));
      for (const command of commands) {
        const args = [...command, "--ledger", path, ...(random() < 0.4 ? ["--json"] : [])];
        const fault = await findCommandFault(args);
        if (fault !== undefined) faults.push(`seed ${seed}: ${words}: ${command.join(" ")}: ${fault}`);
      }
      const wrong = await findWrongProof(path, from, isEventChanged);
      if (wrong !== undefined) faults.push(`seed ${seed}: ${words}: ${wrong}`);
    }
    expect(faults).toEqual([]);
  });
});

const PLAN_YAML = `coordinationId: release-notes
objective: Write the release notes
steps:
  - stepId: write
    agent: main
    task: |
      Write them.
      In two lines.
  - stepId: check
    agent: main
    task: "Check {{write.text}}"
    dependsOn: [write]
`;
const POLICY_YAML = `name: careful
version: 1
description: More checks
settings: &settings
  gates:
    thresholds: { default: 0.7 }
  conflicts: {}
`;

function listTexts(): readonly string[] {
  const { id: coordinationId, objective, steps } = RUNNING_PLAN;
  return [
    PLAN_YAML,
    JSON.stringify({ coordinationId, objective, steps }, null, 2),
    POLICY_YAML,
    JSON.stringify(DEFINITIONS[1], null, 2),
    readFileSync(folder.file("anchor.json"), "utf8"),
  ];
}

async function findFolderFault(path: string): Promise<string | undefined> {
  const start = performance.now();
  try {
    await readWorkflowFolder(path);
  } catch (error) {
    if (!isCoordinationError(error) || !error.message.includes("file.yaml")) return String(error);
  }
  const ms = performance.now() - start;
  return ms > READ_MS_MAX ? `reading the folder took ${Math.round(ms)} ms` : undefined;
}

describe("a hostile text", () => {
  it(`in a file is read or refused with its place (${FILES * 5})`, { timeout: 3_600_000 }, async () => {
    const [first = ""] = ledgers;
    await run(["ledger", "anchor", folder.file("anchor.json"), "--ledger", first]);
    const texts = listTexts();
    const faults: string[] = [];
    for (let seed = SEED; seed < SEED + FILES * 5 && faults.length < FAULTS_MAX; seed += 1) {
      using place = createTempFolder();
      const random = createRandom(seed);
      random();
      const text = spoilFile(random, pickOne(random, texts));
      writeFileSync(place.file("file.yaml"), text);
      const command = pickOne(random, FILE_READERS);
      const ledger = command[0] === "verify" || command[0] === "replay" ? ["--ledger", first] : [];
      const args = [...command, place.file("file.yaml"), ...ledger, ...(random() < 0.4 ? ["--json"] : [])];
      const fault = (await findCommandFault(args)) ?? (await findFolderFault(place.path));
      if (fault !== undefined)
        faults.push(`seed ${seed}: ${command.join(" ")}: ${fault}; ${JSON.stringify(text).slice(0, 600)}`);
    }
    expect(faults).toEqual([]);
  });
});
