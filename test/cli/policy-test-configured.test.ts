/** Owns: `policy test` says of a pack only what the pack changes, and not what the configuration says today. */
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { recordConflicts } from "./recorded-conflicts.ts";
import { recordLedger, RESEARCH } from "./recorded-ledger.ts";
import { createMemoryConfig, runCli } from "./run-cli.ts";

let folder: TempFolder;

beforeAll(async () => {
  folder = createTempFolder();
  await recordConflicts(folder.file("conflicts.sqlite"), folder.path);
  await recordLedger(folder.file("spawns.sqlite"), [RESEARCH]);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

interface Tested {
  readonly isConfigurationRead: boolean;
  readonly changed: readonly { readonly points: readonly object[] }[];
}

async function testPack(ledger: string, settings: object, phase1: object): Promise<Tested> {
  const pack = folder.file("pack.yaml");
  writeFileSync(pack, JSON.stringify({ name: "pack", version: "1.0.0", settings }));
  const config = createMemoryConfig({
    plugins: { entries: { coordination: { config: { coordination: { phase1 } } } } },
  });
  const { stdout } = await runCli(["policy", "test", pack, "--ledger", folder.file(ledger), "--json"], {
    config,
  });
  return JSON.parse(stdout) as Tested;
}

describe("policy test", () => {
  test.each([
    [
      "lists of patterns",
      "conflicts.sqlite",
      { conflicts: { strategy: "owner_wins" } },
      { conflicts: { highRisk: ["~/.ssh/**"] } },
    ],
    ["limits of the budget", "spawns.sqlite", { budget: { depth: 5 } }, { budget: { spawns: 1 } }],
    [
      "limits of an agent's budget",
      "spawns.sqlite",
      { budget: { agents: { main: { depth: 5 } } } },
      { budget: { agents: { main: { spawns: 1 } } } },
    ],
  ])("does not take %s of the configuration for the pack's", async (_, ledger, settings, phase1) => {
    expect(await testPack(ledger, settings, phase1)).toMatchObject({
      isConfigurationRead: true,
      changed: [],
    });
  });

  test("takes the configuration's value of what the pack says, too", async () => {
    const tested = await testPack("spawns.sqlite", { budget: { spawns: 50 } }, { budget: { spawns: 1 } });
    expect(tested.changed[0]?.points[0]).toMatchObject({ would: "the spawn is refused" });
  });
});
