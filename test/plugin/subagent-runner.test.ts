/** Faults that the real host cannot be made to show; test/e2e/host-runs.test.ts has the rest. */
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { IdempotencyKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { AttemptOrder } from "../../src/agents/coordination/ports/agent-runner.ts";
import type { HostRuntime } from "../../src/plugins/openclaw/host/host-runs.ts";
import { createSubagentRunner } from "../../src/plugins/openclaw/runners/subagent-runner.ts";
import { createFakeClock, waitUntilSettled } from "../support/fake-clock.ts";

type Row = { id: string; runId: string; status: string; error?: string; childSessionKey?: string };

class Refusal extends Error {
  readonly code = "INVALID_REQUEST";
}

const NEVER = new Promise<never>(() => undefined);
const CHILD = "agent:main:subagent:coord-1";

/** A host whose every answer can be replaced. */
function createFakeHost(answers: {
  readonly rows?: () => Promise<readonly Row[]>;
  readonly spawns?: Readonly<Record<string, readonly Row[]>>;
  readonly run?: () => Promise<{ runId: string; sessionKey?: string }>;
  readonly wait?: () => Promise<unknown>;
  readonly cancel?: (taskId: string) => Promise<unknown>;
  readonly messages?: readonly unknown[];
}) {
  const { spawns = {}, messages = [] } = answers;
  const rows = answers.rows ?? (() => Promise.resolve([]));
  const runs: Record<string, unknown>[] = [];
  const bind = ({ sessionKey }: { sessionKey: string }) => ({
    // The real one also finds runs by parts of ids.
    resolve: async () => (await rows())[0],
    list: () => Promise.resolve(spawns[sessionKey] ?? []),
    cancel: ({ taskId }: { taskId: string }) => answers.cancel?.(taskId) ?? NEVER,
  });
  const runtime = {
    config: { current: () => ({}) },
    tasks: { runs: { bindSession: bind }, async: { runs: { bindSession: bind } } },
    subagent: {
      run: (params: Record<string, unknown>) => {
        runs.push(params);
        return answers.run?.() ?? Promise.resolve({ runId: params["idempotencyKey"], sessionKey: CHILD });
      },
      waitForRun: () => answers.wait?.() ?? NEVER,
      getSessionMessages: () => Promise.resolve({ messages }),
    },
  };
  const clock = createFakeClock(Math.ceil(performance.timeOrigin) + 1_000);
  const lines: string[] = [];
  const log = (_fields: object, message: string) => {
    lines.push(message);
  };
  const logger = { debug: log, info: log, warn: log, error: log };
  const runner = createSubagentRunner(runtime as unknown as HostRuntime, {
    clock,
    logger,
    tools: [],
    assignedFolders: new Map<string, string>(),
  });
  const order = { ...ORDER, dispatchedAtMs: clock.now() } as unknown as AttemptOrder;
  return { runner, order, runs, clock, lines };
}

const ORDER = {
  idempotencyKey: "co-1:a:1",
  agentId: "main",
  childSessionKey: CHILD,
  lane: "data",
  message: "do it",
  envelope: { coordinationId: "co-1", stepId: "a", sourceSession: "agent:main:main", targetSession: CHILD },
};
const rowOf = (status: string, more: Partial<Row> = {}): Row => ({
  id: "t1",
  runId: ORDER.idempotencyKey,
  status,
  ...more,
});
const createHaving = (row: Row) => () => Promise.resolve([row]);
const failAlways = () => Promise.reject(new Error("the host is broken"));

describe("starting a subagent", () => {
  it("is unknown, and nothing is sent, when the host does not say whether it began before", async () => {
    const { runner, order, runs } = createFakeHost({ rows: failAlways });
    expect(await runner.start(order)).toEqual({ kind: "unknown", message: "the host is broken" });
    expect(runs).toEqual([]);
  });

  it("sends nothing when the host's row shows that it began before", async () => {
    const running = createFakeHost({ rows: createHaving(rowOf("running")) });
    const child = { childSessionKey: CHILD, childRunId: ORDER.idempotencyKey };
    expect(await running.runner.start(running.order)).toEqual({ kind: "started", child });
    const ended = createFakeHost({ rows: createHaving(rowOf("failed", { error: "it broke" })) });
    const ending = { outcome: "failed", message: "it broke" };
    expect(await ended.runner.start(ended.order)).toEqual({ kind: "started", child, ending });
    expect([...running.runs, ...ended.runs]).toEqual([]);
  });

  it("is refused by what the host refuses, and unknown by any other error", async () => {
    const refusing = createFakeHost({ run: () => Promise.reject(new Refusal("no such agent")) });
    expect(await refusing.runner.start(refusing.order)).toEqual({
      kind: "refused",
      message: "no such agent",
    });
    const breaking = createFakeHost({ run: failAlways });
    expect(await breaking.runner.start(breaking.order)).toEqual({
      kind: "unknown",
      message: "the host is broken",
    });
  });

  it("of the data lane is on the host's lane for subagents", async () => {
    const { runner, order, runs } = createFakeHost({});
    await runner.start({ ...order, lane: "data" });
    expect(runs).toMatchObject([{ lane: "subagent", deliver: false, idempotencyKey: order.idempotencyKey }]);
  });

  it.each(["control", "escalation"] as const)(
    "of the lane %s waits for no other one: the host runs one at a time on a lane, and each has its own",
    async (lane) => {
      const { runner, order, runs } = createFakeHost({});
      const keys = ["plan-1:a:1", "plan-1:b:1"] as const;
      for (const key of keys) await runner.start({ ...order, lane, idempotencyKey: key as IdempotencyKey });
      expect(runs).toMatchObject(keys.map((key) => ({ lane: `nested:coord:${lane}:${key}` })));
    },
  );
});

describe("asking about a subagent", () => {
  it("never says absent while the host is still being asked to start it", async () => {
    const { runner, order, clock } = createFakeHost({ run: () => NEVER });
    void runner.start(order);
    await waitUntilSettled();
    clock.jump(clock.now() + 3_600_000);
    expect(await runner.observe(order)).toEqual({ kind: "unknown" });
  });

  it("says absent at once of one from before the host started, and takes no other run for it", async () => {
    const { runner, order } = createFakeHost({ rows: createHaving(rowOf("running", { runId: "another" })) });
    expect(await runner.observe(order)).toEqual({ kind: "unknown" });
    const dispatchedAtMs = (performance.timeOrigin - 1) as AttemptOrder["dispatchedAtMs"];
    expect(await runner.observe({ ...order, dispatchedAtMs })).toEqual({ kind: "absent" });
  });

  it("says unknown and why when the host's rows are unreadable", async () => {
    const { runner, order, lines } = createFakeHost({ rows: failAlways });
    expect(await runner.observe(order)).toEqual({ kind: "unknown" });
    expect(lines).toEqual(["the host does not say how a run goes: the host is broken"]);
  });

  it.each([
    ["timed_out", undefined, { outcome: "timed_out" }],
    ["lost", undefined, { outcome: "failed", message: "the host calls the run lost" }],
    ["failed", "it\nbroke", { outcome: "failed", message: "it broke" }],
    ["never heard of", undefined, { outcome: "failed", message: "the host calls the run never heard of" }],
  ])("whose row is %s says how it ended", async (status, error, ending) => {
    const row = rowOf(status, error === undefined ? {} : { error });
    const { runner, order } = createFakeHost({ rows: createHaving(row) });
    const child = { childSessionKey: CHILD, childRunId: order.idempotencyKey };
    expect(await runner.observe(order)).toEqual({ kind: "ended", ...child, ...ending });
  });

  it("cuts a reply, adds up what was used, and reads past messages of other forms", async () => {
    const createMessage = (text: string, tokens: number, total: number) => ({
      role: "assistant",
      content: [{ type: "thinking" }, { type: "text", text }],
      usage: { totalTokens: tokens, cost: { total } },
    });
    const { runner, order } = createFakeHost({
      rows: createHaving(rowOf("succeeded")),
      messages: [
        null,
        createMessage("early", 10, 0.25),
        { role: 7 },
        createMessage("x".repeat(BOUNDS.replyCharsMax + 1), 5, 0.5),
      ],
    });
    const seen = await runner.observe(order);
    expect(seen).toMatchObject({ usage: { tokens: 15, costMicroUsd: 750_000 } });
    expect("reply" in seen && seen.reply).toHaveLength(BOUNDS.replyCharsMax);
  });

  it("has the end of a reply that it cuts, also when the run ended before it was started again", async () => {
    const line = '{"confidence": 0.1}';
    const content = `${"x".repeat(BOUNDS.replyCharsMax)}\n${line}`;
    const { runner, order } = createFakeHost({
      rows: createHaving(rowOf("succeeded")),
      messages: [{ role: "assistant", content }],
    });
    const replyEnd = content.slice(-BOUNDS.replyEndChars);
    expect(await runner.observe(order)).toMatchObject({ replyEnd });
    expect(await runner.start(order)).toMatchObject({ ending: { replyEnd } });
  });

  it("has no end of a reply that it does not cut", async () => {
    const { runner, order } = createFakeHost({
      rows: createHaving(rowOf("succeeded")),
      messages: [{ role: "assistant", content: "x".repeat(BOUNDS.replyCharsMax) }],
    });
    expect(await runner.observe(order)).not.toHaveProperty("replyEnd");
  });
});

describe("following a subagent", () => {
  it("goes on when waiting fails, and hears of the end from the row", async () => {
    let row = rowOf("running");
    const { runner, order, clock } = createFakeHost({ rows: () => Promise.resolve([row]), wait: failAlways });
    const followed = runner.follow(order, new AbortController().signal);
    await clock.advance(10_000);
    row = rowOf("succeeded");
    await clock.advance(2_000);
    expect(await followed).toMatchObject({ kind: "ended", outcome: "completed" });
    expect(clock.pending).toBe(0);
  });

  it("stops at once when it is told to, be it waiting or pausing", async () => {
    for (const wait of [() => NEVER, failAlways]) {
      const { runner, order, clock } = createFakeHost({ rows: createHaving(rowOf("running")), wait });
      const abort = new AbortController();
      const followed = runner.follow(order, abort.signal);
      await clock.advance(1_000);
      abort.abort();
      expect(await followed).toEqual({ kind: "unknown" });
      expect(clock.pending).toBe(0);
    }
  });
});

describe("cancelling a subagent", () => {
  it("is unreachable when the host does not answer in time, does not do it, or fails", async () => {
    const silent = createFakeHost({ rows: createHaving(rowOf("running")), cancel: () => NEVER });
    const answer = silent.runner.cancel(silent.order);
    await silent.clock.advance(20_000);
    expect(await answer).toBe("unreachable");

    const task = rowOf("running");
    const declining = createFakeHost({
      rows: createHaving(task),
      cancel: () => Promise.resolve({ found: true, cancelled: false, task }),
    });
    expect(await declining.runner.cancel(declining.order)).toBe("unreachable");

    const broken = createFakeHost({ rows: createHaving(task), cancel: failAlways });
    expect(await broken.runner.cancel(broken.order)).toBe("unreachable");
    expect(broken.clock.pending).toBe(0);
  });

  it("is already_ended when it ended meanwhile, and unreachable when it may still begin", async () => {
    const task = rowOf("succeeded");
    const host = createFakeHost({
      rows: createHaving(rowOf("running")),
      cancel: () => Promise.resolve({ found: true, cancelled: false, task }),
    });
    expect(await host.runner.cancel(host.order)).toBe("already_ended");
    const unborn = createFakeHost({});
    expect(await unborn.runner.cancel(unborn.order)).toBe("unreachable");
    await unborn.clock.advance(60_000);
    expect(await unborn.runner.cancel(unborn.order)).toBe("already_ended");
  });

  it("reaches the spawns of spawns, and is unreachable when one of them is", async () => {
    const below = rowOf("succeeded", { id: "t2", childSessionKey: "agent:main:subagent:b" });
    const deep = rowOf("running", { id: "t3", childSessionKey: "agent:main:subagent:c" });
    const requests: string[] = [];
    const createHost = (works: boolean) =>
      createFakeHost({
        rows: createHaving(rowOf("running")),
        spawns: { [CHILD]: [below], "agent:main:subagent:b": [deep] },
        cancel: (taskId) => {
          requests.push(taskId);
          return Promise.resolve({ found: true, cancelled: taskId === "t1" || works });
        },
      });
    const working = createHost(true);
    expect(await working.runner.cancel(working.order)).toBe("stopped");
    expect(requests).toEqual(["t1", "t3"]);
    const failingBelow = createHost(false);
    expect(await failingBelow.runner.cancel(failingBelow.order)).toBe("unreachable");
  });
});
