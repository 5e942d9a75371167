/** Owns: attempts to read and to change by the surfaces of `serve` and of the files what they promise to keep (OWN). */
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createNoop, createWorkflow } from "../../openwop/levels-workflows.ts";
import { createPageClient, servePage, signIn } from "../../openwop/page-scene.ts";
import { HELD_TEXT, recordQuestions, SPAWNS } from "../../cli/recorded-questions.ts";
import { runCli } from "../../cli/run-cli.ts";
import { createTempFolder, openTestLedger } from "../../support/temp-ledger.ts";
import { MINER, openAttackedHost, readJson, STRANGER, WORKFLOWS, type AttackedHost } from "./serve-scene.ts";

const WORDS = "the vein is under the old mill";
const folder = createTempFolder();
const recorded = folder.file("recorded.sqlite");

let host: AttackedHost;
let runId: string;

beforeAll(async () => {
  await recordQuestions(recorded);
  host = await openAttackedHost({
    a2a: true,
    definitions: [
      ...WORKFLOWS,
      createWorkflow("tells", { nodes: [createNoop("only")], variables: { said: "" } }),
    ],
  });
  runId = await host.miner.start("gated", { inputs: { said: WORDS } });
  await host.miner.until(runId, "waiting-approval");
});
afterAll(async () => {
  await host[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly isPublic: boolean;
}

async function listOperations(): Promise<readonly Operation[]> {
  const { paths } = readJson(await host.send("/v1/openapi.json")) as {
    paths: Record<string, Record<string, { security: unknown[] }>>;
  };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { security }]) => ({
      method: method.toUpperCase(),
      path: path
        .replaceAll("{runId}", runId)
        .replaceAll(/\{nodeId\}/gu, "gate")
        .replaceAll(/\{\w+\}/gu, "x"),
      isPublic: security.length === 0,
    })),
  );
}

const hasBody = (method: string): boolean => method === "POST" || method === "PUT";

const PUBLIC = ["/.well-known/openwop", "/v1/openapi.json", "/v1/interrupts/x"];

it("OWN-1 every route of the host's own document, without a token and with a wrong one", async () => {
  const operations = await listOperations();
  expect(operations.length).toBeGreaterThan(15);
  expect(
    [...new Set(operations.filter(({ isPublic }) => isPublic).map(({ path }) => path))].toSorted(),
  ).toEqual(PUBLIC.toSorted());
  for (const { method, path, isPublic } of operations) {
    if (isPublic) continue;
    for (const token of ["", "x", `${MINER}x`]) {
      const { status, text } = await host.send(path, {
        method,
        token,
        ...(hasBody(method) && { body: {} }),
      });
      expect([method, path, status]).toEqual([method, path, 401]);
      expect(text).not.toContain(WORDS);
    }
  }
});

it("OWN-2 every route of the host's own document, with the token of another tenant", async () => {
  const before = await host.miner.events(runId);
  for (const { method, path } of await listOperations()) {
    if (!path.includes(runId)) continue;
    const body = { resumeValue: { action: "accept" }, mode: "branch", fromSeq: 1 };
    const { status, text } = await host.send(path, {
      method,
      token: STRANGER,
      ...(hasBody(method) && { body }),
    });
    expect([method, path, status >= 400]).toEqual([method, path, true]);
    expect(text).not.toMatch(/old mill|Dig\?/u);
  }
  expect(await host.miner.events(runId)).toEqual(before);
});

const SECRET = STRANGER;

