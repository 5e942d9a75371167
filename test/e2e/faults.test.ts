import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { waitForReload } from "../support/gateway-reload.ts";
import { renderScript } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { runPackedProgram } from "./packed-program.ts";
import { hasEnded, openStage, PHASE1, createPluginConfig, type Stage } from "./stage.ts";
import { editFlag, turnFlag } from "./turn-flag.ts";

let stage: Stage;

beforeAll(async () => {
  stage = await openStage({ pluginConfig: createPluginConfig({ ...PHASE1, strict: true }) });
});

afterAll(() => stage.close());

const spawning = renderScript(
  { spawn: [{ label: "child", task: renderScript({ say: "result" }) }] },
  { say: "ok" },
);

function countAnnounced(): number {
  return stage.model.requests.filter(({ matched }) => matched === "announce").length;
}

async function readStatus(): Promise<{
  health: { state: string; failure?: { code: string }; uncoordinatedSpawns: number };
}> {
  const { stdout } = await runPackedProgram(["status", "--json"], stage.ledgerPath);
  return JSON.parse(stdout) as Awaited<ReturnType<typeof readStatus>>;
}

/** Turns the flag on. Methods that the plugin serves with such a ledger are no sign of it. */
async function turnOn(): Promise<void> {
  const before = stage.gateway.log().length;
  editFlag(stage, { enabled: true });
  expect(await waitForReload(stage.gateway.log, before)).toMatchObject({ isApplied: true });
}

/** Runs `work` while another connection holds the write lock. */
async function workWhileLocked<T>(path: string, work: () => Promise<T>): Promise<T> {
  const other = new Database(path);
  other.exec("begin immediate");
  try {
    return await work();
  } finally {
    other.exec("rollback");
    other.close();
  }
}

describe("strict mode", () => {
  /** Prints the results of its calls that the model was told, that of its spawn among them. */
  function printToolResults(): string {
    return JSON.stringify(
      stage.model.requests.flatMap(({ body }) => body.messages.filter(({ role }) => role === "tool")),
    );
  }

  it("coordinates a sound spawn as ever", async () => {
    await stage.gateway.agent({ sessionKey: "agent:main:sound", message: spawning });
    expect(await stage.until("agent:main:sound", hasEnded)).toMatchObject({ status: "success" });
  });

  it("refuses a spawn with a malformed envelope, in a sentence that says what to do, and records the refusal", async () => {
    const spawn = [{ label: "odd", task: renderScript({ say: "x" }), coordination: { coordinationId: 5 } }];
    await stage.gateway.agent({
      sessionKey: "agent:main:odd",
      message: renderScript({ spawn }, { say: "ok" }),
    });
    expect(printToolResults()).toMatch(/Coordination refused this spawn: .*coordination.*spawn again/u);
    const state = await stage.until("agent:main:odd", hasEnded);
    expect([...state.steps.values()][0]?.phase).toMatchObject({
      status: "failed",
      error: { code: "spawn_refused" },
    });
  });

  it("refuses a spawn that cannot be recorded", async () => {
    await workWhileLocked(stage.ledgerPath, () =>
      stage.gateway.agent({ sessionKey: "agent:main:strict-locked", message: spawning }),
    );
    expect(printToolResults()).toMatch(/Coordination refused this spawn: .*locked/u);
    expect(await stage.of("agent:main:strict-locked")).toEqual([]);
  });
});

describe("a ledger that cannot be written, by default", () => {
  beforeAll(() => turnFlag(stage, { enabled: true }));

  it("locked: the spawn goes on uncoordinated, the log and the status say so, and the next one is coordinated", async () => {
    await stage.gateway.agent({ sessionKey: "agent:main:before", message: spawning });
    await stage.until("agent:main:before", hasEnded);
    const announcedBefore = countAnnounced();
    await workWhileLocked(stage.ledgerPath, async () => {
      const { status: turn } = await stage.gateway.agent({
        sessionKey: "agent:main:locked",
        message: spawning,
      });
      expect(turn).toBe("ok");
      await waitFor(() => countAnnounced() > announcedBefore, {
        what: "the child's result",
        timeoutMs: 30_000,
      });
    });
    expect(stage.gateway.log()).toMatch(/A SPAWN GOES ON UNCOORDINATED/u);
    expect(await stage.of("agent:main:locked")).toEqual([]);
    expect((await readStatus()).health).toMatchObject({
      state: "degraded",
      failure: { code: "LEDGER_BUSY" },
      uncoordinatedSpawns: 1,
    });
    await stage.gateway.agent({ sessionKey: "agent:main:unlocked", message: spawning });
    expect(await stage.until("agent:main:unlocked", hasEnded)).toMatchObject({ status: "success" });
    expect((await readStatus()).health).toMatchObject({ state: "ok", uncoordinatedSpawns: 1 });
  });

  it("damaged before the plugin starts: the gateway runs, spawns go on, and the status names the damage", async () => {
    await turnFlag(stage, { enabled: false });
    for (const suffix of ["-wal", "-shm"]) rmSync(`${stage.ledgerPath}${suffix}`, { force: true });
    const sound = readFileSync(stage.ledgerPath);
    copyFileSync(stage.ledgerPath, `${stage.ledgerPath}.sound`);
    writeFileSync(stage.ledgerPath, Buffer.concat([Buffer.from("not a database, "), sound.subarray(16)]));
    await turnOn();
    const { status: turn } = await stage.gateway.agent({
      sessionKey: "agent:main:damaged",
      message: spawning,
    });
    expect(turn).toBe("ok");
    expect((await readStatus()).health).toMatchObject({
      state: "degraded",
      failure: { code: "LEDGER_CORRUPT" },
    });
  });

  it("written by a newer release: a clear error, and the file stays as it is", async () => {
    await turnFlag(stage, { enabled: false });
    const newer = readFileSync(`${stage.ledgerPath}.sound`);
    newer.writeUInt32BE(99, 60);
    writeFileSync(stage.ledgerPath, newer);
    await turnOn();
    const { status: turn } = await stage.gateway.agent({ sessionKey: "agent:main:newer", message: spawning });
    expect(turn).toBe("ok");
    expect(stage.gateway.log()).toMatch(/schema 99/u);
    expect(readFileSync(stage.ledgerPath).equals(newer)).toBe(true);
    expect(existsSync(`${stage.ledgerPath}-wal`)).toBe(false);
    const { code, stdout } = await runPackedProgram(["list", "--json"], stage.ledgerPath);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      error: { code: "LEDGER_TOO_NEW", recovery: "upgrade-plugin" },
    });
  });
});
