/** Owns: that people who rule on a spawned child's last words can read them. A child need not report: it may only speak. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { contentOf, nameChildSession } from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";
import { createOpening, recordCommands, spawn, SPAWNS } from "./recorded-questions.ts";
import { runCli } from "./run-cli.ts";

const WORDS = contentOf('I guess that it is 42.\n{"confidence": 0.4}');
const ASKED = contentOf(JSON.stringify({ question: "Shall I guess?" }));

const ASKING = {
  type: "askPeople",
  kind: "clarification",
  hasDefault: false,
  openMax: 1_000,
  answerMs: 60_000,
} as const;

let folder: TempFolder;

beforeAll(async () => {
  folder = createTempFolder();
  const store = await openTestLedger(folder.file("ledger.sqlite"));
  const attempt = { stepId: "step-1" as StepId, attempt: 1 };
  await recordCommands(store, SPAWNS, [
    [0, createOpening("trace-1"), [contentOf("objective of trace-1")]],
    [100, spawn("guess", { threshold: 7_000 })],
    [200, { type: "withholdText", ...attempt, text: WORDS.ref, confidence: 4_000 }, [WORDS]],
    [300, { type: "completeStep", ...attempt, via: "hook" }],
    [400, spawn("unsure", { threshold: 7_000 })],
    [500, { type: "withholdText", ...attempt, stepId: "step-2" as StepId, text: WORDS.ref }, [WORDS]],
    [
      600,
      { ...ASKING, stepId: "step-2" as StepId, question: ASKED.ref, askedBy: nameChildSession("unsure") },
      [ASKED],
    ],
  ]);
  await store.close();
});

afterAll(() => {
  vi.unstubAllEnvs();
  folder[Symbol.dispose]();
});

const print = async (...args: string[]): Promise<string> => {
  const { stdout, stderr } = await runCli(["questions", ...args, "--ledger", folder.file("ledger.sqlite")]);
  expect(stderr).toBe("");
  return stdout;
};

const show = (...more: string[]): Promise<string> => print("show", `${SPAWNS}:escalation-1`, ...more);

test("shows the words that are held, to people and to programs", async () => {
  expect(await show()).toContain("│ I guess that it is 42.");
  expect(JSON.parse(await show("--json"))).toMatchObject({ result: WORDS.ref, resultText: WORDS.text });
});

test("shows the size of the held words where it lists questions, too", async () => {
  expect(JSON.parse(await print("--json"))).toMatchObject([
    { stepId: "step-2" },
    { stepId: "step-1", result: WORDS.ref },
  ]);
});

test("shows no words as held with a question that does not rule on them", async () => {
  const about = ["show", `${SPAWNS}:escalation-2`];
  expect(await print(...about)).toContain("Shall I guess?");
  expect(await print(...about)).not.toContain("held result");
  expect(JSON.parse(await print(...about, "--json"))).not.toHaveProperty("resultText");
});

test("keeps them back in the shell of a model", async () => {
  vi.stubEnv("OPENCLAW_SHELL", "exec");
  for (const json of [[], ["--json"]]) expect(await show(...json)).not.toContain("it is 42");
});
