import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { addServeCommand } from "../../src/plugins/cli/workflows/serve-command.ts";
import { readTenantTokens } from "../../src/plugins/cli/workflows/serve-tokens.ts";
import { readWorkflowFolder } from "../../src/plugins/cli/files/workflow-folder.ts";
import {
  COMPLETED,
  createNodeStarted,
  createRunStarted,
  createWorkflowAuthor,
} from "../contract/workflow-store-tested.ts";
import { openTestLedger, createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { forge } from "./forge.ts";
import { PLAIN, runCli } from "./run-cli.ts";

let folder: TempFolder;
const nameLedger = (): string => folder.file("ledger.sqlite");

beforeAll(async () => {
  folder = createTempFolder();
  const store = await openTestLedger(nameLedger());
  for (const name of ["first", "second"]) {
    const author = createWorkflowAuthor(name);
    await store.workflows.append(author.append([createRunStarted(`wf-${name}`), createNodeStarted("a")]));
    if (name === "first") await store.workflows.append(author.append([COMPLETED], { status: "completed" }));
  }
  await store.close();
});

afterAll(() => {
  folder[Symbol.dispose]();
});

describe("runs", () => {
  test("lists workflow runs, newest first", async () => {
    const { stdout, exitCode } = await runCli(["runs", "--ledger", nameLedger()]);
    expect(exitCode).toBe(0);
    const lines = stdout.trim().split("\n");
    expect(lines).toEqual([
      expect.stringMatching(/running +run-second {2}wf-second$/),
      expect.stringMatching(/completed +run-first {2}wf-first$/),
    ]);
    const limited = await runCli(["runs", "--ledger", nameLedger(), "--limit", "1", "--json"]);
    expect(JSON.parse(limited.stdout)).toMatchObject([{ runId: "run-second", status: "running", events: 2 }]);
  });

  test("shows the events of one, and all of them as JSON", async () => {
    const { stdout } = await runCli(["runs", "run-first", "--ledger", nameLedger()]);
    expect(stdout).toMatch(/run-first {2}wf-first {2}completed, 3 events\n/);
    expect(stdout).toMatch(/ 1 {2}[\d:.]+ {2}node\.started +a\n/);
    const json = await runCli(["runs", "run-first", "--ledger", nameLedger(), "--json"]);
    expect(JSON.parse(json.stdout)).toMatchObject({
      runId: "run-first",
      log: [{ type: "run.started" }, { type: "node.started" }, { type: "run.completed" }],
    });
  });

  test("says by which codes a node was tried again and failed, and the run with it", async () => {
    using failed = createTempFolder();
    const path = failed.file("ledger.sqlite");
    const store = await openTestLedger(path);
    const createError = (code: string) => ({ code, message: "what went wrong is for --json" });
    const drafts: readonly WorkflowDraft[] = [
      createRunStarted("wf-fails"),
      createNodeStarted("a"),
      {
        type: "node.retried",
        nodeId: "a",
        payload: { nodeId: "a", attempt: 1, lastError: createError("model_unreachable") },
      },
      {
        type: "node.failed",
        nodeId: "a",
        payload: { nodeId: "a", error: createError("model_answer_empty") },
      },
      { type: "run.failed", payload: { error: createError("node_failed"), failedNodeId: "a" } },
    ];
    await store.workflows.append(createWorkflowAuthor("fails").append(drafts, { status: "failed" }));
    await store.close();
    const { stdout } = await runCli(["runs", "run-fails", "--ledger", path]);
    expect(stdout).toMatch(/ node\.retried +a, lastError model_unreachable\n/);
    expect(stdout).toMatch(/ node\.failed +a, error model_answer_empty\n/);
    expect(stdout).toMatch(/ run\.failed +error node_failed\n/);
    expect(stdout).not.toContain("went wrong");
  });

  test("says so where there is none of that id, or none at all", async () => {
    expect((await runCli(["runs", "run-nobody", "--ledger", nameLedger()])).stderr).toContain("run-nobody");
    using empty = createTempFolder();
    await (await openTestLedger(empty.file("ledger.sqlite"))).close();
    const { stdout } = await runCli(["runs", "--ledger", empty.file("ledger.sqlite")]);
    expect(stdout).toContain("no workflow has run in this ledger");
  });

  test("are folded by verify, which names the event where one is wrong", async () => {
    const sound = await runCli(["verify", "--ledger", nameLedger(), "--json"]);
    expect(JSON.parse(sound.stdout)).toEqual({
      ok: true,
      problems: [],
      coordinations: 0,
      workflowRuns: 2,
      events: 5,
      pruned: { runs: 0, events: 0 },
    });
    using damaged = createTempFolder();
    const path = damaged.file("ledger.sqlite");
    const store = await openTestLedger(path);
    const author = createWorkflowAuthor("told");
    await store.workflows.append(author.append([createRunStarted("wf-told"), createNodeStarted("a")]));
    await store.close();
    forge(
      path,
      `drop trigger run_grows; update run set summary = replace(summary, '"running"', '"failed"'), ended = 1`,
    );
    const { stdout, exitCode } = await runCli(["verify", "--ledger", path, "--json"]);
    expect(exitCode).toBe(1);
    const { problems } = JSON.parse(stdout) as { problems: object[] };
    expect(problems).toContainEqual(expect.objectContaining({ kind: "index_differs", runId: "run-told" }));
  });
});

/** A name that resolvers refuse without asking anybody: a part of it is too long. */
const NO_HOST = `${"x".repeat(64)}.example`;

describe("serve", () => {
  async function serve(
    args: readonly string[],
  ): Promise<{ readonly stderr: string; readonly exitCode: number }> {
    let stderr = "";
    let exitCode = 0;
    const createOutput = (write: (text: string) => void) => ({
      terminal: PLAIN,
      write: (text: string) => {
        write(text);
        return Promise.resolve(true);
      },
    });
    const program = new Command("openclaw-coordination").exitOverride();
    addServeCommand(program, {
      program: "openclaw-coordination",
      args,
      stdout: createOutput(() => undefined),
      stderr: createOutput((text) => (stderr += text)),
      config: { read: () => Promise.resolve(undefined) } as never,
      nodeVersion: "24.21.0",
      stateDir: () => Promise.resolve(folder.path),
      now: () => 0 as never,
      failWith: (code) => {
        exitCode = code;
      },
    });
    await program.parseAsync(["node", "openclaw-coordination", "serve", ...args]);
    return { stderr, exitCode };
  }

  test.each([
    [["--token", "t", "--port", "70000"], "--port: expected a whole number from 0 to 65535"],
    [["--token", "t", "--confidence-floor", "0.4"], "--confidence-floor: expected a number from 0.5 to 1"],
    [
      ["--token", "t", "--escalation-threshold", "x"],
      "--escalation-threshold: expected a number from 0 to 1",
    ],
    [
      ["--token", "t", "--replay-retention", "-1"],
      "--replay-retention: expected a number of days from 0 to 3650",
    ],
    [
      ["--token", "t", "--replay-retention", ""],
      "--replay-retention: expected a number of days from 0 to 3650",
    ],
    [["--token", "t", "--keep-days", "0"], "--keep-days: expected at least 1 day"],
    [["--token", "t", "--lease", "1.9"], "--lease: expected a number of seconds from 2 to 300, got 1.9"],
    [["--token", "t", "--lease", "301"], "--lease: expected a number of seconds from 2 to 300, got 301"],
    [["--token", "t", "--model", "m"], "--model-url and --model belong together"],
    [["--token", "t", "--allow-private", "example"], "expected an origin such as"],
    [["--token", "t", "--peer-token", "http://a"], "--peer-token: expected <origin>=<token>"],
    [["--token", "t", "--peer-token", "http://a=${NOT_SET_HERE}", "--port", "0"], "token for http://a names"],
    [
      ["--token", "t", "--peer-token", "http://a=one", "HTTP://A:80=other", "--port", "0"],
      "--peer-token: there are two tokens for http://a",
    ],
    [["--token", "t", "--mcp-server", "tools=ftp://a"], "--mcp-server: expected a URL such as"],
    [["--token", "t", "--mcp-server", "tools=https://u:pa55@a/mcp"], "without a user and password"],
    [["--token", "t", "--model", "m", "--model-url", "ftp://a"], "--model-url: expected a URL such as"],
    [["--token", "t", "--model", "m", "--model-url", "https://u:pa55@a/v1"], "without a user and password"],
    [["--token", "t", "--workflows", "no-such-folder"], "no-such-folder: there is no such folder"],
    [["--token", "t", "--host", "0.0.0.0", "--port", "0"], "which must be allowed (--allow-remote, --token)"],
    [
      ["--token", "t", "--base-url", "https://runs.example", "--port", "0"],
      "have at least 16 characters (--allow-remote, --token)",
    ],
    [["--token", "two words", "--port", "0"], "is a word of visible ASCII characters. "],
    [["--token", "t", "--allow-remote", "--port", "0"], "have at least 16 characters"],
    [
      ["--token", "t", "--base-url", "runs.example"],
      "--base-url: expected an address such as https://runs.example",
    ],
    [["--token", "t", "--base-url", "localhost:4096"], "--base-url: expected an address"],
    [["--token", "t", "--base-url", "https://runs.example/?a=1"], "--base-url: expected an address"],
    [
      ["--token", "sixteen-characters", "--allow-remote", "--port", "0", "--host", NO_HOST],
      `cannot listen on ${NO_HOST}:0 (`,
    ],
    ...["0.0.0.0", "0", "::", "0:0:0:0:0:0:0:0"].map((address): [string[], string] => [
      ["--token", "sixteen-characters", "--allow-remote", "--port", "0", "--host", address],
      `--host ${address}: no client can reach this host at an address that stands for all of this machine; name the one that clients use with --base-url`,
    ]),
  ])("refuses %j in a sentence", async (args, sentence) => {
    const { stderr, exitCode } = await serve(args);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("INPUT_INVALID");
    expect(stderr).toContain(sentence);
    expect(stderr).not.toContain("pa55");
  });

  test("refuses one token of two tenants without the options of another fault", async () => {
    const file = folder.file("same-tokens.json");
    writeFileSync(file, JSON.stringify({ one: "t", two: "t" }));
    const { stderr } = await serve(["--tokens", file, "--port", "0"]);
    expect(stderr).toContain("two bearer tokens are the same: give each tenant its own. ");
  });

  test("knows tokens by option, by the environment and by file, and refuses to serve nobody", () => {
    const file = join(folder.path, "tokens.json");
    writeFileSync(file, JSON.stringify({ acme: "one", other: "two" }));
    expect(readTenantTokens({ token: "t" }, {})).toEqual([{ tenant: "default", token: "t" }]);
    expect(readTenantTokens({}, { OPENWOP_API_KEY: "e" })).toEqual([{ tenant: "default", token: "e" }]);
    expect(readTenantTokens({ tokens: file }, {})).toEqual([
      { tenant: "acme", token: "one" },
      { tenant: "other", token: "two" },
    ]);
    const environment = { OPENWOP_API_KEY: "e" };
    expect(readTenantTokens({ tokens: file }, environment)).toEqual(readTenantTokens({ tokens: file }, {}));
    expect(readTenantTokens({ token: "t", tokens: file }, environment)).toHaveLength(3);
    expect(() => readTenantTokens({}, {})).toThrow("there is no token");
    writeFileSync(file, "");
    expect(() => readTenantTokens({ tokens: file }, {})).toThrow("tokens.json: this is not JSON, expected");
    const missing = join(folder.path, "no-tokens.json");
    expect(() => readTenantTokens({ tokens: missing }, {})).toThrow("no-tokens.json: there is no such file");
    expect(() => readTenantTokens({ tokens: folder.path }, {})).toThrow("the file cannot be read (EISDIR)");
    expect(() => readTenantTokens({ tokens: "" }, {})).toThrow(
      "--tokens: expected the path of a file, got nothing",
    );
    writeFileSync(file, "[1]");
    expect(() => readTenantTokens({ tokens: file }, {})).toThrow("expected JSON of the form");
  });

  test("names every file of the folder that is no workflow, and why", async () => {
    using workflows = createTempFolder();
    const createNode = (id: string) => ({ id, typeId: "core.noop" });
    const write = (name: string, value: unknown): void => {
      writeFileSync(workflows.file(name), typeof value === "string" ? value : JSON.stringify(value));
    };
    write("a.json", { id: "same", name: "a", version: "1", nodes: [createNode("n")] });
    expect((await readWorkflowFolder(workflows.path)).map(({ id }) => id)).toEqual(["same"]);
    write("b.json", { id: "same", name: "b", version: "1", nodes: [createNode("n")] });
    write(
      "c.yaml",
      "id: c\nname: c\nversion: '1'\nnodes: [{ id: n, typeId: core.noop }]\nedges: [{ id: e, sourceNodeId: n, targetNodeId: gone }]\n",
    );
    write("d.json", { id: "d" });
    write("e.yaml", "id: e\nnodes: [\n");
    writeFileSync(workflows.file("f.json"), Buffer.from([0xff, 0xfe, 0xfd]));
    await expect(readWorkflowFolder(workflows.path)).rejects.toThrow(
      /b\.json: there is another workflow same[^]*c\.yaml: edge e names the node gone[^]*d\.json: [^]*e\.yaml: line \d+, column \d+: [^]*f\.json: /,
    );
  });
});
