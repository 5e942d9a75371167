import { describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { createQuestionId } from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import { createOutputCall, edit, read, requireRefused, requireReview, write } from "./arbiter-calls.ts";
import {
  answersOf,
  openAskedScene,
  openAskingScene,
  closedOf,
  ESCALATE_MS,
  FIRST,
  answerQuestion,
  TELLS,
} from "./arbiter-hooks-scene.ts";
import { LEASE_MS, openScene, type Scene } from "./arbiter-scene.ts";

describe("a child's contested write where the host can ask nobody", () => {
  it("becomes a question to people, whose id the refused call is told", async () => {
    const { s, b, answer } = await openAskingScene();
    await using _ = s;
    expect(answer.sentence).toContain(`A person was asked (${FIRST})`);
    expect(answer.sentence).toContain("if they approve, make the same call again");
    expect(answer.conflictId).toBe("co-1:conflict-1");
    expect(s.events("coordination.escalated")).toMatchObject([
      {
        escalationId: "escalation-1",
        cause: "conflict",
        kind: "approval",
        stepId: "step-2",
        askedBy: b,
        answers: ["approve", "deny"],
        conflictId: "co-1:conflict-1",
        onExpiry: "deny",
      },
    ]);
    const [{ deadlineAtMs } = { deadlineAtMs: 0 }] = s.events("coordination.escalated");
    expect(s.events("conflict.detected")[0]?.contest?.reviewByMs).toBe(deadlineAtMs);
    expect(deadlineAtMs).toBe(s.clock.now() + ESCALATE_MS);
    expect(answersOf(s)).toEqual([]);
    expect(createQuestionId("co-1" as never, "escalation-1")).toBe(FIRST);
  });

  it("is the same question when the same call is made again", async () => {
    const { s, b } = await openAskingScene();
    await using _ = s;
    expect(requireRefused(await s.ask(write(s, b, { "notes.md": "b" }))).sentence).toContain(FIRST);
    await s.clock.advance(60_000);
    expect(requireRefused(await s.ask(write(s, b, { "notes.md": "other" }))).sentence).toContain(FIRST);
    expect(s.events("coordination.escalated")).toHaveLength(1);
    expect(s.events("conflict.detected")).toHaveLength(1);
  });

  it("is the same question after a restart", async () => {
    const { s, b } = await openAskingScene();
    await using _ = s;
    await s.restart();
    expect(requireRefused(await s.ask(write(s, b, { "notes.md": "b" }))).sentence).toContain(FIRST);
    expect(s.events("coordination.escalated")).toHaveLength(1);
  });

  it("happens once when they approve: the others' claims end and it holds one", async () => {
    const { s, a, b } = await openAskingScene();
    await using _ = s;
    expect(await answerQuestion(s, "approve")).toBe("approved");
    expect(s.events("conflict.resolved")).toMatchObject([
      { winner: "step-2", losers: ["step-1"], rule: "people", because: "approved" },
    ]);
    expect(await s.holders("notes.md")).toEqual(["co-1/step-2"]);
    expect((await s.ask(write(s, a, { "notes.md": "a2" }))).kind).toBe("refused");
    expect((await s.does(write(s, b, { "notes.md": "b" }))).kind).toBe("granted");
    expect(s.text("notes.md")).toBe("b");
  });

  it("happens once, also where its session has claimed the folder around it", async () => {
    const s = await openAskedScene();
    await using _ = s;
    const a = await s.child("a");
    s.put("dist/notes.md", "1");
    await s.does(createOutputCall(s, a, "dist"));
    await s.does(read(s, a, "dist/notes.md"));
    s.put("dist/notes.md", "of somebody outside");
    const call = write(s, a, { "dist/notes.md": "a" });
    requireRefused(await s.ask(call));
    expect(await answerQuestion(s, "approve")).toBe("approved");
    expect((await s.does({ ...call, callKey: "again" })).kind).toBe("granted");
    expect(s.events("resource.changed").at(-1)).toMatchObject({ stepId: "step-1", token: 2 });
  });

  it("stays refused where the claim of its approval was released, also with a claim on the folder", async () => {
    const s = await openAskedScene();
    await using _ = s;
    const a = await s.child("a");
    s.put("dist/notes.md", "1");
    await s.does(createOutputCall(s, a, "dist"));
    await s.does(read(s, a, "dist/notes.md"));
    s.put("dist/notes.md", "of somebody outside");
    const call = write(s, a, { "dist/notes.md": "a" });
    requireRefused(await s.ask(call));
    expect(await answerQuestion(s, "approve")).toBe("approved");
    expect(await s.coordinator.arbiter.release(2)).toEqual({ runId: "co-1" });
    expect((await s.ask({ ...call, callKey: "again" })).kind).toBe("refused");
  });

  it("takes it also from a step of another coordination", async () => {
    const s = await openAskedScene();
    await using _ = s;
    const a = await s.child("a", { trace: "trace-2", source: "agent:main:other" as SessionKey });
    const b = await s.child("b");
    await s.does(write(s, a, { "notes.md": "a" }));
    const { sentence } = requireRefused(await s.ask(write(s, b, { "notes.md": "b" })));
    const [, questionId] = /asked \(([^)]+)\)/u.exec(sentence) ?? [];
    expect(await answerQuestion(s, "approve", questionId)).toBe("approved");
    expect((await s.does(write(s, b, { "notes.md": "b" }))).kind).toBe("granted");
    expect(await s.holders("notes.md")).toEqual(["co-2/step-1"]);
  });

  it("stays refused when they deny, and the next call is another question", async () => {
    const { s, a, b } = await openAskingScene();
    await using _ = s;
    expect(await answerQuestion(s, "deny")).toBe("denied");
    expect(answersOf(s)).toEqual(["denied"]);
    expect(await s.holders("notes.md")).toEqual(["co-1/step-1"]);
    expect((await s.does(write(s, a, { "notes.md": "a2" }))).kind).toBe("granted");
    expect(requireRefused(await s.ask(write(s, b, { "notes.md": "b" }))).sentence).toContain(
      "co-1:escalation-2",
    );
  });

  it("stays refused when nobody answers in time, also after a restart", async () => {
    for (const isRestarted of [false, true]) {
      const { s } = await openAskingScene({ settings: { escalateMs: 10_000, stepTimeoutMs: 600_000 } });
      await using _ = s;
      if (isRestarted) await s.restart();
      await s.clock.advance(9_000);
      expect(answersOf(s)).toEqual([]);
      await s.clock.advance(80_000);
      expect(answersOf(s)).toEqual(["unanswered"]);
      expect(closedOf(s)).toEqual(["expired"]);
      expect(await answerQuestion(s, "approve")).toBe("QUESTION_CLOSED");
      expect(answersOf(s)).toEqual(["unanswered"]);
    }
  });

  it("is withdrawn with its question when its step ends", async () => {
    const { s, b } = await openAskingScene();
    await using _ = s;
    await s.ends(b);
    expect(answersOf(s)).toEqual(["withdrawn"]);
    expect(closedOf(s)).toEqual(["cancelled"]);
    expect(await answerQuestion(s, "approve")).toBe("QUESTION_CLOSED");
    expect(await s.holders("notes.md")).toEqual(["co-1/step-1"]);
  });

  it("is approved for as long as a lease", async () => {
    const { s, a, b } = await openAskingScene();
    await using _ = s;
    await answerQuestion(s, "approve");
    await s.clock.advance(LEASE_MS + 1);
    await s.does(read(s, a, "notes.md"));
    await s.does(write(s, a, { "notes.md": "a2" }));
    expect(requireRefused(await s.ask(write(s, b, { "notes.md": "b" }))).sentence).toContain(
      "co-1:escalation-2",
    );
  });

  it("is not put to people where nobody is told of questions", async () => {
    await using s = await openScene({ conflicts: { strategy: "manual_review" } });
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(write(s, a, { "notes.md": "a" }));
    const { sentence } = requireRefused(await s.ask(write(s, b, { "notes.md": "b" })));
    expect(sentence).toContain("nobody can be asked from here");
    expect(s.events("coordination.escalated")).toEqual([]);
  });

  it("is not put to people where its agent can mend it", async () => {
    const s = await openAskedScene({ conflicts: { strategy: "merge_if_safe" } });
    await using _ = s;
    s.put("notes.md", "one\n");
    const [a, b] = [await s.child("a"), await s.child("b")];
    for (const session of [a, b]) await s.does(read(s, session, "notes.md"));
    await s.does(edit(s, a, ["notes.md", "one", "a"]));
    s.put("notes.md", "a\n");
    const { sentence } = requireRefused(await s.ask(write(s, b, { "notes.md": "b\n" })));
    expect(sentence).toContain("Read it again");
    expect(s.events("coordination.escalated")).toEqual([]);
  });

  it("is not put to people where something else of the same call has to be mended first", async () => {
    const overrides = [{ resource: "1.md", strategy: "manual_review" as const }];
    const s = await openAskedScene({ conflicts: { strategy: "merge_if_safe", overrides } });
    await using _ = s;
    const [a, b] = [await s.child("a"), await s.child("b")];
    await s.does(write(s, a, { "1.md": "a", "2.md": "a" }));
    const { sentence } = requireRefused(await s.ask(write(s, b, { "1.md": "b", "2.md": "b" })));
    expect(sentence).toMatch(/2\.md .*Read it again/u);
    expect(s.events("coordination.escalated")).toEqual([]);
  });

  it("asks about everything that the call would change, up to a bound", async () => {
    const s = await openAskedScene();
    await using _ = s;
    const [a, b] = [await s.child("a"), await s.child("b")];
    const createNames = (count: number, text: string): Record<string, string> =>
      Object.fromEntries(Array.from({ length: count }, (_each, index) => [`${index}.md`, text]));
    await s.does(write(s, a, createNames(17, "a")));
    expect(requireRefused(await s.ask(write(s, b, createNames(17, "b")))).sentence).toContain(
      "nobody can be asked",
    );
    expect(s.events("coordination.escalated")).toEqual([]);
    expect(requireRefused(await s.ask(write(s, b, createNames(2, "b")))).sentence).toContain(
      "(co-1:escalation-1, co-1:escalation-2)",
    );
    await answerQuestion(s, "approve");
    expect(requireRefused(await s.ask(write(s, b, createNames(2, "b")))).sentence).toContain(
      "(co-1:escalation-2)",
    );
    await answerQuestion(s, "approve", "co-1:escalation-2");
    expect((await s.does(write(s, b, createNames(2, "b")))).kind).toBe("granted");
    expect(s.events("coordination.escalated")).toHaveLength(2);
  });

  it("may not be approved by the session that asked, where another one must", async () => {
    const { escalations } = TELLS;
    const different = { ...TELLS, escalations: { ...escalations, requireDifferentApprover: true } };
    const { s, b } = await openAskingScene({ dependencies: different });
    await using _ = s;
    const by = { kind: "person", session: b } as const;
    const answered = await s.coordinator.answer({
      questionId: FIRST,
      answer: "approve",
      by,
      through: "chat",
    });
    expect(answered).toMatchObject({ kind: "refused", code: "ANSWER_REFUSED" });
    expect(answersOf(s)).toEqual([]);
  });
});

