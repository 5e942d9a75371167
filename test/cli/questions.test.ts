import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { CoordinationView } from "../../src/agents/coordination/runtime/log/coordination-view.ts";
import { findNewestQuestions, createQuestionReads } from "../../src/plugins/reports/find-questions.ts";
import { withLedger } from "../../src/plugins/cli/ledger/open-ledger.ts";
import type { AskedQuestion, QuestionReport } from "../../src/plugins/reports/question-report.ts";
import { describeCause, describeEffect } from "../../src/plugins/reports/question-lines.ts";
import { countCells } from "../../src/plugins/cli/terminal/printable.ts";
import type { Timeline } from "../../src/plugins/reports/timeline.ts";
import { createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { HELD_TEXT, NASTY, OTHERS, recordQuestions, REPORT, SPAWNS, STRANGER } from "./recorded-questions.ts";
import { runCli, type CliSetting } from "./run-cli.ts";

let folder: TempFolder;
const nameLedger = (): string => folder.file("ledger.sqlite");
const NOW_MS = TEST_EPOCH_MS + 140_000;

beforeAll(async () => {
  folder = createTempFolder();
  await recordQuestions(nameLedger());
});

afterAll(() => {
  folder[Symbol.dispose]();
});

afterEach(() => {
  vi.unstubAllEnvs();
});

async function print(args: readonly string[], setting: CliSetting = {}): Promise<string> {
  const { stdout, stderr, exitCode } = await runCli([...args, "--ledger", nameLedger()], {
    nowMs: NOW_MS,
    terminal: { columns: 120 },
    ...setting,
  });
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  return stdout;
}

async function listReports(...args: readonly string[]): Promise<QuestionReport[]> {
  return JSON.parse(await print(["questions", "--json", ...args])) as QuestionReport[];
}

async function listIds(...args: readonly string[]): Promise<string[]> {
  return (await listReports(...args)).map(({ questionId }) => questionId);
}

describe("questions", () => {
  test("lists those that are open in all coordinations, newest first", async () => {
    expect(await listIds()).toEqual([
      `${OTHERS}:escalation-1`,
      `${SPAWNS}:escalation-3`,
      `${SPAWNS}:escalation-2`,
      `${SPAWNS}:escalation-1`,
    ]);
    expect(await listIds("--limit", "2")).toEqual([`${OTHERS}:escalation-1`, `${SPAWNS}:escalation-3`]);
  });

  test("with --all lists closed ones as well, with --coordination those of one", async () => {
    expect(await listIds("--all")).toHaveLength(6);
    expect(await listIds("--all", "--coordination", "plan-")).toEqual([`${REPORT}:escalation-1`]);
    expect(await listIds("--coordination", "plan-")).toEqual([]);
    expect(await listIds("--coordination", "co-9")).toEqual([`${OTHERS}:escalation-1`]);
  });

  test("with --undelivered lists those of which somebody could not be told", async () => {
    const [dead, ...others] = await listReports("--undelivered");
    expect(others).toEqual([]);
    expect(dead?.questionId).toBe(`${SPAWNS}:escalation-1`);
    expect(dead?.notices?.map(({ outcome }) => outcome)).toEqual(["failed", "pending"]);
  });

  test("tells no notice of a closed question that is never sent", async () => {
    const closed = (await listReports("--all")).filter(({ status }) => status === "closed");
    expect(closed.map(({ notices }) => notices)).toEqual([[], []]);
  });

  test("tells why each is asked, what may be answered, and what happens when nobody does", async () => {
    expect(await print(["questions", "--coordination", SPAWNS])).toBe(
      [
        `${SPAWNS}:escalation-3  58m 12s left`,
        "  step review (step-2): its result could not be checked",
        "  check facts: pass by agent:critic at 95% (sources)",
        "  check style: no verdict (timed out)",
        "  asked 1m 48s ago; answers: approve, deny or answer",
        "  if nobody answers: the result of step review (step-2) stays withheld, and the step fails",
        "  told: webhook:ops due at 2026-01-02 03:04:37Z, chat due at 2026-01-02 03:14:37Z",
        "",
        `${SPAWNS}:escalation-2  8m 00s left`,
        "  step review (step-2): its agent asks",
        '  an agent wrote: "\ufffd[31mWhich\ufffd one? error INVALID: \\"approve --only\\""',
        '  it offers: "staging", "production"',
        '  it takes, if nobody answers: "staging"',
        "  asked 2m 00s ago; answers: answer or deny",
        "  if nobody answers: what its agent named for this case counts",
        "  told: webhook:ops due at 2026-01-02 03:04:25Z",
        "",
        `${SPAWNS}:escalation-1  57m 50s left`,
        "  step draft (step-1): its agent states a confidence of 31%, below 70%",
        "  asked 2m 10s ago; answers: approve, deny or answer",
        "  if nobody answers: the result of step draft (step-1) stays withheld, and the step fails",
        "  told: webhook:ops failed, chat due at 2026-01-02 03:14:15Z",
        "",
      ].join("\n"),
    );
  });

  test("tells what closed it, and not what would have been sent afterwards", async () => {
    expect(await print(["questions", "--all", "--coordination", REPORT])).toBe(
      [
        `${REPORT}:escalation-1  denied`,
        "  step publish: its planner states a confidence of 40%, below 50%",
        "  asked 39.9s ago, denied by operator cli through cli at 2026-01-02 03:06:15Z",
        "",
      ].join("\n"),
    );
  });

  test("marks what is past its time and not closed yet", async () => {
    const late = await print(["questions", "--coordination", OTHERS], { nowMs: NOW_MS + 3_600_000 });
    expect(late).toContain(`${OTHERS}:escalation-1  past its time\n`);
  });

  test("cannot harm the terminal or pass an agent's words for ours", async () => {
    for (const args of [["questions"], ["questions", "show", `${SPAWNS}:escalation-2`]]) {
      const listed = await print(args);
      expect(listed.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\u202e]/u);
      expect(listed).not.toMatch(/^\s*(?:error|openclaw coordination approve --only)/mu);
      expect(await print(args, { terminal: { unicode: false } })).toMatch(/^[\x20-\x7e\n]+$/u);
    }
  });

  test("never cuts an id, however narrow the terminal", async () => {
    const listed = await print(["questions"], { terminal: { columns: 60 } });
    expect(listed).toContain(`${SPAWNS}:escalation-1  `);
    const long = listed
      .split("\n")
      .filter((line) => !/escalation-\d|told:|wrote:/u.test(line) && countCells(line) > 60);
    expect(long).toEqual([]);
  });

  test("says where nothing is asked, and where there is more", async () => {
    expect(await print(["questions", "--coordination", REPORT])).toBe("no open questions\n");
    expect(await print(["questions", "--undelivered", "--coordination", REPORT])).toBe(
      "nobody missed a question\n",
    );
    expect(await print(["questions", "--limit", "3"])).toContain("\nand more: raise --limit");
    expect(await print(["questions", "--limit", "4"])).not.toContain("and more");
  });

  test.each([[["--limit", "0"]], [["--coordination", "nothing"]]])("refuses %j", async (args) => {
    const { exitCode, stderr } = await runCli(["questions", ...args, "--ledger", nameLedger()]);
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^error /u) as string,
    });
  });

  test("of one session only are found without those of others", async () => {
    const host = { stateDir: () => Promise.resolve("nowhere") } as never;
    const { questions } = await withLedger(host, { ledger: nameLedger() }, (reader) =>
      findNewestQuestions(createQuestionReads(reader), { wanted: "open", limit: 9, ownerSession: STRANGER }),
    );
    expect(questions.map(({ view }) => view.coordinationId)).toEqual([OTHERS]);
  });
});

