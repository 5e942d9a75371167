import { describe, expect, it } from "vitest";
import { parseQuestionId } from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import { isTellingKey } from "../../src/agents/coordination/runtime/questions/tell-session.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { OWNER, createWorld } from "../support/fake-clock-host.ts";
import { endDone, createScriptedRunner } from "../support/scripted-runner.ts";
import { createEscalationsWith, listEvents, createGatesWith } from "./gates-world.ts";

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
