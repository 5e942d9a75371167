import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import {
  answer as settle,
  asks,
  contest,
  contestant,
  holder,
  NOTES,
  payloadsOf,
  request,
  saidOf,
} from "./claims-scene.ts";
import { ack, given, OPEN, spawn, type Scene } from "./scene.ts";

const QUESTIONS = { answerMs: 60_000, notify: [{ channel: "chat", afterMs: 0 }] };
const opened = { ...OPEN, questions: QUESTIONS } as Command;

const wanted = request(
  1,
  asks(NOTES, 2, {
    contest: contest([holder(2, 1), contestant(1, 2)], { strategy: "manual_review", asksPeople: true }),
  }),
);

function asking(): Scene {
  const steps = [spawn("call-1"), ack(1), spawn("call-2"), ack(2)];
  return given(opened, ...steps, request(2, asks(NOTES, 1)), wanted);
}

const answered = (answer: "approve" | "deny"): Command => ({
  type: "answerEscalation",
  escalationId: "escalation-1",
  answer,
  by: { kind: "operator" },
  through: "cli",
});

describe("the log of a question about a write", () => {
  it("has the conflict and the question in one append, and the same call again adds nothing", () => {
    const scene = asking();
    expect(payloadsOf(scene.log, "conflict.detected")).toHaveLength(1);
    expect(payloadsOf(scene.log, "coordination.escalated")).toHaveLength(1);
    expect(payloadsOf(scene.log, "conflict.resolved")).toEqual([]);
    expect(scene.when(wanted).kind).toBe("replay");
  });

  it("has the answer and what it resolves in one append, and no resolution before a claim", () => {
    expect(saidOf(asking().when(answered("deny")))).toEqual([
      "escalation.answered",
      "escalation.closed",
      "conflict.resolved",
    ]);
    expect(saidOf(asking().when(answered("approve")))).toEqual(["escalation.answered", "escalation.closed"]);
  });

  it("has one resolution also where the conflict was settled before the answer came", () => {
    const scene = asking();
    expect(scene.when(settle(1, "withdrawn")).kind).toBe("accepted");
    expect(saidOf(scene.when(answered("deny")))).toEqual(["escalation.answered", "escalation.closed"]);
  });

  it("has another question where the one before is closed and nothing came of it", () => {
    const scene = asking();
    scene.when(answered("approve"));
    expect(saidOf(scene.when(wanted))).toEqual(["conflict.detected", "coordination.escalated"]);
  });
});
