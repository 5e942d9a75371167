import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { EpochMs, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { SpawnQuery } from "../../src/agents/coordination/ports/spawn-observer.ts";
import { findSpawnRow, observeRow } from "../../src/plugins/openclaw/runners/host-runner.ts";
import { readSpawnResult } from "../../src/plugins/openclaw/host/spawn-result.ts";
import { readSpawnCall } from "../../src/plugins/openclaw/spawns/spawn-request.ts";
import { runWithinBudget } from "../../src/plugins/openclaw/host/within-budget.ts";

function readRequest(params: Readonly<Record<string, unknown>>) {
  const names = { modelOf: String, folderOf: String, thinkingOf: () => undefined };
  const reading = readSpawnCall({ params, sessionKey: "agent:main:main", agentId: "main", names });
  return reading.kind === "spawn" ? reading.request : expect.fail("the call is unreadable");
}

describe("the params of a spawn", () => {
  const task = "the task";

  it("are read under the names by which the host reads them", () => {
    const { spawn } = readRequest({ task, agent_id: " Coder", run_timeout_seconds: 5, task_name: "other" });
    expect(spawn).toMatchObject({ agentId: "coder", timeoutMs: 5_000 });
    // The host reads `taskName` in one spelling only.
    expect(spawn).not.toHaveProperty("name");
  });

  it("are those of the first spelling where the call has both", () => {
    const both = { agentId: "coder", agent_id: "other", runTimeoutSeconds: 5, run_timeout_seconds: 9 };
    expect(readRequest({ task, ...both }).spawn).toMatchObject({ agentId: "coder", timeoutMs: 5_000 });
    expect(readRequest({ task, agentId: null, agent_id: "other" }).spawn).toMatchObject({ agentId: "main" });
  });

  it("name a time limit also by a text, as the host reads it", () => {
    const readTimeout = (runTimeoutSeconds: unknown) =>
      readRequest({ task, runTimeoutSeconds }).spawn.timeoutMs;
    expect(["30", " 30 ", "0", "", "soon"].map(readTimeout)).toEqual([
      30_000,
      30_000,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe("what the host answered to a spawn", () => {
  it("is accepted only with a status, a child and a run", () => {
    const details = { status: "accepted", childSessionKey: "agent:main:subagent:1", runId: "run" };
    expect(readSpawnResult({ result: { details } })).toEqual({
      kind: "accepted",
      child: { childSessionKey: "agent:main:subagent:1", childRunId: "run" },
    });
    expect(readSpawnResult({ result: { details: { ...details, runId: undefined } } })).toEqual({
      kind: "unclear",
    });
  });

  it.each([
    [{ result: { details: { status: "forbidden", error: "too many\n children" } } }, "too many children"],
    [{ result: { details: { status: "blocked", reason: "by policy" } } }, "by policy"],
  ])("is refused with the host's sentence: %j", (event, message) => {
    expect(readSpawnResult(event)).toEqual({ kind: "refused", message });
  });

  it.each([
    [{ error: "Tool call blocked" }, "Tool call blocked"],
    [{ result: { details: { status: "error" } } }, "the host answered error"],
    [{ result: { details: { status: "error", error: "no answer", childSessionKey: "x" } } }, "no answer"],
  ])("has failed, which does not say that there is no child: %j", (event, message) => {
    expect(readSpawnResult(event)).toEqual({ kind: "failed", message });
  });

  it("is unclear where it says nothing", () => {
    for (const result of [undefined, null, 5, {}, { details: null }])
      expect(readSpawnResult({ result })).toEqual({ kind: "unclear" });
  });
});

describe("what the host's task rows say of a spawn", () => {
  const row = {
    id: "task-1",
    runId: "run-1",
    childSessionKey: "agent:main:subagent:1",
    title: "the task",
    status: "running",
    deliveryStatus: "pending",
    createdAt: 10_000,
  };
  type Rows = Parameters<typeof findSpawnRow>[0];
  const createRows = (...rows: object[]): Rows => rows as unknown as Rows;
  const query = {
    sourceSession: "agent:main:main" as SessionKey,
    input: { sha256: hash("sha256", "the task"), bytes: 8 },
    dispatchedAtMs: 9_950 as EpochMs,
    taken: new Set<SessionKey>(),
    quietSinceMs: 0 as EpochMs,
  };
  const child = { childSessionKey: "agent:main:subagent:1", childRunId: "run-1" };
  const endedAt = 20_000;
  const observe = (input: Rows, request: SpawnQuery, now = endedAt) =>
    observeRow(findSpawnRow(input, request), request, now);

  it("is found by the task when the answer was lost, and by the child when it is known", () => {
    expect(observe(createRows(row), query)).toEqual({ kind: "running", ...child });
    const knownSession = {
      ...query,
      input: { ...query.input, sha256: "0".repeat(64) },
      childSessionKey: row.childSessionKey as SessionKey,
    };
    expect(observe(createRows(row), knownSession)).toEqual({ kind: "running", ...child });
  });

  it("is found by the task also where the call had white space around it, which the host cuts off", () => {
    const { input } = readRequest({ task: "\n  the task \u00a0\n" });
    expect(observe(createRows(row), { ...query, input: input.ref })).toEqual({ kind: "running", ...child });
    expect(input.text).toBe("the task");
  });

  it.each([
    ["another task", { ...row, title: "another task" }],
    ["an earlier row with the same task", { ...row, createdAt: 1_000 }],
    ["the session's own turn", { ...row, childSessionKey: "agent:main:main" }],
    ["a row without a child", { ...row, childSessionKey: undefined }],
  ])("is not %s", (_, other) => {
    expect(observe(createRows(other), query)).toEqual({ kind: "absent" });
  });

  it("is not a child that another step has", () => {
    const takenSessions = new Set([row.childSessionKey as SessionKey]);
    expect(observe(createRows(row), { ...query, taken: takenSessions })).toEqual({ kind: "absent" });
  });

  it("is not over before it was delivered, because an orchestrator's first turn ends early", () => {
    expect(observe(createRows({ ...row, status: "succeeded" }), query)).toMatchObject({ kind: "running" });
  });

  it("is over when the host has given up delivering it, unless the child or what it spawned is at work, or was since", () => {
    const undelivered = createRows({ ...row, status: "succeeded", endedAt });
    const { quietSinceMs: _, ...atWork } = query;
    const woken = { ...query, quietSinceMs: (endedAt + 300_000) as EpochMs };
    expect(observe(undelivered, query, endedAt + 179_999)).toMatchObject({ kind: "running" });
    expect(observe(undelivered, query, endedAt + 180_000)).toEqual({
      kind: "ended",
      ...child,
      outcome: "completed",
    });
    expect(observe(undelivered, atWork, endedAt + 180_000)).toMatchObject({ kind: "running" });
    expect(observe(undelivered, woken, endedAt + 479_999)).toMatchObject({ kind: "running" });
    expect(observe(undelivered, woken, endedAt + 480_000)).toMatchObject({ kind: "ended" });
  });

  it.each([
    ["succeeded", "delivered", { outcome: "completed" }],
    ["succeeded", "not_applicable", { outcome: "completed" }],
    ["timed_out", "delivered", { outcome: "timed_out" }],
    ["cancelled", "dismissed", { outcome: "cancelled", message: "why" }],
    ["cancelled", "pending", { outcome: "cancelled", message: "why" }],
    ["failed", "failed", { outcome: "failed", message: "why" }],
    ["lost", "parent_missing", { outcome: "failed", message: "why" }],
  ])("%s and %s is an ending", (status, deliveryStatus, ending) => {
    expect(observe(createRows({ ...row, status, deliveryStatus, error: "why" }), query)).toEqual({
      kind: "ended",
      ...child,
      ...ending,
    });
  });
});

describe("a hook's budget", () => {
  it("is kept when the work hangs, with an error that says so", async () => {
    const hanging = new Promise<never>(() => undefined);
    await expect(runWithinBudget(hanging, 5)).rejects.toMatchObject({
      code: "LEDGER_BUSY",
      message: "the ledger did not answer in time",
    });
  });
});
