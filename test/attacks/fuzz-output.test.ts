/**
 * Everything that commands print of ledgers whose texts are hostile: nothing does anything to a terminal, and JSON is JSON.
 * `FUZZ_OUTPUT` sets how many commands are run, `FUZZ_SEED` the first seed.
 */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCli } from "../cli/run-cli.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { pickOne, type Random } from "../support/hostile-values.ts";
import { createRandom } from "../support/random.ts";
import { createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { createPoisonedLedger, recordLedgers, TERMINAL_TEXTS } from "./hostile-ledgers.ts";
import { findOutputFault } from "./judge-output.ts";

const COMMANDS = chooseCampaignSize("FUZZ_OUTPUT", { short: 250, long: 20_000 });
const SEED = Number(process.env["FUZZ_SEED"] ?? 1);
const COMMANDS_OF_LEDGER = 25;
const FAULTS_MAX = 20;
const NOW_MS = TEST_EPOCH_MS + 300_000;

let folder: TempFolder;
let ledgers: readonly string[];
beforeAll(async () => {
  folder = createTempFolder();
  ledgers = await recordLedgers(folder);
  // The first run of a command loads it.
  for (const args of listCommands("none", "none")) await runCli(args, { stateDir: folder.path });
});
afterAll(() => {
  folder[Symbol.dispose]();
});

/** Commands with their arguments, of which some are hostile. */
function listCommands(id: string, hostile: string): readonly (readonly string[])[] {
  return [
    ["list"],
    ["list", "--owner", hostile],
    ["list", "--status", hostile],
    ["show", id],
    ["show", id, "--full"],
    ["timeline", id],
    ["tree", id],
    ["tree", "--all"],
    ["events", id],
    ["events"],
    ["events", id, "--type", hostile],
    ["conflicts"],
    ["conflicts", id],
    ["claims"],
    ["claims", "--resource", hostile],
    ["questions"],
    ["questions", "--all"],
    ["questions", "show", `${id}:escalation-1`],
    ["runs"],
    ["runs", id],
    ["replay", id],
    ["diff", id, id],
    ["stats"],
    ["status"],
    ["doctor"],
    ["verify"],
    [hostile],
  ];
}

let succeeded = 0;

async function tryOne(
  random: Random,
  stateDir: string,
  args: readonly string[],
): Promise<string | undefined> {
  const isJson = random() < 0.4;
  const isPainted = !isJson && random() < 0.5;
  const start = performance.now();
  const result = await runCli(isJson ? [...args, "--json"] : args, {
    stateDir,
    nowMs: NOW_MS,
    terminal: {
      isTTY: isPainted,
      colour: isPainted,
      unicode: random() < 0.8,
      columns: pickOne(random, [20, 80, 200]),
    },
  });
  if (result.exitCode === 0) succeeded += 1;
  return findOutputFault({ ...result, ms: performance.now() - start, isJson, isPainted });
}

describe("the output of commands over hostile texts", () => {
  it(`does nothing to a terminal (${COMMANDS})`, { timeout: 3_600_000 }, async () => {
    const faults: string[] = [];
    for (
      let seed = SEED;
      seed < SEED + COMMANDS / COMMANDS_OF_LEDGER && faults.length < FAULTS_MAX;
      seed += 1
    ) {
      const random = createRandom(seed);
      random();
      const stateDir = folder.file(random() < 0.5 ? `state-${seed}` : `\u{1b}[31mred\u{202e}-${seed}`);
      const from = pickOne(random, ledgers);
      const { runIds } = createPoisonedLedger(random, from, join(stateDir, "coordination", "ledger.sqlite"));
      for (let count = 0; count < COMMANDS_OF_LEDGER; count += 1) {
        const hostile = pickOne(random, TERMINAL_TEXTS);
        const id = random() < 0.9 ? pickOne(random, runIds) : hostile;
        const args = pickOne(random, listCommands(id, hostile));
        const fault = await tryOne(random, stateDir, args);
        if (fault !== undefined) faults.push(`seed ${seed}: ${JSON.stringify(args).slice(0, 200)}: ${fault}`);
      }
    }
    expect(faults).toEqual([]);
    // Not all of the ledgers were unreadable.
    expect(succeeded).toBeGreaterThan(COMMANDS / 4);
  });
});
