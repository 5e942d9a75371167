/** Owns: that people who rule on a contested write see what would be written, and who stands against it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { createQuestionReads } from "../../src/plugins/reports/find-questions.ts";
import { createQuestionReport } from "../../src/plugins/reports/question-report.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";
import { recordContests } from "./recorded-contests.ts";
import { NASTY, SPAWNS } from "./recorded-questions.ts";
import { runCli } from "./run-cli.ts";

const NOTES = "file:/repo/notes.md";
const HOSTILE = `queue:${NASTY}`;
const DEEP = `file:/repo/${"deep/".repeat(20)}notes.md`;

let folder: TempFolder;

beforeAll(async () => {
  folder = createTempFolder();
  await recordContests(folder.file("ledger.sqlite"), NOTES, HOSTILE, DEEP);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

const print = async (...args: string[]): Promise<string> => {
  const { stdout, stderr } = await runCli(["questions", ...args, "--ledger", folder.file("ledger.sqlite")]);
  expect(stderr).toBe("");
  return stdout;
};

test("lists who stands against it, and what is to be written, however long its name is", async () => {
  const lines = (await print()).split("\n");
  const at = lines.indexOf("  step review (step-1): others stand against its write");
  expect(lines[at + 1]).toMatch(/^ {2}about "file:\/repo\/deep\/.*…$/u);
  expect(lines[at + 2]).toBe('  against "draft"');
  expect(lines).toContain(`  about "${NOTES}"`);
});

test("tells all of it about one question, safe for a terminal, and with --json by its fields", async () => {
  const id = `${SPAWNS}:escalation-`;
  expect(await print("show", `${id}1`)).toMatch(
    /about +step review \(step-1\): others stand against its write; about "file:\/repo\/notes\.md"; against "draft"\n/u,
  );
  const hostile = await print("show", `${id}2`);
  for (const hidden of ["\u001b", "\u0007", "\u202e"]) expect(hostile).not.toContain(hidden);
  expect(JSON.parse(await print("show", `${id}2`, "--json"))).toMatchObject({
    contested: { resource: HOSTILE, by: ["draft"] },
  });
});

test("is named with its write among the questions of its coordination", async () => {
  const { stdout } = await runCli(["show", SPAWNS, "--ledger", folder.file("ledger.sqlite")]);
  expect(stdout).toMatch(
    /escalation-1 {2}step review \(step-1\): others stand against its write; about "file:\/repo\/notes\.md"; against "draft" {2}open/u,
  );
  expect(stdout).toMatch(/escalation-3 {2}.*; about "…\S*deep\/notes\.md"; against "draft" {2}open/u);
  for (const hidden of ["\u001b", "\u0007", "\u202e"]) expect(stdout).not.toContain(hidden);
  const timeline = await runCli(["timeline", SPAWNS, "--ledger", folder.file("ledger.sqlite")], {
    terminal: { columns: 200 },
  });
  expect(timeline.stdout).toMatch(
    /escalation-1 at .*: others stand against its write; about "file:\/repo\/notes\.md"/u,
  );
});

test("looks for the names of those alone who stand against it, however many steps there are", async () => {
  const store = await openTestLedger(folder.file("ledger.sqlite"), { mode: "read" });
  const view = await createQuestionReads(store).view(SPAWNS);
  const [question] = view?.escalations ?? [];
  const [step] = view?.steps ?? [];
  if (!view || !question || !step) throw new Error("no question is there");
  const others = Array.from({ length: 100 }, (_, index) => ({ ...step, stepId: `other-${index}` as StepId }));
  const named = new Set<string>();
  const steps = [...view.steps, ...others].map(
    (each) =>
      new Proxy(each, {
        get: (target, key) => {
          if (key === "name") named.add(target.stepId);
          return Reflect.get(target, key) as unknown;
        },
      }),
  );
  const found = { view: { ...view, steps }, question };
  const { contested } = await createQuestionReport(store, found, { isForOperator: true });
  await store.close();
  expect(contested?.by).toEqual(["draft"]);
  expect([...named]).toEqual(["step-1", "step-2"]);
});
