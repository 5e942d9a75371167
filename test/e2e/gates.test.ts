/** Held results of a model's own spawns: kept from everybody, released, replaced or withheld by people. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { renderScript, textOf } from "../support/scripted-model.ts";
import {
  answer,
  expectHeardOnce,
  expectKept,
  findChildOfStep,
  HELD_BACK,
  factsOf,
  openGateStage,
  ownerOf,
  requestsOf,
  secretOf,
  sendChat,
  spawnDoubting,
  spawnFrom,
  waitForEnd,
  waitForQuestion,
  waitUntilAnnounced,
  type GateStage,
} from "./gates-stage.ts";
import { stepNamed } from "./stage.ts";
import { turnFlagOrRestart } from "./turn-flag.ts";

let stage: GateStage;

beforeAll(async () => {
  stage = await openGateStage();
});

afterAll(() => stage.close());

const describeWithheld = (label: string): string =>
  `result of the subagent "${label}" (step step-1, agent main) was withheld`;

describe("a child that doubts its result", () => {
  it("is kept from its parent's model and from every file, until a command in the chat releases it", async () => {
    const label = "chatted";
    const { questionId, child, confidence } = await spawnDoubting(stage, label);
    expect(confidence).toEqual({ measured: 4_000, floor: 7_000, of: "result" });
    const announced = await waitUntilAnnounced(stage, child);
    expect(JSON.stringify(announced.body)).toContain(HELD_BACK);
    expect(requestsOf(stage, child)).toHaveLength(1);
    expectKept(stage, secretOf(label), child);
    await sendChat(stage, label, `/coordination approve ${questionId}`);
    const state = await waitForEnd(stage, label);
    expect(state).toMatchObject({ kind: "ended", status: "success" });
    expect(stepNamed(state, label).phase).toMatchObject({ status: "completed", released: "approved" });
    const [answered] = await factsOf(stage, state, "escalation.answered");
    expect(answered).toMatchObject({ answer: "approve", through: "chat", by: { kind: "person" } });
    await expectHeardOnce(stage, state, { label, text: secretOf(label) });
  });

  it("is not shown by the tools that show other sessions, however its parent asks", async () => {
    const label = "peeked";
    const { questionId, child } = await spawnDoubting(stage, label);
    await waitUntilAnnounced(stage, child);
    const peeking = renderScript(
      {
        call: [
          { name: "sessions_history", args: { sessionKey: child, includeTools: true } },
          // The host leaves out all messages where those of the sessions that it lists are too long together.
          { name: "sessions_list", args: { messageLimit: 5, search: label } },
          { name: "subagents", args: { action: "list" } },
        ],
      },
      { say: "peeked" },
    );
    await stage.gateway.agent({ sessionKey: ownerOf(label), message: peeking });
    const read = stage.model.requests.findLast(({ turn }) => turn.say === "peeked");
    const results = read?.body.messages.filter(({ role }) => role === "tool").map(textOf) ?? [];
    expect(results.slice(-3).map((result) => result.includes(HELD_BACK))).toEqual([true, true, true]);
    expectKept(stage, secretOf(label), child);
    await answer(stage, questionId, "approve");
    await expectHeardOnce(stage, await waitForEnd(stage, label), { label, text: secretOf(label) });
  });

  it("is withheld for good when people deny it, and its parent is told once", async () => {
    const label = "denied";
    const { questionId, child } = await spawnDoubting(stage, label);
    await waitUntilAnnounced(stage, child);
    await answer(stage, questionId, "deny");
    const state = await waitForEnd(stage, label);
    expect(stepNamed(state, label).phase).toMatchObject({ status: "failed", error: { code: "withheld" } });
    await expectHeardOnce(stage, state, { label, text: describeWithheld(label) });
    expectKept(stage, secretOf(label), child);
  });

  it("is replaced by what people answer, and only that is told", async () => {
    const label = "replaced";
    const { questionId, child } = await spawnDoubting(stage, label);
    await waitUntilAnnounced(stage, child);
    await answer(stage, questionId, "answer", "It is forty-two.");
    const state = await waitForEnd(stage, label);
    expect(stepNamed(state, label).phase).toMatchObject({ status: "completed", released: "replaced" });
    await expectHeardOnce(stage, state, { label, text: "It is forty-two." });
    expectKept(stage, secretOf(label), child);
  });

  it("passes where what it states is enough, and nobody is asked", async () => {
    const label = "sure";
    await spawnFrom(stage, label, [{ say: `It is ${secretOf(label)}.\n{"confidence": 0.7}` }]);
    const state = await waitForEnd(stage, label);
    expect(stepNamed(state, label).phase).toMatchObject({ status: "completed", attempt: 1 });
    expect(state.escalations.size).toBe(0);
    const announced = await waitUntilAnnounced(stage, findChildOfStep(state, label));
    expect(JSON.stringify(announced.body)).toContain(secretOf(label));
  });
});

describe("a child that reports its doubt by tool", () => {
  it("has its tools called with what it wrote, and only its words are held", async () => {
    const label = "reporter";
    const outputs = { found: "something" };
    const file = join(stage.gateway.home, "workspace", "by-reporter.txt");
    await spawnFrom(stage, label, [
      { say: "Now I write.", call: [{ name: "write", args: { path: file, content: "written\n" } }] },
      { call: [{ name: "coordination_report", args: { outcome: "completed", confidence: 0.3, outputs } }] },
      { say: `I said ${secretOf(label)}.` },
    ]);
    const { state, questionId, confidence } = await waitForQuestion(stage, label);
    const child = findChildOfStep(state, label);
    expect(existsSync(file) && readFileSync(file, "utf8")).toBe("written\n");
    expect(confidence).toMatchObject({ measured: 3_000 });
    await waitUntilAnnounced(stage, child);
    expectKept(stage, secretOf(label), child);
    expect(JSON.stringify(requestsOf(stage, child).at(-1)?.body)).toContain("something");
    await answer(stage, questionId, "approve");
    await expectHeardOnce(stage, await waitForEnd(stage, label), { label, text: secretOf(label) });
  });
});

describe("a question that nobody answers", () => {
  beforeAll(() => turnFlagOrRestart(stage, { enabled: true, phase1: { escalateMs: 2_000 } }));

  it("counts as denied when its time is over: the result stays withheld, and the parent is told once", async () => {
    const label = "expired";
    const { questionId, child } = await spawnDoubting(stage, label);
    const state = await waitForEnd(stage, label);
    expect(stepNamed(state, label).phase).toMatchObject({ status: "failed", error: { code: "withheld" } });
    await expectHeardOnce(stage, state, { label, text: describeWithheld(label) });
    const late = await answer(stage, questionId, "approve").catch((error: unknown) => String(error));
    expect(late).toContain("closed already");
    expectKept(stage, secretOf(label), child);
  });
});
