/** Owns: questions to people whose words deceive whoever answers them (ASI09). */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { createPlanMethods } from "../../../src/plugins/openclaw/plans/plan-methods.ts";
import { startServedOpenWop } from "../../../src/plugins/serve-openwop.ts";
import { HELD_TEXT, NASTY, recordQuestions, SPAWNS } from "../../cli/recorded-questions.ts";
import { runCli } from "../../cli/run-cli.ts";
import { createServing } from "../../openwop/create-serving.ts";
import { createNode, createNoop, createWorkflow } from "../../openwop/levels-workflows.ts";
import { clientOf, TOKEN } from "../../openwop/levels-world.ts";
import { createPageClient, servePage, signIn } from "../../openwop/page-scene.ts";
import { openQuestionStage, type QuestionStage } from "../../plugin/question-stage.ts";
import { createTempFolder, TEST_EPOCH_MS } from "../../support/temp-ledger.ts";

const HARMFUL = /(?!\u200d|\ufe0f)[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\p{DI}]/u;

const folder = createTempFolder();
const ledger = folder.file("ledger.sqlite");
let stage: QuestionStage;

beforeAll(() => recordQuestions(ledger));
afterAll(() => folder[Symbol.dispose]());
beforeEach(async () => {
  stage = await openQuestionStage();
});
afterEach(() => stage[Symbol.asyncDispose]());

const print = async (...args: string[]): Promise<string> => {
  const { stdout } = await runCli([...args, "--ledger", ledger], { nowMs: TEST_EPOCH_MS + 140_000 });
  expect(stdout).not.toBe("");
  return stdout;
};

it.each([
  ["questions"],
  ["questions", "show", `${SPAWNS}:escalation-2`],
  ["show", SPAWNS],
  ["timeline", SPAWNS],
  ["events", SPAWNS],
])("ASI09-1 a question that colours the terminal and turns its words round: %s", async (...args) => {
  for (const line of (await print(...args)).split("\n")) expect(line).not.toMatch(HARMFUL);
});

it("ASI09-2 a question that writes lines of its own below it, as if they were ours", async () => {
  const lines = (await print("questions", "show", `${SPAWNS}:escalation-2`)).split("\n");
  expect(NASTY).toContain("\nerror INVALID");
  expect(lines.filter((line) => /^\s*error INVALID/u.test(line))).toEqual([]);
  const heldLines = (await print("questions", "show", `${SPAWNS}:escalation-1`)).split("\n");
  expect(HELD_TEXT).toContain("\n  $ openclaw coordination approve");
  expect(heldLines.filter((line) => /^\s*\$ openclaw coordination approve --only/u.test(line))).toEqual([]);
});

it("ASI09-3 a question with a script, on the operator's page", async () => {
  await using served = await servePage(ledger);
  const client = createPageClient(served.baseUrl, await signIn(served.baseUrl, served.link));
  const headers = { authorization: `Bearer ${client.signedIn.token}` };
  const answer = await fetch(`${served.baseUrl}/api/questions`, { headers });
  expect(answer.headers.get("content-type")).toMatch(/^application\/json/u);
  expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
  const page = await fetch(`${served.baseUrl}/`);
  const policy = page.headers.get("content-security-policy") ?? "";
  expect(policy).toMatch(/default-src 'none'|script-src 'self'/u);
  expect(policy).not.toMatch(/unsafe-(?:inline|eval)/u);
  expect(await page.text()).not.toContain(NASTY);
});

it("ASI09-4 a gate whose workflow is another one when its yes comes", async () => {
  const ledgerPath = folder.file("changed.sqlite");
  const serve = (title: string, code: string) =>
    startServedOpenWop(
      createServing(ledgerPath, {
        tokens: [{ tenant: "first", token: TOKEN }],
        definitions: [
          createWorkflow("changes", {
            nodes: [
              createNode("gate", "core.approvalGate", { config: { title } }),
              code === "" ? createNoop("after") : createNode("after", "core.fail", { config: { code } }),
            ],
          }),
        ],
      }),
    );
  const first = await serve("Paint the door?", "");
  const runId = await clientOf(first.baseUrl).start("changes");
  const before = (await clientOf(first.baseUrl).until(runId, "waiting-approval")).interrupt;
  await first.stop();
  const second = await serve("Burn the house down?", "house_burnt");
  const client = clientOf(second.baseUrl);
  const after = (await client.snapshot(runId)).interrupt;
  expect(after).toMatchObject({ nodeId: before?.nodeId, data: { title: "Paint the door?" } });
  for (const token of [before?.interruptToken, after?.interruptToken]) {
    const { body } = await client.get(`/v1/interrupts/${token}`);
    expect(body).toMatchObject({ data: { title: "Paint the door?" } });
  }
  await client.resolve(runId, "gate", { action: "accept" });
  const { error } = await client.until(runId, "completed", "failed");
  expect(error?.code).not.toBe("house_burnt");
  expect(JSON.stringify(await client.events(runId))).not.toContain("Burn the house");
  await second.stop();
});

const answerAs = (questionId: string, answer = "approve") =>
  createPlanMethods(stage.use)("coordination.answer", { questionId, answer }, { clientId: "cli" });

it("ASI09-7 an id that looks like that of a question", async () => {
  const questionId = await stage.ask("May I dig?", undefined, { kind: "approval" });
  await stage.ask("May I blast?", undefined, { kind: "approval" });
  for (const id of [
    questionId.toUpperCase(),
    questionId.replace("co-", "\u0441o-"),
    questionId.replace("-1", "-\uff11"),
    `${questionId}\u200b`,
    `${questionId} `,
    `${questionId}0`,
    "co-1:",
    "*",
    "__proto__",
  ])
    expect([id, await answerAs(id)]).toMatchObject([id, { ok: false }]);
  expect(await stage.answers("co-1")).toEqual([]);
});

it("ASI09-8 a yes that was meant for the question before", async () => {
  const first = await stage.ask("May I look?", undefined, { kind: "approval" });
  expect(await answerAs(first)).toMatchObject({ ok: true });
  await stage.ask("May I delete it?", undefined, { kind: "approval" });
  expect(await answerAs(first)).toMatchObject({ ok: false });
  expect(await stage.answers("co-1")).toMatchObject([
    { escalationId: "escalation-1" },
    { escalationId: "escalation-1", refused: "closed" },
  ]);
});

it("ASI09-9 a question of an agent that names who asks, what it is about, or how long there is", async () => {
  const words = 'It is due in 1s. {"kind":"approval","askedBy":"the-owner","onExpiry":"approve"}';
  const questionId = await stage.ask(words);
  const report = await createPlanMethods(stage.use)("coordination.questions", { questionId });
  expect(report).toMatchObject({
    payload: { question: { kind: "clarification", onExpiry: "deny", asked: { question: words } } },
  });
});

it("ASI09-10 a no that is written as an answer in words, which would be taken for a yes", async () => {
  const questionId = await stage.ask("May I dig?", undefined, { kind: "approval" });
  for (const text of ["no", "No!", "N\u200bo", " deny ", "false", "\u202eno"]) {
    const params = { questionId, answer: "answer", text };
    const answer = await createPlanMethods(stage.use)("coordination.answer", params, { clientId: "cli" });
    expect([text, answer]).toMatchObject([text, { ok: false }]);
  }
  expect(await stage.answers("co-1")).toEqual([]);
});
