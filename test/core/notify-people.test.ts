import { describe, expect, it } from "vitest";
import type { ChannelNotice, NoticeOutcome } from "../../src/agents/coordination/ports/human-channel.ts";
import { NOTICE_TURN_MS } from "../../src/agents/coordination/dispatch/effects/gate-effects.ts";
import { formatTitle } from "../../src/agents/coordination/runtime/questions/notify-people.ts";
import { createWorld, SETTINGS, type World } from "../support/fake-clock-host.ts";
import { endDone, createScriptedRunner } from "../support/scripted-runner.ts";
import { createShellCall, write } from "./arbiter-calls.ts";
import { openAskedScene } from "./arbiter-hooks-scene.ts";
import {
  createEscalationsWith,
  listEvents,
  createGatesWith,
  waitUntilQuiet,
  createScriptedChannel,
  spawnChild,
} from "./gates-world.ts";
import { plan, PLAN_ID, scriptOf, step, submitTo, type PlanRun } from "./planned-world.ts";

const REMIND_MS = 60_000;

interface QuestionScene {
  readonly world: World;
  readonly run: PlanRun;
  readonly notices: ChannelNotice[];
}

/** A plan whose step `a` its planner doubts, and `chat` is told at first and reminded. */
async function runAskedPlan(
  outcome?: (notice: ChannelNotice) => NoticeOutcome | Promise<NoticeOutcome>,
  escalations: object = { notify: [{ channel: "chat" }, { channel: "chat", afterMs: REMIND_MS }] },
): Promise<QuestionScene> {
  const { channel, notices } = createScriptedChannel(outcome);
  const world = createWorld({}, createScriptedRunner(scriptOf({ a: [endDone()] })), {
    gates: createGatesWith([]),
    escalations: createEscalationsWith(escalations),
    channelOf: (name) => (name === "chat" ? channel : undefined),
  });
  const run = await submitTo(world, plan([step("a", { confidence: 0.2 })]));
  await waitUntilQuiet(world);
  return { world: world, run, notices };
}

const outcomesOf = ({ world }: QuestionScene) =>
  listEvents(world, "escalation.notified").map(({ payload: { notice, outcome } }) => `${notice} ${outcome}`);

