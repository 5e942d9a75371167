/** `fork` of coordinations, with a gateway that answers what a test says. */
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { MAY_BE_DONE, type GatewayAnswer } from "../../src/plugins/openclaw/host/gateway-call.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import {
  gatewayOf,
  createOkAnswer,
  report,
  createWaiting,
  NOT_FOUND,
  type FakeGateway,
} from "./fake-gateway.ts";
import { ENDED_PLAN, recordPlans, RUNNING_PLAN } from "./recorded-plan.ts";
import { runCli, type CliSetting } from "./run-cli.ts";

const POLICY = { gates: { confidenceThreshold: 0.9 }, retry: { budget: 0 } };

let folder: TempFolder;

beforeAll(async () => {
  folder = createTempFolder();
  writeFileSync(folder.file("policy.json"), JSON.stringify(POLICY));
  writeFileSync(folder.file("policy.yaml"), "gates: {confidenceThreshold: 0.9}\nretry: {budget: 0}\n");
  writeFileSync(folder.file("empty.yaml"), "{}");
  writeFileSync(folder.file("wrong.yaml"), "gates: {confidenceThreshold: 2}");
  writeFileSync(folder.file("broken.yaml"), "gates: [");
  const near = { ...RUNNING_PLAN, id: "plan-6f1c9", atMs: 0, acts: [] };
  await recordPlans(folder.file("coordination/ledger.sqlite"), [RUNNING_PLAN, ENDED_PLAN, near]);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

const ANSWER = {
  coordinationId: "co-2",
  forkedFrom: { coordinationId: ENDED_PLAN.id, sequence: 31 },
  steps: 3,
  carried: ["postgres"],
  anew: ["sqlite", "compare"],
  replay: false,
  preview: false,
};
const FORKED = createOkAnswer(ANSWER);
const createForkAnswer = (fields: Partial<typeof ANSWER>): GatewayAnswer =>
  createOkAnswer({ ...ANSWER, ...fields });
const PREVIEW = createForkAnswer({ preview: true });

const fork = (args: readonly string[], gateway: FakeGateway, setting: CliSetting = {}) =>
  runCli(["fork", ...args], {
    gateway: gateway.call,
    waiting: createWaiting().make,
    stateDir: folder.path,
    ...setting,
  });

/** Chosen by the command, so that it can be asked for again. */
const NEW_ID: unknown = expect.stringMatching(/^co-[0-9a-f-]{36}$/u);

describe("fork of a coordination", () => {
  test("asks the gateway to fork the one that a prefix names, from behind its end, and says what comes of it", async () => {
    const gateway = gatewayOf(NOT_FOUND, FORKED);
    const { stdout, stderr, exitCode } = await fork(["plan-e"], gateway);
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    const method = "coordination.plan.fork";
    expect(gateway.calls).toEqual([
      { method, params: { coordinationId: "plan-e", forkId: NEW_ID } },
      { method, params: { coordinationId: ENDED_PLAN.id, forkId: NEW_ID } },
    ]);
    expect(stdout.split("\n")).toEqual([
      "running co-2, a fork of plan-ended from 31",
      "  kept   1 result: postgres",
      "  anew   2 steps: sqlite, compare",
      "See openclaw coordination timeline co-2",
      "",
    ]);
  });

  test.each(["policy.json", "policy.yaml"])("sends the place, the id and the policy of %s", async (file) => {
    const gateway = gatewayOf(NOT_FOUND, FORKED);
    await fork(["plan-e", "--from", "0", "--policy", folder.file(file), "--as", "co-2"], gateway);
    expect(gateway.calls[1]?.params).toEqual({
      coordinationId: ENDED_PLAN.id,
      from: 0,
      forkId: "co-2",
      // As it is written: the gateway reads it by itself.
      policy: POLICY,
    });
  });

  test("refuses a ledger that is named: the gateway would fork what its own ledger has under the id", async () => {
    const gateway = gatewayOf(FORKED);
    const ledger = folder.file("coordination/ledger.sqlite");
    const { stderr, exitCode } = await fork(["plan-e", "--ledger", ledger, "--dry-run"], gateway);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(
      "error INPUT_INVALID: --ledger: a fork of a coordination goes through the gateway, which has a ledger of its own; leave --ledger out",
    );
    expect(gateway.calls).toEqual([]);
  });

  test("asks for the coordination with just this id, which only the gateway's ledger has", async () => {
    const gateway = gatewayOf(FORKED);
    expect(await fork(["plan-e"], gateway)).toMatchObject({ exitCode: 0, stderr: "" });
    expect(gateway.calls.map(({ params }) => params)).toEqual([{ coordinationId: "plan-e", forkId: NEW_ID }]);
  });

  test("asks for the coordination with just this id also where it begins several here", async () => {
    const gateway = gatewayOf(FORKED);
    expect(await fork(["plan-"], gateway)).toMatchObject({ exitCode: 0, stderr: "" });
    expect(gateway.calls.map(({ params }) => params)).toEqual([{ coordinationId: "plan-", forkId: NEW_ID }]);
  });

  test("leaves an id that no ledger here knows to the gateway", async () => {
    const notFound = { ok: false, code: "COORDINATION_NOT_FOUND", message: "no coordination co-9" } as const;
    for (const stateDir of [folder.path, "nowhere"]) {
      const gateway = gatewayOf(notFound);
      const { stderr, exitCode } = await fork(["co-9"], gateway, { stateDir });
      expect(exitCode).toBe(1);
      expect(gateway.calls[0]?.params).toEqual({ coordinationId: "co-9", forkId: NEW_ID });
      expect(stderr).toContain("error COORDINATION_NOT_FOUND: no coordination co-9. Run");
    }
  });

  test("as JSON says what was forked", async () => {
    const { stdout } = await fork(["plan-e", "--json"], gatewayOf(FORKED));
    expect(JSON.parse(stdout)).toEqual({ ok: true, ...ANSWER });
  });

  test("a fork that is there already is said not to run twice", async () => {
    const { stdout } = await fork(["plan-e", "--as", "co-2"], gatewayOf(createForkAnswer({ replay: true })));
    expect(stdout).toContain("forked before, not run twice: co-2, a fork of plan-ended from 31\n");
  });

  test("names no more steps than fit a line", async () => {
    const anew = Array.from({ length: 30 }, (_, index) => `s${index}`);
    const { stdout } = await fork(["plan-e"], gatewayOf(createForkAnswer({ carried: [], anew })));
    expect(stdout).toContain("  kept   0 results\n");
    expect(stdout).toMatch(/^ {2}anew {3}30 steps: s0, .*, s11, and 18 more$/mu);
  });

  test("prints ids harmlessly", async () => {
    const odd = "x\u001b[2J\u202e";
    const { stdout } = await fork(
      ["plan-e"],
      gatewayOf(
        createForkAnswer({
          coordinationId: odd,
          forkedFrom: { coordinationId: odd, sequence: 3 },
          carried: [odd],
          anew: [odd],
        }),
      ),
    );
    expect(stdout.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\u202e]/u);
    expect(stdout.match(/x\ufffd\[2J\ufffd/gu)).toHaveLength(5);
    const { stderr } = await fork([odd, "--mode", "replay", "--wait"], gatewayOf(FORKED));
    expect(stderr.trimEnd()).not.toMatch(/[\p{Cc}\u202e]/u);
  });
});

describe("fork --dry-run", () => {
  test("asks for a preview only, and says that nothing was done", async () => {
    const gateway = gatewayOf(PREVIEW);
    const { stdout, exitCode } = await fork([ENDED_PLAN.id, "--dry-run"], gateway);
    expect(exitCode).toBe(0);
    expect(gateway.calls[0]?.params).toEqual({ coordinationId: ENDED_PLAN.id, preview: true });
    expect(stdout.split("\n")).toEqual([
      "would run a fork of plan-ended from 31",
      "  kept   1 result: postgres",
      "  anew   2 steps: sqlite, compare",
      "Nothing was done: leave out --dry-run to run it",
      "",
    ]);
    const json = await fork(["plan-e", "--dry-run", "--json"], gatewayOf(PREVIEW));
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: true, preview: true, carried: ["postgres"] });
  });

  test("cannot be waited for", async () => {
    const gateway = gatewayOf(PREVIEW);
    const { stderr, exitCode } = await fork(["plan-e", "--dry-run", "--wait"], gateway);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("--wait: a dry run starts nothing, so there is nothing to wait for");
    expect(gateway.calls).toEqual([]);
  });
});

