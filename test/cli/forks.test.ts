import { once } from "node:events";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { end, createLoop, work, WORKERS } from "../openwop/levels-workflows.ts";
import { FORKED } from "../openwop/levels-forks.ts";
import { openWorld, TOKEN, type World } from "../openwop/levels-world.ts";
import { forge } from "./forge.ts";
import { runCli, type CliResult } from "./run-cli.ts";

let world: World;

const CAUTIOUS = createLoop("cautious", {
  plan: [work(["worker-good"], 0.6), { ...end(), successCriteria: [{ key: "tests", met: false }] }],
});

beforeAll(async () => {
  const knownIds = new Set(FORKED.map(({ id }) => id));
  world = await openWorld([...FORKED, ...WORKERS.filter(({ id }) => !knownIds.has(id)), CAUTIOUS]);
});

afterAll(async () => {
  await world.close();
});

const runForkCli = (...args: string[]): Promise<CliResult> => runCli([...args, "--ledger", world.ledgerPath]);

async function runToEnd(workflowId: string): Promise<string> {
  const { runId } = await world.client.run(workflowId);
  return runId;
}

describe("replay of a workflow run", () => {
  test.each(["line", "keeps", "fails", "cautious"])(
    "of %s is equal, whole and from its middle",
    async (id) => {
      const runId = await runToEnd(id);
      const whole = await runForkCli("replay", runId, "--json");
      expect(JSON.parse(whole.stdout)).toMatchObject({ kind: "run", runId, from: 0, equal: true });
      expect(whole.exitCode).toBe(0);
      const middle = await runForkCli("replay", runId, "--from", "3");
      expect(middle.stdout).toMatch(/^ok {2}\S+: \d+ events from 3 on come out as recorded/);
    },
  );

  test("makes no run and changes nothing", async () => {
    const runId = await runToEnd("line");
    const before = await runForkCli("runs", "--json");
    await runForkCli("replay", runId);
    expect((await runForkCli("runs", "--json")).stdout).toBe(before.stdout);
  });

  test("refuses what is for coordinations, and a place behind the end", async () => {
    const runId = await runToEnd("line");
    const policy = await runForkCli("replay", runId, "--policy", "any.yaml");
    expect(policy.stderr).toContain("--policy is for coordinations, and this is a workflow run");
    expect((await runForkCli("replay", runId, "--from", "900")).stderr).toContain("the log ends before 900");
  });
});

describe("fork", () => {
  const fork = (...args: string[]): Promise<CliResult> =>
    runForkCli("fork", ...args, "--url", world.baseUrl, "--token", TOKEN);

  test("makes a branch, which runs, and is listed with its source", async () => {
    const source = await runToEnd("line");
    const { stdout, exitCode } = await fork(source, "--from", "3", "--json");
    expect(exitCode).toBe(0);
    const { runId } = JSON.parse(stdout) as { runId: string };
    await world.client.until(runId, "completed");
    const listed = JSON.parse((await runForkCli("runs", runId, "--json")).stdout) as object;
    expect(listed).toMatchObject({ fork: { mode: "branch", sourceRunId: source, fromSeq: 3 } });
    expect((await runForkCli("runs")).stdout).toContain(`branch of ${source} from 3`);
    expect((await runForkCli("runs", runId)).stdout).toContain(`branch of ${source} from 3`);
    const again = await runForkCli("replay", runId, "--json");
    expect(JSON.parse(again.stdout)).toMatchObject({ equal: true });
  });

  test("makes a replay, which is no different from its source", async () => {
    const source = await runToEnd("cautious");
    const { stdout } = await fork(source, "--mode", "replay");
    const runId = stdout.split(" ")[0] ?? "";
    expect(stdout).toContain(`a replay of ${source}`);
    await world.client.until(runId, "completed", "failed");
    const { stdout: same, exitCode } = await runForkCli("diff", source, runId);
    expect({ same, exitCode }).toEqual({ same: `equal  ${source} and ${runId}\n`, exitCode: 0 });
  });

  test("with other options begins a branch that has them", async () => {
    const source = await runToEnd("line");
    const options = `{"note":"other"}`;
    const { stdout, exitCode } = await fork(source, "--from", "2", "--configurable", options, "--json");
    expect({ exitCode, said: exitCode === 0 ? "" : stdout }).toEqual({ exitCode: 0, said: "" });
    expect((await fork(source, "--from", "2", "--configurable", "[]")).stderr).toContain(
      "expected a JSON object",
    );
  });

  test("says why the host refuses, that nobody answers, and that a branch begins somewhere", async () => {
    const source = await runToEnd("line");
    const refused = await fork(source, "--from", "900", "--json");
    expect(refused.exitCode).toBe(1);
    expect(JSON.parse(refused.stdout)).toMatchObject({ error: { code: "REQUEST_REFUSED" } });
    expect(refused.stdout).toContain("invalid_from_seq");
    const nobody = await runForkCli("fork", source, "--from", "1", "--url", "http://127.0.0.1:9");
    expect(nobody.stderr).toContain("no OpenWOP host answers at http://127.0.0.1:9");
    expect(nobody.stderr).toContain("say with --url where the host answers");
    expect((await fork(source)).stderr).toContain("--from: a branch begins at an event");
    const wrong = await runForkCli("fork", source, "--from", "1", "--url", world.baseUrl, "--token", "wrong");
    expect(wrong.stderr).toContain("the host refused");
    expect(wrong.stderr).toContain("Give a token that the host accepts with --token, or in OPENWOP_API_KEY.");
  });
});

