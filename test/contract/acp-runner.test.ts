import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { createAcpScene, jsonOf, createKeyed, orderOf, outcomeOf, TRACEPARENT } from "./acp-scene.ts";

const child = { childSessionKey: "agent:coder:plan:build-1" };

describe("starting an ACP agent", () => {
  it("resolves once the prompt is sent, with the agent's session as the run", async () => {
    await using scene = createAcpScene();
    const start = await scene.runner.start(orderOf("ACP:hang"));
    const [pid] = scene.pids();
    expect(start).toEqual({ kind: "started", child: { ...child, childRunId: `session-${pid}` } });
  });

  it("introduces us, and offers neither files nor terminals", async () => {
    await using scene = createAcpScene();
    expect(await jsonOf(scene, orderOf("ACP:echo-initialize"))).toEqual({
      protocolVersion: 1,
      clientInfo: { name: "openclaw-coordination", version: "1.2.3" },
      clientCapabilities: {
        fs: { readTextFile: false, writeTextFile: false },
        terminal: false,
        auth: { terminal: false }, // The agent's side of the SDK fills it in.
      },
    });
    expect(await jsonOf(scene, orderOf("ACP:capabilities", createKeyed("2")))).toEqual([-32601, -32601]);
  });

  it("sends the envelope and the trace context with the session and with the prompt", async () => {
    await using scene = createAcpScene();
    const order = orderOf("ACP:echo-meta");
    const meta = { coordination: order.envelope, traceparent: TRACEPARENT };
    expect(await jsonOf(scene, order)).toEqual({ prompt: meta, session: meta });
  });

  it("sends the task, and the output contract where there is one", async () => {
    await using scene = createAcpScene();
    const task = "Build it.\nACP:echo-texts";
    expect(await jsonOf(scene, orderOf(task))).toEqual([task]);
    const outputSchema = { type: "object", required: ["answer"] };
    const [first, contract] = (await jsonOf(
      scene,
      orderOf(task, { ...createKeyed("2"), outputSchema }),
    )) as string[];
    expect(first).toBe(task);
    expect(contract).toMatch(/one JSON object and nothing else/);
    expect(contract).toContain(JSON.stringify(outputSchema));
  });

  it("passes on a handful of variables and those of the configuration, and nothing else", async () => {
    process.env["COORDINATION_TEST_SECRET"] = "do not pass on";
    process.env["LC_TIME"] = "C";
    try {
      await using scene = createAcpScene({ config: { env: { AGENT_TOKEN: "mine" } } });
      const env = (await jsonOf(scene, orderOf("ACP:echo-env"))) as Record<string, string>;
      expect(env).toMatchObject({ AGENT_TOKEN: "mine", LC_TIME: "C", PATH: process.env["PATH"] });
      const allowed = /^(?:PATH|HOME|LANG|LC_.*|TMPDIR|AGENT_TOKEN|ACP_LOG|ACP_PIDS|__CF_.*)$/;
      expect(Object.keys(env).filter((name) => !allowed.test(name))).toEqual([]);
    } finally {
      delete process.env["COORDINATION_TEST_SECRET"];
      delete process.env["LC_TIME"];
    }
  });

  it("runs in the configured folder, or else in the default one", async () => {
    await using scene = createAcpScene();
    expect(await jsonOf(scene, orderOf("ACP:echo-cwd"))).toEqual([scene.folder, scene.folder]);
    await using other = createAcpScene({ config: { cwd: scene.folder } });
    expect(await jsonOf(other, orderOf("ACP:echo-cwd"))).toEqual([scene.folder, scene.folder]);
  });

  it("runs one process for one key, while it runs and after its end", async () => {
    await using scene = createAcpScene();
    const order = orderOf("ACP:reply once");
    const [first, second] = await Promise.all([scene.runner.start(order), scene.runner.start(order)]);
    expect(second).toEqual(first);
    await outcomeOf(scene, order);
    const third = await scene.runner.start(order);
    expect(third).toEqual({ ...first, ending: { outcome: "completed", reply: "once" } });
    expect(scene.prompts()).toHaveLength(1);
    expect(scene.pids()).toHaveLength(1);
  });

  it("cuts a session id that is too long for the ledger, and keeps using all of it", async () => {
    await using scene = createAcpScene({ script: "long-session-id" });
    const start = await scene.runner.start(orderOf("ACP:hang"));
    expect(start).toMatchObject({ child: { childRunId: "s".repeat(BOUNDS.sessionKeyCharsMax) } });
    expect(await scene.runner.cancel(orderOf(""))).toBe("stopped");
    expect(await scene.runner.observe(orderOf(""))).toMatchObject({
      message: "The agent stopped because it was cancelled.",
    });
  });
});