describe("questions show", () => {
  test("tells all, with the held result behind a bar and the commands that answer", async () => {
    const shown = await print(["questions", "show", `${SPAWNS}:escalation-1`]);
    expect(shown).toContain("  answers       approve, deny or answer\n");
    expect(shown).toContain(
      "the held result, as an agent wrote it\n  │ the answer is 42\n  │ $ openclaw coordination approve --only\n",
    );
    expect(shown.endsWith(`openclaw coordination answer ${SPAWNS}:escalation-1 TEXT\n`)).toBe(true);
  });

  test("as JSON has the words of agents as they are", async () => {
    const showQuestion = async (id: string): Promise<unknown> =>
      JSON.parse(await print(["questions", "show", id, "--json"]));
    expect(await showQuestion(`${SPAWNS}:escalation-1`)).toMatchObject({ resultText: HELD_TEXT });
    expect(await showQuestion(`${SPAWNS}:escalation-2`)).toMatchObject({ asked: { question: NASTY } });
  });

  test("in the shell of a model keeps back what the model must not read", async () => {
    vi.stubEnv("OPENCLAW_SHELL", "exec");
    for (const json of [[], ["--json"]])
      expect(await print(["questions", "show", `${SPAWNS}:escalation-1`, ...json])).not.toContain("42");
  });

  test("takes a unique prefix of an open question, and a prefix of the coordination of any", async () => {
    expect(await print(["questions", "show", "co-9"])).toContain(`${OTHERS}:escalation-1`);
    expect(await print(["questions", "show", "co-1:escalation-2".replace("co-1", "co-1f0")])).toContain(
      "its agent asks",
    );
    expect(await print(["questions", "show", "plan:escalation-1"])).toContain("denied by operator cli");
  });

  test.each([
    ["co-1f", "may be"],
    ["co-", "may be"],
    ["nothing", "names no question"],
    ["co-9:escalation-7", "names no question"],
  ])("%s %s", async (id, problem) => {
    const { exitCode, stderr } = await runCli(["questions", "show", id, "--ledger", nameLedger()]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`error INPUT_INVALID: id: ${JSON.stringify(id)} ${problem}`);
  });

  test.each(["--all", "--undelivered", "--limit=3", "--coordination=co-1"])(
    "refuses %s of the list",
    async (option) => {
      const { exitCode, stderr } = await runCli([
        "questions",
        "show",
        "co-9",
        option,
        "--ledger",
        nameLedger(),
      ]);
      expect({ exitCode, stderr }).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining("INPUT_INVALID") as string,
      });
    },
  );
});

