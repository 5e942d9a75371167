import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { recordConflicts, STRANGERS, WRITERS } from "./recorded-conflicts.ts";
import { OPEN, recordLedger, RESEARCH } from "./recorded-ledger.ts";
import { ENDED_PLAN, recordPlans, RUNNING_PLAN } from "./recorded-plan.ts";
import { OTHERS, recordQuestions, REPORT, SPAWNS } from "./recorded-questions.ts";
import { runCli } from "./run-cli.ts";

let folder: TempFolder;
let policies = 0;
const nameSpawns = (): string => folder.file("spawns.sqlite");
const namePlans = (): string => folder.file("plans.sqlite");
const nameQuestions = (): string => folder.file("questions.sqlite");
const nameConflicts = (): string => folder.file("conflicts.sqlite");

beforeAll(async () => {
  folder = createTempFolder();
  await recordLedger(nameSpawns(), [RESEARCH, OPEN]);
  await recordPlans(namePlans(), [RUNNING_PLAN, ENDED_PLAN]);
  await recordQuestions(nameQuestions());
  await recordConflicts(nameConflicts(), folder.path);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

interface ReplayReport {
  readonly equal: boolean;
  readonly difference?: { readonly sequence: number; readonly type: string; readonly why: string };
  readonly decisions: number;
  readonly whatIf?: {
    readonly points: readonly {
      readonly sequence: number;
      readonly stepId?: string;
      readonly decided: string;
      readonly would: string;
      readonly why: string;
      readonly certainty: string;
    }[];
    readonly uncertain: readonly { readonly stepId: string }[];
    readonly next: readonly { readonly act: string; readonly stepId?: string }[];
    readonly leftOut: number;
    readonly would: string;
    readonly recorded: string;
    readonly plan: string;
  };
}

async function runReplay(args: readonly string[]): Promise<ReplayReport & { readonly exitCode: number }> {
  const { stdout, exitCode } = await runCli(["replay", ...args, "--json"]);
  return { ...(JSON.parse(stdout) as ReplayReport), exitCode };
}

function writePolicyFile(text: string): string {
  policies += 1;
  const path = folder.file(`policy-${policies}.yaml`);
  writeFileSync(path, text);
  return path;
}

describe("replay", () => {
  test.each([
    [["--to", "0"], "--to: expected a place behind 0, got 0"],
    [["--from", "5", "--to", "2"], "--to: expected a place behind 5, got 2"],
    [["--from", "5", "--to", "5"], "--to: expected a place behind 5, got 5"],
  ])("%j is refused as what was asked for, not as a fault of the log", async (args, message) => {
    const { stdout, exitCode } = await runCli([
      "replay",
      RESEARCH.id,
      ...args,
      "--ledger",
      nameSpawns(),
      "--json",
    ]);
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: "INPUT_INVALID", message } });
  });

  test("takes the largest place that its refusal names, and none beyond it", async () => {
    const args = ["replay", RESEARCH.id, "--ledger", nameSpawns(), "--json", "--to"];
    expect((await runCli([...args, "9007199254740991"])).exitCode).toBe(0);
    const { stdout } = await runCli([...args, "9007199254740992"]);
    expect(stdout).toContain("--to: expected a whole number from 0 to 9007199254740991");
  });

  test.each([
    [RESEARCH.id, nameSpawns],
    [OPEN.id, nameSpawns],
    [RUNNING_PLAN.id, namePlans],
    [ENDED_PLAN.id, namePlans],
    [SPAWNS, nameQuestions],
    [OTHERS, nameQuestions],
    [WRITERS, nameConflicts],
    [STRANGERS, nameConflicts],
  ])("of %s comes out as it is recorded, whole and from its middle", async (id, ledger) => {
    const whole = await runReplay([id, "--ledger", ledger()]);
    expect(whole).toMatchObject({ equal: true, exitCode: 0 });
    expect(whole.decisions).toBeGreaterThan(0);
    const middle = await runReplay([id, "--from", "7", "--ledger", ledger()]);
    expect(middle).toMatchObject({ equal: true, exitCode: 0, from: 7 });
    expect(middle.decisions).toBeLessThan(whole.decisions);
  });

  test("of a log that says what does not follow tells where, what and why, and fails", async () => {
    // Its steps did not all complete, and it says that what it is for was reached.
    const { equal, difference, exitCode } = await runReplay([REPORT, "--ledger", nameQuestions()]);
    expect({ equal, exitCode }).toEqual({ equal: false, exitCode: 1 });
    expect(difference).toMatchObject({
      type: "plan.judged",
      kind: "decision",
      why: "successCriteria.1.met: false is decided, true is recorded",
    });
    const { stdout } = await runCli(["replay", REPORT, "--ledger", nameQuestions()]);
    expect(stdout).toMatch(/^ DIFFERS {3}plan-report:\d+ {2}plan\.judged\n/);
    const policy = writePolicyFile("retry: {budget: 0}");
    expect(await runReplay([REPORT, "--policy", policy, "--ledger", nameQuestions()])).not.toHaveProperty(
      "whatIf",
    );
    const after = String((difference?.sequence ?? 0) + 1);
    expect(await runReplay([REPORT, "--from", after, "--ledger", nameQuestions()])).toMatchObject({
      equal: true,
    });
  });

  test("says so in a line, with how many decisions it made again", async () => {
    const { stdout } = await runCli(["replay", RUNNING_PLAN.id, "--ledger", namePlans()]);
    expect(stdout).toMatch(/^ok {2}plan-6f1c\S+: \d+ events, \d+ decisions come out as recorded/);
  });

  test("refuses a place behind the end, a coordination that is not there, and an empty policy", async () => {
    const behind = await runCli(["replay", OPEN.id, "--from", "999", "--ledger", nameSpawns()]);
    expect(behind).toMatchObject({ exitCode: 1 });
    expect(behind.stderr).toContain("the log ends before 999");
    expect((await runCli(["replay", "co-nobody", "--ledger", nameSpawns()])).stderr).toContain("co-nobody");
    const empty = await runCli([
      "replay",
      OPEN.id,
      "--policy",
      writePolicyFile("{}"),
      "--ledger",
      nameSpawns(),
    ]);
    expect(empty.stderr).toContain("a policy says something of gates, conflicts");
  });

  test.each(["--confidence-floor", "--escalation-threshold"])(
    "refuses %s, which is for workflow runs",
    async (option) => {
      const { stderr, exitCode } = await runCli(["replay", OPEN.id, option, "0.6", "--ledger", nameSpawns()]);
      expect(exitCode).toBe(1);
      expect(stderr).toContain(`INPUT_INVALID: ${option} is for workflow runs, and this is a coordination`);
    },
  );

  test.each([
    ["gates: {confidenceThreshold: 2}", "gates.confidenceThreshold"],
    ["lanes: {data: 4}", "lanes"],
    ["gates: {confidenceTreshold: 0.8}", "gates"],
    ["conflicts: {strategy: coin_toss}", "conflicts.strategy"],
    ["retry: {budget: -1}", "retry.budget"],
    ["gates: [", "line 1"],
    ["{name: a, version: 1.0.0, settings: {gates: {}}}", "this is a policy pack; `policy test"],
  ])("refuses the policy %s and names the place", async (text, place) => {
    const { stderr, exitCode } = await runCli([
      ...["replay", OPEN.id, "--policy", writePolicyFile(text), "--ledger", nameSpawns()],
    ]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("INPUT_INVALID");
    expect(stderr).toContain(place);
  });
});

