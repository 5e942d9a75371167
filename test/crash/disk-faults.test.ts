/**
 * Every operation of the disk that a ledger makes is made to fail in turn: writes, flushes, truncations and openings, once or from
 * there on, wholly or by half. `DISK_FAULT_STRIDE` sets which: every n-th, each in five ways.
 */
import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import type { DiskReport } from "./disk-process.ts";
import { buildFailingDisk, canFailDisks } from "./failing-disk.ts";

const PROCESS = fileURLToPath(new URL("disk-process.ts", import.meta.url));
const STRIDE = chooseCampaignSize("DISK_FAULT_STRIDE", { short: 12, long: 1 });

const DISK = new URL("failing-disk.ts", import.meta.url).href;

/** Writes a file elsewhere through the number of a closed file of the folder, and prints what the disk counted. */
const WRITE_ELSEWHERE = `
  import { closeSync, openSync, writeSync } from "node:fs";
  import { openFailingDisk } from ${JSON.stringify(DISK)};
  const disk = openFailingDisk();
  const [inside, elsewhere] = process.argv.slice(1);
  closeSync(openSync(inside, "w"));
  const file = openSync(elsewhere, "w");
  disk.arm({ error: "EIO", at: 1, isLasting: true, isPartial: false });
  writeSync(file, "sound");
  console.log(JSON.stringify(disk.disarm()));
`;

describe.runIf(canFailDisks())("a disk that fails in one folder", () => {
  it("never fails a file elsewhere that has the number of a closed one", async () => {
    using folder = createTempFolder();
    const watched = join(folder.path, "watched");
    mkdirSync(watched);
    const env = { ...process.env, ...buildFailingDisk(watched) };
    const args = ["--input-type=module", "-e", WRITE_ELSEWHERE];
    const files = [join(watched, "file"), join(folder.path, "elsewhere")];
    const { stdout } = await promisify(execFile)(process.execPath, [...args, ...files], { env });
    expect(JSON.parse(stdout)).toEqual({ operations: 0, failures: 0 });
  });
});

describe.runIf(canFailDisks())("a gateway on a disk that fails", () => {
  it("lives, refuses what it cannot record and loses nothing that it acknowledged", async () => {
    using folder = createTempFolder();
    const env = { ...process.env, ...buildFailingDisk(folder.path) };
    const { stdout } = await promisify(execFile)(process.execPath, [PROCESS, "1", String(STRIDE)], { env });
    const { problems, plays, operations, failures, refusals } = JSON.parse(stdout) as DiskReport;
    expect(problems).toEqual([]);
    expect(operations).toBeGreaterThan(300);
    // Faults from an operation on are mended before the gateway ends, where the last operations lie.
    expect(failures).toBeGreaterThan(0.9 * plays);
    expect(refusals).toMatchObject({
      LEDGER_FULL: expect.any(Number) as number,
      LEDGER_UNAVAILABLE: expect.any(Number) as number,
    });
  });
});
