/** Owns: how a plan reads that stopped at its budget, or whose owner could not be told. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { admit, dispatch, failStep, finish, openPlan, planStep, startStep } from "../core/planned-scene.ts";
import { SETTLE } from "../core/scene.ts";
import { createAuthor } from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";
import { runCli } from "./run-cli.ts";

const DELIVERY = "@delivery";
let folder: TempFolder;

beforeAll(async () => {
  folder = createTempFolder();
  const store = await openTestLedger(folder.file("ledger.sqlite"));
  const working = [dispatch("a"), startStep("a")];
  await store.append(
    createAuthor("spent").append(
      openPlan({ steps: 2, plan: { budget: { spawns: 1 } }, questions: { answerMs: 600_000 } }),
      admit(planStep("a"), planStep("b", { after: ["a"] })),
      ...working,
      finish("a", 1, { usage: { spawns: 1 } }),
      { type: "tripBreaker" },
    ),
  );
  const createTold = (name: string, step: (name: string) => ReturnType<typeof finish>) =>
    createAuthor(name).append(
      openPlan({ steps: 1 }),
      admit(planStep("a")),
      ...working,
      step("a"),
      SETTLE,
      dispatch(DELIVERY),
      startStep(DELIVERY),
      failStep(DELIVERY, 1, "child_lost"),
    );
  await store.append(createTold("untold", finish));
  await store.append(createTold("failed", failStep));
  await store.close();
});

afterAll(() => {
  folder[Symbol.dispose]();
});

async function print(command: string, id: string): Promise<string> {
  const { stdout, exitCode, stderr } = await runCli([command, id, "--ledger", folder.file("ledger.sqlite")]);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  return stdout;
}

describe("a plan that stopped at its budget", () => {
  test.each(["show", "timeline"])("is no question that people were asked: %s", async (command) => {
    const text = await print(command, "co-spent");
    expect(text).toMatch(/the plan: its budget is spent/u);
    expect(text).toMatch(/escalation-1.*stopped/u);
    expect(text).not.toMatch(/1 question|questions {2,}1|withdrawn/u);
  });

  test("is not among the questions", async () => {
    const { stdout } = await runCli([
      "questions",
      "--all",
      "--json",
      "--ledger",
      folder.file("ledger.sqlite"),
    ]);
    expect(stdout).not.toContain("escalation-1");
  });
});

describe("an owner who could not be told", () => {
  test.each([
    ["co-untold", "1 step, delivery failed"],
    ["co-failed", "1 step, 1 failed, delivery failed"],
  ])("is told apart from failed steps: %s", async (id, words) => {
    expect(await print("timeline", id)).toContain(words);
  });
});