describe("fork of a workflow run", () => {
  test.each([["--policy", "any.yaml"], ["--as", "run-2"], ["--dry-run"], ["--wait"], ["--timeout", "5"]])(
    "refuses %s, which is for coordinations",
    async (...option) => {
      const source = await runToEnd("line");
      const { stderr, exitCode } = await runForkCli(
        "fork",
        source,
        "--from",
        "1",
        ...option,
        "--url",
        world.baseUrl,
      );
      expect(exitCode).toBe(1);
      expect(stderr).toContain(
        `INPUT_INVALID: ${option[0]}: it is for coordinations, and this is a workflow run`,
      );
    },
  );

  test.each([
    [["run-elsewhere"], "--from: a branch begins at an event"],
    [["run-elsewhere", "--from", "1", "--url", "http://127.0.0.1:9"], "no OpenWOP host answers"],
    [["its-own-name", "--from", "1", "--url", "http://127.0.0.1:9"], "no OpenWOP host answers"],
    // Nothing says that it is one.
    [["its-own-name", "--from", "1"], 'no coordination and no workflow run begins with "its-own-name"'],
    [
      ["run-elsewhere", "--from", "1", "--wait"],
      'no coordination and no workflow run begins with "run-elsewhere"',
    ],
  ])("that this ledger does not know is told by what is asked for: %j", async (args, expected) => {
    expect((await runForkCli("fork", ...args)).stderr).toContain(expected);
  });

  /** Forks through a host that answers so. */
  async function forkAt(answer: RequestListener): Promise<CliResult> {
    const server = createServer(answer).listen(0, "127.0.0.1");
    try {
      await once(server, "listening");
      const { port } = server.address() as AddressInfo;
      const url = `http://127.0.0.1:${port}`;
      return await runForkCli("fork", "run-elsewhere", "--mode", "replay", "--url", url);
    } finally {
      server.close();
    }
  }

  test("prints what the host answers harmlessly", async () => {
    const { stdout } = await forkAt((_, response) => {
      response.setHeader("content-type", "application/json").end(JSON.stringify({ runId: "run-\u001b[2J" }));
    });
    expect(stdout).toBe(
      "run-\ufffd[2J  a replay of run-elsewhere\nSee it with: openclaw coordination runs 'run-\ufffd[2J'\n",
    );
  });

  test.each<[string, (response: ServerResponse) => unknown]>([
    ["ends the connection", (response) => response.destroy()],
    ["answers with something else", (response) => response.end("<html>")],
    ["has a proxy that lost it", (response) => response.writeHead(504).end("<html>")],
    [
      "cannot say that it was done",
      (response) =>
        response.writeHead(503).end(JSON.stringify({ error: "unavailable", message: "The ledger is busy." })),
    ],
  ])("that the host took and %s may be made, and is asked for again by its key", async (_, answer) => {
    const keys: unknown[] = [];
    const { stderr, exitCode } = await forkAt((request, response) => {
      keys.push(request.headers["idempotency-key"]);
      answer(response);
    });
    expect(exitCode).toBe(1);
    expect(stderr).toContain("the fork may have been made all the same");
    expect(stderr).toContain(`--key ${String(keys[0])}`);
    expect(stderr).not.toContain("refused");
    expect(keys).toEqual([expect.stringMatching(/^[\da-f-]{36}$/u)]);
  });

  test("is the same one for the same --key, and another one without", async () => {
    const source = await runToEnd("line");
    const args = ["fork", source, "--from", "3", "--url", world.baseUrl, "--token", TOKEN, "--json"];
    const fork = async (...more: string[]): Promise<unknown> =>
      (JSON.parse((await runForkCli(...args, ...more)).stdout) as { runId: unknown }).runId;
    const runId = await fork("--key", "my-fork");
    expect(runId).toEqual(expect.any(String));
    expect(await fork("--key", "my-fork")).toBe(runId);
    expect(await fork()).not.toBe(runId);
    const { stderr } = await runForkCli(...args.slice(0, -1), "--key", "my fork");
    expect(stderr).toContain("INPUT_INVALID: --key: expected 1 to 255 letters, digits");
  });

  test("is not said to be made where nobody listens", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, "close");
    const url = `http://127.0.0.1:${port}`;
    const { stderr } = await runForkCli("fork", "run-elsewhere", "--from", "1", "--url", url);
    expect(stderr).toContain(`no OpenWOP host answers at ${url}`);
    expect(stderr).not.toContain("may have been made");
  });
});

describe("diff", () => {
  test("tells where two runs differ, and fails", async () => {
    const [one, other] = [await runToEnd("line"), await runToEnd("fails")];
    const { stdout, exitCode } = await runForkCli("diff", one, other);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^differ {2}from event 0 on, \d+ places\n/);
    const json = await runForkCli("diff", one, other, "--json");
    expect(JSON.parse(json.stdout)).toMatchObject({ a: one, b: other, divergedAtSeq: 0 });
    expect((await runForkCli("diff", one, "run-nobody")).stderr).toContain("run-nobody");
  });
});

describe("runs", () => {
  test("says that a run gave up, and what it did not reach", async () => {
    const runId = await runToEnd("cautious");
    expect((await runForkCli("runs", runId)).stdout).toContain("gave up: tests not met");
    expect(JSON.parse((await runForkCli("runs", runId, "--json")).stdout)).toMatchObject({
      convergence: { goalSatisfied: false, unmet: ["tests"] },
    });
  });
});

test("a replay of a run whose log was changed tells where", async () => {
  const runId = await runToEnd("line");
  await world.stop();
  try {
    forge(
      world.ledgerPath,
      `drop trigger event_no_update;
       update event set node_id = 'c' where sequence = 3 and run_key = (select run_key from run where run_id = '${runId}')`,
    );
    const { exitCode, stdout } = await runForkCli("replay", runId, "--json");
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ equal: false, difference: { sequence: 3, nodeId: "c" } });
  } finally {
    await world.restart();
  }
});
