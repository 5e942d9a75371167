/** Owns: words of a gated agent that would leave by a question before its result is ruled on. */
import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { ChannelNotice } from "../../src/agents/coordination/ports/human-channel.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { createQuestionReport, type QuestionReport } from "../../src/plugins/reports/question-report.ts";
import { answerByOperator, handleQuestions } from "../../src/plugins/openclaw/questions/question-methods.ts";
import type { UsePlans } from "../../src/plugins/openclaw/runtime-access/plan-access.ts";
import {
  createEscalationsWith,
  createGatesWith,
  waitUntilQuiet,
  createRuling,
  createScriptedChannel,
  createScriptedVerifier,
  spawnChild,
  type SpawnedChild,
} from "../core/gates-world.ts";
import { call, createGatedHost } from "../plugin/gates-scene.ts";
import { createWorld, OWNER, type World } from "../support/fake-clock-host.ts";
import { endDone, createScriptedRunner } from "../support/scripted-runner.ts";

const RESULT = "the vein is under the old mill";
const OPTION = "dig at the old mill";

interface Stage {
  readonly scene: World;
  readonly coordinator: Coordinator;
  readonly child: SpawnedChild;
  readonly notices: ChannelNotice[];
  readonly questionId: string;
  readonly report: (isForOperator: boolean) => Promise<QuestionReport>;
  /** All that chats and clients of the gateway are told of the question. */
  readonly shown: () => Promise<string>;
  readonly use: UsePlans;
}

async function openStage(checks: readonly string[], rest: object = {}): Promise<Stage> {
  const { channel, notices } = createScriptedChannel();
  const { verifier } = createScriptedVerifier(() => createRuling("pass"));
  const scene = createWorld(
    {},
    createScriptedRunner(() => endDone()),
    {
      gates: createGatesWith(checks, rest),
      escalations: createEscalationsWith({ notify: [{ channel: "chat" }] }),
      channelOf: () => channel,
      verifier,
    },
  );
  const coordinator = scene.start();
  await coordinator.start();
  const child = await spawnChild(scene, coordinator);
  const question = await coordinator.ask({
    askedBy: child.session,
    agentId: "main",
    kind: "clarification",
    question: `May I say that ${RESULT}?`,
    options: [OPTION, "nowhere"],
    otherwise: RESULT,
  });
  if (question.kind === "refused") throw new Error(question.reason);
  await waitUntilQuiet(scene);
  const content = scene.ledger.open(scene.clock);
  const viewNow = async () => {
    const view = await coordinator.view("co-1" as CoordinationId);
    const question = view?.escalations.at(-1) ?? expect.fail("nobody asked");
    return { view: view ?? expect.fail("no coordination"), question };
  };
  const report: Stage["report"] = async (isForOperator) =>
    createQuestionReport(content, await viewNow(), { isForOperator });
  const reads = {
    get: (sha256: string) => content.get(sha256),
    view: (id: CoordinationId) => coordinator.view(id),
    askers: () => Promise.resolve([]),
  };
  const use = ((work: (...args: unknown[]) => unknown) =>
    work(coordinator, {
      coordinator: () => Promise.resolve({ ...coordinator, reads }),
      config: { escalations: {} },
    })) as unknown as UsePlans;
  return {
    scene,
    coordinator,
    child,
    notices,
    questionId: question.questionId,
    report,
    use,
    shown: async () => JSON.stringify(await handleQuestions(use, { coordinationId: "co-1", which: "all" })),
  };
}

const STRICT = [
  ["checks", ["lint"], {}],
  ["a demanded confidence", [], { requireConfidence: true }],
] as const;

describe.each(STRICT)("a question of an agent under %s", (_, checks, rest) => {
  it("is told to people without its words, and with where they are", async () => {
    const { notices, coordinator, questionId } = await openStage(checks, rest);
    expect(notices).toHaveLength(1);
    const [notice = expect.fail("nobody was told")] = notices;
    expect(JSON.stringify(notice)).not.toMatch(/old mill/u);
    expect(notice.question.title).toContain("withheld");
    expect(notice.question.title).toContain(`questions show ${questionId}`);
    await coordinator.stop();
  });

  it("is shown without its words by the gateway, and with them to operators who read the ledger", async () => {
    const { report, shown, coordinator } = await openStage(checks, rest);
    const message = await shown();
    expect(message).toContain('"wordsWithheld":true');
    expect(message).not.toMatch(/old mill/u);
    expect(JSON.stringify(await report(false))).not.toMatch(/old mill/u);
    expect((await report(true)).asked).toEqual({
      question: `May I say that ${RESULT}?`,
      options: [OPTION, "nowhere"],
      otherwise: RESULT,
    });
    await coordinator.stop();
  });

  it("can be answered, and a wrong answer is not told the options", async () => {
    const { coordinator, questionId, child, use } = await openStage(checks, rest);
    const by = { kind: "person", id: "ada" } as const;
    const answer = (text: string) =>
      coordinator.answer({ questionId, answer: "answer", text, by, through: "chat" });
    const refused = await answer("somewhere else");
    expect(refused.kind).toBe("refused");
    expect(JSON.stringify(refused)).not.toMatch(/old mill/u);
    expect(JSON.stringify(refused)).toContain("withheld");
    for (const guess of ["1", "dig…"]) expect(await answer(guess)).toEqual(refused);
    const accepted = await answerByOperator(use, { questionId, answer: "answer", text: OPTION }, {});
    expect(accepted).toMatchObject({ ok: true, payload: { happened: "the agent is told your answer" } });
    expect(await coordinator.outcome(questionId, 0)).toMatchObject({ kind: "closed" });
    expect(child.session).toContain("subagent");
    await coordinator.stop();
  });
});