describe("what an answer brought about", () => {
  const step = { stepId: "a" as never };
  const overwrite = { cause: "conflict", overwritten: true } as const;
  const ended = { ...overwrite, stepEnded: true } as const;
  const createDoubtOf = (whose: "result" | "decision") =>
    ({ cause: "confidence", confidence: { floor: 7_000, of: whose } }) as const;

  test.each([
    [{ ...createDoubtOf("result"), ...step }, "approved", "the result of step a counts now"],
    [{ cause: "verifier", ...step }, "denied", "the result of step a stays withheld, and the step fails"],
    [{ cause: "verifier", ...step }, "answered", "your text counts as the result of step a"],
    [{ ...createDoubtOf("decision"), ...step }, "approved", "step a may begin"],
    [{ ...createDoubtOf("decision"), ...step }, "denied", "step a is skipped"],
    [createDoubtOf("decision"), "denied", "the plan does not begin"],
    [{ cause: "retries_exhausted", ...step }, "retried", "step a is tried again"],
    [{ cause: "deadline", ...step }, "denied", "step a fails"],
    [{ cause: "budget" }, "continued", "the plan goes on beyond its budget"],
    [{ cause: "budget", ...step }, "retried", "step a is tried again"],
    [{ cause: "conflict", ...step }, "denied", "the write of step a does not happen"],
    [{ ...overwrite, ...step }, "approved", "step a has the file now, and what others claimed of it ends"],
    [{ ...overwrite, ...step }, "denied", "the file stays as it is now, and its holder keeps its claim"],
    [{ ...ended, ...step }, "approved", "the file stays as it is now, and its holder keeps its claim"],
    [{ ...ended, ...step }, "denied", "the file stays as it is now, and its holder keeps its claim"],
    [{ cause: "agent" }, "answered", "the agent is told your answer"],
  ] as const)("%j %s: %s", (question, resolution, happened) => {
    expect(describeEffect(question, resolution)).toBe(happened);
  });

  test("of a command that overwrote a file stands beside why it was asked", () => {
    expect(describeCause(overwrite as AskedQuestion)).toBe("its command overwrote a file that others hold");
  });
});

describe("show", () => {
  test("tells what a held step is held for, and which question is asked about it", async () => {
    const shown = await print(["show", SPAWNS]);
    expect(shown).toContain("  questions   4, 3 open\n");
    expect(shown).toMatch(
      /◈ step-1 {2}draft {2}held {2}9\.9s\n(?: .*\n)* {2}held {8}since .*Z; its agent is 31% sure\n {2}question {4}escalation-1\n/u,
    );
    expect(shown).toContain(
      "  checks      facts: pass by agent:critic at 95% (sources); style: no verdict (timed out)\n",
    );
    expect(shown).toContain("  released    people approved it\n");
  });

  test("says that a plan gave up, and every verdict of every attempt", async () => {
    const shown = await print(["show", REPORT]);
    expect(shown).toContain("\ngave up: published not met\n");
    expect(shown).toContain("  criteria    published not met, written met\n");
    expect(shown).toContain(
      "facts: revise by agent:critic (sources); facts: pass by agent:critic, attempt 2\n",
    );
    expect(shown).toContain("  revised     1 time\n  released    its checks passed\n");
    expect(shown).toContain("skipped (denied)");
  });

  test("as JSON says of every question whether it is open", async () => {
    const { escalations } = JSON.parse(await print(["show", SPAWNS, "--json"])) as {
      readonly escalations: readonly { readonly status: string; readonly closed?: unknown }[];
    };
    expect(escalations.map(({ status }) => status)).toEqual(
      escalations.map(({ closed }) => (closed ? "closed" : "open")),
    );
    expect(new Set(escalations.map(({ status }) => status))).toEqual(new Set(["open", "closed"]));
  });

  test("as JSON has held results, verdicts and revisions", async () => {
    const spawns = JSON.parse(await print(["show", SPAWNS, "--json"])) as CoordinationView;
    expect(spawns.steps[0]?.held).toMatchObject({ confidence: 3_100, escalationId: "escalation-1" });
    expect(JSON.parse(await print(["show", REPORT, "--json"]))).toMatchObject({
      gaveUp: true,
      verdicts: [
        { verdict: "revise", attempt: 1 },
        { verdict: "pass", attempt: 2 },
      ],
      revisions: [{ stepId: "write", attempt: 1, criteria: ["sources"] }],
    });
  });
});

