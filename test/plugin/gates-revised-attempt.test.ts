import { describe, expect, it } from "vitest";
import type { AttemptOrder } from "../../src/agents/coordination/ports/agent-runner.ts";
import type { HostRuntime } from "../../src/plugins/openclaw/host/host-runs.ts";
import { createSubagentRunner } from "../../src/plugins/openclaw/runners/subagent-runner.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const CHILD = "agent:main:subagent:coord-1";

const createBeginning = (key: string) => ({ role: "user", idempotencyKey: `${key}:user`, content: "do it" });
const createReply = (words: string, totalTokens: number) => ({
  role: "assistant",
  content: words === "" ? [] : [{ type: "text", text: words }],
  usage: { totalTokens, cost: { total: totalTokens / 10 } },
});

/** An attempt as the host shows it that ended in a session with these messages. */
async function observeRow(key: string, messages: readonly unknown[]) {
  const row = { id: "t1", runId: key, status: "succeeded" };
  const bind = () => ({
    resolve: () => Promise.resolve(row),
    list: () => Promise.resolve([]),
  });
  const runtime = {
    config: { current: () => ({}) },
    tasks: { runs: { bindSession: bind }, async: { runs: { bindSession: bind } } },
    subagent: { getSessionMessages: () => Promise.resolve({ messages }) },
  };
  const doNothing = () => undefined;
  const logger = { debug: doNothing, info: doNothing, warn: doNothing, error: doNothing };
  const clock = createFakeClock();
  const runner = createSubagentRunner(runtime as unknown as HostRuntime, {
    clock,
    logger,
    tools: [],
    assignedFolders: new Map<string, string>(),
  });
  const order = { idempotencyKey: key, agentId: "main", childSessionKey: CHILD, dispatchedAtMs: clock.now() };
  return runner.observe(order as unknown as AttemptOrder);
}

const SESSION = [
  createBeginning("co-1:a:1"),
  createReply("refused", 100),
  createBeginning("co-1:a:2"),
  createReply("thinking about it", 7),
  createReply("better", 3),
];

describe("an attempt that revises a result in the session of the one before", () => {
  it("said and used what came since its own key", async () => {
    const observation = await observeRow("co-1:a:2", SESSION);
    expect(observation).toMatchObject({ kind: "ended", reply: "better" });
    expect(observation).toMatchObject({ usage: { tokens: 10, costMicroUsd: 1_000_000 } });
  });

  it("that said nothing has no reply, least of all the one that was refused", async () => {
    const observation = await observeRow("co-1:a:2", [...SESSION.slice(0, 3), createReply("", 5)]);
    expect(observation).toMatchObject({ kind: "ended", outcome: "completed", usage: { tokens: 5 } });
    expect(observation).not.toHaveProperty("reply");
  });

  it("that wrote nothing at all has no reply, and used nothing", async () => {
    const observation = await observeRow("co-1:a:2", SESSION.slice(0, 3));
    expect(observation).toMatchObject({ kind: "ended", outcome: "completed" });
    expect(observation).not.toHaveProperty("reply");
    expect(observation).not.toHaveProperty("usage");
  });

  it("is told from a turn whose key only begins in the same way", async () => {
    const messages = [
      createBeginning("co-1:a:1:told"),
      createReply("noted", 10),
      createBeginning("co-1:a:1"),
      createReply("one", 1),
    ];
    expect(await observeRow("co-1:a:1", messages)).toMatchObject({ reply: "one", usage: { tokens: 1 } });
  });

  it("is all of its session where the host does not show its key", async () => {
    const messages = [{ role: "user", content: "do it" }, createReply("one", 1), createReply("two", 2)];
    expect(await observeRow("co-1:a:1", messages)).toMatchObject({ reply: "two", usage: { tokens: 3 } });
  });
});
