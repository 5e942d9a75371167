import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Observation } from "../../src/agents/coordination/contracts/observation.ts";
import type { AttemptOrder } from "../../src/agents/coordination/ports/agent-runner.ts";
import { renderScript, textOf, type RecordedRequest } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { describeBackups } from "./backups.ts";
import {
  ASKED_MS,
  openRunsStage,
  orderOf,
  createOwnerOrder,
  snapshotOf,
  TOLD_UNTIL_KILLED,
  type FlowRow,
  type RunsStage,
} from "./host-runs-stage.ts";

let stage: RunsStage;

beforeAll(async () => {
  stage = await openRunsStage();
});

afterAll(() => stage.close());

/** Sums what the model counted for requests. */
const sumOfTokens = (requests: readonly RecordedRequest[]): number =>
  requests
    .flatMap(({ used }) => used ?? [])
    .reduce((sum, { promptTokens, completionTokens }) => sum + promptTokens + completionTokens, 0);

/** Where the host does not go on with the turn, its log says more. */
async function waitUntilResumed(word: string): Promise<void> {
  await stage.untilAsked(word, 2).catch((cause: unknown) => {
    const [, sinceRestart = ""] = stage.host.gateway.log().split(/^.*marked \d+ startup-orphaned/mu);
    const lines = sinceRestart.split("\n").filter((line) => !line.includes("[ws]"));
    throw new Error(`the host did not go on with the turn: ${lines.slice(0, 120).join("\n")}`, { cause });
  });
}

/** Waits behind another turn when the gateway is killed. */
const queued = createOwnerOrder("agent:main:telling", renderScript({ say: "told-after-kill" }));

describe("kill -9 of the gateway", () => {
  const ended = orderOf(renderScript({ say: "ended-before" }));
  const hanging = orderOf(renderScript({ delayMs: 120_000, say: "hangs-before" }));
  const toldOrder = createOwnerOrder("agent:main:told-by-run", renderScript({ say: "told-before" }));
  const telling = createOwnerOrder("agent:main:telling", renderScript({ say: TOLD_UNTIL_KILLED }));
  const asking = orderOf(renderScript({ say: "asked-before" }));
  const answered = createOwnerOrder(
    asking.childSessionKey,
    renderScript({ delayMs: 120_000, say: "goes-on-before" }),
  );
  const shown = "co-Shown";
  let flow: FlowRow;

  // A start takes half a minute: one kill serves all tests.
  beforeAll(async () => {
    // First, because the host goes on with a turn only when it has written down that it is under way.
    await stage.start(telling, "owner");
    await stage.untilAsked(TOLD_UNTIL_KILLED);
    await stage.start(queued, "owner");
    await stage.start(ended);
    await stage.start(hanging);
    await stage.follow(ended);
    await stage.untilAsked("hangs-before");
    await stage.start(asking);
    await stage.follow(asking);
    await stage.start(answered, "owner");
    await stage.untilAsked("goes-on-before");
    await stage.start(toldOrder, "owner");
    expect(await stage.follow(toldOrder, "owner")).toMatchObject({ kind: "ended", outcome: "completed" });
    await stage.show(snapshotOf(shown));
    flow = await stage.untilFlow(shown, () => true);
    await stage.killAndRestart();
  });

  it("fails a running step once, keeps the result of an ended one, and repeats neither when started again", async () => {
    expect(await stage.follow(hanging)).toMatchObject({
      kind: "ended",
      outcome: "failed",
      message: expect.stringContaining("interrupted by a Gateway restart") as string,
    });
    expect(await stage.observe(ended)).toMatchObject({
      kind: "ended",
      outcome: "completed",
      reply: "ended-before",
    });
    expect(await stage.start(ended)).toMatchObject({ kind: "started", ending: { outcome: "completed" } });
    expect(await stage.start(hanging)).toMatchObject({ kind: "started", ending: { outcome: "failed" } });
    expect(await stage.observe(orderOf("never", { dispatchedAtMs: 1 as never }))).toEqual({ kind: "absent" });
    expect(stage.requestsThatSay("ended-before")).toHaveLength(1);
    expect(stage.requestsThatSay("hangs-before")).toHaveLength(1);
  });

  it("fails the turn in which the agent of a step went on with what it was told", async () => {
    expect(await stage.follow(answered)).toMatchObject({
      kind: "ended",
      outcome: "failed",
      message: expect.stringContaining("interrupted by a Gateway restart") as string,
    });
    expect(stage.requestsThatSay("goes-on-before")).toHaveLength(1);
  });

  it("does not tell an owner twice: not when it had been told, not when its turn was under way", async () => {
    for (const order of [toldOrder, telling]) {
      expect(await stage.observe(order, "owner")).toMatchObject({ kind: "ended", outcome: "completed" });
      expect(await stage.start(order, "owner")).toMatchObject({
        kind: "started",
        ending: { outcome: "completed" },
      });
    }
    // The host goes on with the turn by itself.
    await waitUntilResumed(TOLD_UNTIL_KILLED);
    for (const order of [toldOrder, telling]) {
      const keyed = (await stage.messagesOf(order.childSessionKey)).filter(
        ({ idempotencyKey }) => idempotencyKey === `${order.idempotencyKey}:user`,
      );
      expect(keyed).toHaveLength(1);
    }
    expect(stage.requestsThatSay("told-before")).toHaveLength(1);
  });

  it("leaves a plan in the host's list of flows, as the same flow, until the plan ends", async () => {
    expect(flow).toMatchObject({
      goal: "Find the answer",
      status: "running",
      currentStep: "1 of 3 steps ended; running: draft",
    });
    await stage.show(snapshotOf(shown, { stepsEnded: 2, running: ["review"] }));
    await stage.untilFlow(shown, ({ currentStep }) => currentStep === "2 of 3 steps ended; running: review");
    await stage.show(snapshotOf(shown, { stepsEnded: 3, running: [], status: "success" }));
    await stage.untilFlow(shown, ({ status }) => status === "succeeded");
    expect(await stage.flowsOf(shown)).toMatchObject([
      { flowId: flow.flowId, currentStep: "3 of 3 steps ended" },
    ]);
  });
});