describe("timeline", () => {
  const findRow = (drawn: string, name: string): string =>
    drawn.split("\n").find((line) => line.startsWith(`${name} `)) ?? `no row ${name}`;

  test("draws a held result thin after its work, with a mark where people were asked", async () => {
    const drawn = await print(["timeline", SPAWNS]);
    expect(findRow(drawn, "draft")).toMatch(/◈ █+\?┄{60,} +9\.9s$/u);
    expect(findRow(drawn, "old")).toMatch(/✓ █+\?┄+ [ ┊]+49\.7s$/u);
    expect(drawn).toContain("4 questions, 3 open");
    expect(drawn).toContain("? people asked");
  });

  test("draws a revision as another attempt", async () => {
    const drawn = await print(["timeline", REPORT]);
    expect(findRow(drawn, "write")).toMatch(/✓ [ ┊]*▒+[ ┊]+\S?█+\S?┄+/u);
    expect(drawn).toContain("▒ failed or revised attempt");
    expect(drawn).toContain("gave up: published not met");
    expect(drawn).toContain("\n↻ write at 12.0s: facts: revise by agent:critic (sources)\n");
  });

  test("names each question with the command that answers it, which is never cut", async () => {
    const drawn = await print(["timeline", SPAWNS], { terminal: { columns: 60 } });
    expect(drawn).toContain(`\n  openclaw coordination approve ${SPAWNS}:escalation-1\n`);
    expect(drawn).toContain(`\n  openclaw coordination answer ${SPAWNS}:escalation-2 TEXT\n`);
    expect(drawn).not.toContain(`approve ${SPAWNS}:escalation-4`);
    const long = drawn
      .split("\n")
      .filter((line) => countCells(line) > 60 && !line.includes("openclaw coordination"));
    expect(long).toEqual([]);
  });

  test("as JSON has attempts, verdicts and questions by their time", async () => {
    const { rows, questions, verdicts, gaveUp } = JSON.parse(
      await print(["timeline", REPORT, "--json"]),
    ) as Timeline;
    expect(rows[0]).toMatchObject({
      stepId: "write",
      attempt: 2,
      startMs: 13_000,
      heldMs: 23_000,
      durationMs: 11_000,
      earlier: [{ attempt: 1, status: "revised", startMs: 1_000, durationMs: 10_000 }],
    });
    expect(verdicts).toEqual([
      { stepId: "write", attempt: 1, check: "facts", ruledMs: 12_000, verdict: "revise" },
      { stepId: "write", attempt: 2, check: "facts", ruledMs: 24_000, verdict: "pass" },
    ]);
    expect(questions).toMatchObject([
      { stepId: "publish", askedMs: 100, closedMs: 30_000, resolution: "denied" },
    ]);
    expect(gaveUp).toBe(true);
  });
});

describe("status and doctor", () => {
  test("status counts open questions and names the most urgent deadline", async () => {
    expect(JSON.parse(await print(["status", "--json"]))).toMatchObject({
      openQuestions: 4,
      answerByMs: TEST_EPOCH_MS + 620_000,
    });
    expect(await print(["status"])).toContain("questions     4 open questions, the next is due in 8m 00s\n");
    const late = await print(["status"], { nowMs: NOW_MS + 3_600_000 });
    expect(late).toContain("4 open questions, one is past its time\n");
  });

  test.each([
    [0, "ok", "4 open questions in good time"],
    [200_000, "warn", `1 open question past half of the time to answer: ${SPAWNS}:escalation-2`],
  ])("doctor %d ms later says %s: %s", async (laterMs, status, message) => {
    const { stdout } = await runCli(["doctor", "--json", "--ledger", nameLedger()], {
      nowMs: NOW_MS + laterMs,
    });
    const { checks } = JSON.parse(stdout) as { checks: { name: string }[] };
    expect(checks.find(({ name }) => name === "questions")).toMatchObject({ status, message });
    expect(checks.find(({ name }) => name === "question-notices")).toMatchObject({
      status: "warn",
      message: `1 open question of which somebody could not be told: ${SPAWNS}:escalation-1`,
    });
  });

  test("the ledger of this test is sound", async () => {
    expect(await print(["verify"])).toMatch(/^ok /u);
  });
});
