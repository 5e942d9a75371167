/** Faults that the real host cannot be made to show; test/e2e/host-runs.test.ts has the rest. */
import { describe, expect, it } from "vitest";
import type { AttemptOrder } from "../../src/agents/coordination/ports/agent-runner.ts";
import type { HostRuntime } from "../../src/plugins/openclaw/host/host-runs.ts";
import { createOwnerRunner } from "../../src/plugins/openclaw/runners/owner-runner.ts";
import { createFakeClock, waitUntilSettled } from "../support/fake-clock.ts";

type Row = { runId: string; status: string; error?: string; createdAt?: number; endedAt?: number };

class Refusal extends Error {
  readonly code = "INVALID_REQUEST";
}

const KEY = "co-1:deliver:1";
const OWNER = "agent:main:main";
const DAY_MS = 24 * 3_600_000;
const KEYED = { role: "user", content: "told", idempotencyKey: `${KEY}:user` };
const NEVER = new Promise<never>(() => undefined);

function createFakeHost(answers: {
  readonly row?: Row | ((runId: string) => Row | undefined);
  readonly messages?: () => Promise<readonly unknown[]>;
  readonly delivery?: { readonly kind: string };
  readonly run?: (deliver: boolean, key: string) => Promise<unknown>;
}) {
  const delivers: boolean[] = [];
  const keys: string[] = [];
  const { row } = answers;
  const findRow = (runId: string): Row | undefined => (typeof row === "function" ? row(runId) : row);
  const run = answers.run ?? (() => Promise.resolve({ runId: KEY, sessionKey: OWNER }));
  const runtime = {
    config: { current: () => ({}) },
    tasks: {
      async: {
        runs: { bindSession: () => ({ resolve: (runId: string) => Promise.resolve(findRow(runId)) }) },
      },
    },
    agent: {
      session: {
        getSessionEntry: () => (answers.delivery ? { delivery: answers.delivery } : undefined),
      },
    },
    subagent: {
      run: ({ deliver, idempotencyKey }: { deliver: boolean; idempotencyKey: string }) => {
        delivers.push(deliver);
        keys.push(idempotencyKey);
        return run(deliver, idempotencyKey);
      },
      waitForRun: () => Promise.resolve({ status: "timeout" }),
      getSessionMessages: async () => ({ messages: (await answers.messages?.()) ?? [] }),
    },
  };
  const clock = createFakeClock(Math.ceil(performance.timeOrigin) + 1_000);
  const lines: string[] = [];
  const log = (_fields: object, message: string) => {
    lines.push(message);
  };
  const logger = { debug: log, info: log, warn: log, error: log };
  const runner = createOwnerRunner(runtime as unknown as HostRuntime, { clock, logger });
  const order = {
    idempotencyKey: KEY,
    agentId: "main",
    childSessionKey: OWNER,
    dispatchedAtMs: clock.now(),
    message: "told",
  } as unknown as AttemptOrder;
  return { runner, order, delivers, keys, clock, lines };
}

const failAlways = () => Promise.reject(new Error("the host is broken"));

describe("telling an owner", () => {
  it("answers in the chat that the session belongs to, and in no chat when it belongs to none", async () => {
    const listDeliveriesFor = async (delivery?: { kind: string }) => {
      const { runner, order, delivers } = createFakeHost(delivery ? { delivery } : {});
      expect(await runner.start(order)).toMatchObject({ kind: "started" });
      return delivers;
    };
    expect(await listDeliveriesFor({ kind: "external" })).toEqual([true]);
    expect(await listDeliveriesFor({ kind: "internal" })).toEqual([false]);
    expect(await listDeliveriesFor({ kind: "none" })).toEqual([false]);
    expect(await listDeliveriesFor()).toEqual([false]);
  });

  it("tells without the chat when the host refuses the chat, and is refused when it refuses that too", async () => {
    const refuseDelivery = (deliver: boolean) =>
      deliver ? Promise.reject(new Refusal("no such chat")) : Promise.resolve({ runId: KEY });
    const host = createFakeHost({ delivery: { kind: "external" }, run: refuseDelivery });
    expect(await host.runner.start(host.order)).toMatchObject({ kind: "started" });
    expect(host.delivers).toEqual([true, false]);

    const missing = createFakeHost({
      delivery: { kind: "external" },
      run: () => Promise.reject(new Refusal("no such agent")),
    });
    expect(await missing.runner.start(missing.order)).toEqual({ kind: "refused", message: "no such agent" });
  });

  it("is unknown after any other error, and is not tried again", async () => {
    const { runner, order, delivers } = createFakeHost({ delivery: { kind: "external" }, run: failAlways });
    expect(await runner.start(order)).toEqual({ kind: "unknown", message: "the host is broken" });
    expect(delivers).toEqual([true]);
  });

  it("sends nothing when the host does not say whether the owner was told", async () => {
    const { runner, order, delivers } = createFakeHost({ messages: failAlways });
    expect(await runner.start(order)).toEqual({ kind: "unknown", message: "the host is broken" });
    expect(delivers).toEqual([]);
  });
});

