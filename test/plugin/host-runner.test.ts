/** Owns: how the rows that the host keeps tell of what a model spawned; test/plugin/readings.test.ts has how one row is read. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { EpochMs, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { createSpawnObserver } from "../../src/plugins/openclaw/runners/host-runner.ts";

const ACP_CHILD = "agent:main:acp:1" as SessionKey;
const SUBAGENT = "agent:main:subagent:1" as SessionKey;

/** A host that has these rows, by the session that each lies under, and stops each of them that it is asked to. */
function createRunner(rows: Readonly<Record<string, readonly object[]>> = {}) {
  const bindSession = ({ sessionKey }: { sessionKey: string }) => ({
    list: () => Promise.resolve(rows[sessionKey] ?? []),
    cancel: () => Promise.resolve({ cancelled: true }),
  });
  const runs = { bindSession };
  const runtime = { tasks: { runs, async: { runs } }, config: { current: () => ({}) } };
  const log = () => undefined;
  return createSpawnObserver(runtime as never, { debug: log, info: log, warn: log, error: log });
}

const createQuery = (childSessionKey: SessionKey) => ({
  sourceSession: "agent:main:main" as SessionKey,
  input: { sha256: "0".repeat(64), bytes: 8 },
  dispatchedAtMs: Date.now() as EpochMs,
  taken: new Set<SessionKey>(),
  quietSinceMs: 0 as EpochMs,
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

describe("a subagent that yielded for what it spawned without our knowledge", () => {
  const NOW_MS = 10_000_000;
  const BELOW = "agent:main:subagent:2";
  /** Its first turn ended long ago, and the host has not delivered what it says at last. */
  const yielded = {
    id: "row-1",
    runId: "run-1",
    childSessionKey: SUBAGENT,
    title: "t",
    status: "succeeded",
    deliveryStatus: "pending",
    createdAt: NOW_MS - 600_000,
    endedAt: NOW_MS - 500_000,
  };
  const atWork = { id: "row-2", runId: "run-2", childSessionKey: BELOW, title: "u", status: "running" };
  const child = { childSessionKey: SUBAGENT, childRunId: "run-1" };
  const createRunnerWith = (below: Readonly<Record<string, readonly object[]>>, others: object = {}) =>
    createRunner({ "agent:main:main": [{ ...yielded, ...others }], ...below });
  const observe = (below: Readonly<Record<string, readonly object[]>>, others: object = {}) =>
    createRunnerWith(below, others).observe(createQuery(SUBAGENT));
  const createEndedRow = (ms: number) => ({ ...atWork, status: "succeeded", endedAt: NOW_MS - ms });

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"], now: NOW_MS });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each([
    ["that is at work", { [SUBAGENT]: [atWork] }],
    [
      "whose own is at work",
      { [SUBAGENT]: [createEndedRow(400_000)], [BELOW]: [{ ...atWork, childSessionKey: "x" }] },
    ],
    [
      "that ended less than three minutes ago",
      { [SUBAGENT]: [createEndedRow(179_999), createEndedRow(400_000)] },
    ],
  ])("has not ended while it waits for one %s", async (_, below) => {
    expect(await observe(below)).toEqual({ kind: "running", ...child });
  });

  it.each([
    ["three minutes after the last of these", { [SUBAGENT]: [createEndedRow(180_000)] }, {}],
    ["where it waits for none", {}, {}],
    [
      "when its words are delivered, whatever is still at work",
      { [SUBAGENT]: [atWork] },
      { deliveryStatus: "delivered" },
    ],
  ])("has ended %s", async (_, below, others) => {
    expect(await observe(below, others)).toEqual({ kind: "ended", ...child, outcome: "completed" });
  });

  it("is stopped where one that it waits for is stopped", async () => {
    const runner = createRunnerWith({ [SUBAGENT]: [atWork] });
    expect(await runner.stop(createQuery(SUBAGENT))).toBe("stopped");
  });

  it.each([
    ["where all that it waits for have ended", { [SUBAGENT]: [createEndedRow(1_000)] }, {}, {}],
    ["where its words are delivered", { [SUBAGENT]: [atWork] }, { deliveryStatus: "delivered" }, {}],
    ["in a turn that the host cannot stop", { [SUBAGENT]: [atWork] }, {}, { quietSinceMs: undefined }],
  ])("has ended before it could be stopped %s", async (_, below, others, query) => {
    const runner = createRunnerWith(below, others);
    expect(await runner.stop({ ...createQuery(SUBAGENT), ...query })).toBe("already_ended");
  });
});
