/** Owns: commands that are printed to be copied: an id that a model chose does nothing to the shell that they are pasted into. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { formatShellArguments } from "../../src/agents/coordination/std/shell-arguments.ts";
import { plan, step } from "../core/plan-scene.ts";
import { contentOf } from "../support/ledger-fixtures.ts";
import {
  createManualClock,
  createTempFolder,
  openTestLedger,
  TEST_EPOCH_MS,
  type TempFolder,
} from "../support/temp-ledger.ts";
import { createOkAnswer, createWaiting, gatewayOf, report } from "./fake-gateway.ts";
import { recordPlans } from "./recorded-plan.ts";
import { complete, createOpening, recordCommands, spawn } from "./recorded-questions.ts";
import { runCli, type CliSetting } from "./run-cli.ts";

const HOSTILE = "x;touch pwned|sh; it's $(id)" as CoordinationId;
const QUOTED = `'x;touch pwned|sh; it'\\''s $(id)'`;
const LONG_STEP = `audit of ${"a long name ".repeat(10)}`.trim();

let folder: TempFolder;

beforeAll(async () => {
  folder = createTempFolder();
  writeFileSync(folder.file("plan.json"), JSON.stringify(plan([step("a")])));
  const store = await openTestLedger(folder.file("questions.sqlite"), { clock: createManualClock() });
  await recordCommands(store, HOSTILE, [
    [0, createOpening("trace-1"), [contentOf("objective of trace-1")]],
    [100, spawn("draft", { threshold: 7_000 })],
    [10_000, complete("step-1", 3_100, "unsure"), [contentOf("unsure")]],
  ]);
  await store.close();
  await recordPlans(folder.file("blocked.sqlite"), [
    {
      id: HOSTILE,
      objective: "Wait for people",
      failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "hitl" },
      steps: [step(LONG_STEP)],
      acts: [
        [1_000, "dispatch", LONG_STEP, 1],
        [1_100, "ack", LONG_STEP, 1],
        [2_000, "fail", LONG_STEP, 1],
      ],
    },
  ]);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

/** The printed commands, each from the name of the program to the end of its line. */
async function listCommands(args: readonly string[], setting: CliSetting = {}): Promise<string[]> {
  const { stdout } = await runCli(args, { nowMs: TEST_EPOCH_MS + 80_000, ...setting });
  return stdout.split("\n").flatMap((line) => /openclaw coordination .*$/u.exec(line)?.[0] ?? []);
}

const RUN = { coordinationId: HOSTILE };
const ACCEPTED = { ...RUN, steps: 1, replay: false };
const FORKED = { ...ACCEPTED, forkedFrom: { coordinationId: "co-1", sequence: 3 }, carried: [], anew: [] };
const ANSWERED = { questionId: `${HOSTILE}:escalation-1`, resolution: "approved", happened: "it counts" };
const RELEASED = { coordinationId: HOSTILE, stepId: "draft", resource: "path:/repo/notes.md" };

describe("a command that is printed with an id", () => {
  test.each([
    ["plan run", ["plan", "run", "PLAN"], [createOkAnswer(ACCEPTED)]],
    [
      "a wait that ends",
      ["plan", "run", "PLAN", "--wait"],
      [createOkAnswer(ACCEPTED), report("success", RUN)],
    ],
    [
      "a wait that times out",
      ["plan", "run", "PLAN", "--wait", "--timeout", "1"],
      [createOkAnswer(ACCEPTED), report("running", RUN)],
    ],
    ["fork", ["fork", "co-1"], [createOkAnswer(FORKED)]],
    ["approve", ["approve", ANSWERED.questionId], [createOkAnswer(ANSWERED)]],
    ["claims release", ["claims", "release", "7", "--yes"], [createOkAnswer(RELEASED)]],
  ])("by %s quotes it", async (_, args, answers) => {
    const { call } = gatewayOf(...answers);
    const typed = args.map((word) => (word === "PLAN" ? folder.file("plan.json") : word));
    const commands = await listCommands(typed, {
      gateway: call,
      waiting: createWaiting().make,
      ticking: true,
    });
    expect(commands.length).toBeGreaterThan(0);
    for (const command of commands) {
      expect(command).toContain(QUOTED.slice(0, -1));
      expect(command).not.toMatch(/[^']x;touch/u);
    }
  });

  test("by plan cancel quotes it", async () => {
    const { call } = gatewayOf(createOkAnswer({ replay: false }));
    const stateDir = folder.file("state");
    await recordPlans(folder.file("state/coordination/ledger.sqlite"), [
      { id: HOSTILE, objective: "Run", steps: [step("a")], acts: [] },
    ]);
    const commands = await listCommands(["plan", "cancel", HOSTILE], { gateway: call, stateDir });
    expect(commands).toEqual([`openclaw coordination show ${QUOTED}`]);
  });

  test("by timeline quotes it, in the answer to a question", async () => {
    const commands = await listCommands(["timeline", HOSTILE, "--ledger", folder.file("questions.sqlite")]);
    expect(commands).toEqual([`openclaw coordination approve ${QUOTED.slice(0, -1)}:escalation-1'`]);
  });

  test("by timeline stands on one line, however long: its beginning alone is another command", async () => {
    const commands = await listCommands(["timeline", HOSTILE, "--ledger", folder.file("blocked.sqlite")]);
    expect(commands).toEqual([`openclaw coordination retry ${QUOTED} '${LONG_STEP}'`]);
  });
});

describe("the arguments of a command for a shell", () => {
  test.each([
    "co-1:escalation-2",
    "",
    " a  b ",
    "it's",
    '$HOME `id` "x" \\ !',
    "a\nb",
    "-rf",
    "--yes",
    "~",
    "=ls",
  ])("%j reaches the program as it is", (word) => {
    const typed = formatShellArguments(word, "last");
    const printed = execFileSync("sh", ["-c", `printf '%s|' ${typed}`], { encoding: "utf8" });
    expect(printed).toBe(word.startsWith("-") ? `--|${word}|last|` : `${word}|last|`);
  });

  test("are behind -- where one of them would be taken for an option", () => {
    expect(formatShellArguments("co-1", "--all")).toBe("-- co-1 --all");
    expect(formatShellArguments("co-1", "all")).toBe("co-1 all");
  });
});
