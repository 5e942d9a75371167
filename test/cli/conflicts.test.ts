import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Terminal } from "../../src/plugins/cli/terminal/cli-host.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { describeConflictCause, describeMerge } from "../../src/plugins/cli/conflicts/conflict-story.ts";
import type { ConflictRecord } from "../../src/plugins/reports/conflict-log.ts";
import { describeConflictOutcome, findWinningClaim } from "../../src/plugins/cli/conflicts/conflict-text.ts";
import { classifyOutcome } from "../../src/plugins/reports/conflict-outcome.ts";
import { countCells } from "../../src/plugins/cli/terminal/printable.ts";
import { createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { NASTY, PRODUCTION, recordConflicts, STRANGERS, WRITERS } from "./recorded-conflicts.ts";
import { recordLedger, RESEARCH } from "./recorded-ledger.ts";
import { recordHistory, recordOldSchema } from "./recorded-old.ts";
import { runCli } from "./run-cli.ts";

let folder: TempFolder;
const nameLedger = (): string => folder.file("ledger.sqlite");

beforeAll(async () => {
  folder = createTempFolder();
  await recordConflicts(nameLedger(), folder.path);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

interface CommandSetting {
  readonly terminal?: Partial<Terminal>;
  readonly path?: string;
}

async function tell(
  args: readonly string[],
  { terminal, path = nameLedger() }: CommandSetting = {},
): Promise<string> {
  const setting = { nowMs: TEST_EPOCH_MS + 30_000, terminal: { columns: 140, ...terminal } };
  const { stdout, stderr, exitCode } = await runCli([...args, "--ledger", path], setting);
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  return stdout;
}

async function readJson(args: readonly string[], request?: CommandSetting): Promise<unknown> {
  return JSON.parse(await tell([...args, "--json"], request)) as unknown;
}

async function idsOf(args: readonly string[], request?: CommandSetting): Promise<string[]> {
  return ((await readJson(args, request)) as { conflictId: string }[]).map(({ conflictId }) => conflictId);
}

const nameConflict = (number: number): string => `${WRITERS}:conflict-${number}`;

describe("conflicts", () => {
  test("of all coordinations stand newest first", async () => {
    const strange = [`${STRANGERS}:conflict-2`, `${STRANGERS}:conflict-1`];
    const ids = [nameConflict(3), ...strange, nameConflict(2), nameConflict(1)];
    expect(await idsOf(["conflicts"])).toEqual(ids);
    for (const limit of [1, 2, 3, 4]) {
      expect(await idsOf(["conflicts", "--limit", String(limit)])).toEqual(ids.slice(0, limit));
    }
  });

  test("have one line each: time, number, path, strategy, who asked, what came of it", async () => {
    const lines = (await tell(["conflicts"], { terminal: { columns: 200 } })).trimEnd().split("\n");
    expect(lines).toHaveLength(6);
    expect(lines[5]).toMatch(
      /^2026-01-02 03:04:17Z {2}co-1f0c7a52:conflict-1 {2}\S+\/notes\.md +owner_wins \(default\) +review +draft won \(lease-holder\)$/u,
    );
    expect(lines[4]).toMatch(
      / queue:production +manual_review \(high risk\) +the owner +open until 2026-01-02 03:06:21Z$/u,
    );
  });

  test("say of which coordination a winner with the same id is", async () => {
    expect(await tell(["conflicts", STRANGERS])).toMatch(
      /thief +step-1 of co-1f0c7a52 won \(lease-holder\)$/mu,
    );
  });

  test("tell two steps with the same id apart", async () => {
    const [winner, thief] = (await tell(["conflicts", "co-9a:conflict-1"])).split("\n\n").slice(1);
    expect(winner).toMatch(/^ {2}step-1 of co-1f0c7a52 {2}\(co-1f0c7a52-\S+ step-1\) won\n/u);
    expect(thief).toMatch(/^ {2}thief {2}\(step-1\) asked\n/u);
    const timeline = (await readJson(["timeline", "co-9a"])) as { conflicts: object[] };
    expect(timeline.conflicts[0]).toMatchObject({
      stepId: "step-1",
      outcome: "refused",
      winner: "step-1",
      winnerCoordinationId: WRITERS,
    });
  });

  test("say that nobody got it, where nobody could be asked", async () => {
    expect(await tell(["conflicts", STRANGERS])).toMatch(/conflict-2 .* thief +refused \(manual-review\)$/mu);
  });

  test("can be those that people may still answer", async () => {
    expect(await idsOf(["conflicts", "--open"])).toEqual([nameConflict(2)]);
    expect(await idsOf(["conflicts", WRITERS, "--open"])).toEqual([nameConflict(2)]);
    expect(await idsOf(["conflicts", STRANGERS, "--open"])).toEqual([]);
  });

  test("can be those of one coordination, named by a prefix", async () => {
    expect(await idsOf(["conflicts", "co-1f"])).toEqual([nameConflict(3), nameConflict(2), nameConflict(1)]);
    expect(await idsOf(["conflicts", "co-1f", "--limit", "1"])).toEqual([nameConflict(3)]);
  });

  test("cut a long path at its beginning", async () => {
    const lines = await tell(["conflicts", "co-1f"], { terminal: { columns: 80 } });
    expect(lines).toMatch(/ {2}….{10,}\/notes\.md {2}/u);
  });

  test("cannot colour the terminal, move the cursor or turn the line around", async () => {
    for (const args of [
      ["conflicts"],
      ["conflicts", "co-1f:conflict-3"],
      ["show", "co-1f"],
      ["timeline", "co-1f"],
    ]) {
      const lines = (await tell(args)).trimEnd().split("\n");
      expect(lines.join("")).not.toMatch(/[\p{Cc}\u202e]/u);
      expect(lines.join("")).toContain("red��evil line");
    }
  });

  test("are ASCII where the terminal is", async () => {
    for (const args of [
      ["conflicts"],
      ["conflicts", "co-1f:conflict-3"],
      ["show", "co-1f"],
      ["timeline", "co-1f"],
    ])
      expect((await tell(args, { terminal: { unicode: false } })).replaceAll("\n", "")).toMatch(
        /^[\x20-\x7e]+$/u,
      );
  });

  test.each(["co-1f:conflict-1", nameConflict(1)])(
    "%s is one, with everything that it was ruled on by",
    async (id) => {
      const [draft, review] = (await tell(["conflicts", id])).split("\n\n").slice(1);
      expect(await tell(["conflicts", id])).toMatch(
        /asked {7}review\n {2}cause {7}overlap: [^]*current {5}sha256:[0-9a-f]{64}\n[^]*rule {8}lease\n/u,
      );
      expect(draft).toMatch(
        /^ {2}draft {2}\(step-1\) won\n {4}priority normal, token 1, lease until 2026-01-02 03:09:15Z$/u,
      );
      expect(review).toMatch(/^ {2}review {2}\(step-2\) asked\n {4}priority normal, would get token 2\n$/u);
    },
  );

  test("that are open say until when people may answer", async () => {
    expect(await tell(["conflicts", "co-1f:conflict-2"])).toContain(
      "  resolved    not yet: people may answer until 2026-01-02 03:06:21Z\n",
    );
  });

  test("as JSON have the evidence of the log with times", async () => {
    expect(await readJson(["conflicts", "co-9a:conflict-1"])).toEqual({
      conflictId: `${STRANGERS}:conflict-1`,
      coordinationId: STRANGERS,
      resource: `file:${folder.file("notes.md")}`,
      detectedAtMs: TEST_EPOCH_MS + 18_000,
      claims: [
        {
          stepId: "step-1",
          coordinationId: WRITERS,
          priority: "normal",
          claimedSequence: 1,
          expiresAtMs: TEST_EPOCH_MS + 310_000,
        },
        { stepId: "step-1", priority: "normal", claimedSequence: 3 },
      ],
      contest: expect.objectContaining({ requester: "step-1", cause: "overlap", from: "default" }) as object,
      resolution: {
        strategy: "owner_wins",
        winner: "step-1",
        winnerCoordinationId: WRITERS,
        losers: ["step-1"],
        because: "lease-holder",
        rule: "lease",
        resolvedAtMs: TEST_EPOCH_MS + 18_000,
      },
    });
  });

  test.each([
    ["co-1f:conflict-9", "INPUT_INVALID", "is none of the 3 conflicts of"],
    ["co-1f:conflict-", "INPUT_INVALID", "begins 3 conflicts of"],
    ["co-:conflict-1", "INPUT_INVALID", "is a prefix of"],
    ["co-nothing", "COORDINATION_NOT_FOUND", "no coordination begins with"],
    ["co-nothing:conflict-1", "COORDINATION_NOT_FOUND", "no coordination begins with"],
    [":conflict-1", "COORDINATION_NOT_FOUND", "no coordination begins with"],
    ["", "INPUT_INVALID", "expected a coordination id"],
  ])("%j is an error", async (id, code, message) => {
    const { stdout, exitCode } = await runCli(["conflicts", id, "--ledger", nameLedger(), "--json"]);
    expect(exitCode).toBe(1);
    const { error } = JSON.parse(stdout) as { error: { code: string; message: string } };
    expect(error.code).toBe(code);
    expect(error.message).toContain(message);
  });

  test("take a sound limit only", async () => {
    const { stderr, exitCode } = await runCli(["conflicts", "--limit", "0", "--ledger", nameLedger()]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("--limit: expected a whole number from 1");
  });

  test("have help with examples", async () => {
    const { stdout, exitCode } = await runCli(["conflicts", "--help"]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain("$ openclaw coordination conflicts co-1f0c:conflict-3");
  });
});

describe("what came of a conflict", () => {
  const claim = (stepId: string, more: object = {}) => ({
    stepId,
    priority: "normal",
    claimedSequence: 1,
    ...more,
  });
  const createConflict = (resolution?: object): ConflictRecord =>
    ({
      conflictId: "co-1:conflict-1",
      coordinationId: "co-1",
      claims: [claim("@outside"), claim("a", { coordinationId: "co-2" }), claim("a"), claim("@owner")],
      contest: { requester: "a", strategy: "merge_if_safe", from: "high_risk", reviewByMs: TEST_EPOCH_MS },
      ...(resolution && { resolution }),
    }) as ConflictRecord;

  test.each([
    ["open", undefined, "open until 2026-01-02 03:04:05Z"],
    ["granted", { winner: "a", because: "approved" }, "write won (approved)"],
    ["refused", { because: "denied" }, "refused (denied)"],
    [
      "refused",
      { winner: "a", winnerCoordinationId: "co-2", because: "lease-holder" },
      "a of co-2 won (lease-holder)",
    ],
    ["refused", { winner: "@owner", because: "declared-owner" }, "the owner won (declared-owner)"],
    ["refused", { winner: "@outside", because: "changed-since" }, "somebody else won (changed-since)"],
  ])("is %s of %j", (outcome, resolution, text) => {
    const names = new Map([["a" as StepId, "write"]]);
    expect(classifyOutcome(createConflict(resolution))).toBe(outcome);
    expect(describeConflictOutcome(names, createConflict(resolution))).toBe(text);
    const { winner, winnerCoordinationId } = {
      winner: undefined,
      winnerCoordinationId: undefined,
      ...resolution,
    };
    const place = findWinningClaim(createConflict(resolution));
    expect([place?.stepId, place?.coordinationId]).toEqual([winner, winnerCoordinationId]);
  });
});

describe("the merge of a conflict", () => {
  const versions = { base: "sha256:b", current: "sha256:c", merged: "sha256:m" };
  test.each([
    [{ kind: "clean", ...versions }, "clean: sha256:b and sha256:c became sha256:m"],
    [{ kind: "clean", ...versions, way: "key" }, "clean by key: sha256:b and sha256:c became sha256:m"],
    [
      { kind: "clean", ...versions, way: "section" },
      "clean by section: sha256:b and sha256:c became sha256:m",
    ],
    [
      { kind: "clean", ...versions, way: "imports" },
      "clean as a set of imports: sha256:b and sha256:c became",
    ],
    [{ kind: "obstacle", obstacle: "owned_by_tool" }, "not possible: owned by tool"],
  ] as const)("%j is told", (merge, text) => {
    expect(describeMerge(merge)).toContain(text);
  });

  test("is none where a command has overwritten what others hold, and its cause says so", () => {
    const conflict = { contest: { cause: "overwritten" } } as ConflictRecord;
    expect(describeConflictCause(conflict)).toBe("overwritten: a command changed it while others held it");
  });
});

describe("a ledger without conflicts", () => {
  test("has none, whether it is empty, of coordinations that had none, or of an older schema", async () => {
    using other = createTempFolder();
    const [empty, plain, old] = ["empty", "plain", "old"].map((name) => other.file(name)) as [
      string,
      string,
      string,
    ];
    await recordLedger(empty, []);
    await recordLedger(plain, [RESEARCH]);
    recordOldSchema(old);
    for (const path of [empty, plain, old]) {
      expect(await tell(["conflicts"], { path })).toBe("no conflicts\n");
      expect(await readJson(["conflicts"], { path })).toEqual([]);
      expect(await tell(["claims"], { path })).toBe("nothing is claimed\n");
      expect(await readJson(["claims", "--all"], { path })).toEqual([]);
    }
    expect(await readJson(["show"], { path: plain })).toMatchObject({ conflicts: [], changes: 0 });
    expect(await tell(["timeline"], { path: plain })).not.toMatch(/‡|conflict/u);
  });
});

describe("a conflict of release 0.1.0", () => {
  const printOld = async (args: readonly string[]): Promise<string> => {
    using other = createTempFolder();
    const path = other.file("ledger.sqlite");
    await recordHistory(path, "0.1.0-conflict");
    return await tell(args, { path });
  };

  test("is shown with what it has", async () => {
    expect(await printOld(["conflicts", "co-1"])).toMatch(
      /^2026-01-02 03:04:09Z {2}co-1:c-1 +\/a +owner_wins +- +step-1 won \(earliest-claim\)$/mu,
    );
    const story = await printOld(["conflicts", "co-1:c-1"]);
    expect(story).toContain("Its evidence is missing: it was recorded before arbitration.");
    expect(story).not.toMatch(/^ {2}(?:asked|cause|rule|base) /mu);
  });

  test("has no mark in the timeline, where nobody knows who asked, but a line", async () => {
    const drawn = await printOld(["timeline", "co-1"]);
    expect(drawn).toContain("‡ c-1 at 4.0s: /a: - asked, step-1 won (earliest-claim)\n");
    expect(drawn.match(/‡/gu)).toHaveLength(2);
  });
});

describe("show", () => {
  test("has the conflicts, the claims and how much was written", async () => {
    const shown = await tell(["show", "co-1f"]);
    expect(shown).toMatch(/^ {2}conflicts {3}3, 1 open\n {2}claims {6}3\n {2}changes {5}1 write$/mu);
    expect(shown).toMatch(
      /^ {2}2026-01-02 03:04:17Z {2}conflict-1 {2}\/.*notes\.md {2}review asked, draft won \(lease-holder\)$/mu,
    );
    expect(shown).toMatch(
      /^ {2}2 {2}queue:production {2}draft {2}since 2026-01-02 03:04:19Z, for 4m 44s more$/mu,
    );
  });

  test("as JSON has conflicts with their times, the claims and the number of changes", async () => {
    const shown = await readJson(["show", "co-1f"]);
    expect(shown).toMatchObject({
      changes: 1,
      conflicts: [
        {
          conflictId: nameConflict(1),
          detectedAtMs: TEST_EPOCH_MS + 12_000,
          resolution: { winner: "step-1" },
        },
        { conflictId: nameConflict(2), resource: PRODUCTION },
        { conflictId: nameConflict(3), resource: `queue:${NASTY}` },
      ],
      claims: [{ token: 1 }, { token: 2 }, { token: 3 }],
    });
  });
});

describe("timeline", () => {
  test("marks where a step asked for what others wanted, and tells what came of it", async () => {
    const lines = (await tell(["timeline", "co-1f"])).split("\n");
    const findRow = (name: string): string => lines.find((line) => line.startsWith(`${name} `)) ?? "";
    expect(findRow("draft")).not.toContain("‡");
    const at =
      (findRow("review").indexOf("‡") - findRow("review").indexOf("█")) /
      (findRow("review").lastIndexOf("░") - findRow("review").indexOf("█"));
    expect(at).toBeCloseTo(12 / 30, 1);
    expect(lines).toContain(
      "‡ conflict-2 at 16.0s: queue:production: the owner asked, open until 2026-01-02 03:06:21Z",
    );
    expect(lines.at(-2)).toMatch(/● running {2}‡ conflict$/u);
    expect(lines[1]).toContain("3 conflicts, 1 open");
  });

  test.each([60, 80, 100])("fits into %i columns", async (columns) => {
    for (const line of (await tell(["timeline", "co-1f"], { terminal: { columns } })).split("\n"))
      expect(countCells(line), line).toBeLessThanOrEqual(columns);
  });

  test("as JSON has each conflict with its offset and outcome", async () => {
    expect(await readJson(["timeline", "co-1f"])).toMatchObject({
      conflicts: [
        {
          stepId: "step-2",
          detectedMs: 12_000,
          outcome: "refused",
          winner: "step-1",
          because: "lease-holder",
        },
        { stepId: "@owner", detectedMs: 16_000, outcome: "open" },
        { stepId: "step-3", detectedMs: 22_000, outcome: "refused" },
      ],
    });
  });
});

test("status counts what people may still answer", async () => {
  expect(await tell(["status"])).toContain("2 coordinations, 4 open steps, 1 open conflict\n");
  expect(await readJson(["status"])).toMatchObject({ openConflicts: 1 });
});