describe("fork --wait", () => {
  const counts = { total: 3, ended: 3, byStatus: { completed: 3 }, carried: 1 };
  const running = report("running", { counts: { ...counts, ended: 1, byStatus: { completed: 1 } } });

  test("shows the progress, with what was kept among what has ended", async () => {
    const gateway = gatewayOf(FORKED, running, report("success", { counts, delivery: "completed" }));
    const { stdout, exitCode } = await fork(["plan-e", "--wait"], gateway);
    expect(exitCode).toBe(0);
    expect(stdout.split("\n").slice(0, 5)).toEqual([
      "running co-2, a fork of plan-ended from 31",
      "  kept   1 result: postgres",
      "  anew   2 steps: sqlite, compare",
      "1 of 3 steps ended",
      "success  3 of 3 steps completed, 1 of them kept",
    ]);
    expect(gateway.calls[1]).toEqual({
      method: "coordination.status",
      params: { coordinationId: "co-2" },
    });
  });

  test.each([
    ["success", 0],
    ["partial", 3],
    ["failed", 1],
  ])("a fork that ends as %s has the exit code %i", async (status, code) => {
    expect((await fork(["plan-e", "--wait"], gatewayOf(FORKED, report(status)))).exitCode).toBe(code);
  });

  test("as JSON prints one document with the fork and its end", async () => {
    const gateway = gatewayOf(FORKED, running, report("partial", { counts }));
    const { stdout, exitCode } = await fork(["plan-e", "--wait", "--json"], gateway);
    expect(exitCode).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: true,
      ...ANSWER,
      waited: "ended",
      coordination: { status: "partial", counts: { carried: 1 } },
    });
  });

  test("stops waiting after --timeout; the fork goes on", async () => {
    const gateway = gatewayOf(FORKED, running);
    const { stdout, exitCode } = await fork(["plan-e", "--wait", "--timeout", "5"], gateway, {
      ticking: true,
    });
    expect(exitCode).toBe(1);
    expect(stdout).toContain(
      "The time to wait is over; the plan goes on. See openclaw coordination timeline co-2",
    );
    expect(gateway.calls.length).toBeLessThan(8);
  });

  test("a --timeout without --wait is refused before anything is forked", async () => {
    const gateway = gatewayOf(FORKED);
    const { stderr } = await fork(["plan-e", "--timeout", "5"], gateway);
    expect(stderr).toContain("--timeout needs --wait");
    expect(gateway.calls).toEqual([]);
  });
});

