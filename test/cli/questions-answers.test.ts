import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { GatewayAnswer, GatewayCaller } from "../../src/plugins/openclaw/host/gateway-call.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { runCli } from "./run-cli.ts";

const ID = "co-1:escalation-1";
const ACCEPTED = {
  ok: true,
  payload: {
    questionId: ID,
    coordinationId: "co-1",
    stepId: "draft",
    resolution: "approved",
    happened: "the result of step \u001b[2Jdraft counts now",
  },
} as const;

const calls: unknown[][] = [];

function createAnsweringGateway(answer: GatewayAnswer): GatewayCaller {
  return (...call) => {
    calls.push(call);
    return Promise.resolve(answer);
  };
}

const run = (args: readonly string[], answer: GatewayAnswer = ACCEPTED) =>
  runCli(args, { gateway: createAnsweringGateway(answer) });

beforeEach(() => {
  calls.length = 0;
});

afterEach(() => {
  vi.unstubAllEnvs();
});

describe("approve, deny and answer", () => {
  test.each([
    [["approve", ID], { questionId: ID, answer: "approve" }],
    [["deny", "co-1"], { questionId: "co-1", answer: "deny" }],
    [["approve", "--only"], { only: true, answer: "approve" }],
    [["answer", ID, "the second one"], { questionId: ID, answer: "answer", text: "the second one" }],
    [["answer", "--only", '{"a":1}'], { only: true, answer: "answer", text: '{"a":1}' }],
    [["answer", "yes", "--only"], { only: true, answer: "answer", text: "yes" }],
  ])("%j asks the gateway, and tells it that a command line did", async (args, params) => {
    const { stdout, stderr, exitCode } = await run(args);
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    expect(calls).toEqual([["coordination.answer", { ...params, through: "cli" }]]);
    expect(stdout).toBe(
      `approved: the result of step \ufffd[2Jdraft counts now\nSee openclaw coordination questions show ${ID}\n`,
    );
  });

  test("answers with a file, as JSON or as plain text", async () => {
    using folder = createTempFolder();
    const file = folder.file("outputs.json");
    writeFileSync(file, '{ "rows": 12 }\n');
    await run(["answer", ID, "--file", file]);
    await run(["answer", "--only", "--file", file]);
    expect(calls).toMatchObject([
      ["coordination.answer", { questionId: ID, text: '{ "rows": 12 }' }],
      ["coordination.answer", { only: true, text: '{ "rows": 12 }' }],
    ]);
  });

  test("as JSON prints what the gateway answered", async () => {
    const { stdout } = await run(["approve", ID, "--json"]);
    expect(JSON.parse(stdout)).toEqual({ ok: true, ...ACCEPTED.payload });
  });

  test.each([
    [["approve"], "id: expected the id of a question, or --only, got nothing"],
    [["deny", ""], "id: expected the id of a question"],
    [["approve", ID, "--only"], "--only: leave the id out"],
    [["answer", ID], "text: expected what to answer"],
    [["answer", ID, "  "], "text: expected what to answer"],
    [["answer", "--only"], "text: expected what to answer"],
    [["answer", ID, "text", "--only"], "put the text into quotes"],
    [["answer", ID, "text", "--file", "x"], "--file: the text is given already"],
    [["answer", ID, "--file", "nowhere/at-all"], "there is no such file"],
    [["answer", ID, "x".repeat(200_001)], "at most 200000 characters"],
  ])("%.60j is refused without asking anybody", async (args, problem) => {
    const { stderr, exitCode } = await run(args);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("error INPUT_INVALID: ");
    expect(stderr).toContain(problem);
    expect(calls).toEqual([]);
  });

  test("a file that is too long or no text is refused", async () => {
    using folder = createTempFolder();
    const [long, binary] = [folder.file("long"), folder.file("binary")];
    writeFileSync(long, "x".repeat(2_000_000));
    writeFileSync(binary, Buffer.from([0xff, 0xfe, 0xfd]));
    expect((await run(["answer", ID, "--file", long])).stderr).toContain("at most 200000 characters");
    expect((await run(["answer", ID, "--file", binary])).stderr).toContain("is not UTF-8 text");
    expect(calls).toEqual([]);
  });

  test.each(["approve", "deny"])("%s takes no text", async (command) => {
    expect((await run([command, ID, "because"])).exitCode).not.toBe(0);
    expect(calls).toEqual([]);
  });

  const late = {
    ok: false,
    code: "REQUEST_REFUSED",
    message:
      "the question is closed already: denied by person telegram:42 through chat at 2026-01-02 03:04:05Z",
    details: { refusal: "QUESTION_CLOSED" },
  } as const;

  test("whoever is late is told who came first, and the exit code says that nothing was done", async () => {
    const { stderr, stdout, exitCode } = await run(["approve", ID], late);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(stderr).toBe(
      `error REQUEST_REFUSED: ${late.message}. There is nothing left to answer; \`openclaw coordination questions --all\` lists it.\n`,
    );
  });

  test("a refusal as JSON has code, message and advice", async () => {
    const { stdout, exitCode } = await run(["approve", ID, "--json"], late);
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: "REQUEST_REFUSED", message: late.message } });
  });

  test.each([
    ["UNKNOWN_QUESTION", "REQUEST_REFUSED", "Run `openclaw coordination questions`"],
    ["ANSWER_REFUSED", "REQUEST_REFUSED", "Run `openclaw coordination questions`"],
    ["STEP_ENDED", "REQUEST_REFUSED", "openclaw coordination show ID"],
    ["ANSWER_REFUSED", "INPUT_INVALID", "Correct what the message names"],
  ])("says what to do about %s (%s)", async (refusal, code, advice) => {
    const { stderr } = await run(["deny", ID], { ok: false, code, message: "no", details: { refusal } });
    expect(stderr).toMatch(new RegExp(`^error ${code}: no\\. `, "u"));
    expect(stderr).toContain(advice);
  });

  test("without a gateway says how to start it", async () => {
    const refuseGateway: GatewayCaller = () =>
      Promise.reject(new CoordinationError("GATEWAY_UNREACHABLE", "connection refused"));
    const { stderr, exitCode } = await runCli(["approve", ID], { gateway: refuseGateway });
    expect(exitCode).toBe(1);
    expect(stderr).toContain("openclaw gateway run");
  });

  test.each([
    ["approve", ID, "--ledger", "copy.sqlite"],
    ["deny", "--only", "--ledger", "copy.sqlite", "--json"],
    ["answer", ID, "yes", "--ledger=copy.sqlite"],
  ])("%s %s with a ledger says that an answer goes through the gateway", async (...args) => {
    const { stdout, stderr, exitCode } = await run(args);
    expect(exitCode).toBe(1);
    const message =
      "--ledger: an answer goes through the gateway, which has a ledger of its own; leave --ledger out";
    if (args.includes("--json"))
      expect(JSON.parse(stdout)).toMatchObject({ error: { code: "INPUT_INVALID", message } });
    else expect(stderr).toContain(`error INPUT_INVALID: ${message}. `);
    expect(calls).toEqual([]);
  });

  test.each([
    ["approve", ID],
    ["deny", "--only"],
    ["answer", ID, "yes"],
  ])("%s %s is refused in the shell of a model, where no person answers", async (...args) => {
    vi.stubEnv("OPENCLAW_SHELL", "exec");
    const { stderr, exitCode } = await run(args);
    expect(exitCode).toBe(1);
    expect(stderr).toBe(
      "error REQUEST_REFUSED: a person must answer: this is a shell of an agent. Ask a person to answer, from a terminal of their own or by chat.\n",
    );
    expect(calls).toEqual([]);
  });

  test.each(["approve", "deny", "answer", "questions"])("%s has help with examples", async (command) => {
    const { stdout, exitCode } = await runCli([command, "--help"]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain(`$ openclaw coordination ${command}`);
    expect(stdout.includes("--ledger")).toBe(command === "questions");
  });
});
