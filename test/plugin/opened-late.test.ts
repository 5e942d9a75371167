/** Owns: a gateway whose ledger cannot be opened when it starts, and can be later. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, vi } from "vitest";
import { readHealthBeside } from "../../src/plugins/ledger-reader.ts";
import { createHookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import { createFakeHost, type FakeHost } from "./fake-host.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const folder = useStateFolder();

const nameLedger = (): string => join(folder.path, "coordination", "ledger.sqlite");
const readGatewayHealth = () => readHealthBeside(nameLedger());

async function startGateway(host: FakeHost) {
  const handlers = createHookHandlers(host.api);
  folder.stopLater(handlers);
  await handlers.start();
  return handlers;
}

const listErrors = ({ lines }: FakeHost): string[] =>
  lines.filter(({ level }) => level === "error").map(({ text }) => text);

/** Holds the ledger as a process does that writes for a long time. */
function lockLedger(): Database.Database {
  mkdirSync(dirname(nameLedger()), { recursive: true });
  const other = new Database(nameLedger());
  other.exec("begin exclusive");
  return other;
}

describe("a gateway whose ledger is locked when it starts", () => {
  it("goes on as soon as the ledger can be opened, though no hook is called", async () => {
    const other = lockLedger();
    const openwop = {
      enabled: true,
      tokens: [{ token: "a-token-that-is-long-enough" }],
      workflows: ["absent"],
    };
    const host = createFakeHost({ stateDir: folder.path, phase1: { openwop } });
    await startGateway(host);
    expect(readGatewayHealth()).toMatchObject({ state: "degraded", failure: { code: "LEDGER_BUSY" } });
    other.exec("rollback");
    other.close();
    await vi.waitFor(() => {
      expect(readGatewayHealth()).toMatchObject({ state: "ok", failure: { code: "LEDGER_BUSY" } });
    }, 30_000);
    // It finds out when it starts why it cannot be served.
    await vi.waitFor(() => {
      expect(listErrors(host).at(-1)).toMatch(/OpenWOP is not served: .*absent/u);
    }, 30_000);
  });

  it("does not try again once it has stopped", async () => {
    const other = lockLedger();
    const host = createFakeHost({ stateDir: folder.path });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const handlers = await startGateway(host);
      await handlers.stop();
      other.close();
      rmSync(nameLedger());
      await vi.advanceTimersByTimeAsync(60_000);
    } finally {
      vi.useRealTimers();
    }
    expect(existsSync(nameLedger())).toBe(false);
    expect(listErrors(host)).toHaveLength(1);
  });
});

describe("a gateway that fails like the process before it", () => {
  const leaveHealth = (message: string): void => {
    mkdirSync(dirname(nameLedger()), { recursive: true });
    const failure = { code: "LEDGER_UNAVAILABLE", message, atMs: 1 };
    const health = { state: "degraded", failure, uncoordinatedSpawns: 2 };
    writeFileSync(join(dirname(nameLedger()), "health.json"), JSON.stringify(health));
    mkdirSync(nameLedger());
  };

  /** Has the next gateway begin as in a new process. */
  const forgetLoggedFailures = (): void => {
    Reflect.deleteProperty(globalThis, Symbol.for("openclaw-coordination.logged-failures"));
  };

  it("says in its own log why, and shows its own failure", async () => {
    leaveHealth("the disk was away");
    const host = createFakeHost({ stateDir: folder.path });
    const handlers = await startGateway(host);
    const health = readGatewayHealth();
    expect(health).toMatchObject({ state: "degraded", uncoordinatedSpawns: 2 });
    expect(health?.failure?.message).toContain(nameLedger());
    expect(listErrors(host)).toEqual([expect.stringContaining(health?.failure?.message ?? "no failure")]);
    await handlers.agentEnded(
      { messages: [], success: true },
      { sessionKey: "agent:main:main", runId: "run-1" },
    );
    expect(listErrors(host)).toHaveLength(1);
  });

  it("says it also where it is the very same failure", async () => {
    leaveHealth("x");
    const first = createFakeHost({ stateDir: folder.path });
    await (await startGateway(first)).stop();
    const { failure } = readGatewayHealth() ?? {};
    rmSync(nameLedger(), { recursive: true });
    leaveHealth(failure?.message ?? "no failure");
    forgetLoggedFailures();
    const second = createFakeHost({ stateDir: folder.path });
    await startGateway(second);
    expect(listErrors(second)).toEqual([expect.stringContaining(failure?.message ?? "no failure")]);
  });
});