describe("a step that runs as a subagent", () => {
  it("runs in its session with its context and our tool, and ends with its last words and what it used", async () => {
    const order = orderOf(
      renderScript(
        { call: [{ name: "coordination_report", args: { outcome: "completed", outputs: { answer: 42 } } }] },
        { say: "the-first-result" },
      ),
      { agentId: "coder" as AttemptOrder["agentId"], outputSchema: { type: "object", required: ["answer"] } },
    );
    const child = { childSessionKey: order.childSessionKey, childRunId: order.idempotencyKey };
    expect(await stage.start(order)).toEqual({ kind: "started", child });
    expect(await stage.follow(order)).toEqual({
      kind: "ended",
      ...child,
      outcome: "completed",
      reply: "the-first-result",
      usage: { tokens: sumOfTokens(stage.requestsThatSay("the-first-result")), costMicroUsd: 0 },
    });
    expect(await stage.observe(order)).toMatchObject({ kind: "ended", outcome: "completed" });
    const [request] = stage.requestsThatSay("the-first-result");
    const system = textOf(request!.body.messages[0]!);
    expect(system).toContain(`"stepId":"${order.envelope.stepId}"`);
    expect(system).toContain('{"type":"object","required":["answer"]}');
    expect(request!.body.tools?.map((tool) => tool.function?.name)).toContain("coordination_report");
    const { reports } = await stage.seen();
    expect(reports).toContainEqual({
      sessionKey: order.childSessionKey,
      params: { outcome: "completed", outputs: { answer: 42 } },
    });
  });

  it("is one run and one model request, started twice at once, again while it runs and again after it", async () => {
    const order = orderOf(renderScript({ delayMs: 1_000, say: "said-once" }));
    const first = await Promise.all([stage.start(order), stage.start(order)]);
    expect(await stage.start(order)).toEqual(first[0]);
    expect(first[1]).toEqual(first[0]);
    await stage.follow(order);
    expect(await stage.start(order)).toMatchObject({
      kind: "started",
      ending: { outcome: "completed", reply: "said-once" },
    });
    expect(stage.requestsThatSay("said-once")).toHaveLength(1);
  });

  it("of an agent that does not exist is refused with the host's reason, and nothing of it exists", async () => {
    const order = orderOf("never", {
      agentId: "nobody" as AttemptOrder["agentId"],
      dispatchedAtMs: 0 as never,
    });
    const answer = await stage.start(order);
    expect(answer).toMatchObject({ kind: "refused" });
    expect("message" in answer && answer.message).toContain('"nobody"');
    expect(await stage.observe(order)).toEqual({ kind: "absent" });
  });

  it("whose model fails is a failed attempt with the reason", async () => {
    const order = orderOf(renderScript({ httpError: 400 }));
    await stage.start(order);
    const seen = await stage.follow(order);
    expect(seen).toMatchObject({ kind: "ended", outcome: "failed" });
    expect("message" in seen && seen.message).not.toBe("");
  });

  it("goes on while it yields to an agent of its own, and ends with what it says after that", async () => {
    const grand = renderScript({ delayMs: 1_500, say: "grandchild result" });
    const order = orderOf(
      renderScript(
        { spawn: [{ label: "grand", task: grand }] },
        { call: [{ name: "sessions_yield", args: {} }] },
      ),
    );
    await stage.start(order);
    await stage.untilAsked("grandchild result", 2);
    await waitFor(
      async () => JSON.stringify(await stage.messagesOf(order.childSessionKey)).includes("yielded"),
      {
        what: "the yield",
        timeoutMs: ASKED_MS,
      },
    );
    expect(await stage.observe(order)).toMatchObject({ kind: "running" });
    expect(await stage.follow(order)).toMatchObject({
      kind: "ended",
      outcome: "completed",
      reply: "after-the-yield",
    });
  });

  it("went on in the turn in which it was told something, which the host has by its own key", async () => {
    const order = orderOf(renderScript({ say: "step-asked" }));
    await stage.start(order);
    await stage.follow(order);
    const turn = createOwnerOrder(
      order.childSessionKey,
      renderScript({ delayMs: 2_000, say: "step-went-on" }),
    );
    await stage.start(turn, "owner");
    await stage.untilAsked("step-went-on");
    expect(await stage.observe(turn, "owner")).toMatchObject({ kind: "ended", outcome: "completed" });
    expect(await stage.observe(turn)).toMatchObject({ kind: "running" });
    const completed = { kind: "ended", outcome: "completed", reply: "step-went-on" };
    expect(await stage.follow(turn)).toMatchObject(completed);
    expect(await stage.observe(order)).toMatchObject(completed);
  });

  it("of which the host knows nothing may still begin while it is young, and did not when it is not", async () => {
    expect(await stage.observe(orderOf("never"))).toEqual({ kind: "unknown" });
    const old = { dispatchedAtMs: (Date.now() - 61_000) as AttemptOrder["dispatchedAtMs"] };
    expect(await stage.observe(orderOf("never", old))).toEqual({ kind: "absent" });
  });

  it("is followed no longer than asked", async () => {
    const order = orderOf(renderScript({ delayMs: 30_000, say: "followed-briefly" }));
    await stage.start(order);
    await stage.untilAsked("followed-briefly");
    expect(await stage.follow(order, "subagent", 300)).toEqual({ kind: "unknown" });
    expect(await stage.cancel(order)).toBe("stopped");
  });
});