it("OWN-3 a token of another tenant that comes back by any surface on which a run is read", async () => {
  const secretRun = await host.miner.start("tells", { inputs: { said: `it is ${SECRET}` } });
  await host.miner.until(secretRun, "completed");
  const a2a = { jsonrpc: "2.0", id: 1, method: "GetTask", params: { id: secretRun } };
  const surfaces = await Promise.all([
    host.send(`/v1/runs/${secretRun}`),
    host.send(`/v1/runs/${secretRun}/events`),
    host.send(`/v1/runs/${secretRun}/events/poll?lastSequence=0`),
    host.send(`/v1/runs/${secretRun}/ancestry`),
    host.send(`/v1/runs/${secretRun}/diff?against=${secretRun}`),
    host.send("/v1/a2a", { method: "POST", headers: { "a2a-version": "1.0" }, body: a2a }),
  ]);
  expect(surfaces.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(4);
  for (const path of [`/v1/runs/${SECRET}`, `/v1/${SECRET}`]) await host.send(path);
  for (const { text } of surfaces) expect(text).not.toContain(SECRET);
  expect(host.logged.join("\n")).not.toContain(SECRET);
  for (const name of readdirSync(host.folder))
    expect([name, readFileSync(join(host.folder, name)).includes(SECRET)]).toEqual([name, false]);
});

it("OWN-4 words of a run in what the host logs, in its errors and in its metrics", async () => {
  await host.send("/v1/runs", { method: "POST", body: { workflowId: WORDS } });
  await host.send("/v1/runs", { method: "POST", text: `{"${WORDS}` });
  expect(host.logged.length).toBeGreaterThan(0);
  expect(host.logged.join("\n")).not.toContain("old mill");
  expect((await host.send("/metrics")).text).not.toContain("old mill");
});

it("OWN-5 files of the host that other users of the machine would read or write", () => {
  const files = readdirSync(host.folder).filter((name) => statSync(join(host.folder, name)).isFile());
  expect(files.length).toBeGreaterThan(1);
  for (const name of files)
    expect([name, (statSync(join(host.folder, name)).mode & 0o077).toString(8)]).toEqual([name, "0"]);
});

it("OWN-6 a ledger that is a link to a file of somebody else, or a folder, or no ledger", async () => {
  const victim = folder.file("victim");
  writeFileSync(victim, "precious");
  symlinkSync(victim, folder.file("link.sqlite"));
  mkdirSync(folder.file("folder.sqlite"));
  for (const path of [folder.file("link.sqlite"), folder.file("folder.sqlite"), victim])
    await expect(openTestLedger(path)).rejects.toMatchObject({
      code: expect.stringMatching(/^LEDGER_/u) as string,
    });
  expect(readFileSync(victim, "utf8")).toBe("precious");
});

it.each([
  ["anchor", ["ledger", "anchor"]],
  ["backup", ["ledger", "backup"]],
  ["timeline", ["timeline", SPAWNS, "--html"]],
])(
  "OWN-7 a file that is there already, or a link to one, as the place of a new one: %s",
  async (name, command) => {
    const victim = folder.file(`victim-${name}`);
    writeFileSync(victim, "precious");
    const link = folder.file(`link-${name}`);
    symlinkSync(victim, link);
    for (const target of [victim, link]) {
      const { exitCode } = await runCli([...command, target, "--ledger", recorded]);
      expect(exitCode).not.toBe(0);
      expect(readFileSync(victim, "utf8")).toBe("precious");
    }
  },
);

const HARMFUL = /(?!\n)[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/u;

it.each([
  ["list"],
  ["show", SPAWNS],
  ["events", SPAWNS],
  ["timeline", SPAWNS],
  ["tree", SPAWNS],
  ["questions", "--all"],
  ["claims"],
  ["conflicts"],
  ["stats"],
])("OWN-8 control characters in what is printed as JSON: %s", async (...args) => {
  const { stdout, stderr } = await runCli([...args, "--json", "--ledger", recorded]);
  expect(stdout + stderr).not.toMatch(HARMFUL);
  expect(() => JSON.parse(stdout) as unknown).not.toThrow();
});

it.each([
  ["list"],
  ["show", SPAWNS],
  ["events", SPAWNS],
  ["timeline", SPAWNS],
  ["tree", SPAWNS],
  ["questions", "--all"],
  ["stats"],
])("OWN-9 a result that is withheld, by a command that lists: %s", async (...args) => {
  for (const more of [[], ["--json"]]) {
    const { stdout } = await runCli([...args, ...more, "--ledger", recorded]);
    expect(stdout).not.toContain("the answer is 42");
  }
});

it("OWN-10 a result that is withheld, by the addresses of the operator's page that list", async () => {
  await using served = await servePage(recorded);
  const client = createPageClient(served.baseUrl, await signIn(served.baseUrl, served.link));
  expect(HELD_TEXT).toContain("the answer is 42");
  for (const path of ["runs", `runs/${SPAWNS}/events?limit=1000`, "health", "questions"]) {
    const { status, body } = await client.ask(path);
    expect([path, status]).toEqual([path, 200]);
    expect([path, JSON.stringify(body).includes("the answer is 42")]).toEqual([path, false]);
  }
});

it("OWN-11 a ledger that everybody on the machine may write", async () => {
  const path = folder.file("open.sqlite");
  await (await openTestLedger(path)).close();
  chmodSync(path, 0o666);
  await (await openTestLedger(path)).close();
  expect((statSync(path).mode & 0o022).toString(8)).toBe("0");
});
