/** Owns: what a PostgreSQL ledger does when the server or the way to it fails. */
import { glob, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import { openRun, spawnOf } from "../support/ledger-fixtures.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { startPostgresProxy, type PostgresProxy } from "../support/postgres-proxy.ts";
import {
  createTestSchema,
  startOwnServer,
  type OwnServer,
  type TestSchema,
} from "../support/postgres-server.ts";
import { loadMigrations } from "../../src/infra/postgres/database/migrate-schema.ts";
import { readAll } from "./ledger-store-tested.ts";
import { NOW } from "./workflow-store-tested.ts";

const unavailable = { code: "LEDGER_UNAVAILABLE" };

interface Scene extends AsyncDisposable {
  readonly schema: TestSchema;
  readonly proxy: PostgresProxy;
}

async function createScene(): Promise<Scene> {
  const schema = await createTestSchema();
  const proxy = await startPostgresProxy(schema.url);
  return {
    schema,
    proxy,
    [Symbol.asyncDispose]: async () => {
      await proxy[Symbol.asyncDispose]();
      await schema[Symbol.asyncDispose]();
    },
  };
}

describe("a connection that is lost in a commit", () => {
  it.each(["question", "answer"] as const)(
    "with the %s: the append is written once, and resolves",
    async (loss) => {
      await using scene = await createScene();
      const store = await openTestPostgres(scene.proxy.url);
      const { author, request } = openRun("a");
      await store.append(request);
      const next = author.append(spawnOf("second"));
      scene.proxy.loseCommit(loss);
      await store.append(next);
      expect(scene.proxy.losses).toBe(1);
      expect(await readAll(store, author.runId)).toEqual([...request.events, ...next.events]);
      expect(await store.inspect()).toEqual([]);
      await store.close();
    },
  );

  it("is found out for each of a group, also for the first appends of runs and for appends to one run", async () => {
    await using scene = await createScene();
    const store = await openTestPostgres(scene.proxy.url);
    const runs = Array.from({ length: 20 }, (_, index) => openRun(`run-${index}`));
    const requests = runs.flatMap(({ author, request }) => [request, author.append(spawnOf("more"))]);
    scene.proxy.loseCommit("answer");
    await Promise.all(requests.map((request) => store.append(request)));
    expect(scene.proxy.losses).toBe(1);
    for (const { author } of runs) {
      const expected = requests.filter(({ runId }) => runId === author.runId);
      expect(await readAll(store, author.runId)).toEqual(expected.flatMap(({ events }) => events));
    }
    expect(await store.inspect()).toEqual([]);
    await store.close();
  });

  it("is found out also after many commits that never arrived", { timeout: 60_000 }, async () => {
    await using scene = await createScene();
    const store = await openTestPostgres(scene.proxy.url);
    for (let round = 0; round < 4; round += 1) {
      scene.proxy.loseCommit("question");
      const runs = Array.from({ length: 256 }, (_, index) => openRun(`run-${round}-${index}`));
      await Promise.all(runs.map(({ request }) => store.append(request)));
    }
    expect(scene.proxy.losses).toBe(4);
    scene.proxy.loseCommit("answer");
    const { author, request } = openRun("last");
    await store.append(request);
    expect(await readAll(store, author.runId)).toEqual(request.events);
    await store.close();
  });

  it("is told as a conflict to whoever appends something else to the same place", async () => {
    await using scene = await createScene();
    const store = await openTestPostgres(scene.proxy.url);
    const { author, request } = openRun("a");
    await store.append(request);
    const [mine, other] = [author.propose(spawnOf("mine")), author.propose(spawnOf("other"))];
    scene.proxy.loseCommit("answer");
    await store.append(mine);
    await expect(store.append(other)).rejects.toMatchObject({ code: "LEDGER_CONFLICT" });
    await expect(store.append(mine)).rejects.toMatchObject({ code: "LEDGER_CONFLICT" });
    await store.close();
  });

  it("writes one version of a workspace file", async () => {
    await using scene = await createScene();
    const store = await openTestPostgres(scene.proxy.url);
    const at = { tenant: "acme", scope: "files" };
    const content = { contentType: "text/plain", text: "one" };
    const change = { at, path: "a.txt", content, updatedAt: new Date(NOW).toISOString() };
    scene.proxy.loseCommit("answer");
    expect(await store.workflows.workspace.write(change)).toMatchObject({
      kind: "written",
      entry: { version: 1 },
    });
    expect(await store.workflows.workspace.get(at, "a.txt")).toMatchObject({ version: 1 });
    await store.close();
  });

  it(
    "is found out by the next try where the server cannot be asked at first",
    { timeout: 60_000 },
    async () => {
      await using scene = await createScene();
      const store = await openTestPostgres(scene.proxy.url);
      const { author, request } = openRun("a");
      await store.append(request);
      const next = author.append(spawnOf("second"));
      scene.proxy.loseCommit("both");
      await expect(store.append(next)).rejects.toMatchObject(unavailable);
      scene.proxy.open();
      await store.append(next);
      expect(await readAll(store, author.runId)).toEqual([...request.events, ...next.events]);
      await store.close();
    },
  );
});

describe("a server that fails", () => {
  let server: OwnServer;

  beforeAll(async () => {
    server = await startOwnServer();
  });

  it("says so while it is stopped, and goes on with the same ledger when it is back", async () => {
    const schema = await createTestSchema(server);
    const store = await openTestPostgres(schema.url);
    const { author, request } = openRun("a");
    await store.append(request);
    await server.stop();
    const next = author.append(spawnOf("second"));
    await expect(store.append(next)).rejects.toMatchObject(unavailable);
    await expect(readAll(store, author.runId)).rejects.toMatchObject(unavailable);
    await server.start();
    await store.append(next);
    expect(await readAll(store, author.runId)).toEqual([...request.events, ...next.events]);
    await store.close();
  });

  it("may end connections that wait, without an append failing", async () => {
    await using schema = await createTestSchema(server);
    const store = await openTestPostgres(schema.url);
    const { author, request } = openRun("a");
    await store.append(request);
    await schema.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()",
    );
    await store.append(author.append(spawnOf("second")));
    await store.close();
  });

  it("refuses writes as a standby does: the error says where to write, and the next goes to the new primary", async () => {
    await using schema = await createTestSchema(server);
    await (await openTestPostgres(schema.url)).close();
    const setting = "default_transaction_read_only";
    await schema.query(`alter database postgres set ${setting} = on`);
    const store = await openTestPostgres(schema.url);
    const { author, request } = openRun("a");
    await expect(store.append(request)).rejects.toMatchObject({
      ...unavailable,
      message: expect.stringContaining("point the URL at the primary server") as string,
    });
    expect(await store.list({ limit: 1 })).toEqual([]);
    // Connections that were there before stay as they are, as those to an old primary do.
    await schema.query(`begin read write; alter database postgres reset ${setting}; commit`);
    await store.append(request);
    expect(await readAll(store, author.runId)).toEqual(request.events);
    await store.close();
  });

  it("has no connection left: that is LEDGER_BUSY", async () => {
    await using schema = await createTestSchema(server);
    await (await openTestPostgres(schema.url)).close();
    await schema.query("create role crowded login connection limit 0 password 'secret-of-the-crowd'");
    const url = new URL(schema.url);
    url.username = "crowded";
    url.password = "secret-of-the-crowd";
    await expect(openTestPostgres(url.href, { mode: "read" })).rejects.toMatchObject({ code: "LEDGER_BUSY" });
  });
});

