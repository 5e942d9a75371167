import { describe, expect, it } from "vitest";
import { parseQuestionId } from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import { isTellingKey } from "../../src/agents/coordination/runtime/questions/tell-session.ts";
import { settled } from "../support/fake-clock.ts";
import { OWNER, world } from "../support/fake-clock-host.ts";
import { done, scriptedRunner } from "../support/scripted-runner.ts";
import { escalationsWith, eventsIn, gatesWith } from "./gates-world.ts";

const MANY = 1_000;
const HOUR_MS = 3_600_000;

describe("a thousand open questions", () => {
  it("are answered or expire, each once, and every answer is told once, in bounded time", async () => {
    const it = world(
      {},
      scriptedRunner(() => done()),
      {
        gates: gatesWith([]),
        escalations: escalationsWith({ openMax: MANY }),
      },
    );
    const coordinator = it.start();
    await coordinator.start();
    const begun = performance.now();
    const ids: string[] = [];
    for (let number = 0; number < MANY; number += 1) {
      const asked = await coordinator.ask({
        askedBy: OWNER,
        agentId: "main",
        kind: "approval",
        question: `May I do ${number}?`,
        answerMs: HOUR_MS,
      });
      if (asked.kind === "refused") throw new Error(asked.reason);
      ids.push(asked.questionId);
    }
    const more = { askedBy: OWNER, agentId: "main", kind: "approval", question: "One more?" } as const;
    expect(await coordinator.ask(more)).toMatchObject({ kind: "refused", code: "TOO_MANY_QUESTIONS" });
    const isAnswered = (_: unknown, index: number): boolean => index % 3 === 0;
    for (const questionId of ids.filter(isAnswered)) {
      const answer = { questionId, answer: "approve", by: { kind: "operator" }, through: "cli" } as const;
      expect(await coordinator.answer(answer)).toMatchObject({ kind: "accepted", resolution: "approved" });
    }
    it.clock.jump(it.clock.now() + HOUR_MS);
    for (let turn = 0; turn < 100 && eventsIn(it, "session.told").length < MANY; turn += 1) {
      await it.clock.advance(1_000);
      await settled();
    }
    const tookMs = performance.now() - begun;
    const closed = eventsIn(it, "escalation.closed").map(({ payload }) => payload);
    expect(closed).toHaveLength(MANY);
    expect(new Set(closed.map(({ escalationId }) => escalationId)).size).toBe(MANY);
    expect(
      closed.filter(({ resolution }) => resolution === "approved").map(({ escalationId }) => escalationId),
    ).toEqual(ids.filter(isAnswered).map((id) => parseQuestionId(id)?.escalationId));
    expect(closed.filter(({ resolution }) => resolution === "expired")).toHaveLength(666);
    const told = it.plans.orders.filter(({ idempotencyKey }) => isTellingKey(idempotencyKey));
    expect(told).toHaveLength(MANY);
    expect(new Set(told.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(MANY);
    expect(eventsIn(it, "session.told")).toHaveLength(MANY);
    // 1.3 s of one core; what grows with the square of the questions takes a minute.
    expect(tookMs).toBeLessThan(20_000);
    await coordinator.stop();
  });
});