describe("the end of an ACP agent", () => {
  it("is told with its reply when its process is gone", async () => {
    await using scene = createAcpScene();
    const seen = await outcomeOf(scene, orderOf("ACP:reply hello there"));
    const [pid] = scene.pids();
    const ended = { kind: "ended", ...child, childRunId: `session-${pid}`, outcome: "completed" };
    expect(seen).toEqual({ ...ended, reply: "hello there" });
    expect(await scene.runner.observe(orderOf(""))).toEqual(seen);
    expect(() => process.kill(pid ?? 0, 0)).toThrow("ESRCH");
  });

  it("is told when the agent answered and left before it was heard", async () => {
    await using scene = createAcpScene();
    const seen = await outcomeOf(scene, orderOf("ACP:answer-and-exit bye"));
    expect(seen).toMatchObject({ outcome: "completed", reply: "bye" });
  });

  it.each([
    ["ACP:tool reply It is green.", "It is green."],
    ["ACP:then-tool It is green.", "It is green."],
    ["ACP:messages first second", "second"],
    ["ACP:think reply yes", "yes"],
    ["ACP:surrogate half", "half\ufffd"],
    ['ACP:json {"answer":42}', '{"answer":42}'],
  ])("has the last message as its reply: %s", async (message, reply) => {
    await using scene = createAcpScene();
    expect(await outcomeOf(scene, orderOf(message))).toMatchObject({ outcome: "completed", reply });
  });

  it("cuts a reply that is too long", async () => {
    await using scene = createAcpScene();
    const seen = await outcomeOf(scene, orderOf("ACP:flood 1000"));
    expect(seen).toMatchObject({ outcome: "completed" });
    const reply = seen.kind === "ended" ? (seen.reply ?? "") : "";
    expect(reply).toHaveLength(BOUNDS.replyCharsMax);
    expect(reply.slice(0, 2_000)).toBe("0".repeat(1_000) + "1".repeat(1_000));
    expect("replyEnd" in seen && seen.replyEnd).toBe(
      Array.from({ length: 16 }, (_, index) => String((index + 4) % 10).repeat(1_000)).join(""),
    );
  });

  it("keeps the end of a reply that is too long, and of that message only", async () => {
    await using scene = createAcpScene();
    const line = '{"confidence":0.1}';
    const seen = await outcomeOf(scene, orderOf(`ACP:flood-then 300 reply ${line}`));
    expect("replyEnd" in seen && seen.replyEnd.split("\n").at(-1)).toBe(line);
    const next = await outcomeOf(
      scene,
      orderOf("ACP:flood-then 300 tool reply It is green.", createKeyed("2")),
    );
    expect(next).toMatchObject({ reply: "It is green." });
    expect(next).not.toHaveProperty("replyEnd");
  });

  it.each([
    ["end_turn", { outcome: "completed" }],
    ["cancelled", { outcome: "cancelled" }],
    ["max_tokens", { outcome: "failed", message: "The agent reached its limit of tokens." }],
    ["max_turn_requests", { outcome: "failed", message: "The agent reached its limit of model requests." }],
    ["refusal", { outcome: "failed", message: "The agent refused to go on." }],
    ["constructor", { outcome: "failed", message: expect.stringContaining("does not know") as string }],
  ])("follows from the stop reason %s", async (reason, ending) => {
    await using scene = createAcpScene();
    expect(await outcomeOf(scene, orderOf(`ACP:stop ${reason}`))).toMatchObject({
      ...ending,
      reply: "so far",
    });
  });

  it.each([
    ["1234 0.0123456", { tokens: 1234, costMicroUsd: 12_346 }],
    ["1234", { tokens: 1234 }],
    ["1234 5 EUR", { tokens: 1234 }],
    ["12.5 -1", { tokens: 1 }],
  ])("counts what the agent says that it used, in whole numbers: %s", async (words, usage) => {
    await using scene = createAcpScene();
    expect(await outcomeOf(scene, orderOf(`ACP:usage ${words}`))).toMatchObject({ usage });
  });

  it("ends a process that stays after its answer", async () => {
    await using scene = createAcpScene({ limits: { exitMs: 50 } });
    expect(await outcomeOf(scene, orderOf("ACP:linger reply here"))).toMatchObject({ reply: "here" });
    await scene.allGone();
  });

  it("ends what the agent left running", async () => {
    await using scene = createAcpScene();
    expect(await outcomeOf(scene, orderOf("ACP:child reply here"))).toMatchObject({ reply: "here" });
    expect(scene.pids()).toHaveLength(2);
    await scene.allGone();
  });

  it("is unknown to those who stop waiting, and absent for an attempt that is not known", async () => {
    await using scene = createAcpScene();
    const order = orderOf("ACP:hang");
    await scene.runner.start(order);
    const waiting = new AbortController();
    const following = scene.runner.follow(order, waiting.signal);
    waiting.abort();
    expect(await following).toEqual({ kind: "unknown" });
    expect(await scene.runner.follow(order, AbortSignal.abort())).toEqual({ kind: "unknown" });
    expect(await scene.runner.observe(order)).toMatchObject({ kind: "running", ...child });
    const stranger = orderOf("", createKeyed("co-1:other:1"));
    expect(await scene.runner.observe(stranger)).toEqual({ kind: "absent" });
    expect(await scene.runner.follow(stranger, waiting.signal)).toEqual({ kind: "absent" });
    expect(await scene.runner.cancel(stranger)).toBe("already_ended");
  });

  it("is forgotten when too many came after it, or when their replies are too long together", async () => {
    await using scene = createAcpScene({ limits: { endedMax: 2, endedReplyCharsMax: 2_500 } });
    const observeKinds = async (): Promise<string[]> =>
      Promise.all(
        ["a", "b", "c"].map(async (key) => (await scene.runner.observe(orderOf("", createKeyed(key)))).kind),
      );
    await outcomeOf(scene, orderOf("ACP:reply a", createKeyed("a")));
    await outcomeOf(scene, orderOf("ACP:flood 1", createKeyed("b")));
    expect(await observeKinds()).toEqual(["ended", "ended", "absent"]);
    await outcomeOf(scene, orderOf("ACP:flood 1", createKeyed("c")));
    expect(await observeKinds()).toEqual(["absent", "ended", "ended"]);
    await outcomeOf(scene, orderOf("ACP:flood 2", createKeyed("d")));
    expect(await observeKinds()).toEqual(["absent", "absent", "absent"]);
  });
});

