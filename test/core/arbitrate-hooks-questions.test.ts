import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import {
  answer as settle,
  createAsk,
  createContest,
  createContestant,
  createHolder,
  NOTES,
  payloadsOf,
  request,
  describeDecision,
} from "./claims-scene.ts";
import { acknowledge, openScene, OPEN, spawn, type Scene } from "./scene.ts";

const QUESTIONS = { answerMs: 60_000, notify: [{ channel: "chat", afterMs: 0 }] };
const opened = { ...OPEN, questions: QUESTIONS } as Command;

const wanted = request(
  1,
  createAsk(NOTES, 2, {
    contest: createContest([createHolder(2, 1), createContestant(1, 2)], {
      strategy: "manual_review",
      asksPeople: true,
    }),
  }),
);

function createAskingScene(): Scene {
  const steps = [spawn("call-1"), acknowledge(1), spawn("call-2"), acknowledge(2)];
  return openScene(opened, ...steps, request(2, createAsk(NOTES, 1)), wanted);
}

const createAnswer = (answer: "approve" | "deny"): Command => ({
  type: "answerEscalation",
  escalationId: "escalation-1",
  answer,
  by: { kind: "operator" },
  through: "cli",
});

describe("the log of a question about a write", () => {
  it("has the conflict and the question in one append, and the same call again adds nothing", () => {
    const scene = createAskingScene();
    expect(payloadsOf(scene.log, "conflict.detected")).toHaveLength(1);
    expect(payloadsOf(scene.log, "coordination.escalated")).toHaveLength(1);
    expect(payloadsOf(scene.log, "conflict.resolved")).toEqual([]);
    expect(scene.when(wanted).kind).toBe("replay");
  });

  it("has the answer and what it resolves in one append, and no resolution before a claim", () => {
    expect(describeDecision(createAskingScene().when(createAnswer("deny")))).toEqual([
      "escalation.answered",
      "escalation.closed",
      "conflict.resolved",
    ]);
    expect(describeDecision(createAskingScene().when(createAnswer("approve")))).toEqual([
      "escalation.answered",
      "escalation.closed",
    ]);
  });

  it("has one resolution also where the conflict was settled before the answer came", () => {
    const scene = createAskingScene();
    expect(scene.when(settle(1, "withdrawn")).kind).toBe("accepted");
    expect(describeDecision(scene.when(createAnswer("deny")))).toEqual([
      "escalation.answered",
      "escalation.closed",
    ]);
  });

  it("has another question where the one before is closed and nothing came of it", () => {
    const scene = createAskingScene();
    scene.when(createAnswer("approve"));
    expect(describeDecision(scene.when(wanted))).toEqual(["conflict.detected", "coordination.escalated"]);
  });
});
