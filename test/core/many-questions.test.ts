import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { planDispatch } from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import { parseQuestionId } from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import { isTellingKey } from "../../src/agents/coordination/runtime/questions/tell-session.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { OWNER, createWorld } from "../support/fake-clock-host.ts";
import { endDone, createScriptedRunner } from "../support/scripted-runner.ts";
import { ask } from "./gates-scene.ts";
import { createEscalationsWith, listEvents, createGatesWith } from "./gates-world.ts";
import { admit, openPlan, planScene, planStep } from "./planned-scene.ts";
import { timeAt } from "./scene.ts";

const MANY = 1_000;
const HOUR_MS = 3_600_000;

describe("a thousand open questions", () => {
  it("are answered or expire, each once, and every answer is told once, in bounded time", async () => {
    const world = createWorld(
      {},
      createScriptedRunner(() => endDone()),
      {
        gates: createGatesWith([]),
        escalations: createEscalationsWith({ openMax: MANY }),
      },
    );
    const coordinator = world.start();
    await coordinator.start();
    const begun = performance.now();
    const ids: string[] = [];
    for (let number = 0; number < MANY; number += 1) {
      const question = await coordinator.ask({
        askedBy: OWNER,
        agentId: "main",
        kind: "approval",
        question: `May I do ${number}?`,
        answerMs: HOUR_MS,
      });
      if (question.kind === "refused") throw new Error(question.reason);
      ids.push(question.questionId);
    }
    const more = { askedBy: OWNER, agentId: "main", kind: "approval", question: "One more?" } as const;
    expect(await coordinator.ask(more)).toMatchObject({ kind: "refused", code: "TOO_MANY_QUESTIONS" });
    const isAnswered = (_: unknown, index: number): boolean => index % 3 === 0;
    for (const questionId of ids.filter(isAnswered)) {
      const answer = { questionId, answer: "approve", by: { kind: "operator" }, through: "cli" } as const;
      expect(await coordinator.answer(answer)).toMatchObject({ kind: "accepted", resolution: "approved" });
    }
    world.clock.jump(world.clock.now() + HOUR_MS);
    for (let turn = 0; turn < 100 && listEvents(world, "session.told").length < MANY; turn += 1) {
      await world.clock.advance(1_000);
      await waitUntilSettled();
    }
    const tookMs = performance.now() - begun;
    const closed = listEvents(world, "escalation.closed").map(({ payload }) => payload);
    expect(closed).toHaveLength(MANY);
    expect(new Set(closed.map(({ escalationId }) => escalationId)).size).toBe(MANY);
    expect(
      closed.filter(({ resolution }) => resolution === "approved").map(({ escalationId }) => escalationId),
    ).toEqual(ids.filter(isAnswered).map((id) => parseQuestionId(id)?.escalationId));
    expect(closed.filter(({ resolution }) => resolution === "expired")).toHaveLength(666);
    const orders = world.plans.orders.filter(({ idempotencyKey }) => isTellingKey(idempotencyKey));
    expect(orders).toHaveLength(MANY);
    expect(new Set(orders.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(MANY);
    expect(listEvents(world, "session.told")).toHaveLength(MANY);
    // 1.3 s of one core; what grows with the square of the questions takes a minute.
    expect(tookMs).toBeLessThan(20_000);
    await coordinator.stop();
  });
});

describe("a thousand open questions with five notices each", () => {
  it("are planned in the time of a blink", () => {
    const notify = [0, 1, 2, 3, 4].map((number) => ({
      channel: `webhook:w${number}`,
      afterMs: number * 1_000,
    }));
    const opening = { ...openPlan({ steps: 1 }), questions: { answerMs: HOUR_MS, notify } } as Command;
    const scene = planScene(opening, admit(planStep("a")));
    for (let number = 0; number < MANY; number += 1) {
      const question = { sha256: number.toString(16).padStart(64, "0"), bytes: 1 };
      scene.when(ask({ openMax: 5_000, question }), 1_000);
    }
    expect(scene.open.openQuestions.size).toBe(MANY);
    const times = Array.from({ length: 9 }, () => {
      const begun = performance.now();
      expect(planDispatch(scene.state, timeAt(30_000))).toHaveLength(6);
      return performance.now() - begun;
    });
    expect(times.toSorted((a, b) => a - b)[4]).toBeLessThan(20);
  });
});
