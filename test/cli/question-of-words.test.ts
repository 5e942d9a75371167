/** Owns: that people who rule on a spawned child's last words can read them. A child need not report: it may only speak. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { contentOf } from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";
import { createOpening, recordCommands, spawn, SPAWNS } from "./recorded-questions.ts";
import { runCli } from "./run-cli.ts";

const WORDS = contentOf('I guess that it is 42.\n{"confidence": 0.4}');

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
  ]);
  await store.close();
});

afterAll(() => {
  vi.unstubAllEnvs();
  folder[Symbol.dispose]();
});

const show = async (...more: string[]): Promise<string> => {
  const args = [
    "questions",
    "show",
    `${SPAWNS}:escalation-1`,
    "--ledger",
    folder.file("ledger.sqlite"),
    ...more,
  ];
  const { stdout, stderr } = await runCli(args);
  expect(stderr).toBe("");
  return stdout;
};

test("shows the words that are held, to people and to programs", async () => {
  expect(await show()).toContain("│ I guess that it is 42.");
  expect(JSON.parse(await show("--json"))).toMatchObject({ resultText: WORDS.text });
});

test("keeps them back in the shell of a model", async () => {
  vi.stubEnv("OPENCLAW_SHELL", "exec");
  for (const json of [[], ["--json"]]) expect(await show(...json)).not.toContain("42");
});