describe("cancelling a step", () => {
  it("stops a hanging agent and the agent below it; a second time there is nothing to stop", async () => {
    const grand = renderScript({ delayMs: 120_000, say: "grand-hangs" });
    const order = orderOf(
      renderScript({ spawn: [{ label: "grand", task: grand }] }, { delayMs: 120_000, say: "child-hangs" }),
    );
    await stage.start(order);
    await stage.untilAsked("grand-hangs", 3);
    expect(await stage.cancel(order)).toBe("stopped");
    expect(await stage.observe(order)).toMatchObject({ kind: "ended", outcome: "cancelled" });
    expect(await stage.rowsUnder(order.childSessionKey)).toMatchObject([{ status: "cancelled" }]);
    expect(await stage.cancel(order)).toBe("already_ended");
  });

  it("stops one of two that run beside each other on the control lane", async () => {
    const busy = orderOf(renderScript({ delayMs: 120_000, say: "control-busy" }), { lane: "control" });
    const beside = orderOf(renderScript({ say: "control-beside" }), { lane: "control" });
    await stage.start(busy);
    await stage.untilAsked("control-busy");
    await stage.start(beside);
    expect(await stage.follow(beside)).toMatchObject({ outcome: "completed", reply: "control-beside" });
    expect(await stage.observe(busy)).toMatchObject({ kind: "running" });
    expect(await stage.cancel(busy)).toBe("stopped");
    expect(await stage.observe(busy)).toMatchObject({ kind: "ended", outcome: "cancelled" });
  });

  it("stops what an agent left at work when it ended", async () => {
    const grand = renderScript({ delayMs: 120_000, say: "left-behind" });
    const order = orderOf(renderScript({ spawn: [{ label: "grand", task: grand }] }, { say: "child-ended" }));
    await stage.start(order);
    await stage.untilAsked("left-behind", 3);
    await stage.follow(order);
    expect(await stage.cancel(order)).toBe("already_ended");
    expect(await stage.rowsUnder(order.childSessionKey)).toMatchObject([{ status: "cancelled" }]);
  });
});

