import { mkdirSync, statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createHealthFile, readHealth } from "../../src/infra/health/health-file.ts";
import { createTempFolder } from "../support/temp-ledger.ts";

const failure = { code: "LEDGER_FULL", message: "the disk is full", atMs: 1 } as const;

describe("the health file", () => {
  it("tells what was written last, to its owner alone", () => {
    using folder = createTempFolder();
    const path = folder.file("coordination/health.json");
    createHealthFile(path).write({ state: "degraded", failure, uncoordinatedSpawns: 3 });
    createHealthFile(path).write({ state: "ok", failure, uncoordinatedSpawns: 3 });
    expect(readHealth(path)).toEqual({ state: "ok", failure, uncoordinatedSpawns: 3 });
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("is written over in place where there is no room for another file", () => {
    using folder = createTempFolder();
    const path = folder.file("health.json");
    const sink = createHealthFile(path);
    sink.write({ state: "ok", uncoordinatedSpawns: 0 });
    const { ino, size } = statSync(path);
    mkdirSync(`${path}.${process.pid}.tmp`); // No draft can be written.
    sink.write({ state: "degraded", failure, uncoordinatedSpawns: 1 });
    expect(readHealth(path)).toEqual({ state: "degraded", failure, uncoordinatedSpawns: 1 });
    expect(statSync(path)).toMatchObject({ ino, size });
  });

  it("says nothing where nothing was written or what was written is unreadable", () => {
    using folder = createTempFolder();
    expect(readHealth(folder.file("none.json"))).toBeUndefined();
    expect(readHealth(folder.path)).toBeUndefined();
  });
});