describe("fork refuses", () => {
  test.each([
    [["--url", "http://127.0.0.1:9"], "--url: it is for workflow runs, and this is a coordination."],
    [["--token", "t"], "--token: it is for workflow runs, and this is a coordination."],
    [["--configurable", "{}"], "--configurable: it is for workflow runs, and this is a coordination."],
    [["--mode", "branch"], "--mode: it is for workflow runs, and this is a coordination."],
    [["--mode", "replay"], `--mode: a coordination is replayed by \`openclaw coordination replay plan-e\`.`],
    [["--from", "-1"], "--from: expected a whole number"],
    [["--from", "first"], "--from: expected a whole number"],
  ])("%j of a coordination, and asks no gateway", async (options, sentence) => {
    const gateway = gatewayOf(FORKED);
    const { stdout, stderr, exitCode } = await fork(["plan-e", ...options], gateway);
    expect({ stdout, exitCode }).toEqual({ stdout: "", exitCode: 1 });
    expect(stderr).toContain(`error INPUT_INVALID: ${sentence}`);
    expect(gateway.calls).toEqual([]);
  });

  test.each([
    ["empty.yaml", "a policy says something of gates, conflicts"],
    ["wrong.yaml", "gates.confidenceThreshold"],
    ["broken.yaml", "line 1"],
    ["missing.yaml", "missing.yaml"],
  ])("the policy %s, and asks no gateway", async (file, subject) => {
    const gateway = gatewayOf(FORKED);
    const { stderr, exitCode } = await fork(["plan-e", "--policy", folder.file(file)], gateway);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("error INPUT_INVALID: ");
    expect(stderr).toContain(subject);
    expect(gateway.calls).toEqual([]);
  });

  test("a prefix of several", async () => {
    const gateway = gatewayOf(NOT_FOUND);
    const { stderr, exitCode } = await fork(["plan-6f1c"], gateway);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(
      `error INPUT_INVALID: id: "plan-6f1c" is a prefix of plan-6f1c9, ${RUNNING_PLAN.id}`,
    );
    expect(gateway.calls).toHaveLength(1);
  });

  test("what the gateway has against the plan, with all its problems", async () => {
    const problem = { path: "coordinationId", code: "COORDINATION_TAKEN", message: "there is another one" };
    const details = { problems: [problem] };
    const refusal = { ok: false, code: "PLAN_REFUSED", message: "no", details } as const;
    const { stderr, exitCode } = await fork(["plan-e", "--as", "co-2", "--wait"], gatewayOf(refusal));
    expect(exitCode).toBe(1);
    expect(stderr).toContain("coordinationId  COORDINATION_TAKEN  there is another one");
    const json = await fork(["plan-e", "--as", "co-2", "--json"], gatewayOf(refusal));
    expect(JSON.parse(json.stdout)).toEqual({ ok: false, problems: [problem] });
  });

  test("what the gateway says cannot be forked, with its sentence", async () => {
    const why = "every step of plan-ended had completed before 31: nothing is left to do";
    const refusal = { ok: false, code: "INPUT_INVALID", message: why } as const;
    const { stderr, exitCode } = await fork(["plan-e"], gatewayOf(refusal));
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`error INPUT_INVALID: ${why}.`);
    const json = await fork(["plan-e", "--json"], gatewayOf(refusal));
    expect(JSON.parse(json.stdout)).toMatchObject({ error: { code: "INPUT_INVALID", message: why } });
  });

  test("where the answer is lost, and says how to ask again without running it twice", async () => {
    const gateway = gatewayOf(
      new CoordinationError("GATEWAY_UNREACHABLE", `too late; ${MAY_BE_DONE}`),
      FORKED,
    );
    const { stderr } = await fork(["plan-e"], gateway);
    const { forkId } = gateway.calls[0]!.params as { forkId: string };
    expect(stderr).toContain(`; ask again with --as ${forkId}: then it is not run twice. Start it with`);
    await fork(["plan-e", "--as", forkId], gateway);
    expect(gateway.calls[1]?.params).toEqual(gateway.calls[0]?.params);
  });

  test("without a gateway, and says how to start one", async () => {
    const away = new CoordinationError("GATEWAY_UNREACHABLE", "not now");
    const { stderr, exitCode } = await fork(["plan-e"], gatewayOf(away));
    expect(exitCode).toBe(1);
    expect(stderr).toContain("error GATEWAY_UNREACHABLE: not now. Start it with `openclaw gateway run`");
    const none = await runCli(["fork", "plan-e"], { stateDir: folder.path });
    expect(none.stderr).toContain("error GATEWAY_UNREACHABLE");
    expect(none.exitCode).toBe(1);
  });
});

test("fork --help has examples of both kinds", async () => {
  const { stdout, exitCode } = await runCli(["fork", "--help"]);
  expect(exitCode).toBe(0);
  expect(stdout).toContain("$ openclaw coordination fork release-notes-2026-11 --wait");
  expect(stdout).toContain("$ openclaw coordination fork run-6f1c2f6e-... --from 12\n");
});

test("an empty id is refused, because each call with it would be another fork", async () => {
  const gateway = gatewayOf(FORKED);
  const { stderr, exitCode } = await fork(["plan-e", "--as", ""], gateway);
  expect({ exitCode, calls: gateway.calls }).toEqual({ exitCode: 1, calls: [] });
  expect(stderr).toContain("INPUT_INVALID: --as: expected an id, got nothing");
});
