import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import { createHookHost } from "../../src/plugins/hooks/hook-host.ts";
import { HOOK_LIMITS } from "../../src/plugins/hooks/hook-limits.ts";
import type { AnswerQuestion } from "../../src/plugins/hooks/hook-types.ts";
import { registerCoordinationHooks } from "../../src/plugins/hooks/hooks.ts";
import { sampleQuestion, type HookHarness } from "../../src/plugins/hooks/testing.ts";
import { createHookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import { findRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import type { RunningCoordinator } from "../../src/plugins/compose.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { OWNER } from "../support/ledger-fixtures.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { createFakeHost } from "./fake-host.ts";
import { createPlugin, throwSecret } from "./hooks-parts.ts";

describe("escalate", () => {
  it("tells a plugin of a question, and takes what it answers at once", async () => {
    const harness = createPlugin({
      escalate: ({ title }) => ({ answer: "answer", text: title.slice(0, 10), by: "Ann\nLee" }),
    });
    const { outcome, answers } = await harness.escalate();
    expect(outcome).toEqual({ kind: "delivered", tries: 1 });
    expect(answers).toEqual([
      {
        questionId: "co-sample:escalation-1",
        answer: "answer",
        text: "The result",
        by: { kind: "plugin", id: "Ann Lee" },
        through: "plugin:guard",
      },
    ]);
    expect(harness.host.channels()).toEqual(["plugin:guard"]);
  });

  it.each(["", "\u200b", " \n"])(
    "takes an answer of nobody who can be named (%j) as the plugin's",
    async (by) => {
      const harness = createPlugin({ escalate: () => ({ answer: "approve", by }) });
      const { outcome, answers } = await harness.escalate();
      expect(outcome).toEqual({ kind: "delivered", tries: 1 });
      expect(answers).toMatchObject([{ answer: "approve", through: "plugin:guard" }]);
      expect(answers[0]?.by).toEqual({ kind: "plugin" });
    },
  );

  it("takes an answer of somebody with a long name, and cuts the name", async () => {
    const by = `${"a".repeat(127)}\u{1f600}`;
    const harness = createPlugin({ escalate: () => ({ answer: "approve", by }) });
    expect((await harness.escalate()).answers).toMatchObject([
      { answer: "approve", by: { kind: "plugin", id: `${"a".repeat(127)}\ufffd` } },
    ]);
  });

  it("takes answers later, and says what became of each", async () => {
    const kept: ((value: never) => Promise<unknown>)[] = [];
    const harness = createPlugin({ escalate: (_question, answer) => void kept.push(answer) });
    let closed = false;
    const take = (): "closed" | undefined => (closed ? "closed" : void (closed = true));
    const { answers } = await harness.escalate(sampleQuestion(), { take });
    const callLater = async (value: unknown): Promise<unknown> => kept[0]?.(value as never);
    expect(answers).toEqual([]);
    expect(await callLater({ answer: "maybe" })).toEqual({ counted: false, because: "not_an_answer" });
    expect(await callLater({ answer: "approve" })).toEqual({ counted: true });
    expect(await callLater({ answer: "deny" })).toEqual({ counted: false, because: "closed" });
    expect(answers.map(({ answer }) => answer)).toEqual(["approve", "deny"]);
    for (let more = 0; more < HOOK_LIMITS.answersMax; more += 1) await callLater({ answer: "deny" });
    expect(await callLater({ answer: "deny" })).toEqual({ counted: false, because: "too_many" });
    expect(answers).toHaveLength(HOOK_LIMITS.answersMax - 1);
  });

  it("takes no answer from a plugin that is not there any more", async () => {
    const kept: (() => Promise<unknown>)[] = [];
    const harness = createPlugin({
      escalate: (_question, answer) => void kept.push(() => answer({ answer: "approve" })),
    });
    const { answers } = await harness.escalate();
    harness.end("disable");
    expect(await kept[0]?.()).toEqual({ counted: false, because: "not_allowed" });
    expect(answers).toEqual([]);
  });

  it("says so when an answer could not be recorded, and throws nothing at the author", async () => {
    const harness = createPlugin({
      escalate: (_question, answer) => answer({ answer: "deny" }).then(() => undefined),
    });
    const take = throwSecret;
    expect((await harness.escalate(sampleQuestion(), { take })).outcome).toEqual({
      kind: "delivered",
      tries: 1,
    });
  });

  it.each([
    ["throws", throwSecret],
    ["answers with something else", () => ({ answer: "yes" })],
    ["answers without a text", () => ({ answer: "answer" })],
    [
      "answers with too long a text",
      () => ({ answer: "answer", text: "x".repeat(BOUNDS.answerCharsMax + 1) }),
    ],
  ])("that %s leaves the question open, and is said", async (_what, escalate) => {
    const harness = createPlugin({ escalate: escalate as never });
    const { outcome, answers } = await harness.escalate();
    expect(outcome).toMatchObject({
      kind: "failed",
      message: expect.stringContaining("plugin guard") as string,
    });
    expect(answers).toEqual([]);
    expect(harness.problems).toHaveLength(1);
    expect(harness.logged[0]).toContain("the hook escalate of the plugin guard");
  });

  it("says which notice of a question it is", async () => {
    const seen: unknown[] = [];
    const harness = createPlugin({
      escalate: (_question, _answer, { notice, noticeId }) => void seen.push([notice, typeof noticeId]),
    });
    await harness.escalate(sampleQuestion(), { notice: 2 });
    expect(seen).toEqual([[2, "string"]]);
    expect(
      await harness.host.notify({ question: sampleQuestion() } as never, "plugin:none", throwSecret),
    ).toMatchObject({
      kind: "failed",
    });
  });
});

describe("while a plugin that brings questions is loaded again", () => {
  const createAway = async (): Promise<HookHarness> => {
    const harness = createPlugin({ escalate: () => undefined });
    harness.end("reload");
    await harness.clock.advance(2 * HOOK_LIMITS.reloadMs);
    return harness;
  };
  const createBack = (harness: HookHarness, seen: unknown[]): void => {
    registerCoordinationHooks(harness.api, { escalate: ({ title }) => void seen.push(title) });
  };

  it("a question waits for it, also longer than its gates would", async () => {
    const harness = await createAway();
    expect(harness.host.channels()).toEqual(["plugin:guard"]);
    const seen: unknown[] = [];
    const escalated = harness.escalate();
    await harness.clock.advance(2 * HOOK_LIMITS.reloadMs);
    createBack(harness, seen);
    await harness.clock.advance(500);
    expect((await escalated).outcome).toEqual({ kind: "delivered", tries: 1 });
    expect(seen).toEqual([sampleQuestion().title]);
  });

  it("a question waits no longer than until its deadline, or until it is closed", async () => {
    const harness = await createAway();
    const deadlineAtMs = harness.clock.now() + 1_000;
    const escalated = harness.escalate({ ...sampleQuestion(), deadlineAtMs });
    await harness.clock.advance(1_000);
    expect((await escalated).outcome).toMatchObject({ kind: "failed" });
    const seen: unknown[] = [];
    const notice = { question: sampleQuestion(), isOpen: () => Promise.resolve(false) };
    const closed = harness.host.notify(notice as never, "plugin:guard", throwSecret);
    createBack(harness, seen);
    await harness.clock.advance(500);
    expect(await closed).toMatchObject({ kind: "failed" });
    expect(seen).toEqual([]);
  });

  it("a question looks for it twice a second", async () => {
    const harness = await createAway();
    const clock = createFakeClock(harness.clock.now());
    let wakes = 0;
    const wakeAt: Clock["wakeAt"] = (atMs, wake) => {
      wakes += 1;
      return clock.wakeAt(atMs, wake);
    };
    const doNothing = (): void => undefined;
    const logger = { debug: doNothing, info: doNothing, warn: doNothing, error: doNothing };
    const host = createHookHost({ clock: { ...clock, now: () => clock.now(), wakeAt }, logger });
    const notice = { question: sampleQuestion(), isOpen: () => Promise.resolve(true) };
    const pendingNotice = host.notify(notice as never, "plugin:guard", throwSecret);
    await clock.advance(60_000);
    expect(wakes).toBeGreaterThan(100);
    expect(wakes).toBeLessThan(130);
    createBack(harness, []);
    await clock.advance(500);
    expect(await pendingNotice).toMatchObject({ kind: "delivered" });
  });

  it("its answers count, until it counts as gone", async () => {
    const kept: AnswerQuestion[] = [];
    const harness = createPlugin({ escalate: (_question, answer) => void kept.push(answer) });
    await harness.escalate();
    harness.end("reload");
    await harness.clock.advance(HOOK_LIMITS.gatesClosedMs - 1);
    expect(await kept[0]?.({ answer: "approve" })).toEqual({ counted: true });
    await harness.clock.advance(1);
    expect(await kept[0]?.({ answer: "approve" })).toEqual({ counted: false, because: "not_allowed" });
  });
});

describe("the answer to a notice", () => {
  const openCoordinator = async (): Promise<RunningCoordinator> => {
    const runtime = findRuntime();
    if (!runtime) throw new Error("coordination is not started");
    return runtime.coordinator();
  };

  it("counts also after the coordination plugin was loaded again", async () => {
    using folder = createTempFolder();
    const notified = Promise.withResolvers<AnswerQuestion>();
    createPlugin({ escalate: (_question, answer) => notified.resolve(answer) }, "pager");
    const { api } = createFakeHost({ stateDir: folder.path });
    const before = createHookHandlers(api);
    await before.start();
    const asker = { askedBy: OWNER, agentId: "main" };
    const question = await (
      await openCoordinator()
    ).ask({ ...asker, kind: "clarification", question: "Which colour?" });
    if (question.kind === "refused") throw new Error(question.reason);
    const answerLater = await notified.promise;
    await before.stop();
    const after = createHookHandlers(api);
    await after.start();
    try {
      expect(await answerLater({ answer: "answer", text: "Blue.", by: "ada" })).toEqual({ counted: true });
      const [coordinationId = ""] = question.questionId.split(":");
      const view = await (await openCoordinator()).view(coordinationId as CoordinationId);
      expect(view?.escalations).toMatchObject([
        { answered: { answer: "answer" }, closed: { resolution: "answered" } },
      ]);
    } finally {
      await after.stop();
    }
  });
});
