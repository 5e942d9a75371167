/**
 * Owns: tests that the host's own backup has the whole ledger, while others append to it. They belong to a file whose gateway has
 * the flag off, because the ledger has one writer, which is theirs.
 */
import { readdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import type { DoctorCheck } from "../../src/plugins/cli/doctor-checks.ts";
import { openLedgerForReading } from "../../src/plugins/ledger-reader.ts";
import { startAppendLoop } from "../support/append-loop.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import type { Stage } from "./stage.ts";

const ROUNDS = chooseCampaignSize("HOST_BACKUPS", { short: 1, long: 10 });
/** Then a new one is begun: a round with one of 500 MB takes over a minute. */
const ROUNDS_OF_A_LEDGER = 10;
const NAMES = Array.from({ length: ROUNDS }, (_, round) => `backup-${round + 1}`);

async function runForJson({ gateway }: Stage, ...args: string[]): Promise<unknown> {
  const run = () => gateway.openclaw([...args, "--json"]);
  const first = await run();
  // The host asks for it where a database of its own appeared while it made a backup: once in 209 rounds.
  const { code, stdout, stderr } = first.stderr.includes("Retry backup") ? await run() : first;
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  return JSON.parse(stdout);
}

async function checkBackup(stage: Stage): Promise<DoctorCheck | undefined> {
  const { checks } = (await runForJson(stage, "coordination", "doctor")) as { checks: DoctorCheck[] };
  return checks.find(({ name }) => name === "backup");
}

/** Deletes the ledger when it has been backed up often enough. */
function beginLedger(stage: Stage, name: string): void {
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

async function backUpUnderWrites(stage: Stage, folder: TempFolder, name: string): Promise<MadeBackup> {
  await using loop = await startAppendLoop(stage.ledgerPath, NAMES.indexOf(name));
  await loop.more(200);
  const knownIds = new Set(loop.acknowledged().map(({ runId }) => runId));
  const archive = folder.file(`${name}.tar.gz`);
  const { warnings = [] } = (await runForJson(
    stage,
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
async function restoreLedger(stage: Stage, archive: string): Promise<string> {
  const target = nameRestored(archive);
  await runForJson(stage, "backup", "restore", archive, "--target", target);
  const files = readdirSync(target, { recursive: true, encoding: "utf8" });
  const ledgers = files.filter((file) => file.endsWith(join("coordination", "ledger.sqlite")));
  expect(ledgers).toHaveLength(1);
  return join(target, ledgers[0] ?? "");
}

/** Declares them. The stage is there when they begin. */
export function describeBackups(findStage: () => Stage): void {
  describe("the host's backup of a ledger that is being written", () => {
    let stage: Stage;
    let folder: TempFolder;

    beforeAll(() => {
      stage = findStage();
      folder = createTempFolder();
    });

    afterAll(() => {
      folder[Symbol.dispose]();
    });

    it.each(NAMES)("is whole and misses nothing acknowledged: %s", async (name) => {
      beginLedger(stage, name);
      const { archive, knownIds } = await backUpUnderWrites(stage, folder, name);
      const reader = await openLedgerForReading(await restoreLedger(stage, archive));
      try {
        expect(await verifyLedger(reader)).toMatchObject({ ok: true, problems: [] });
        for (const runId of knownIds) expect(await reader.read(runId, { from: 0, limit: 1 })).toHaveLength(1);
      } finally {
        await reader.close();
        rmSync(nameRestored(archive), { recursive: true });
      }
    });

    it("is what doctor says was the last one", async () => {
      const { status, message } = (await checkBackup(stage)) ?? expect.fail("doctor has no check of backups");
      expect(status).toBe("ok");
      expect(message).toContain(folder.file(`${NAMES.at(-1)}.tar.gz`));
    });
  });
}