describe("replay under another policy", () => {
  test("a lower floor lets through what was held, and people are not asked", async () => {
    const policy = writePolicyFile("gates: {confidenceThreshold: 0.3, agents: {}}");
    const { whatIf, exitCode } = await runReplay([SPAWNS, "--policy", policy, "--ledger", nameQuestions()]);
    expect(exitCode).toBe(0);
    expect(whatIf?.points).toContainEqual(
      expect.objectContaining({
        stepId: "step-1",
        would: "the result counts",
        why: "confidence 0.31 meets 0.3",
        certainty: "differs",
      }),
    );
    expect(whatIf?.points.find(({ stepId }) => stepId === "step-1")?.decided).toMatch(
      /^the result is held; people are asked \(confidence\) until /,
    );
  });

  test("what people approved then counts at once, and nothing about it is uncertain afterwards", async () => {
    const policy = writePolicyFile("gates: {confidenceThreshold: 0.4, agents: {}}");
    const { whatIf } = await runReplay([SPAWNS, "--policy", policy, "--ledger", nameQuestions()]);
    // No rule names the checks that `step-2` waits for.
    expect(whatIf?.points.map(({ stepId }) => stepId)).toEqual(["step-2", "step-3"]);
    expect(whatIf?.uncertain).toMatchObject([{ stepId: "step-2" }]);
  });

  test("without a retry budget a step fails, what needed it does not begin, and its results are left out", async () => {
    const policy = writePolicyFile("retry: {budget: 0}");
    const { whatIf } = await runReplay([RUNNING_PLAN.id, "--policy", policy, "--ledger", namePlans()]);
    const failed = whatIf?.points.find(({ stepId }) => stepId === "fetch");
    expect(failed?.decided).toMatch(/^failed, tried again at /);
    expect(failed?.would).toMatch(/^failed, people are asked; people are asked \(retries_exhausted\)/);
    expect(failed?.why).toBe("a retry budget of 0, attempt 1, then people");
    expect(whatIf?.points).toContainEqual(
      expect.objectContaining({ stepId: "parse", decided: "attempt 1 begins", certainty: "follows" }),
    );
    expect(whatIf?.uncertain.map(({ stepId }) => stepId)).toEqual(expect.arrayContaining(["fetch", "parse"]));
    expect(whatIf?.leftOut).toBeGreaterThan(0);
  });

  test("from an index on, what was decided before it stays", async () => {
    const policy = writePolicyFile("retry: {budget: 0}");
    const all = await runReplay([RUNNING_PLAN.id, "--policy", policy, "--ledger", namePlans()]);
    const fetched = all.whatIf?.points.find(({ stepId }) => stepId === "fetch")?.sequence ?? 0;
    const later = await runReplay([
      ...[RUNNING_PLAN.id, "--from", String(fetched + 1), "--policy", policy, "--ledger", namePlans()],
    ]);
    expect(later.whatIf?.points.every(({ sequence }) => sequence > fetched)).toBe(true);
    expect(later.whatIf?.points.some(({ stepId }) => stepId === "parse")).toBe(false);
  });

  test("more retries leave a plan open that had ended, and tell what would be done next", async () => {
    const policy = writePolicyFile("retry: {budget: 2}");
    const { whatIf } = await runReplay([ENDED_PLAN.id, "--policy", policy, "--ledger", namePlans()]);
    expect(whatIf).toMatchObject({ recorded: "partial", would: "open" });
    expect(whatIf?.next).toContainEqual({ act: "runStep", stepId: "sqlite", attempt: 2 });
    expect(whatIf?.points).toContainEqual(
      expect.objectContaining({ stepId: "compare", decided: "skipped (dependency)", would: "not decided" }),
    );
  });

  test("fail-fast stops what ran on", async () => {
    const policy = writePolicyFile("failurePolicy: {timeoutPolicy: fail_fast}");
    const { whatIf } = await runReplay([ENDED_PLAN.id, "--policy", policy, "--ledger", namePlans()]);
    expect(whatIf?.points).toContainEqual(
      expect.objectContaining({
        stepId: "postgres",
        would: "no longer certain",
        why: "would have been stopped",
      }),
    );
    expect(whatIf?.next).toContainEqual(expect.objectContaining({ act: "stopStep", stepId: "postgres" }));
  });

  test("a stricter floor cannot tell of what was stated and not recorded", async () => {
    const policy = writePolicyFile("gates: {confidenceThreshold: 0.9}");
    const { whatIf } = await runReplay([RESEARCH.id, "--policy", policy, "--ledger", nameSpawns()]);
    expect(whatIf?.points.length).toBeGreaterThan(0);
    expect(whatIf?.points.every(({ certainty }) => certainty === "unknown")).toBe(true);
    expect(whatIf).toMatchObject({ recorded: "partial", would: "partial" });
  });

  test("answers that came within the time then come too late where questions close sooner", async () => {
    const policy = writePolicyFile("escalateMs: 5000");
    const { whatIf } = await runReplay([SPAWNS, "--policy", policy, "--ledger", nameQuestions()]);
    expect(whatIf?.points).toContainEqual(
      expect.objectContaining({ stepId: "step-3", would: expect.stringMatching(/until/) as string }),
    );
    expect(whatIf?.points).toContainEqual(
      expect.objectContaining({ stepId: "step-1", why: "nobody had answered by then" }),
    );
  });

  test("another strategy gives a contested resource to another step, and tells why", async () => {
    const policy = writePolicyFile("conflicts: {strategy: manual_review}");
    const { whatIf } = await runReplay([WRITERS, "--policy", policy, "--ledger", nameConflicts()]);
    expect(whatIf?.points).toContainEqual(
      expect.objectContaining({
        would: "people are asked",
        why: "manual_review (default) in place of owner_wins (default)",
      }),
    );
  });

  test("is told to people with what was decided, what would have been, and why", async () => {
    const policy = writePolicyFile("retry: {budget: 0}");
    const { stdout } = await runCli(["replay", RUNNING_PLAN.id, "--policy", policy, "--ledger", namePlans()]);
    expect(stdout).toContain("decisions would have been another:");
    expect(stdout).toMatch(/\n {8}decided {2}failed, tried again at /);
    expect(stdout).toMatch(/\n {8}why {6}a retry budget of 0, attempt 1, then people\n/);
    expect(stdout).toContain("No longer certain: fetch");
    expect(stdout).toContain("left out: about work that would not have been the recorded work");
  });

  test("says of a plan that a budget is left out, and says nothing of it where there is none", async () => {
    const args = ["replay", RUNNING_PLAN.id, "--ledger", namePlans(), "--policy"];
    const { stdout } = await runCli([...args, writePolicyFile("budget: {spawns: 1}")]);
    expect(stdout).toContain(
      "Left out: budget. It bounds coordinations that spawns open; a plan states its own.",
    );
    const { stdout: other } = await runCli([...args, writePolicyFile("retry: {budget: 0}")]);
    expect(other).not.toContain("Left out: budget");
  });

  test("changes nothing in the ledger", async () => {
    const before = await runCli(["events", "--ledger", namePlans(), "--json"]);
    await runCli([
      "replay",
      RUNNING_PLAN.id,
      "--policy",
      writePolicyFile("retry: {budget: 0}"),
      "--ledger",
      namePlans(),
    ]);
    expect((await runCli(["events", "--ledger", namePlans(), "--json"])).stdout).toBe(before.stdout);
  });
});
