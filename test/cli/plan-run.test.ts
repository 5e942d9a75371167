import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { plan, step } from "../core/plan-scene.ts";
import { createTempFolder, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import {
  gatewayOf,
  createOkAnswer,
  report,
  createWaiting,
  NOT_FOUND,
  type FakeGateway,
} from "./fake-gateway.ts";
import { recordPlans, RUNNING_PLAN } from "./recorded-plan.ts";
import { runCli, type CliSetting } from "./run-cli.ts";

const SOUND = plan([step("a"), step("b", ["a"])]);

let folder: TempFolder;

beforeAll(async () => {
  folder = createTempFolder();
  writeFileSync(folder.file("sound.json"), JSON.stringify(SOUND));
  writeFileSync(folder.file("bad.json"), JSON.stringify(plan([step("a", ["a"]), step("b", ["c"])])));
  writeFileSync(folder.file("broken.json"), "{");
  const near = { ...RUNNING_PLAN, id: "plan-6f1c9", atMs: 0, acts: [] };
  await recordPlans(folder.file("coordination/ledger.sqlite"), [RUNNING_PLAN, near]);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

const ACCEPTED = createOkAnswer({ coordinationId: "co-1", steps: 2, replay: false });

const run = (args: readonly string[], gateway: FakeGateway, setting: CliSetting = {}) =>
  runCli(["plan", "run", folder.file("sound.json"), ...args], {
    gateway: gateway.call,
    waiting: createWaiting().make,
    ...setting,
  });

describe("plan run", () => {
  test("hands the plan as it is to the gateway and says how to follow it", async () => {
    const gateway = gatewayOf(ACCEPTED);
    const { stdout, stderr, exitCode } = await run([], gateway);
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    expect(stdout).toMatch(/^running co-1, 2 steps\nSee openclaw coordination timeline co-1/u);
    expect(gateway.calls).toEqual([{ method: "coordination.plan.run", params: { plan: SOUND } }]);
  });

  test("leaves the ids to the gateway, which may have the plan from a release that took them", async () => {
    const old = plan([step("eu:build")], { coordinationId: "My plan" });
    writeFileSync(folder.file("old.json"), JSON.stringify(old));
    const gateway = gatewayOf(createOkAnswer({ coordinationId: "My plan", steps: 1, replay: true }));
    const { stdout, stderr } = await runCli(["plan", "run", folder.file("old.json")], {
      gateway: gateway.call,
    });
    expect({ stdout, stderr }).toEqual({
      stdout: expect.stringContaining("submitted before, not run twice: My plan") as string,
      stderr: "",
    });
  });

  test("as JSON says what was accepted", async () => {
    const { stdout } = await run(["--json"], gatewayOf(ACCEPTED));
    expect(JSON.parse(stdout)).toEqual({ ok: true, coordinationId: "co-1", steps: 2, replay: false });
  });

  test("a plan that was submitted before is said not to run twice", async () => {
    const { stdout } = await run(
      [],
      gatewayOf(createOkAnswer({ coordinationId: "co-1", steps: 2, replay: true })),
    );
    expect(stdout).toContain("submitted before, not run twice: co-1");
  });

  test.each([
    ["bad.json", ["DEPENDENCY_SELF", "DEPENDENCY_UNKNOWN"]],
    ["broken.json", ["FILE_SYNTAX"]],
  ])("%s is refused here with all its problems, and no gateway is asked", async (file, codes) => {
    const gateway = gatewayOf(ACCEPTED);
    const setting = { gateway: gateway.call };
    const { stdout, stderr, exitCode } = await runCli(["plan", "run", folder.file(file)], setting);
    expect({ stdout, exitCode }).toEqual({ stdout: "", exitCode: 1 });
    for (const code of codes) expect(stderr).toContain(code);
    const json = await runCli(["plan", "run", "--json", folder.file(file)], setting);
    const { ok: isOk, problems } = JSON.parse(json.stdout) as { ok: boolean; problems: { code: string }[] };
    expect({ isOk, codes: problems.map(({ code }) => code) }).toEqual({ isOk: false, codes });
    expect(gateway.calls).toEqual([]);
  });

  test("problems that only the gateway finds are told like all others", async () => {
    const problem = { path: "coordinationId", code: "COORDINATION_TAKEN", message: "there is another one" };
    const refusal = {
      ok: false,
      code: "PLAN_REFUSED",
      message: "no",
      details: { problems: [problem, 5] },
    } as const;
    const { stderr, exitCode } = await run([], gatewayOf(refusal));
    expect(exitCode).toBe(1);
    expect(stderr).toContain("coordinationId  COORDINATION_TAKEN  there is another one");
    expect(stderr).toContain("1 problem\n");
    const json = await run(["--json"], gatewayOf(refusal));
    expect(JSON.parse(json.stdout)).toEqual({ ok: false, problems: [problem] });
  });

  test.each([
    ["GATEWAY_UNREACHABLE", "openclaw gateway run"],
    ["COORDINATION_OFF", "openclaw coordination enable"],
  ] as const)("%s is an error that says what to do", async (code, advice) => {
    const { stdout, stderr, exitCode } = await run([], gatewayOf(new CoordinationError(code, "not now")));
    expect({ stdout, exitCode }).toEqual({ stdout: "", exitCode: 1 });
    expect(stderr).toContain(`error ${code}: not now. `);
    expect(stderr).toContain(advice);
  });

  test("without a gateway to call says so", async () => {
    const { stderr, exitCode } = await runCli(["plan", "run", folder.file("sound.json")]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("error GATEWAY_UNREACHABLE");
  });

  test("a timeout that is no number is refused before anything is run", async () => {
    const gateway = gatewayOf(ACCEPTED);
    const { stderr, exitCode } = await run(["--wait", "--timeout", "1h"], gateway);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("--timeout: expected a whole number");
    expect(gateway.calls).toEqual([]);
  });
});

const WORKING = report("running", {
  counts: { total: 5, ended: 2, byStatus: { completed: 2, running: 1, backoff: 1, blocked: 1 } },
  steps: [
    { stepId: "a", status: "running", attempt: 2, attemptsMax: 3, agent: "main" },
    {
      stepId: "b",
      status: "backoff",
      attempt: 1,
      attemptsMax: 3,
      agent: "main",
      nextTryAt: "2026-01-02T03:05:03.123Z",
    },
    {
      stepId: "c",
      status: "blocked",
      attempt: 1,
      attemptsMax: 1,
      agent: "main",
      answerBy: "2026-01-02T04:00:00.000Z",
    },
  ],
});

describe("plan run --wait", () => {
  const counts = { total: 2, ended: 2, byStatus: { completed: 1, failed: 1 } };
  const failed = {
    stepId: "b",
    status: "failed",
    attempt: 3,
    agent: "main",
    error: { code: "child_failed", message: "no luck" },
  };

  test("shows what runs, what is tried again and who waits for people, whenever it changes", async () => {
    const { stdout, exitCode } = await run(
      ["--wait"],
      gatewayOf(
        ACCEPTED,
        report("running"),
        report("running"),
        WORKING,
        report("success", { delivery: "completed" }),
      ),
    );
    expect(exitCode).toBe(0);
    expect(stdout.split("\n").slice(0, 4)).toEqual([
      "running co-1, 2 steps",
      "0 of 2 steps ended",
      "2 of 5 steps ended; running: a (attempt 2); next try: b (2 of 3 at 03:05:03Z); waits for people: c",
      "success  0 of 2 steps completed",
    ]);
  });

  test.each([
    ["success", 0],
    ["partial", 3],
    ["failed", 1],
    ["cancelled", 1],
    ["escalated", 1],
  ])("a plan that ends as %s has the exit code %i", async (status, code) => {
    const { exitCode } = await run(["--wait"], gatewayOf(ACCEPTED, report(status)));
    expect(exitCode).toBe(code);
  });

  test("names what did not complete, and an owner who could not be told", async () => {
    const end = report("partial", { counts, steps: [failed], delivery: "failed" });
    const { stdout } = await run(["--wait"], gatewayOf(ACCEPTED, end));
    expect(stdout).toContain("partial  1 of 2 steps completed; the owner could not be told\n");
    expect(stdout).toContain("    b: failed after 3 attempts: no luck\n");
  });

  test("says that a plan gave up though all its steps completed, and what was not met", async () => {
    const all = { total: 2, ended: 2, byStatus: { completed: 2 } };
    const successCriteria = [{ key: "clean", met: false }];
    const end = report("partial", { counts: all, gaveUp: true, successCriteria, delivery: "completed" });
    const { stdout, exitCode } = await run(["--wait"], gatewayOf(ACCEPTED, end));
    expect(exitCode).toBe(3);
    expect(stdout).toContain("partial  2 of 2 steps completed; gave up: clean not met\n");
    const json = await run(["--wait", "--json"], gatewayOf(ACCEPTED, end));
    expect(JSON.parse(json.stdout)).toMatchObject({ coordination: { gaveUp: true, successCriteria } });
  });

  test("as JSON prints one document with the end", async () => {
    const end = report("partial", { counts, steps: [failed] });
    const { stdout, exitCode } = await run(["--wait", "--json"], gatewayOf(ACCEPTED, WORKING, end));
    expect(exitCode).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: true,
      coordinationId: "co-1",
      waited: "ended",
      coordination: { status: "partial", steps: [failed] },
    });
  });

  test("Ctrl-C leaves the plan running, says so, and gives the signal back", async () => {
    const gateway = gatewayOf(ACCEPTED, WORKING);
    const pausing = createWaiting(2);
    const { stdout, exitCode } = await run(["--wait"], gateway, { waiting: pausing.make });
    expect(exitCode).toBe(1);
    expect(stdout).toContain("Interrupted; the plan goes on. See openclaw coordination timeline co-1");
    expect(gateway.calls.map(({ method }) => method)).not.toContain("coordination.plan.cancel");
    expect(gateway.calls).toHaveLength(3);
    expect(pausing).toMatchObject({ pauses: [1_000, 1_000], disposed: 1 });
  });

  test("stops waiting after the timeout; the plan goes on", async () => {
    const gateway = gatewayOf(ACCEPTED, WORKING);
    const { stdout, exitCode } = await run(["--wait", "--timeout", "5"], gateway, { ticking: true });
    expect(exitCode).toBe(1);
    expect(stdout).toContain("The time to wait is over; the plan goes on.");
    expect(gateway.calls.length).toBeLessThan(8);
  });

  test("outlasts a gateway that restarts", async () => {
    const away = new CoordinationError("GATEWAY_UNREACHABLE", "closed");
    const off = new CoordinationError("COORDINATION_OFF", "loading");
    const { stdout, exitCode } = await run(
      ["--wait"],
      gatewayOf(ACCEPTED, WORKING, away, away, off, report("success")),
    );
    expect(exitCode).toBe(0);
    expect(stdout.match(/the gateway does not answer/gu)).toHaveLength(1);
  });

  test("gives up on a gateway that stays away", async () => {
    const away = new CoordinationError("GATEWAY_UNREACHABLE", "closed");
    const gateway = gatewayOf(ACCEPTED, away);
    const { stderr, exitCode } = await run(["--wait"], gateway, { ticking: true });
    expect(exitCode).toBe(1);
    expect(stderr).toContain("error GATEWAY_UNREACHABLE: closed");
    expect(gateway.calls.length).toBeGreaterThan(50);
  });

  test("does not wait for a coordination that is gone", async () => {
    const notFound = {
      ok: false,
      code: "COORDINATION_NOT_FOUND",
      message: "no coordination has the id",
    } as const;
    const { stderr, exitCode } = await run(["--wait"], gatewayOf(ACCEPTED, notFound));
    expect(exitCode).toBe(1);
    expect(stderr).toContain("COORDINATION_NOT_FOUND");
  });

  test("on a terminal writes one line over and over, never wider than the terminal", async () => {
    const many = Array.from({ length: 9 }, (_, index) => ({
      stepId: `step-${index}-\u001b[2J`,
      status: "running",
      attempt: 1,
      agent: "m",
    }));
    const terminal = { isTTY: true, columns: 60 };
    const { stdout } = await run(
      ["--wait"],
      gatewayOf(ACCEPTED, WORKING, report("running", { steps: many }), report("success")),
      { terminal },
    );
    const [, ...written] = stdout.split("\r");
    expect(written).toHaveLength(2);
    for (const line of written) expect(line.split("\u001b[K")[0]?.length).toBeLessThan(60);
    expect(stdout).not.toContain("\u001b[2J");
    expect(stdout).toContain("\u001b[K\nsuccess");
  });
});

describe.each([
  ["cancel", ["cancel"], "coordination.cancel", "cancelling"],
  ["plan cancel", ["plan", "cancel"], "coordination.plan.cancel", "cancelling"],
  ["retry", ["retry"], "coordination.retry", "trying again:"],
] as const)("%s", (_, words, method, outcome) => {
  const ask = (args: readonly string[], gateway: FakeGateway, stateDir = folder.path) =>
    runCli([...words, ...args], { gateway: gateway.call, stateDir, nowMs: TEST_EPOCH_MS });

  test("asks for the coordination that a prefix names in the ledger, once there is none with just this id", async () => {
    const gateway = gatewayOf(NOT_FOUND, createOkAnswer({ coordinationId: RUNNING_PLAN.id, replay: false }));
    const { stdout, stderr, exitCode } = await ask(["plan-6f1c0"], gateway);
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    expect(stdout).toContain(`${outcome} ${RUNNING_PLAN.id}\n`);
    expect(gateway.calls).toEqual([
      { method, params: { coordinationId: "plan-6f1c0" } },
      { method, params: { coordinationId: RUNNING_PLAN.id } },
    ]);
  });

  test("asks for the coordination with just this id, which only the gateway's ledger has", async () => {
    const gateway = gatewayOf(createOkAnswer({ coordinationId: "plan-6f1c0", replay: false }));
    const { stdout } = await ask(["plan-6f1c0"], gateway);
    expect(stdout).toContain(`${outcome} plan-6f1c0\n`);
    expect(gateway.calls).toEqual([{ method, params: { coordinationId: "plan-6f1c0" } }]);
  });

  test("asks for one step, and as JSON says what was asked", async () => {
    const gateway = gatewayOf(NOT_FOUND, createOkAnswer({ coordinationId: RUNNING_PLAN.id, replay: true }));
    const { stdout } = await ask(["plan-6f1c0", "audit", "--json"], gateway);
    expect(JSON.parse(stdout)).toEqual({
      ok: true,
      coordinationId: RUNNING_PLAN.id,
      stepId: "audit",
      replay: true,
    });
    expect(gateway.calls[1]?.params).toEqual({ coordinationId: RUNNING_PLAN.id, stepId: "audit" });
    expect((await ask(["plan-6f1c0", "audit"], gateway)).stdout).toContain("already ");
  });

  test("a prefix of several is refused here", async () => {
    const gateway = gatewayOf(NOT_FOUND, ACCEPTED);
    const { stderr, exitCode } = await ask(["plan-6f1c"], gateway);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`is a prefix of plan-6f1c9, ${RUNNING_PLAN.id}`);
    expect(gateway.calls).toHaveLength(1);
  });

  test.each([
    ["without a ledger", "nowhere"],
    ["with an id that this ledger does not know", undefined],
  ])("%s the gateway decides", async (__, stateDir) => {
    const notFound = {
      ok: false,
      code: "COORDINATION_NOT_FOUND",
      message: "there is no coordination co-9",
    } as const;
    const gateway = gatewayOf(notFound);
    const { stderr, exitCode } = await ask(["co-9"], gateway, stateDir);
    expect(exitCode).toBe(1);
    expect(gateway.calls[0]?.params).toEqual({ coordinationId: "co-9" });
    expect(stderr).toContain(
      "error COORDINATION_NOT_FOUND: there is no coordination co-9. Run `openclaw coordination list`",
    );
  });

  test.each([
    [
      "REQUEST_REFUSED",
      "there is no step x",
      "error REQUEST_REFUSED: there is no step x. Run `openclaw coordination show",
    ],
    [
      "FORBIDDEN",
      "missing scope",
      "error REQUEST_REFUSED: the gateway refused: missing scope (FORBIDDEN). OpenClaw itself refused it: ",
    ],
    ["toString", "odd", "the gateway refused: odd (toString). OpenClaw itself"],
  ])("the gateway's %s is told with what to do", async (code, message, expected) => {
    const refusal = { ok: false, code, message } as const;
    const { stderr, exitCode } = await ask(["plan-6f1c0", "x"], gatewayOf(refusal));
    expect(exitCode).toBe(1);
    expect(stderr).toContain(expected);
    const json = await ask(["plan-6f1c0", "x", "--json"], gatewayOf(refusal));
    expect(JSON.parse(json.stdout)).toMatchObject({ error: { code: "REQUEST_REFUSED" } });
  });

  test("--help has examples", async () => {
    const { stdout, exitCode } = await runCli([...words, "--help"]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain(`$ openclaw coordination ${words.join(" ")} release-notes-2026-11`);
  });
});