describe("the agent of these tests", () => {
  it("can fail the first attempts of a step, take its time, and tells of every prompt in its log", async () => {
    await using scene = createAcpScene({ script: "reply by default" });
    const script = "Build it.\nACP:fail-first 1 delay 20 reply at last";
    expect(await outcomeOf(scene, orderOf(script, createKeyed("1")))).toMatchObject({ outcome: "failed" });
    const second = await outcomeOf(scene, orderOf(script, createKeyed("2")));
    expect(second).toMatchObject({ outcome: "completed", reply: "at last" });
    const plain = await outcomeOf(scene, orderOf("Build it.", createKeyed("3")));
    expect(plain).toMatchObject({ reply: "by default" });
    expect(scene.prompts().map(({ stepId, pid }) => [stepId, pid])).toEqual(
      scene.pids().map((pid) => ["build", pid]),
    );
  });
});

describe("an ACP agent that asks for permission", () => {
  const createSelected = (optionId: string) => ({ outcome: "selected", optionId });

  it.each([
    ["deny", "", createSelected("4")],
    ["deny", "allow_always allow_once reject_always", { outcome: "cancelled" }],
    ["allow", "", createSelected("2")],
    ["allow", "allow_always reject_always reject_once", createSelected("4")],
    ["allow", "allow_always", { outcome: "cancelled" }],
  ] as const)("is answered for once and never for ever: %s %s", async (permissions, offered, outcome) => {
    await using scene = createAcpScene({ config: { permissions } });
    expect(await jsonOf(scene, orderOf(`ACP:permission ${offered}`))).toEqual(outcome);
  });

  it("is told that its turn is over once it was cancelled", async () => {
    await using scene = createAcpScene({ config: { permissions: "allow" } });
    const order = orderOf("ACP:ask-late");
    await scene.runner.start(order);
    expect(await scene.runner.cancel(order)).toBe("already_ended");
    expect(await scene.runner.observe(order)).toMatchObject({
      outcome: "completed",
      reply: '{"outcome":"cancelled"}',
    });
  });
});