describe("asking whether an owner was told", () => {
  it("believes the transcript before a failed run, because the message was read", async () => {
    const row = { runId: KEY, status: "failed", error: "Session transcript keyed user is outside the turn" };
    const { runner, order, delivers } = createFakeHost({ row, messages: () => Promise.resolve([KEYED]) });
    expect(await runner.observe(order)).toMatchObject({ kind: "ended", outcome: "completed" });
    expect(await runner.start(order)).toMatchObject({ ending: { outcome: "completed" } });
    expect(delivers).toEqual([]);
  });

  it("was not told by a run of this process that failed before its message was written", async () => {
    const row = { runId: KEY, status: "failed", error: "interrupted", createdAt: performance.timeOrigin + 1 };
    const { runner, order, delivers } = createFakeHost({ row });
    const ended = { outcome: "failed", message: "interrupted" };
    expect(await runner.observe(order)).toMatchObject({ kind: "ended", ...ended });
    expect(await runner.start(order)).toMatchObject({ kind: "started", ending: ended });
    expect(delivers).toEqual([]);
  });

  it.each(["failed", "lost", "succeeded"])(
    "tells by another run where a crash took the first one without its message, and the host closed it as %s",
    async (status) => {
      const { timeOrigin } = performance;
      const row = { runId: KEY, status, createdAt: timeOrigin - 2, endedAt: timeOrigin + 1 };
      const { runner, order, keys, clock } = createFakeHost({ row });
      clock.jump(clock.now() + 60_000);
      expect(await runner.observe(order)).toEqual({ kind: "absent" });
      expect(await runner.start(order)).toMatchObject({ kind: "started" });
      expect(keys).toEqual([`run-2:${KEY}`]);
      for (const key of [KEY, `run-2:${KEY}`]) {
        const message = { ...KEYED, idempotencyKey: `${key}:user` };
        const reached = createFakeHost({ row, messages: () => Promise.resolve([message]) });
        expect(await reached.runner.start(order)).toMatchObject({
          child: { childRunId: key },
          ending: { outcome: "completed" },
        });
        expect(reached.keys).toEqual([]);
      }
    },
  );

  it.each(["lost", "succeeded"])("tells by three runs at most, all of which are %s", async (status) => {
    const { timeOrigin } = performance;
    const fields = { status, error: "lost", createdAt: timeOrigin - 2, endedAt: timeOrigin + 1 };
    const { runner, order, keys } = createFakeHost({ row: (runId) => ({ ...fields, runId }) });
    expect(await runner.start(order)).toMatchObject({ kind: "started", ending: { outcome: "failed" } });
    expect(keys).toEqual([]);
  });

  it("tells what is told again by another run a minute after one failed without its message, three in all", async () => {
    const ends = new Map<string, number>();
    const { runner, order, keys, clock } = createFakeHost({
      row: (runId) => {
        const endedAt = ends.get(runId);
        return endedAt === undefined
          ? undefined
          : { runId, status: "failed", error: "no model", createdAt: endedAt, endedAt };
      },
      run: (_, key) => {
        ends.set(key, clock.now());
        return Promise.resolve({ runId: key });
      },
    });
    const repeated = { ...order, isRepeated: true } as const;
    await runner.start(repeated);
    for (const next of [`run-2:${KEY}`, `run-3:${KEY}`]) {
      clock.jump(clock.now() + 59_999);
      expect(await runner.observe(repeated)).toEqual({ kind: "absent" });
      expect(await runner.start(repeated)).toMatchObject({ kind: "unknown" });
      expect(keys).not.toContain(next);
      clock.jump(clock.now() + 1);
      expect(await runner.observe(repeated)).toEqual({ kind: "absent" });
      await runner.start(repeated);
      expect(keys.at(-1)).toBe(next);
    }
    expect(await runner.observe(repeated)).toMatchObject({ childRunId: `run-3:${KEY}`, outcome: "failed" });
    expect(await runner.start(repeated)).toMatchObject({
      ending: { outcome: "failed", message: "no model" },
    });
    expect(keys).toHaveLength(3);
  });

  it.each(["does not say whether it took it", "writes its record late", "refuses it", "has not answered"])(
    "may have begun another run only for a minute after the host was asked for it, which %s",
    async (answer) => {
      const endedAt = Math.ceil(performance.timeOrigin) + 1_000;
      const failed = { runId: KEY, status: "failed", error: "no model", createdAt: endedAt, endedAt };
      const { runner, order, clock } = createFakeHost({
        row: (runId) => (runId === KEY ? failed : undefined),
        run: (_, key) => {
          if (answer === "has not answered") return NEVER;
          if (answer === "writes its record late") return Promise.resolve({ runId: key });
          const isRefused = answer === "refuses it";
          return Promise.reject(isRefused ? new Refusal("no such agent") : new Error("the host is broken"));
        },
      });
      const repeated = { ...order, isRepeated: true } as const;
      clock.jump(endedAt + 60_000);
      expect(await runner.observe(repeated)).toEqual({ kind: "absent" });
      void runner.start(repeated);
      await waitUntilSettled();
      const mayHaveBegun = { kind: answer === "refuses it" ? "absent" : "unknown" };
      expect(await runner.observe(repeated)).toEqual(mayHaveBegun);
      await clock.advance(59_999);
      expect(await runner.observe(repeated)).toEqual(mayHaveBegun);
      await clock.advance(1);
      const isAsking = answer === "has not answered";
      expect(await runner.observe(repeated)).toEqual({ kind: isAsking ? "unknown" : "absent" });
    },
  );

  it("was told by a run that writes its message and ends while it is looked for", async () => {
    const messages: unknown[] = [];
    const findRowMeanwhile = (runId: string): Row => {
      messages.push(KEYED);
      return { runId, status: "failed", createdAt: performance.timeOrigin - 2, endedAt: Infinity };
    };
    const { runner, order } = createFakeHost({
      row: findRowMeanwhile,
      messages: () => Promise.resolve([...messages]),
    });
    expect(await runner.observe(order)).toMatchObject({ kind: "ended", outcome: "completed" });
  });

  it("was told by a run that succeeded in a process before, also where its history has been reset", async () => {
    const { timeOrigin } = performance;
    const row = { runId: KEY, status: "succeeded", createdAt: timeOrigin - 2, endedAt: timeOrigin - 1 };
    const { runner, order, delivers } = createFakeHost({ row });
    expect(await runner.start(order)).toMatchObject({ ending: { outcome: "completed" } });
    expect(delivers).toEqual([]);
  });

  it("takes no other message for ours", async () => {
    const others = [
      { ...KEYED, role: "assistant" },
      { ...KEYED, idempotencyKey: `${KEY}0:user` },
    ];
    const { runner, order, clock } = createFakeHost({ messages: () => Promise.resolve(others) });
    clock.jump(clock.now() + 60_000);
    expect(await runner.observe(order)).toEqual({ kind: "absent" });
  });

  it("is unknown when the host fails, while the telling is under way, and when its records may be gone", async () => {
    const broken = createFakeHost({ messages: failAlways });
    expect(await broken.runner.observe(broken.order)).toEqual({ kind: "unknown" });
    expect(broken.lines).toEqual(["the host does not say whether an owner was told: the host is broken"]);

    const underway = createFakeHost({ run: () => NEVER });
    void underway.runner.start(underway.order);
    await waitUntilSettled();
    underway.clock.jump(underway.clock.now() + DAY_MS);
    expect(await underway.runner.observe(underway.order)).toEqual({ kind: "unknown" });

    const late = createFakeHost({});
    late.clock.jump(late.clock.now() + 5 * DAY_MS);
    expect(await late.runner.observe(late.order)).toEqual({ kind: "absent" });
    late.clock.jump(late.clock.now() + 2 * DAY_MS);
    expect(await late.runner.observe(late.order)).toEqual({ kind: "unknown" });
  });

  it("is told before it answers; following waits for the answer, past tools, but not in a turn that was cut off", async () => {
    const createMessage = (text: string, stopReason: string) => ({
      role: "assistant",
      content: [{ type: "text", text }],
      stopReason,
    });
    const messages: unknown[] = [createMessage("before", "stop"), KEYED, createMessage("looking", "toolUse")];
    const row = { runId: KEY, status: "running", createdAt: performance.timeOrigin + 1 };
    const { runner, order, clock } = createFakeHost({ row, messages: () => Promise.resolve(messages) });
    const report = { kind: "ended", childSessionKey: OWNER, childRunId: KEY, outcome: "completed" };
    expect(await runner.observe(order)).toEqual(report);
    const followed = runner.follow(order, new AbortController().signal);
    await clock.advance(5_000);
    messages.push(createMessage("thanks", "stop"), createMessage("much later", "stop"));
    row.status = "succeeded";
    await clock.advance(5_000);
    expect(await followed).toEqual({ ...report, reply: "thanks" });

    const cut = createFakeHost({
      row: { ...row, status: "running", createdAt: performance.timeOrigin - 1 },
      messages: () => Promise.resolve([KEYED]),
    });
    expect(await cut.runner.follow(cut.order, new AbortController().signal)).toEqual(report);
  });

  it("leaves the owner's turn alone when the plan is cancelled", async () => {
    const { runner, order } = createFakeHost({ row: { runId: KEY, status: "running" } });
    expect(await runner.cancel(order)).toBe("already_ended");
    expect(await runner.observe(order)).toMatchObject({ kind: "running" });
  });
});