describe("people", () => {
  it("are told of a question once it is on disk, with everything that they need to answer, and nothing begins", async () => {
    const notified = await runAskedPlan();
    expect(notified.notices).toHaveLength(1);
    const [notice] = notified.notices;
    expect(notice).toMatchObject({
      noticeId: `${PLAN_ID}:escalation-1:0`,
      notice: 0,
      question: {
        questionId: `${PLAN_ID}:escalation-1`,
        cause: "confidence",
        kind: "approval",
        stepId: "a",
        answers: ["approve", "deny"],
        onExpiry: "deny",
        confidence: { measured: 0.2, floor: 0.5 },
        title: "Its planner is not sure that step a should begin. Let it begin?",
      },
    });
    expect(outcomesOf(notified)).toEqual(["0 delivered"]);
    expect(notified.run.ordersOf("a")).toEqual([]);
    await notified.run.close();
  });

  it("are told through each channel whether that is its first notice or a reminder, in order of time", async () => {
    const { channel, notices } = createScriptedChannel();
    const notify = [
      { channel: "chat", afterMs: REMIND_MS },
      { channel: "chat" },
      { channel: "host" },
      { channel: "host", afterMs: REMIND_MS },
    ];
    const world = createWorld({}, createScriptedRunner(scriptOf({ a: [endDone()] })), {
      gates: createGatesWith([]),
      escalations: createEscalationsWith({ notify }),
      channelOf: () => channel,
    });
    const run = await submitTo(world, plan([step("a", { confidence: 0.2 })]));
    await waitUntilQuiet(world);
    await world.clock.advance(REMIND_MS);
    const placeOf = ({ noticeId }: ChannelNotice): number => Number(noticeId.split(":").at(-1));
    expect(Object.fromEntries(notices.map((each) => [placeOf(each), each.notice]))).toEqual({
      0: 1,
      1: 0,
      2: 0,
      3: 1,
    });
    await run.close();
  });

  it("are told at once of a result whose end only the host's records told", async () => {
    const { channel, notices } = createScriptedChannel();
    const world = createWorld({}, createScriptedRunner(), {
      gates: createGatesWith([]),
      escalations: createEscalationsWith({ notify: [{ channel: "chat" }] }),
      channelOf: () => channel,
    });
    const coordinator = world.start();
    await coordinator.start();
    const child = await spawnChild(world, coordinator);
    await child.says('The code is 4711.\n{"confidence": 0.1}');
    world.host.end(child.session, { outcome: "completed" });
    await world.clock.advance(SETTINGS.sweepMs);
    expect(listEvents(world, "result.held")).toMatchObject([{ payload: { via: "reconciled" } }]);
    expect(notices).toHaveLength(1);
    await coordinator.stop();
  });

  it("are told only what is on disk by then (D1)", async () => {
    const onDisk: boolean[] = [];
    const { channel } = createScriptedChannel(({ question }) => {
      const requests = listEvents(world, "coordination.escalated").map(({ payload }) => payload.escalationId);
      onDisk.push(requests.includes(question.escalationId));
      return { kind: "delivered", tries: 1 };
    });
    const world = createWorld({}, createScriptedRunner(scriptOf({})), {
      gates: createGatesWith([]),
      escalations: createEscalationsWith({ notify: [{ channel: "chat" }] }),
      channelOf: () => channel,
    });
    const run = await submitTo(world, plan([step("a", { confidence: 0.2 }), step("b", { confidence: 0.1 })]));
    await waitUntilQuiet(world);
    expect(onDisk).toEqual([true, true]);
    await run.close();
  });

  it("whose channel never answers hold up no work", async () => {
    const { channel, notices } = createScriptedChannel(() => new Promise(() => undefined));
    const world = createWorld({}, createScriptedRunner(scriptOf({})), {
      gates: createGatesWith([]),
      escalations: createEscalationsWith({ notify: [{ channel: "chat" }] }),
      channelOf: () => channel,
    });
    const run = await submitTo(
      world,
      plan([step("a", { confidence: 0.2 }), step("b"), step("c", { dependsOn: ["b"] })]),
    );
    await waitUntilQuiet(world);
    expect(notices).toHaveLength(1);
    expect(await run.fates()).toMatchObject({ a: "waiting", b: "completed", c: "completed" });
    await run.coordinator.answer({
      questionId: `${PLAN_ID}:escalation-1`,
      answer: "approve",
      by: { kind: "operator" },
      through: "cli",
    });
    await waitUntilQuiet(world);
    expect(await run.fates()).toMatchObject({ a: "completed" });
    expect((await run.view()).status).toBe("success");
  });

  it("are reminded in time, and not once somebody answered", async () => {
    const patient = await runAskedPlan();
    await patient.world.clock.advance(REMIND_MS);
    expect(outcomesOf(patient)).toEqual(["0 delivered", "1 delivered"]);
    await patient.run.close();
    const quick = await runAskedPlan();
    await quick.run.coordinator.answer({
      questionId: `${PLAN_ID}:escalation-1`,
      answer: "approve",
      by: { kind: "operator" },
      through: "cli",
    });
    await quick.world.clock.advance(2 * REMIND_MS);
    expect(quick.notices).toHaveLength(1);
    expect((await quick.run.view()).status).toBe("success");
    await quick.run.close();
  });

  it("that could not be told are not told again for this notice, and the log shows it", async () => {
    const notified = await runAskedPlan(() => ({ kind: "failed", tries: 6, message: "no route" }));
    await notified.world.clock.advance(REMIND_MS - 1_000);
    expect(notified.notices).toHaveLength(1);
    expect(listEvents(notified.world, "escalation.notified")[0]?.payload).toMatchObject({
      outcome: "failed",
      tries: 6,
    });
    expect(
      notified.world.lines.some(({ level, message }) => level === "warn" && message.includes("no route")),
    ).toBe(true);
    await notified.world.clock.advance(REMIND_MS);
    expect(outcomesOf(notified)).toEqual(["0 failed", "1 failed"]);
    await notified.run.close();
  });

  it("of a channel that there is none of are not told, and the log shows it", async () => {
    const notified = await runAskedPlan(undefined, { notify: [{ channel: "plugin:gone" }] });
    expect(outcomesOf(notified)).toEqual(["0 failed"]);
    await notified.run.close();
  });

  it("whose channel breaks its word and throws are not told, and nothing is retried without end", async () => {
    const notified = await runAskedPlan(() => Promise.reject(new Error("a bug of the channel")));
    await notified.world.clock.advance(REMIND_MS - 1_000);
    expect(outcomesOf(notified)).toEqual(["0 failed"]);
    expect(notified.notices).toHaveLength(1);
    await notified.run.coordinator.stop();
  });

  const ANSWER = {
    questionId: `${PLAN_ID}:escalation-1`,
    answer: "approve",
    by: { kind: "operator" },
    through: "cli",
  } as const;

  it.each<[title: string, isOpen: boolean, act: (scene: QuestionScene) => Promise<unknown>]>([
    ["while that is open", true, () => Promise.resolve()],
    ["until it is answered", false, ({ run }) => run.coordinator.answer(ANSWER)],
    ["until another process has answered it", false, ({ world }) => world.start().answer(ANSWER)],
    [
      "until its plan has ended",
      false,
      ({ run }) => run.coordinator.cancel({ coordinationId: PLAN_ID, by: "operator" }),
    ],
  ])("may be told again of a question %s", async (_, isOpen, act) => {
    const late = Promise.withResolvers<NoticeOutcome>();
    const scene = await runAskedPlan(() => late.promise);
    await act(scene);
    expect(await scene.notices[0]?.isOpen()).toBe(isOpen);
    late.resolve({ kind: "failed", tries: 1, message: "no route" });
    await waitUntilQuiet(scene.world);
    // Nobody misses a question that is closed.
    expect(outcomesOf(scene)).toEqual(isOpen ? ["0 failed"] : []);
    const warnings = scene.world.lines.filter(({ message }) => message.includes("people were not told"));
    expect(warnings).toHaveLength(isOpen ? 1 : 0);
    await scene.run.close();
  });

  it("who were not told of a question before it expired are shown to have missed it", async () => {
    const scene = await runAskedPlan(() => new Promise(() => undefined), { notify: [{ channel: "chat" }] });
    const { clock } = scene.world;
    await clock.advance((scene.notices[0]?.question.deadlineAtMs ?? 0) - clock.now() + 1_000);
    expect(listEvents(scene.world, "escalation.closed")).toMatchObject([
      { payload: { resolution: "expired" } },
    ]);
    expect(outcomesOf(scene)).toEqual(["0 failed"]);
    await scene.run.close();
  });

  it("are told again under the same id where the process ended before it was recorded", async () => {
    let isStuck = true;
    const waitUntilAborted = ({ signal }: ChannelNotice): Promise<NoticeOutcome> =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => resolve({ kind: "failed", tries: 1, message: "stopped" }));
      });
    const notified = await runAskedPlan((notice) =>
      isStuck ? waitUntilAborted(notice) : { kind: "delivered", tries: 1 },
    );
    expect(outcomesOf(notified)).toEqual([]);
    await notified.run.restart(() => {
      isStuck = false;
    });
    await waitUntilQuiet(notified.world);
    expect(notified.notices.map(({ noticeId }) => noticeId)).toEqual([
      `${PLAN_ID}:escalation-1:0`,
      `${PLAN_ID}:escalation-1:0`,
    ]);
    expect(outcomesOf(notified)).toEqual(["0 delivered"]);
    await notified.run.close();
  });

  it("hear of the questions of one coordination in their order, one at a time on each channel", async () => {
    const waiting: (() => void)[] = [];
    const { channel, notices } = createScriptedChannel(
      () => new Promise((resolve) => waiting.push(() => resolve({ kind: "delivered", tries: 1 }))),
    );
    const world = createWorld({}, createScriptedRunner(scriptOf({})), {
      gates: createGatesWith([]),
      escalations: createEscalationsWith({ notify: [{ channel: "chat" }] }),
      channelOf: () => channel,
    });
    const run = await submitTo(world, plan([step("a", { confidence: 0.2 }), step("b", { confidence: 0.1 })]));
    await waitUntilQuiet(world);
    expect(notices.map(({ question }) => question.stepId)).toEqual(["a"]);
    waiting.shift()?.();
    await waitUntilQuiet(world);
    expect(notices.map(({ question }) => question.stepId)).toEqual(["a", "b"]);
    waiting.shift()?.();
    await waitUntilQuiet(world);
    await run.close();
  });

  it("hear of a later question soon, whatever becomes of the notice of the first one", async () => {
    const late = Promise.withResolvers<NoticeOutcome>();
    const { channel, notices } = createScriptedChannel(({ question }) =>
      question.stepId === "a" ? late.promise : { kind: "delivered", tries: 1 },
    );
    const world = createWorld({}, createScriptedRunner(scriptOf({})), {
      gates: createGatesWith([]),
      escalations: createEscalationsWith({ notify: [{ channel: "chat" }] }),
      channelOf: () => channel,
    });
    const run = await submitTo(
      world,
      plan([step("a", { confidence: 0.2 }), step("b", { confidence: 0.1 }), step("c", { confidence: 0.1 })]),
    );
    const listTold = () => notices.map(({ question }) => question.stepId);
    await world.clock.advance(NOTICE_TURN_MS - 1_000);
    expect(listTold()).toEqual(["a"]);
    await world.clock.advance(2_000);
    expect(listTold()).toEqual(["a", "b", "c"]);
    await world.clock.advance(5 * NOTICE_TURN_MS);
    expect(listTold()).toEqual(["a", "b", "c"]);
    late.resolve({ kind: "delivered", tries: 3 });
    await waitUntilQuiet(world);
    const recorded = listEvents(world, "escalation.notified").map(({ payload }) => payload);
    expect(recorded.map(({ escalationId, outcome }) => `${escalationId} ${outcome}`)).toEqual([
      "escalation-2 delivered",
      "escalation-3 delivered",
      "escalation-1 delivered",
    ]);
    await run.close();
  });
});

