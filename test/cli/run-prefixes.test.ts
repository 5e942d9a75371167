/** Owns: that a unique prefix of the id of a workflow run is enough, and that errors about runs name the command for them. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  COMPLETED,
  createNodeStarted,
  createRunStarted,
  createWorkflowAuthor,
} from "../contract/workflow-store-tested.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";
import { OPEN, recordLedger } from "./recorded-ledger.ts";
import { runCli, type CliResult } from "./run-cli.ts";

let folder: TempFolder;

beforeAll(async () => {
  folder = createTempFolder();
  await recordLedger(folder.file("ledger.sqlite"), [OPEN]);
  const store = await openTestLedger(folder.file("ledger.sqlite"));
  for (const name of ["first", "second", "secondary"]) {
    const author = createWorkflowAuthor(name);
    await store.workflows.append(author.append([createRunStarted(`wf-${name}`), createNodeStarted("a")]));
    if (name === "first") await store.workflows.append(author.append([COMPLETED], { status: "completed" }));
  }
  await store.close();
});

afterAll(() => {
  folder[Symbol.dispose]();
});

const run = (...args: string[]): Promise<CliResult> =>
  runCli([...args, "--ledger", folder.file("ledger.sqlite")]);

describe("a unique prefix of the id of a workflow run", () => {
  test("is enough for runs and diff", async () => {
    expect((await run("runs", "run-f")).stdout).toContain("run-first");
    expect((await run("runs", "run-second")).stdout).toMatch(/^run-second {2}/u);
    const { stdout } = await run("diff", "run-f", "run-seconda", "--json");
    expect(JSON.parse(stdout)).toMatchObject({ a: "run-first", b: "run-secondary" });
  });

  test("is enough for replay", async () => {
    expect((await run("replay", "run-f", "--policy", "any.yaml")).stderr).toContain("this is a workflow run");
    expect((await run("replay", OPEN.id.slice(0, 6), "--json")).stdout).toContain('"kind": "coordination"');
  });

  test("is enough for fork", async () => {
    const paths: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      paths.push(request.url);
      response.setHeader("content-type", "application/json").end('{"runId":"run-new"}');
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const { exitCode } = await run("fork", "run-f", "--from", "1", "--url", `http://127.0.0.1:${port}`);
    server.close();
    expect({ exitCode, paths }).toEqual({ exitCode: 0, paths: ["/v1/runs/run-first:fork"] });
  });
});

describe("a prefix of several workflow runs", () => {
  test.each([
    [["runs", "run-s"]],
    [["diff", "run-first", "run-s"]],
    [["replay", "run-s"]],
    [["fork", "run-s", "--from", "1"]],
  ])("is refused with their ids: %j", async (args) => {
    const { stderr, exitCode } = await run(...args);
    expect(exitCode).toBe(1);
    expect(stderr).toContain('INPUT_INVALID: id: "run-s" is a prefix of run-secondary, run-second');
  });
});

describe("an id that nothing has", () => {
  test.each([[["runs", "run-nobody"]], [["diff", "run-first", "run-nobody"]], [["replay", "run-nobody"]]])(
    "is refused, and the command is named that lists runs: %j",
    async (args) => {
      const { stderr, exitCode } = await run(...args);
      expect(exitCode).toBe(1);
      expect(stderr).toMatch(/^error COORDINATION_NOT_FOUND: .*"run-nobody"/u);
      expect(stderr).toContain("`openclaw coordination runs`");
    },
  );
});

describe("--limit", () => {
  test("is refused beside the id of a run, and holds for the list", async () => {
    const { stderr, exitCode } = await run("runs", "run-first", "--limit", "1");
    expect(exitCode).toBe(1);
    expect(stderr).toContain("INPUT_INVALID: --limit: ");
    expect(JSON.parse((await run("runs", "--json", "--limit", "2")).stdout)).toHaveLength(2);
    expect(JSON.parse((await run("runs", "--json")).stdout)).toHaveLength(3);
  });
});