it("a held result is told with its size, and its hash to operators who read the ledger alone", async () => {
  const { scene, child, report, shown, coordinator } = await openStage(["lint"]);
  await coordinator.report(child.session, {
    outcome: "completed",
    outputs: { place: RESULT },
    confidence: 0.1,
  });
  await child.ends();
  await waitUntilQuiet(scene);
  await waitUntilQuiet(scene);
  const text = JSON.stringify({ place: RESULT });
  const sha256 = hash("sha256", text);
  expect((await report(true)).result).toEqual({ bytes: text.length, sha256 });
  expect((await report(false)).result).toEqual({ bytes: text.length });
  expect(await shown()).not.toContain(sha256);
  await coordinator.stop();
});

it("held words are told as a held result is", async () => {
  const { scene, child, report, shown, coordinator } = await openStage(["lint"]);
  await child.says(`I guess that ${RESULT}.\n{"confidence": 0.1}`);
  await child.ends();
  await waitUntilQuiet(scene);
  await waitUntilQuiet(scene);
  const { result } = await report(true);
  expect(result).toMatchObject({ sha256: expect.any(String) as string });
  expect((await report(false)).result).toEqual({ bytes: result?.bytes });
  expect(await shown()).toContain('"result":{"bytes":');
  expect(await shown()).not.toContain(result?.sha256);
  await coordinator.stop();
});

describe("a question of an agent", () => {
  it("is in no transcript that other sessions may read, while its result is held back", async () => {
    const { coordinator, child } = await openStage(["lint"]);
    const host = createGatedHost(coordinator);
    await host.begins(child.session);
    const asking = call("coordination_escalate", { question: RESULT, options: [OPTION], otherwise: RESULT });
    const written = await host.says(child.session, [asking], { stopReason: "toolUse" });
    expect(JSON.stringify(written)).toContain("coordination_escalate");
    expect(JSON.stringify(written)).not.toMatch(/old mill/u);
    await coordinator.stop();
  });

  it("has its words again when its result is let through", async () => {
    const { scene, child, shown, coordinator } = await openStage(["lint"]);
    await child.says("here is what I found");
    await child.ends();
    await waitUntilQuiet(scene);
    await waitUntilQuiet(scene);
    expect(await shown()).toContain("old mill");
    await coordinator.stop();
  });

  it("is told with its words where nothing holds the result", async () => {
    const { notices, shown, coordinator } = await openStage([]);
    expect(notices[0]?.question).toMatchObject({ options: [OPTION, "nowhere"] });
    expect(notices[0]?.question.title).not.toContain("withheld");
    expect(await shown()).toContain("old mill");
    await coordinator.stop();
  });
});

describe("a question to the parent of an agent under a strict gate", () => {
  it("is told to the parent without its words, which it reads nowhere else either", async () => {
    const scene = createWorld(
      {},
      createScriptedRunner(() => endDone()),
      {
        gates: createGatesWith(["lint"]),
        verifier: createScriptedVerifier(() => createRuling("pass")).verifier,
      },
    );
    const coordinator = scene.start();
    await coordinator.start();
    const child = await spawnChild(scene, coordinator);
    const words = { question: `May I say that ${RESULT}?`, options: [OPTION, "nowhere"] };
    const about = { askedBy: child.session, to: "parent", agentId: "main", kind: "clarification" } as const;
    await coordinator.ask({ ...about, ...words });
    await waitUntilQuiet(scene);
    const messages = scene.plans.orders.map(({ message }) => message).join("\n");
    expect(messages).toContain("withheld until its result is let through");
    expect(messages).not.toMatch(/old mill/u);
    const listed = await coordinator.listQuestionsTo(OWNER, "co-1" as CoordinationId);
    expect(listed).toMatchObject({ questions: [{ isWithheld: true }] });
    expect(JSON.stringify(listed)).not.toMatch(/old mill/u);
    const wrong = await coordinator.answerChild({
      questionId: "co-1:escalation-1",
      session: OWNER,
      text: "x",
    });
    expect(wrong.kind).toBe("refused");
    expect(JSON.stringify(wrong)).not.toMatch(/old mill/u);
    await coordinator.stop();
  });
});

it("progress of an agent under a strict gate is in no transcript that other sessions may read", async () => {
  const { coordinator, child } = await openStage(["lint"]);
  const host = createGatedHost(coordinator);
  await host.begins(child.session);
  const telling = call("coordination_progress", { percent: 40, line: RESULT });
  const written = await host.says(child.session, [telling], { stopReason: "toolUse" });
  expect(JSON.stringify(written)).toContain("coordination_progress");
  expect(JSON.stringify(written)).not.toMatch(/old mill/u);
  await coordinator.stop();
});