describe("a question that is told", () => {
  it("says in one sentence what it is about, and nothing of any content", () => {
    const causes = [
      "confidence",
      "verifier",
      "conflict",
      "retries_exhausted",
      "deadline",
      "budget",
      "agent",
      "mismatch",
      "merge",
    ] as const;
    const titles = causes.flatMap((cause) => [
      formatTitle({ cause, stepId: "a" as never, confidence: undefined }),
      formatTitle({ cause, stepId: undefined, confidence: { floor: 5_000, of: "result" } }),
      formatTitle({ cause, stepId: undefined, confidence: { floor: 5_000, of: "verdict" } }),
    ]);
    for (const title of titles) expect(title).toMatch(/^[A-Z][^\n]+[.?]$/u);
    expect(formatTitle({ cause: "verifier", stepId: "a" as never, confidence: undefined })).toContain(
      "step a",
    );
  });

  it("says of a conflict whether the write is still to happen, or a command has made it already", async () => {
    const { channel, notices } = createScriptedChannel();
    const s = await openAskedScene({ dependencies: { channelOf: () => channel } });
    await using _ = s;
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const name of ["1.md", "2.md"]) await s.does(write(s, a, { [name]: "of a\n" }));
    await s.clock.advance(1);
    await s.ask(write(s, b, { "1.md": "of b\n" }));
    await s.does(createShellCall(s, b, () => s.put("2.md", "of b\n")));
    await s.clock.advance(SETTINGS.sweepMs);
    expect(notices.map(({ question }) => question.title)).toEqual([
      "A write of step step-2 is contested. Let it happen?",
      "A command of step step-2 has overwritten a file that somebody else holds. Give the file to step step-2?",
    ]);
  });

  it("says of a file that a command of an ended step has overwritten that its holder keeps it", async () => {
    const { channel, notices } = createScriptedChannel();
    const s = await openAskedScene({ dependencies: { channelOf: () => channel } });
    await using _ = s;
    s.plans.cancel = () => new Promise(() => undefined);
    await s.plan([{ stepId: "holder" }, { stepId: "slow", timeoutMs: 10_000 }]);
    await s.does(write(s, s.sessionOf("holder"), { "notes.md": "of holder\n" }));
    await s.clock.advance(1);
    const command = createShellCall(s, s.sessionOf("slow"), () => s.put("notes.md", "of slow\n"));
    const allowed = await s.ask(command);
    await s.clock.advance(20_000);
    await s.runs(command, allowed);
    await s.clock.advance(SETTINGS.sweepMs);
    expect(notices.map(({ question }) => question.title)).toEqual([
      "A command of step slow, which has ended, has overwritten a file that somebody else holds. Its holder keeps the file, whatever the answer. Look at what is in it, then approve.",
    ]);
  });
});
