/** Owns: that the host's own backup has the whole ledger, while others append to it. */
import { readdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import type { Check } from "../../src/plugins/cli/doctor-checks.ts";
import { openLedgerForReading } from "../../src/plugins/ledger-reader.ts";
import { startAppendLoop } from "../support/append-loop.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { createPluginConfig, openStage, PHASE1, type Stage } from "./stage.ts";

const ROUNDS = chooseCampaignSize("HOST_BACKUPS", { short: 1, long: 10 });
/** Then a new one is begun: a round with one of 500 MB takes over a minute. */
const ROUNDS_OF_A_LEDGER = 10;
const NAMES = Array.from({ length: ROUNDS }, (_, round) => `backup-${round + 1}`);

let stage: Stage;
let folder: TempFolder;

beforeAll(async () => {
  folder = createTempFolder();
  // Switched off, because the ledger has one writer, which is ours.
  stage = await openStage({ pluginConfig: createPluginConfig({ ...PHASE1, enabled: false }) });
});

afterAll(async () => {
  await stage.close();
  folder[Symbol.dispose]();
});

async function runForJson(...args: string[]): Promise<unknown> {
  const run = () => stage.gateway.openclaw([...args, "--json"]);
  const first = await run();
  // The host asks for it where a database of its own appeared while it made a backup: once in 209 rounds.
  const { code, stdout, stderr } = first.stderr.includes("Retry backup") ? await run() : first;
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  return JSON.parse(stdout);
}

async function checkBackup(): Promise<Check | undefined> {
  const { checks } = (await runForJson("coordination", "doctor")) as { checks: Check[] };
  return checks.find(({ name }) => name === "backup");
}

/** Deletes the ledger when it has been backed up often enough. */
function beginLedger(name: string): void {
  if (NAMES.indexOf(name) % ROUNDS_OF_A_LEDGER > 0 || !stage.hasLedger()) return;
  const place = dirname(stage.ledgerPath);
  const files = readdirSync(place).filter((file) => file.startsWith(basename(stage.ledgerPath)));
  for (const file of files) rmSync(join(place, file));
}

interface MadeBackup {
  readonly archive: string;
  /** Coordinations that the ledger had acknowledged before. */
  readonly knownIds: ReadonlySet<CoordinationId>;
}

async function backUpUnderWrites(name: string): Promise<MadeBackup> {
  await using loop = await startAppendLoop(stage.ledgerPath, NAMES.indexOf(name));
  await loop.more(200);
  const knownIds = new Set(loop.acknowledged().map(({ runId }) => runId));
  const archive = folder.file(`${name}.tar.gz`);
  const { warnings = [] } = (await runForJson(
    "backup",
    "create",
    "--no-include-workspace",
    "--output",
    archive,
  )) as {
    warnings?: readonly string[];
  };
  expect(warnings.filter((warning) => warning.includes("ledger.sqlite"))).toEqual([]);
  // It appended to the end: the backup was made under writes.
  await loop.more(1);
  return { archive, knownIds };
}

const nameRestored = (archive: string): string => `${archive}-restored`;

/** The path of the ledger in a restored archive. */
async function restoreLedger(archive: string): Promise<string> {
  const target = nameRestored(archive);
  await runForJson("backup", "restore", archive, "--target", target);
  const files = readdirSync(target, { recursive: true, encoding: "utf8" });
  const ledgers = files.filter((file) => file.endsWith(join("coordination", "ledger.sqlite")));
  expect(ledgers).toHaveLength(1);
  return join(target, ledgers[0] ?? "");
}

describe("the host's backup of a ledger that is being written", () => {
  it.each(NAMES)("is whole and misses nothing acknowledged: %s", async (name) => {
    beginLedger(name);
    const { archive, knownIds } = await backUpUnderWrites(name);
    const reader = await openLedgerForReading(await restoreLedger(archive));
    try {
      expect(await verifyLedger(reader)).toMatchObject({ ok: true, problems: [] });
      for (const runId of knownIds) expect(await reader.read(runId, { from: 0, limit: 1 })).toHaveLength(1);
    } finally {
      await reader.close();
      rmSync(nameRestored(archive), { recursive: true });
    }
  });

  it("is what doctor says was the last one", async () => {
    const { status, message } = (await checkBackup()) ?? expect.fail("doctor has no check of backups");
    expect(status).toBe("ok");
    expect(message).toContain(folder.file(`${NAMES.at(-1)}.tar.gz`));
  });
});
