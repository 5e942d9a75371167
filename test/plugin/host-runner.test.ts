/** Stopping what a model spawned, by the rows that the host keeps of it; test/plugin/readings.test.ts has what the rows say. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { EpochMs, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { createHostRunner } from "../../src/plugins/openclaw/runners/host-runner.ts";

const ACP_CHILD = "agent:main:acp:1" as SessionKey;
const SUBAGENT = "agent:main:subagent:1" as SessionKey;

/** A host that has no row of any spawn. */
function createRunner() {
  const rows = { list: () => Promise.resolve([]) };
  const runtime = { tasks: { async: { runs: { bindSession: () => rows } } } };
  const log = () => undefined;
  return createHostRunner(runtime as never, { debug: log, info: log, warn: log, error: log });
}

const createQuery = (childSessionKey: SessionKey) => ({
  sourceSession: "agent:main:main" as SessionKey,
  input: { sha256: "0".repeat(64), bytes: 8 },
  dispatchedAtMs: Date.now() as EpochMs,
  taken: new Set<SessionKey>(),
  hasOpenChildren: false,
  childSessionKey,
});

describe("stopping a spawn that the host has no row of", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("is tried for three minutes where an ACP child may get a row yet, which is out of reach then", async () => {
    const runner = createRunner();
    const query = createQuery(ACP_CHILD);
    vi.setSystemTime(query.dispatchedAtMs + 179_999);
    expect(await runner.stop(query)).toBe("already_ended");
    expect(await runner.observe(query)).toEqual({ kind: "unknown" });
    vi.setSystemTime(query.dispatchedAtMs + 180_000);
    expect(await runner.stop(query)).toBe("unreachable");
    expect(await runner.observe(query)).toEqual({ kind: "unknown" });
  });

  it("is not needed where it is a subagent, whose row comes with the spawn", async () => {
    const runner = createRunner();
    const query = createQuery(SUBAGENT);
    vi.setSystemTime(query.dispatchedAtMs + 180_000);
    expect(await runner.stop(query)).toBe("already_ended");
    expect(await runner.observe(query)).toEqual({ kind: "absent" });
  });
});
