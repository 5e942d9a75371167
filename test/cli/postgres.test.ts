/** Owns: the commands and `serve` on a ledger that is on a PostgreSQL server. */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startServedOpenWop } from "../../src/plugins/serve-openwop.ts";
import { createOlderServerLedger } from "../contract/older-ledger.ts";
import { beginRun } from "../contract/workflow-store-tested.ts";
import { createServing } from "../openwop/create-serving.ts";
import { createNoop, createWorkflow } from "../openwop/levels-workflows.ts";
import { openRun, runIdOf } from "../support/ledger-fixtures.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema, type TestSchema } from "../support/postgres-server.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";
import { createMemoryConfig, runCli } from "./run-cli.ts";

let schema: TestSchema;
let folder: TempFolder;

beforeAll(async () => {
  folder = createTempFolder();
  schema = await createTestSchema();
  const store = await openTestPostgres(schema.url);
  for (const name of ["a", "b"]) await store.append(openRun(name).request);
  await store.close();
});

afterAll(async () => {
  await schema[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** Runs a command on the ledger; its password is in nothing that it prints. */
async function run(...args: readonly string[]) {
  const result = await runCli([...args, "--ledger", schema.url], { stateDir: folder.path });
  const { password } = new URL(schema.url);
  expect(password).not.toBe("");
  expect(result.stdout + result.stderr).not.toContain(password);
  return result;
}

function readPassword(url: string): string {
  return decodeURIComponent(new URL(url).password);
}

function withoutPassword(text: string): string {
  const url = new URL(text);
  url.password = "";
  return url.href;
}

/** OpenClaw's configuration with this setting of the plugin. */
function configOf(ledger: object): object {
  const config = { coordination: { phase1: { enabled: true, ledger } } };
  return { plugins: { entries: { coordination: { enabled: true, config } } } };
}

async function readJson(...args: readonly string[]): Promise<unknown> {
  const { stdout, stderr } = await run(...args, "--json");
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

describe("commands with --ledger postgres://...", () => {
  test("read it as they read a file", async () => {
    const runId = runIdOf("a");
    const listed = [{ coordinationId: runIdOf("b") }, { coordinationId: runId }];
    expect(await readJson("list")).toMatchObject(listed);
    expect(await readJson("show", runId)).toMatchObject({ coordinationId: runId });
    expect((await run("events", runId)).exitCode).toBe(0);
    expect((await run("timeline", runId)).exitCode).toBe(0);
    expect(await readJson("verify")).toMatchObject({ ok: true, coordinations: 2 });
    const { ledger } = (await readJson("status")) as { ledger: { bytes: number } };
    expect(ledger).toMatchObject({ exists: true, coordinations: 2 });
    // Its tables and indexes have a page each at least.
    expect(ledger.bytes).toBeGreaterThan(10 * 8_192);
    expect((await run("doctor")).stdout).not.toContain("ledger-folder");
    expect((await run("ledger", "anchor", folder.file("anchor.json"))).exitCode).toBe(0);
    expect(existsSync(join(process.cwd(), "postgres:"))).toBe(false);
  });

  test("are not needed where the gateway's configuration names it", async () => {
    const ledger = { url: withoutPassword(schema.url), password: readPassword(schema.url) };
    const readConfigured = (...args: readonly string[]) =>
      runCli([...args, "--json"], { stateDir: folder.path, config: createMemoryConfig(configOf(ledger)) });
    const listed = await readConfigured("list");
    expect(JSON.parse(listed.stdout)).toMatchObject([
      { coordinationId: runIdOf("b") },
      { coordinationId: runIdOf("a") },
    ]);
    const status = await readConfigured("status");
    expect(JSON.parse(status.stdout)).toMatchObject({
      ledger: { path: expect.stringMatching(/^postgres:\/\/[^:]+@/u) as string, coordinations: 2 },
    });
    const doctor = await readConfigured("doctor");
    expect((JSON.parse(doctor.stdout) as { checks: unknown }).checks).toContainEqual({
      name: "ledger",
      status: "ok",
      message: expect.stringMatching(/^postgres:.* opens, with a schema that this release reads$/u) as string,
    });
    for (const { stdout, stderr } of [listed, status, doctor])
      expect(stdout + stderr).not.toContain(ledger.password);
  });

  const doctorOf = async (place: URL) => {
    const ledger = { url: withoutPassword(place.href), password: readPassword(place.href) };
    const setting = { stateDir: folder.path, config: createMemoryConfig(configOf(ledger)) };
    const doctor = await runCli(["doctor", "--json"], setting);
    const { checks } = JSON.parse(doctor.stdout) as { checks: readonly { name: string }[] };
    const status = await runCli(["status", "--json"], setting);
    return {
      check: checks.find(({ name }) => name === "ledger"),
      status: JSON.parse(status.stdout) as object,
      statusText: (await runCli(["status"], setting)).stdout,
    };
  };

  test("call a ledger absent where the gateway can make it", async () => {
    await using empty = await createTestSchema();
    expect(await doctorOf(new URL(empty.url))).toMatchObject({
      check: { status: "ok", message: expect.stringContaining("no ledger yet") as string },
      status: { ledger: { exists: false } },
      statusText: expect.stringContaining("(not created yet)") as string,
    });
  });

  test.each<[string, string, RegExp, (url: URL, other: TestSchema) => unknown]>([
    [
      "a database that does not exist",
      "LEDGER_UNAVAILABLE",
      /create the database first/u,
      (url) => {
        url.pathname = "/none";
      },
    ],
    [
      "a schema that does not exist",
      "LEDGER_UNAVAILABLE",
      /create one first/u,
      (url) => {
        url.searchParams.set("options", "-c search_path=none");
      },
    ],
    [
      "a schema in which its user may create no tables",
      "LEDGER_UNAVAILABLE",
      /may not create tables in the schema test_.*; give the user of the URL the schema of the ledger/u,
      async (url, other) => {
        const password = "secret-of-the-reader";
        const user = `reader_${randomBytes(8).toString("hex")}`;
        const [row] = await other.query<{ name: string }>("select current_schema()::text as name");
        await other.query(`create role ${user} login password '${password}'`);
        await other.query(`grant usage on schema ${row?.name} to ${user}`);
        url.href = other.url;
        Object.assign(url, { username: user, password });
      },
    ],
    [
      "a schema of another program",
      "LEDGER_CORRUPT",
      /tables of another program/u,
      (url, other) => {
        url.href = other.url;
        return other.query("create table customers (id integer)");
      },
    ],
  ])("fail on %s, in which no gateway can make a ledger", async (_, code, message, change) => {
    await using other = await createTestSchema();
    const url = new URL(schema.url);
    await change(url, other);
    expect(await doctorOf(url)).toMatchObject({
      check: { status: "fail", message: expect.stringMatching(message) as string },
      status: { ledger: { exists: null, coordinations: null, error: { code } } },
      statusText: expect.stringMatching(message) as string,
    });
  });

  test("read no other ledger where the configuration of this one is wrong", async () => {
    const config = createMemoryConfig(configOf({ url: schema.url }));
    const listed = await runCli(["list", "--json"], { stateDir: folder.path, config });
    expect(JSON.parse(listed.stdout)).toMatchObject({
      error: { code: "CONFIG_INVALID", message: expect.stringContaining("ledger.password") as string },
    });
    const status = await runCli(["status", "--json"], { stateDir: folder.path, config });
    expect(JSON.parse(status.stdout)).toMatchObject({ ledger: { error: { code: "CONFIG_INVALID" } } });
    for (const { stdout } of [listed, status]) expect(stdout).not.toContain(readPassword(schema.url));
  });

  test("leave its backup to the server's tools", async () => {
    expect(await readJson("ledger", "backup", folder.file("copy.sqlite"))).toMatchObject({
      error: { code: "INPUT_INVALID", message: expect.stringContaining("pg_dump") as string },
    });
  });

  test("say which server cannot be reached", async () => {
    const url = new URL(schema.url);
    url.port = "1";
    const { stdout, exitCode } = await runCli(["list", "--ledger", url.href, "--json"]);
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: "LEDGER_UNAVAILABLE" } });
    expect(stdout).not.toContain(url.password);
  });
});

describe("serve with --ledger postgres://...", () => {
  test("keeps runs there, and another process goes on with them", async () => {
    const serving = createServing(schema.url, {
      keyFolder: folder.path,
      tokens: [{ tenant: "t", token: "token" }],
      definitions: [createWorkflow("w", { nodes: [createNoop("n")] })],
    });
    const serve = () => startServedOpenWop(serving);
    const headers = { authorization: "Bearer token", "content-type": "application/json" };
    const first = await serve();
    const created = await fetch(`${first.baseUrl}/v1/runs`, {
      method: "POST",
      headers,
      body: '{"workflowId":"w"}',
    });
    expect(created.status).toBe(201);
    const { runId } = (await created.json()) as { runId: string };
    const readStatus = async (baseUrl: string): Promise<unknown> =>
      ((await (await fetch(`${baseUrl}/v1/runs/${runId}`, { headers })).json()) as { status: unknown })
        .status;
    await expect.poll(() => readStatus(first.baseUrl), { timeout: 20_000 }).toBe("completed");
    await first.stop();
    const second = await serve();
    expect(await readStatus(second.baseUrl)).toBe("completed");
    await second.stop();
    expect(existsSync(folder.file("interrupt-key"))).toBe(true);
    expect((await run("verify")).exitCode).toBe(0);
  });
});

/** Reads of a whole moment, as those of the inspection, still have room. */
const FIND_ROOM = `
  create function find_room() returns boolean language plpgsql as
  $$ begin
    if current_setting('transaction_isolation') <> 'repeatable read' then
      raise exception 'no space left on device' using errcode = 'disk_full';
    end if;
    return true;
  end $$;`;

test("verify keeps the problems that it found before the server had no room to go on", async () => {
  await using damaged = await createTestSchema();
  const store = await openTestPostgres(damaged.url);
  await store.append(openRun("a").request);
  await store.append(openRun("b").request);
  await store.workflows.append(beginRun("workflow").request);
  await store.close();
  await damaged.query(
    `${FIND_ROOM}
     alter table run rename to stored_run;
     create view run as select * from stored_run where kind <> 'workflow' or find_room()`,
  );
  const { stdout, exitCode } = await runCli(["verify", "--ledger", damaged.url, "--json"]);
  expect(exitCode).toBe(1);
  const verified = JSON.parse(stdout) as { problems: object[] };
  expect(verified).toMatchObject({ ok: false, truncated: true, coordinations: 2 });
  expect(verified.problems).toContainEqual(expect.objectContaining({ kind: "schema_changed" }));
});

test("verify keeps what it found of an anchor before the server had no room to go on", async () => {
  const anchored = await openTestLedger(folder.file("anchored.sqlite"));
  for (const name of ["a", "b", "c"]) await anchored.append(openRun(name).request);
  await anchored.close();
  const anchor = folder.file("anchor.json");
  await runCli(["ledger", "anchor", anchor, "--ledger", folder.file("anchored.sqlite")]);
  await using cut = await createTestSchema();
  const store = await openTestPostgres(cut.url);
  for (const name of ["a", "b"]) await store.append(openRun(name).request);
  await store.workflows.append(beginRun("workflow").request);
  await store.close();
  // A run of another kind is met only where all runs are read.
  await cut.query(
    `${FIND_ROOM}
     alter table run disable trigger user;
     alter table run drop constraint run_kind_check;
     update run set kind = 'other' where kind = 'workflow';
     alter table run rename to stored_run;
     create view run as select * from stored_run where kind <> 'other' or find_room()`,
  );
  const { stdout, exitCode } = await runCli(["verify", "--ledger", cut.url, "--anchor", anchor, "--json"]);
  expect(exitCode).toBe(1);
  const verified = JSON.parse(stdout) as { problems: object[] };
  expect(verified).toMatchObject({ ok: false, truncated: true, coordinations: 2 });
  expect(verified.problems).toContainEqual(
    expect.objectContaining({ kind: "anchor_run_missing", runId: runIdOf("c") }),
  );
});

describe("a ledger in a file", () => {
  test("loads nothing of the driver of a server", () => {
    const probe = `
      const { openLedgerStore } = await import("./src/plugins/open-ledger-store.ts");
      const [place] = process.argv.slice(1);
      await (await openLedgerStore({ place, mode: "write", busyTimeoutMs: 100 })).close();
      const { createRequire } = await import("node:module");
      const loaded = Object.keys(createRequire(process.cwd() + "/x.js").cache);
      console.log(loaded.filter((file) => /node_modules.pg/.test(file)).length);
    `;
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ["--input-type=module", "--eval", probe, folder.file("file.sqlite")],
      { cwd: join(import.meta.dirname, "../.."), encoding: "utf8" },
    );
    expect(stderr).toBe("");
    expect(stdout.trim()).toBe("0");
  });
});

