/** Owns: how the commands show what agents at work say of how far they are, and questions that a parent is asked. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { AgentId, CoordinationId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Gate } from "../../src/agents/coordination/contracts/verification.ts";
import { openLedgerForReading } from "../../src/plugins/ledger-reader.ts";
import { createQuestionReads, findOnlyOpenQuestion } from "../../src/plugins/reports/find-questions.ts";
import { renderPlanEnding, renderPlanProgress } from "../../src/plugins/cli/plans/progress-lines.ts";
import type { CoordinationStatusReport } from "../../src/plugins/openclaw/plans/coordination-status.ts";
import { contentOf, nameChildSession, openingOf, OWNER } from "../support/ledger-fixtures.ts";
import {
  createManualClock,
  createTempFolder,
  openTestLedger,
  TEST_EPOCH_MS,
  type TempFolder,
} from "../support/temp-ledger.ts";
import { recordCommands, type RecordedCommand } from "./recorded-questions.ts";
import { PLAIN, runCli } from "./run-cli.ts";

const RUN = "co-1f0c7a52-9e4b-4d6f-8a21-5b3c9d7e0f14" as CoordinationId;

const spawn = (name: string, gate?: Gate): Command => ({
  type: "admitSpawn",
  runner: "subagent",
  agentId: "main" as AgentId,
  collect: false,
  sourceSession: OWNER,
  name,
  ...(gate && { gate }),
  input: contentOf(`task of ${name}`).ref,
  timeoutMs: 600_000,
  call: { toolCallId: `call-${name}` },
  child: { childSessionKey: nameChildSession(name), childRunId: `run-${name}` },
});

function tell(
  step: number,
  line: string,
  percent?: number,
): readonly [Command, [ReturnType<typeof contentOf>]] {
  const content = contentOf(line);
  const share = percent === undefined ? {} : { percent };
  return [
    { type: "recordProgress", stepId: `step-${step}` as StepId, attempt: 1, line: content.ref, ...share },
    [content],
  ];
}

const QUESTION = contentOf(JSON.stringify({ question: "Which one?" }));

const COMMANDS: readonly RecordedCommand[] = [
  [0, openingOf("trace-1")],
  [100, spawn("draft")],
  [200, spawn("review", { threshold: 7_000, checks: ["facts"] })],
  [10_000, ...tell(1, "reading", 40)],
  [20_000, ...tell(2, "the answer is 42", 80)],
  [
    30_000,
    {
      type: "askPeople",
      askedBy: nameChildSession("draft"),
      askedOf: OWNER,
      stepId: "step-1" as StepId,
      kind: "clarification",
      question: QUESTION.ref,
      hasDefault: false,
      openMax: 10,
      answerMs: 600_000,
    },
    [QUESTION],
  ],
];

let folder: TempFolder;

beforeAll(async () => {
  folder = createTempFolder();
  const store = await openTestLedger(folder.file("ledger.sqlite"), { clock: createManualClock() });
  await recordCommands(store, RUN, COMMANDS);
  await store.close();
});

afterAll(() => {
  folder[Symbol.dispose]();
});

async function run(...args: readonly string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await runCli([...args, "--ledger", folder.file("ledger.sqlite")], {
    nowMs: TEST_EPOCH_MS + 40_000,
  });
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  return stdout;
}

describe("progress", () => {
  it.each(["status", "show", "timeline"])(
    "is in %s, with when it was told, and withheld words are not",
    async (command) => {
      const shown = await run(command);
      expect(shown).toContain("40%, reading (30.0s ago)");
      expect(shown).toContain("80%, (withheld) (20.0s ago)");
      expect(shown).not.toContain("42");
    },
  );

  it.each(["status", "show", "timeline"])("is in the JSON of %s", async (command) => {
    const shown = await run(command, "--json");
    expect(shown).toMatch(/"progress":\s*\{\s*"percent":\s*40,\s*"line":\s*"reading"/u);
    expect(shown).toMatch(/"lineWithheld":\s*true/u);
    expect(shown).not.toContain("the answer is 42");
  });

  it("is in the line of a plan that is waited for", () => {
    const steps = [
      {
        stepId: "draft",
        status: "running",
        attempt: 2,
        agent: "main",
        progress: { percent: 40, line: "reading", toldAt: "" },
      },
      { stepId: "check", status: "running", attempt: 1, agent: "main" },
    ];
    const report = {
      counts: { total: 2, ended: 0, byStatus: {} },
      steps,
    } as unknown as CoordinationStatusReport;
    expect(renderPlanProgress(report, PLAIN)).toContain("running: draft (attempt 2, 40%, reading), check");
  });
});

describe("a plan that is waited for", () => {
  const createSteps = (count: number, status: string): CoordinationStatusReport["steps"] =>
    Array.from({ length: count }, (_, index) => ({
      stepId: `${status}-${index}`,
      status,
      attempt: 1,
      agent: "main",
    }));
  const report: CoordinationStatusReport = {
    coordinationId: RUN,
    status: "running",
    startedAt: "2026-01-02T03:04:05.000Z",
    counts: { total: 200, ended: 63, byStatus: { held: 1, running: 60, completed: 3, failed: 60 } },
    steps: [],
  };
  const terminal = { ...PLAIN, columns: 300 };

  it("says that a result is held, and how many questions people are to answer", () => {
    const line = renderPlanProgress({ ...report, steps: createSteps(1, "held"), openQuestions: 2 }, terminal);
    expect(line).toBe("63 of 200 steps ended; 2 open questions; running: 60 steps; result held: held-0");
  });

  it("counts also the steps that the report leaves out", () => {
    const line = renderPlanProgress({ ...report, steps: createSteps(20, "running") }, terminal);
    expect(line).toContain("running: running-0, running-1, running-2, running-3 and 56 more");
    expect(line).toContain("result held: 1 step");
  });

  it("counts in its end also the failed steps that the report leaves out", () => {
    const counts = { total: 63, ended: 63, byStatus: { completed: 3, failed: 60 } };
    const ended = { ...report, status: "partial", counts, steps: createSteps(50, "failed") };
    const lines = renderPlanEnding(ended, { terminal, program: "openclaw coordination" });
    expect(lines).toContain("    and 40 more");
  });
});

describe("a question to a parent", () => {
  it("is shown as one, and is not the only question that people mean", async () => {
    expect(await run("questions")).toContain("its agent asks its parent");
    const reader = await openLedgerForReading(folder.file("ledger.sqlite"));
    expect(await findOnlyOpenQuestion(createQuestionReads(reader))).toEqual({ kind: "unknown" });
    await reader.close();
  });
});