describe("telling an owner", () => {
  it("is a turn in its own session, once, however often it is asked for", async () => {
    const session = "agent:main:owner";
    await stage.host.gateway.agent({ sessionKey: session, message: renderScript({ say: "hello" }) });
    const order = createOwnerOrder(session, renderScript({ delayMs: 2_000, say: "owner-heard" }));
    expect(await stage.start(order, "owner")).toMatchObject({ kind: "started" });
    await stage.untilAsked("owner-heard");
    const observation = await stage.observe(order, "owner");
    expect(observation).toMatchObject({ kind: "ended", outcome: "completed" });
    expect(observation).not.toHaveProperty("reply");
    expect(await stage.follow(order, "owner")).toEqual({ ...observation, reply: "owner-heard" });
    expect(await stage.start(order, "owner")).toMatchObject({
      kind: "started",
      ending: { outcome: "completed", reply: "owner-heard" },
    });
    expect(stage.requestsThatSay("owner-heard")).toHaveLength(1);
    const [request] = stage.requestsThatSay("owner-heard");
    expect(JSON.stringify(request!.body.messages)).toContain("hello");
  });

  it("waits for the owner's own turn and leaves it alone", async () => {
    const session = "agent:main:busy-owner";
    const turn = stage.host.gateway.agent({
      sessionKey: session,
      message: renderScript({ delayMs: 3_000, say: "busy-turn-done" }),
    });
    await stage.untilAsked("busy-turn-done");
    const order = createOwnerOrder(session, renderScript({ say: "told-after-turn" }));
    await stage.start(order, "owner");
    expect(await stage.observe(order, "owner")).toMatchObject({ kind: "running" });
    expect((await turn).text).toBe("busy-turn-done");
    expect(await stage.follow(order, "owner")).toMatchObject({ kind: "ended", outcome: "completed" });
    await stage.untilAsked("told-after-turn");
    expect(stage.requestsThatSay("told-after-turn")).toHaveLength(1);
  });

  it("never happened when the host knows neither the run nor the message", async () => {
    const session = "agent:main:never-told" as AttemptOrder["childSessionKey"];
    expect(await stage.observe(orderOf("x", { childSessionKey: session }), "owner")).toEqual({
      kind: "unknown",
    });
    const dispatchedAtMs = (Date.now() - 61_000) as AttemptOrder["dispatchedAtMs"];
    const old = orderOf("x", { childSessionKey: session, dispatchedAtMs });
    expect(await stage.observe(old, "owner")).toEqual({ kind: "absent" });
  });
});

describe("a plan in the host's list of flows", () => {
  it("cancelled there cancels the plan once, and is not revived by what the plan does until it has ended", async () => {
    const id = "co-Cancelled";
    await stage.show(snapshotOf(id));
    const { flowId } = await stage.untilFlow(id, () => true);
    const { code } = await stage.host.gateway.openclaw(["tasks", "flow", "cancel", flowId]);
    expect(code).toBe(0);
    const listCancels = async () => (await stage.seen()).cancels.filter((cancelled) => cancelled === id);
    await waitFor(async () => (await listCancels()).length > 0, {
      what: "the cancellation",
      timeoutMs: ASKED_MS,
    });
    await stage.show(snapshotOf(id, { stepsEnded: 2 }));
    await stage.show(snapshotOf(id, { stepsEnded: 3, running: [], status: "cancelled" }));
    await stage.stopShowing();
    expect(await stage.flowsOf(id)).toMatchObject([{ status: "cancelled" }]);
    expect(await listCancels()).toEqual([id]);
  });
});

// The host takes a minute to give up what waited at the kill, which the other tests fill.
describeBackups(() => stage.host);

describe("what waited behind another turn of its owner when the gateway was killed", () => {
  it("is told after all, once the host has given it up, by one more run", async () => {
    const isDecided = async (): Promise<Observation | undefined> => {
      const seen = await stage.observe(queued, "owner");
      return seen.kind === "running" ? undefined : seen;
    };
    const decided = await waitFor(isDecided, {
      what: "the host to close the run",
      timeoutMs: 120_000,
      everyMs: 500,
    });
    expect(decided).toEqual({ kind: "absent" });
    expect(await stage.start(queued, "owner")).toMatchObject({ kind: "started" });
    const end = await stage.follow(queued, "owner");
    expect(end, JSON.stringify(end)).toMatchObject({ kind: "ended", outcome: "completed" });
    expect(stage.requestsThatSay("told-after-kill")).toHaveLength(1);
    const keys = (await stage.messagesOf(queued.childSessionKey)).map(({ idempotencyKey }) => idempotencyKey);
    expect(keys.filter((key) => key?.includes(queued.idempotencyKey))).toEqual([
      `run-2:${queued.idempotencyKey}:user`,
    ]);
  });
});