describe("an owner's contested write where the host asked nobody", () => {
  async function openUnanswerableScene(): Promise<{ s: Scene; a: SessionKey }> {
    const s = await openAskedScene();
    const a = await s.child("a");
    await s.does(write(s, a, { "notes.md": "a" }));
    await requireReview(await s.ask(write(s, OWNER, { "notes.md": "o" }))).settle("nobody_to_ask");
    return { s, a };
  }

  it("becomes a question with the next call, which outlasts the turn", async () => {
    const { s } = await openUnanswerableScene();
    await using _ = s;
    expect(requireRefused(await s.ask(write(s, OWNER, { "notes.md": "o" }))).sentence).toContain(FIRST);
    const [question] = s.events("coordination.escalated");
    expect(question).toMatchObject({ cause: "conflict", askedBy: OWNER });
    expect(question).not.toHaveProperty("stepId");
    s.coordinator.turnBegan(OWNER, "run-1");
    await s.coordinator.turnEnded(OWNER, "run-1");
    expect(closedOf(s)).toEqual([]);
    await answerQuestion(s, "approve");
    s.coordinator.turnBegan(OWNER, "run-2");
    expect((await s.does(write(s, OWNER, { "notes.md": "o" }))).kind).toBe("granted");
  });

  it("keeps what was approved over a turn in which nothing was done with it, and no longer", async () => {
    const { s } = await openUnanswerableScene();
    await using _ = s;
    requireRefused(await s.ask(write(s, OWNER, { "notes.md": "o" })));
    s.coordinator.turnBegan(OWNER, "run-1");
    await answerQuestion(s, "approve");
    await s.coordinator.turnEnded(OWNER, "run-1");
    expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
    s.coordinator.turnBegan(OWNER, "run-2");
    await s.clock.advance(1);
    await s.does(write(s, OWNER, { "notes.md": "o" }));
    await s.coordinator.turnEnded(OWNER, "run-2");
    expect(await s.holders("notes.md")).toEqual([]);
  });

  it("does not keep a claim that was made after the approved one had ended", async () => {
    const { s } = await openUnanswerableScene();
    await using _ = s;
    requireRefused(await s.ask(write(s, OWNER, { "notes.md": "o" })));
    await answerQuestion(s, "approve");
    await s.clock.advance(LEASE_MS + 1);
    s.coordinator.turnBegan(OWNER, "run-1");
    await s.does(read(s, OWNER, "notes.md"));
    expect((await s.does(write(s, OWNER, { "notes.md": "a" }))).kind).toBe("granted");
    expect(await s.holders("notes.md")).toEqual(["co-1/@owner"]);
    await s.coordinator.turnEnded(OWNER, "run-1");
    expect(await s.holders("notes.md")).toEqual([]);
  });

  it("is closed with the coordination", async () => {
    const { s, a } = await openUnanswerableScene();
    await using _ = s;
    requireRefused(await s.ask(write(s, OWNER, { "notes.md": "o" })));
    await s.coordinator.cancel({ coordinationId: "co-1" as never, by: "operator" });
    await s.ends(a, "cancelled");
    await s.clock.advance(600_000);
    expect(closedOf(s)).toEqual(["cancelled"]);
    expect(answersOf(s)).toEqual(["nobody-to-ask", "withdrawn"]);
  });
});
