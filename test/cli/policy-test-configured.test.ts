/** Owns: `policy test` says of a pack only what the pack changes, and not what the configuration says today. */
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { AdmitSpawn, CompleteStep } from "../../src/agents/coordination/contracts/commands.ts";
import {
  createOperatorConfig,
  type OperatorConfig,
} from "../../src/plugins/openclaw/host/operator-config.ts";
import { contentOf } from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";
import { PRODUCTION, recordConflicts } from "./recorded-conflicts.ts";
import { recordLedger, RESEARCH } from "./recorded-ledger.ts";
import {
  complete,
  createOpening,
  recordCommands,
  spawn,
  SPAWNS,
  type RecordedCommand,
} from "./recorded-questions.ts";
import { createMemoryConfig, runCli } from "./run-cli.ts";

let folder: TempFolder;

/** Returns the ledger of a gateway that has its own state folder. */
const nameLedger = (gateway: string): string => folder.file(`${gateway}/coordination/ledger.sqlite`);

beforeAll(async () => {
  folder = createTempFolder();
  await recordConflicts(nameLedger("conflicts"), folder.path);
  await recordLedger(nameLedger("spawns"), [RESEARCH]);
  await recordUngated(nameLedger("ungated"));
});

afterAll(() => {
  folder[Symbol.dispose]();
});

/** A result of confidence 0.9, which nothing could hold. */
async function recordUngated(path: string): Promise<void> {
  const store = await openTestLedger(path);
  const { gate: _, ...spawned } = spawn("draft", { threshold: 0 }) as AdmitSpawn;
  const completed = complete("step-1", 9_000, "the draft") as CompleteStep;
  const { stepId, attempt, output } = completed;
  await recordCommands(store, SPAWNS, [
    [0, createOpening("trace"), [contentOf("the objective")]],
    [1_000, spawned, [contentOf("task of draft")]],
    [2_000, { type: "reportStep", stepId, attempt, outcome: "completed", output, confidence: 9_000 }],
    [3_000, completed, [contentOf("the draft")]],
  ] as RecordedCommand[]);
  await store.close();
}

interface PolicyTestReport {
  readonly isConfigurationRead: boolean;
  readonly changed: readonly { readonly points: readonly object[] }[];
}

function writePack(settings: object): string {
  const pack = folder.file("pack.yaml");
  writeFileSync(pack, JSON.stringify({ name: "pack", version: "1.0.0", settings }));
  return pack;
}

const createConfig = (phase1: object) =>
  createMemoryConfig({ plugins: { entries: { coordination: { config: { coordination: { phase1 } } } } } });

async function testPack(
  gateway: string,
  settings: object,
  config: OperatorConfig,
  more: readonly string[] = [],
): Promise<PolicyTestReport> {
  const { stdout } = await runCli(["policy", "test", writePack(settings), "--json", ...more], {
    config,
    stateDir: folder.file(gateway),
  });
  return JSON.parse(stdout) as PolicyTestReport;
}

describe("policy test", () => {
  test.each([
    [
      "lists of patterns",
      "conflicts",
      { conflicts: { strategy: "owner_wins" } },
      { conflicts: { highRisk: ["~/.ssh/**"] } },
    ],
    ["limits of the budget", "spawns", { budget: { depth: 5 } }, { budget: { spawns: 1 } }],
    [
      "limits of an agent's budget",
      "spawns",
      { budget: { agents: { main: { depth: 5 } } } },
      { budget: { agents: { main: { spawns: 1 } } } },
    ],
  ])("does not take %s of the configuration for the pack's", async (_, gateway, settings, phase1) => {
    expect(await testPack(gateway, settings, createConfig(phase1))).toMatchObject({
      isConfigurationRead: true,
      changed: [],
    });
  });

  test("takes the configuration's value of what the pack says, too", async () => {
    const tested = await testPack(
      "spawns",
      { budget: { spawns: 50 } },
      createConfig({ budget: { spawns: 1 } }),
    );
    expect(tested.changed[0]?.points[0]).toMatchObject({ would: "the spawn is refused" });
  });

  test.each([
    ["strategy", { conflicts: { strategy: "priority_wins" } }, "priority_wins (default)"],
    ["default strategy", {}, "owner_wins (default)"],
    [
      "exceptions",
      { conflicts: { overrides: [{ resource: "queue:*", strategy: "priority_wins" }] } },
      "priority_wins (operator)",
    ],
  ])(
    "knows by the configuration's %s what decides where the pack takes a list away",
    async (_, phase1, why) => {
      const tested = await testPack("conflicts", { conflicts: { highRisk: [] } }, createConfig(phase1));
      const points = tested.changed.flatMap((changed) => changed.points);
      expect(points.length).toBeGreaterThan(0);
      expect(points[0]).toMatchObject({ certainty: "differs", why: expect.stringContaining(why) as string });
    },
  );

  test("is not sure that there is no exception where it does not know the configuration", async () => {
    const settings = { conflicts: { highRisk: [], strategy: "priority_wins" } };
    const args = ["--ledger", nameLedger("conflicts")];
    const { changed } = await testPack("conflicts", settings, createConfig({}), args);
    const points = changed.flatMap((coordination) => coordination.points);
    const why = expect.stringContaining("whether the operator had an exception for it") as string;
    expect(points).toContainEqual(
      expect.objectContaining({ resource: PRODUCTION, certainty: "unknown", why }) as object,
    );
  });

  test("holds results as the configuration says where the pack switches gates on", async () => {
    const config = createConfig({ gates: { confidenceThreshold: 0.95 } });
    const { changed } = await testPack("ungated", { gates: { enabled: true } }, config);
    expect(changed[0]?.points).toMatchObject([{ stepId: "step-1", why: "confidence 0.9 is below 0.95" }]);
  });

  test("does not take this machine's configuration for that of another gateway's ledger", async () => {
    const settings = { budget: { spawns: 1 } };
    const config = createConfig({ budget: { spawns: 50 } });
    expect(await testPack("spawns", settings, config)).toMatchObject({
      isConfigurationRead: true,
      changed: [],
    });
    const args = ["--ledger", nameLedger("spawns")];
    const tested = await testPack("spawns", settings, config, args);
    expect(tested.isConfigurationRead).toBe(false);
    expect(tested.changed[0]?.points[0]).toMatchObject({ would: "the spawn is refused" });
    const { stdout } = await runCli(["policy", "test", writePack(settings), ...args], { config });
    expect(stdout).toContain("the ledger of `--ledger` may be another gateway's");
  });

  test("takes a configuration file that is not there for one that it cannot read", async () => {
    vi.stubEnv("OPENCLAW_CONFIG_PATH", folder.file("missing/openclaw.json"));
    try {
      const tested = await testPack("spawns", { budget: { spawns: 50 } }, createOperatorConfig());
      expect(tested.isConfigurationRead).toBe(false);
    } finally {
      vi.unstubAllEnvs();
    }
  });
});