describe("a ledger that another process holds", () => {
  it("is LEDGER_BUSY after the busy timeout, and nothing was written", async () => {
    await using schema = await createTestSchema();
    const store = await openTestPostgres(schema.url, { busyTimeoutMs: 50 });
    const holder = new pg.Client({ connectionString: schema.url });
    await holder.connect();
    await holder.query("begin");
    await holder.query("select 1 from ledger_count for update");
    const { author, request } = openRun("a");
    await expect(store.append(request)).rejects.toMatchObject({ code: "LEDGER_BUSY" });
    expect(await readAll(store, author.runId)).toEqual([]);
    await holder.query("rollback");
    await store.append(request);
    await holder.end();
    await store.close();
  });
});

describe("a server that answers slowly", () => {
  it("gets the appends of many runs together, and each is written once", async () => {
    await using scene = await createScene();
    const store = await openTestPostgres(scene.proxy.url);
    const first = openRun("first");
    await store.append(first.request);
    scene.proxy.delayAnswers(100);
    const measure = async (work: () => Promise<unknown>): Promise<number> => {
      const begunAt = performance.now();
      await work();
      return performance.now() - begunAt;
    };
    const aloneMs = await measure(() => store.append(first.author.append(spawnOf("alone"))));
    const runs = Array.from({ length: 20 }, (_, index) => openRun(`run-${index}`));
    const togetherMs = await measure(() => Promise.all(runs.map(({ request }) => store.append(request))));
    expect(togetherMs).toBeLessThan(5 * aloneMs);
    for (const { author, request } of runs)
      expect(await readAll(store, author.runId)).toEqual(request.events);
    scene.proxy.delayAnswers(0);
    expect(await store.inspect()).toEqual([]);
    await store.close();
  });
});