test.each([
  { args: ["show", "co-1"], says: 'no coordination begins with "co-1"' },
  { args: ["replay", "co-1"], says: 'no coordination and no workflow run begins with "co-1"' },
  { args: ["questions", "show", "co-1"], says: '"co-1" names no question' },
  { args: ["status"], says: "" },
  { args: ["verify"], says: "" },
])("a ledger of an older release, which knew no pruning, is read: $args", async ({ args, says }) => {
  await using older = await createTestSchema();
  await createOlderServerLedger(older, 4);
  const { stderr, stdout } = await runCli([...args, "--ledger", older.url]);
  expect(stderr + stdout).not.toMatch(/LEDGER_|changed or dropped|does not exist/u);
  expect(stderr).toContain(says);
});

test.each([3, 4])(
  "a pruning is not tried on a ledger with %i migrations, which knew none, and says so",
  async (migrations) => {
    await using older = await createTestSchema();
    await createOlderServerLedger(older, migrations);
    const args = ["ledger", "prune", "--before", "2026-01-01", "--dry-run", "--json"];
    const { exitCode, stdout } = await runCli([...args, "--ledger", older.url]);
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      error: {
        code: "INPUT_INVALID",
        message: expect.stringContaining(
          "was last written by an older release, which knew no pruning",
        ) as string,
      },
    });
  },
);
