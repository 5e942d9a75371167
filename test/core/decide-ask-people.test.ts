/** The time that people have for a question, and who hears of it. */
import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import {
  draftForwardingToPeople,
  draftQuestion,
  type EscalationSubject,
} from "../../src/agents/coordination/dispatch/ask-people.ts";
import { openOf } from "./claims-scene.ts";
import { openPlan, planScene } from "./planned-scene.ts";
import { OPEN, openScene, OWNER, timeAt } from "./scene.ts";

const DAY_MS = 24 * 3_600_000;
const NOTIFY = [{ channel: "chat", afterMs: 1_000 }];
const NOTICES = [{ channel: "chat", atMs: timeAt(1_000) }];
const question: EscalationSubject = { cause: "agent", kind: "clarification", answers: ["answer"] };

const openObserved = (questions?: object) => openOf(openScene({ ...OPEN, questions } as Command));
const openWithDeadline = (deadlineMs: number) =>
  openOf(planScene(openPlan({ steps: 1, plan: { escalateMs: 60_000, deadlineAtMs: timeAt(deadlineMs) } })));
const draftAt = (state: ReturnType<typeof openObserved>, rest: Partial<EscalationSubject> = {}) =>
  draftQuestion(state, { ...question, ...rest }, { now: timeAt(0) }).payload;

describe("the time for an answer", () => {
  it("is a day where nobody says otherwise, and nobody hears of the question", () => {
    expect(draftAt(openObserved())).toEqual({
      ...question,
      escalationId: "escalation-1",
      deadlineAtMs: timeAt(DAY_MS),
      onExpiry: "deny",
    });
  });

  it("is that of the configuration, or less where who asks wants less", () => {
    const state = openObserved({ answerMs: 60_000, notify: [] });
    expect(draftAt(state).deadlineAtMs).toBe(timeAt(60_000));
    expect(draftAt(state, { answerMs: 5_000 }).deadlineAtMs).toBe(timeAt(5_000));
    expect(draftAt(state, { answerMs: 90_000 }).deadlineAtMs).toBe(timeAt(60_000));
  });

  it("ends with the plan, and not later", () => {
    expect(draftAt(openWithDeadline(30_000)).deadlineAtMs).toBe(timeAt(30_000));
    expect(draftAt(openWithDeadline(90_000)).deadlineAtMs).toBe(timeAt(60_000));
  });
});

describe("notices of a question", () => {
  const state = openObserved({ answerMs: 60_000, notify: NOTIFY });

  it("go to people, unless the question goes to a session first", () => {
    expect(draftAt(state).notices).toEqual(NOTICES);
    expect(draftAt(state, { askedOf: OWNER })).not.toHaveProperty("notices");
  });

  it("go to people when the question is put to them later", () => {
    const { notices, ...payload } = draftAt(state);
    expect(notices).toEqual(NOTICES);
    expect(draftForwardingToPeople(state, payload, timeAt(0))).toEqual({
      type: "escalation.forwarded",
      payload: { escalationId: "escalation-1", deadlineAtMs: timeAt(60_000), notices: NOTICES },
    });
    expect(draftForwardingToPeople(openObserved(), payload, timeAt(0)).payload).toEqual({
      escalationId: "escalation-1",
      deadlineAtMs: timeAt(DAY_MS),
    });
  });
});