describe("the clock of the server", () => {
  it("is asked by no statement, so that it may be an hour off", async () => {
    const folder = new URL("../../src/infra/postgres/", import.meta.url);
    const files = await Array.fromAsync(glob("**/*.{ts,sql}", { cwd: fileURLToPath(folder) }));
    expect(files.length).toBeGreaterThan(20);
    const clocks =
      /\b(?:now|clock_timestamp|statement_timestamp|transaction_timestamp)\s*\(\)|\b(?:current_timestamp|current_time|current_date|localtimestamp)\b/iu;
    const asking: string[] = [];
    for (const file of files) {
      const text = await readFile(new URL(file, folder), "utf8");
      const statements = file.endsWith(".sql") ? [text] : (text.match(/`[^`]*`|"[^"\n]*"/gu) ?? []);
      if (statements.some((statement) => clocks.test(statement))) asking.push(file);
    }
    expect(asking).toEqual([]);
  });
});

describe("a process that is stopped in the middle of an append", () => {
  it("holds up the others for 2 s at most, and appends when it goes on", async () => {
    await using scene = await createScene();
    const stopped = await openTestPostgres(scene.proxy.url);
    const other = await openTestPostgres(scene.schema.url, { busyTimeoutMs: 4_000 });
    const stalled = scene.proxy.stallNextAppend();
    const first = openRun("a");
    const appended = stopped.append(first.request);
    await stalled;
    const second = openRun("b");
    await other.append(second.request);
    await appended;
    for (const { author, request } of [first, second])
      expect(await readAll(other, author.runId)).toEqual(request.events);
    await stopped.close();
    await other.close();
  });
});

describe("opening", () => {
  it("refuses a schema that a newer release wrote, and changes nothing", async () => {
    await using schema = await createTestSchema();
    await (await openTestPostgres(schema.url)).close();
    const newer = loadMigrations().length + 1;
    await schema.query("insert into migration (number, name, sha256) values ($1, 'later', 'x')", [newer]);
    for (const mode of ["read", "write"] as const)
      await expect(openTestPostgres(schema.url, { mode })).rejects.toMatchObject({
        code: "LEDGER_TOO_NEW",
        message: expect.stringContaining(
          `has schema ${newer}; this release knows up to ${newer - 1}`,
        ) as string,
      });
  });

  it("refuses a schema with tables of another program", async () => {
    await using schema = await createTestSchema();
    await schema.query("create table customers (id integer)");
    for (const mode of ["read", "write"] as const)
      await expect(openTestPostgres(schema.url, { mode })).rejects.toMatchObject({ code: "LEDGER_CORRUPT" });
  });

  it("for reading neither makes a ledger nor writes to one", async () => {
    await using schema = await createTestSchema();
    await expect(openTestPostgres(schema.url, { mode: "read" })).rejects.toMatchObject({
      code: "LEDGER_NOT_FOUND",
    });
    await (await openTestPostgres(schema.url)).close();
    const reader = await openTestPostgres(schema.url, { mode: "read" });
    await expect(reader.append(openRun("a").request)).rejects.toMatchObject(unavailable);
    await reader.close();
  });
});

describe("the password", () => {
  const PASSWORD = "p%40ss-word-7";

  const set = (url: URL, parts: Partial<Record<"password" | "pathname" | "port", string>>): void => {
    Object.assign(url, parts);
  };

  it.each<[string, (url: URL) => void]>([
    [
      "is wrong",
      (url) => {
        set(url, { password: PASSWORD });
      },
    ],
    [
      "is of a database that is not there",
      (url) => {
        set(url, { pathname: "/none" });
      },
    ],
    [
      "is of a server that is not there",
      (url) => {
        set(url, { password: PASSWORD, port: "1" });
      },
    ],
    [
      "is a parameter",
      (url) => {
        url.searchParams.set("password", PASSWORD);
        url.password = "";
      },
    ],
    [
      "is beside a bad setting",
      (url) => {
        set(url, { password: PASSWORD });
        url.searchParams.set("pool_max", "x");
      },
    ],
  ])("that %s is in no part of the error", async (_, spoil) => {
    await using schema = await createTestSchema();
    const url = new URL(schema.url);
    const { password } = url;
    spoil(url);
    const error: unknown = await openTestPostgres(url.href).then(
      () => "opened",
      (cause: unknown) => cause,
    );
    expect(error).toBeInstanceOf(Error);
    const text = inspect(error, { depth: 10, showHidden: true });
    for (const secret of [password, PASSWORD, decodeURIComponent(PASSWORD)])
      expect(text).not.toContain(secret);
  });

  it("is not in the error of a URL that cannot be read", async () => {
    const error: unknown = await openTestPostgres(`postgres://user:${PASSWORD}@host:port/x`).catch(
      (cause: unknown) => cause,
    );
    expect(error).toMatchObject({ code: "INPUT_INVALID" });
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(PASSWORD);
  });

  it("may have a character that is not encoded, and is not shown then either", async () => {
    const error: unknown = await openTestPostgres("postgres://user:100%word@127.0.0.1:1/x").catch(
      (cause: unknown) => cause,
    );
    expect(error).toMatchObject(unavailable);
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain("100%word");
  });

  it("is not in the place that a ledger says it is at", async () => {
    await using schema = await createTestSchema();
    const store = await openTestPostgres(schema.url);
    expect(store.path).toMatch(/^postgres:\/\/[^:@]+@127\.0\.0\.1:\d+\/postgres$/u);
    await store.close();
  });
});
