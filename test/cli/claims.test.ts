import { symlinkSync } from "node:fs";
import { hostname } from "node:os";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { formatMachineName, nameFile } from "../../src/agents/coordination/contracts/resource-names.ts";
import { createResourceFilter, describeResource } from "../../src/plugins/cli/conflicts/resource-text.ts";
import { describeShownResource } from "../../src/plugins/reports/shown-resource.ts";
import type { GatewayAnswer, GatewayCaller } from "../../src/plugins/openclaw/host/gateway-call.ts";
import { createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { NASTY, PRODUCTION, recordConflicts, WRITERS } from "./recorded-conflicts.ts";
import { runCli, type CliResult, type CliSetting } from "./run-cli.ts";

let folder: TempFolder;
const nameLedger = (): string => folder.file("ledger.sqlite");
const nameNotes = (): string => folder.file("notes.md");
/** The leases of the first two claims have ended, that of the third has not. */
const LATE_MS = TEST_EPOCH_MS + 315_000;

beforeAll(async () => {
  folder = createTempFolder();
  await recordConflicts(nameLedger(), folder.path);
  symlinkSync(folder.path, folder.file("link"));
});

afterAll(() => {
  folder[Symbol.dispose]();
});

async function printClaims(args: readonly string[] = [], setting: CliSetting = {}): Promise<string> {
  const { stdout, stderr, exitCode } = await runCli(["claims", ...args, "--ledger", nameLedger()], {
    nowMs: TEST_EPOCH_MS + 30_000,
    ...setting,
  });
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  return stdout;
}

async function listTokens(args: readonly string[] = [], setting: CliSetting = {}): Promise<number[]> {
  const listed = JSON.parse(await printClaims([...args, "--json"], setting)) as { token: number }[];
  return listed.map(({ token }) => token);
}

describe("claims", () => {
  test("stand by token, with who holds what since when and for how long", async () => {
    const lines = (await printClaims([], { terminal: { columns: 200 } })).trimEnd().split("\n");
    expect(lines[0]).toMatch(/^TOKEN {2}COORDINATION {2}STEP +SINCE +UNTIL +RESOURCE$/u);
    expect(lines[1]).toBe(
      `    1  co-1f0c7a52   step-1 (draft)   2026-01-02 03:04:15Z  in 4m 40s   ${nameNotes()}`,
    );
    expect(lines.slice(1).map((line) => Number(line.slice(0, 5)))).toEqual([1, 2, 3]);
  });

  test("as JSON have exact times and say whether the lease has ended", async () => {
    expect(JSON.parse(await printClaims(["--json", "--resource", PRODUCTION]))).toEqual([
      {
        token: 2,
        resource: PRODUCTION,
        coordinationId: WRITERS,
        stepId: "step-1",
        priority: "normal",
        acquiredAtMs: TEST_EPOCH_MS + 14_000,
        expiresAtMs: TEST_EPOCH_MS + 314_000,
        expired: false,
      },
    ]);
  });

  test("whose lease has ended are there with --all only, and marked", async () => {
    expect(await listTokens([], { nowMs: LATE_MS })).toEqual([3]);
    expect(await listTokens(["--all"], { nowMs: LATE_MS })).toEqual([1, 2, 3]);
    expect(await printClaims(["--all"], { nowMs: LATE_MS })).toMatch(/^ +2 .* expired +queue:production$/mu);
  });

  test("can be those that concern a file, a folder or a name", async () => {
    expect(await listTokens(["--resource", nameNotes()])).toEqual([1]);
    expect(await listTokens(["--resource", folder.path])).toEqual([1]);
    expect(await listTokens(["--resource", folder.file("link/notes.md")])).toEqual([1]);
    expect(await listTokens(["--resource", `${nameNotes()}/below`])).toEqual([1]);
    expect(await listTokens(["--resource", folder.file("other.md")])).toEqual([]);
    expect(await listTokens(["--resource", folder.file("notes")])).toEqual([]);
    expect(await listTokens(["--resource", PRODUCTION])).toEqual([2]);
    expect(await listTokens(["--resource", PRODUCTION.toUpperCase()])).toEqual([2]);
    expect(await printClaims(["--resource", "queue:none"])).toBe("nothing is claimed\n");
  });

  test("concern a name of any kind, and one letter is the drive of a file", () => {
    expect(createResourceFilter("my_db:customers")("my_db:customers")).toBe(true);
    expect(createResourceFilter("My_DB:customers")("my_db:customers")).toBe(true);
    expect(createResourceFilter("c:customers")("c:customers")).toBe(false);
  });

  test("concern the files of this machine, of all machines, or of one that is named", () => {
    const machine = formatMachineName(hostname());
    const isConcerned = createResourceFilter(nameNotes());
    expect(isConcerned(nameFile(nameNotes(), machine))).toBe(true);
    expect(isConcerned(nameFile(folder.path, machine))).toBe(true);
    expect(isConcerned(nameFile(nameNotes()))).toBe(true);
    expect(isConcerned(nameFile(nameNotes(), `${machine}-2`))).toBe(false);
    expect(createResourceFilter("file:@box-2:/repo")("file:@box-2:/repo/notes.md")).toBe(true);
  });

  test("are read with the machine of a file where that is another one", () => {
    expect(describeResource(nameFile("/repo/notes.md", formatMachineName(hostname())))).toBe(
      "/repo/notes.md",
    );
    expect(describeResource(nameFile("/repo/notes.md", "box-2"))).toBe("/repo/notes.md on box-2");
    expect(describeShownResource(nameFile("/repo/notes.md", "box-2"))).toBe("file:/repo/notes.md on box-2");
    expect(describeShownResource("file:/repo/notes.md")).toBe("file:/repo/notes.md");
  });

  test("that are too many are cut, and it says so", async () => {
    expect(await listTokens(["--limit", "2"])).toEqual([1, 2]);
    expect(await printClaims(["--limit", "2"])).toContain(
      "\nand more: raise --limit, or narrow it with --resource\n",
    );
    expect(await printClaims(["--limit", "3"])).not.toContain("and more");
  });

  test("cannot harm the terminal", async () => {
    const listed = await printClaims();
    expect(listed.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\u202e]/u);
    expect(await printClaims([], { terminal: { unicode: false } })).toMatch(/^[\x20-\x7e\n]+$/u);
    expect(await listTokens(["--resource", `queue:${NASTY}`])).toEqual([3]);
  });

  test("take no argument that is not a command", async () => {
    expect((await runCli(["claims", "everything", "--ledger", nameLedger()])).exitCode).not.toBe(0);
  });

  test.each([["claims"], ["claims", "release"]])("%s %s has help with examples", async (...command) => {
    const { stdout, exitCode } = await runCli([...command, "--help"]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain("$ openclaw coordination claims release 17");
  });
});

describe("claims release", () => {
  const PAYLOAD = {
    token: 7,
    coordinationId: "co-1",
    stepId: "draft",
    resource: "file:/repo/\u001b[2Jnotes.md",
  };
  const calls: unknown[][] = [];
  const createAnsweringGateway =
    (answer: GatewayAnswer): GatewayCaller =>
    (...call) => {
      calls.push(call);
      return Promise.resolve(answer);
    };
  beforeEach(() => {
    calls.length = 0;
  });
  const release = (args: readonly string[], setting: CliSetting = {}): Promise<CliResult> => {
    return runCli(["claims", "release", ...args], {
      gateway: createAnsweringGateway({ ok: true, payload: PAYLOAD }),
      ...setting,
    });
  };

  test("asks the gateway, and says what the effect is", async () => {
    const { stdout, exitCode } = await release(["7"]);
    expect(calls).toEqual([["coordination.claims.release", { token: 7 }]]);
    expect({ stdout, exitCode }).toEqual({
      exitCode: 0,
      stdout:
        "released claim 7 of step draft on /repo/\ufffd[2Jnotes.md\n" +
        "The step keeps working; its next write of this is ruled on anew.\n" +
        "See openclaw coordination show co-1\n",
    });
  });

  test.each([[["7", "--json"]], [["--json", "7"]]])("as %j tells programs the same", async (args) => {
    expect(JSON.parse((await release(args)).stdout)).toEqual({ ok: true, ...PAYLOAD });
  });

  test("asks people first where there are any, unless told not to", async () => {
    const questions: string[] = [];
    const confirm = (question: string): Promise<boolean> => {
      questions.push(question);
      return Promise.resolve(false);
    };
    expect(await release(["7"], { confirm })).toMatchObject({ exitCode: 1, stdout: "nothing was changed\n" });
    expect(calls).toEqual([]);
    expect(questions).toEqual([expect.stringContaining("End claim 7? The step keeps working")]);
    expect(await release(["7", "--yes"], { confirm })).toMatchObject({ exitCode: 0 });
    expect(await release(["7"], { confirm: () => Promise.resolve(true) })).toMatchObject({ exitCode: 0 });
    expect(questions).toHaveLength(1);
  });

  test("ends nothing where a person would not see the question, unless told not to ask", async () => {
    const hidden = await release(["7"], { isQuestionHidden: true });
    expect(hidden).toMatchObject({ exitCode: 1, stdout: "" });
    expect(hidden.stderr).toContain("give --yes");
    expect(calls).toEqual([]);
    expect(await release(["7", "--yes"], { isQuestionHidden: true })).toMatchObject({ exitCode: 0 });
  });

  test.each(["0", "-1", "1.5", "seven", ""])("refuses the token %j without asking anybody", async (token) => {
    const { exitCode } = await release(["--", token]);
    expect(exitCode).toBe(1);
    expect(calls).toEqual([]);
  });

  test.each([["--ledger", "copy.sqlite"], ["--resource", "notes.md"], ["--limit", "200"], ["--all"]])(
    "refuses %s of the list, wherever it stands, without asking anybody",
    async (...option) => {
      for (const args of [
        ["claims", "release", "7", ...option],
        ["claims", ...option, "release", "7"],
      ]) {
        const { stderr, exitCode } = await runCli(args, {
          gateway: createAnsweringGateway({ ok: true, payload: PAYLOAD }),
        });
        expect(exitCode).toBe(1);
        expect(stderr).toContain(`error INPUT_INVALID: ${option[0]}: it is for listing claims`);
      }
      const { stdout } = await runCli(["claims", "release", "7", ...option, "--json"]);
      expect(JSON.parse(stdout)).toMatchObject({ error: { code: "INPUT_INVALID" } });
      expect(calls).toEqual([]);
    },
  );

  test("of nothing in place of a resource lists nothing, and says so", async () => {
    const { stdout } = await runCli(["claims", "--resource", "", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({
      error: { message: "--resource: expected a file, a folder or a name, got nothing" },
    });
  });

  test("of a claim that has ended says so", async () => {
    const message = "there is no claim 7; it has ended already, or there never was one";
    const details = { refusal: "NO_SUCH_CLAIM" };
    const gateway = createAnsweringGateway({ ok: false, code: "REQUEST_REFUSED", message, details });
    const advice = "Run `openclaw coordination claims` to see what is claimed.";
    expect(await release(["7"], { gateway })).toMatchObject({
      exitCode: 1,
      stderr: `error REQUEST_REFUSED: ${message}. ${advice}\n`,
    });
    const { stdout } = await release(["7", "--json"], { gateway });
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: "REQUEST_REFUSED", message, advice } });
  });

  test.each([
    ["GATEWAY_UNREACHABLE", "Start it with `openclaw gateway run`"],
    ["COORDINATION_OFF", "Run `openclaw coordination enable`"],
  ] as const)("says what to do about %s", async (code, advice) => {
    const refuseGateway: GatewayCaller = () => Promise.reject(new CoordinationError(code, "it is not there"));
    const { stderr, exitCode } = await release(["7"], { gateway: refuseGateway });
    expect(exitCode).toBe(1);
    expect(stderr).toContain(advice);
  });
});
