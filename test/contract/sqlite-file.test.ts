import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { describe, expect, it, vi } from "vitest";
import { loadMigrations } from "../../src/infra/sqlite/database/migrate.ts";
import { openDatabase } from "../../src/infra/sqlite/database/open-database.ts";
import { contentOf, openRun, runIdOf } from "../support/ledger-fixtures.ts";
import { openTestLedger, createTempFolder, type TempFolder } from "../support/temp-ledger.ts";

/** Every file of a folder with its bytes and the time of its last change. */
function contentsOf(folder: string): Record<string, { bytes: Buffer; changed: number }> {
  const names = readdirSync(folder).toSorted();
  return Object.fromEntries(
    names.map((name) => {
      const path = `${folder}/${name}`;
      return [name, { bytes: readFileSync(path), changed: statSync(path).mtimeMs }];
    }),
  );
}

async function createLedgerIn(folder: TempFolder): Promise<string> {
  const path = folder.file("ledger.sqlite");
  const store = await openTestLedger(path);
  await store.append({ ...openRun("a").request, contents: [contentOf("a text")] });
  await store.close();
  return path;
}

/** Changes a ledger as only someone with the file and time at hand can. */
function tamperWith(path: string, sql: string): void {
  const database = new Database(path);
  database.exec(sql);
  database.close();
}

function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}

type Pragma = (this: Database.Database, ...args: Parameters<Database.Database["pragma"]>) => unknown;

const modes = ["write", "read"] as const;

describe("a new ledger file", () => {
  it("is readable by its owner only, and so are its folder and what SQLite puts beside it", async () => {
    using folder = createTempFolder();
    const path = folder.file("state/coordination/ledger.sqlite");
    const before = process.umask(0);
    const store = await openTestLedger(path).finally(() => process.umask(before));
    await store.append(openRun("a").request);
    expect([path, `${path}-wal`, `${path}-shm`].map(modeOf)).toEqual(["600", "600", "600"]);
    expect([dirname(path), dirname(dirname(path))].map(modeOf)).toEqual(["700", "700"]);
    await store.close();
  });

  it("begins from an empty file that a crash at creation left behind", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    writeFileSync(path, "");
    const store = await openTestLedger(path);
    const { author: writer, request } = openRun("a");
    await store.append(request);
    expect(await store.read(writer.runId, { from: 0, limit: 100 })).toEqual(request.events);
    await store.close();
  });
});

it("takes other users' rights to an empty database away before it makes a ledger of it", async () => {
  using folder = createTempFolder();
  const path = folder.file("ledger.sqlite");
  tamperWith(path, "create table note (text text); drop table note");
  chmodSync(path, 0o644);
  const store = await openTestLedger(path);
  expect([path, `${path}-wal`, `${path}-shm`].map(modeOf)).toEqual(["600", "600", "600"]);
  await store.close();
});

describe("durability", () => {
  it("is write-ahead logging with a sync of every commit, on the connection that writes", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    const database = await openDatabase({ path, mode: "write", busyTimeoutMs: 100 });
    expect(database.pragma("journal_mode", { simple: true })).toBe("wal");
    expect(database.pragma("synchronous", { simple: true })).toBe(2);
    expect(database.pragma("foreign_keys", { simple: true })).toBe(1);
    database.close();
  });

  it.each(["journal_mode", "synchronous"])(
    "is insisted upon: a connection that does not set %s is refused",
    async (name) => {
      using folder = createTempFolder();
      const path = folder.file("ledger.sqlite");
      const real: Pragma = Reflect.get(Database.prototype, "pragma");
      using spy = vi.spyOn(Database.prototype, "pragma").mockImplementation(function (
        this: Database.Database,
        ...args
      ) {
        if (args[0].startsWith(`${name} =`))
          return real.call(this, name === "synchronous" ? "synchronous = normal" : name);
        return real.apply(this, args);
      });
      await expect(openTestLedger(path)).rejects.toMatchObject({ code: "LEDGER_UNAVAILABLE" });
      expect(spy).toHaveBeenCalledWith(expect.stringContaining(name), { simple: true });
    },
  );
});

describe("a ledger of a newer release", () => {
  it.each(modes)(
    "is refused for %s with LEDGER_TOO_NEW and not touched, not even its folder",
    async (mode) => {
      using folder = createTempFolder();
      const path = await createLedgerIn(folder);
      tamperWith(path, `pragma user_version = ${loadMigrations().length + 1}`);
      const before = contentsOf(folder.path);
      await expect(openTestLedger(path, { mode })).rejects.toMatchObject({ code: "LEDGER_TOO_NEW" });
      expect(contentsOf(folder.path)).toEqual(before);
      expect(Object.keys(before)).toEqual(["ledger.sqlite"]);
    },
  );

  it.each(modes)(
    "is recognised for %s also while its version is in the log of a running newer release",
    async (mode) => {
      using folder = createTempFolder();
      const path = await createLedgerIn(folder);
      const newer = new Database(path);
      newer.pragma("wal_autocheckpoint = 0");
      newer.pragma(`user_version = ${loadMigrations().length + 1}`);
      const before = readFileSync(path);
      await expect(openTestLedger(path, { mode })).rejects.toMatchObject({ code: "LEDGER_TOO_NEW" });
      expect(readFileSync(path)).toEqual(before);
      newer.close();
    },
  );
});

describe("what is not a ledger", () => {
  const corrupt = { code: "LEDGER_CORRUPT" };

  const cases: readonly [string, (path: string) => void][] = [
    ["a text file", (path) => writeFileSync(path, "coordination ".repeat(2_000))],
    ["a few bytes", (path) => writeFileSync(path, "x")],
    ["the first bytes of a SQLite file", (path) => writeFileSync(path, "SQLite format 3\0")],
    [
      "another program's database",
      (path) => tamperWith(path, "create table note (text text); insert into note values ('mine')"),
    ],
    [
      "another program's database with an id of its own",
      (path) => tamperWith(path, "pragma application_id = 7; create table note (text text)"),
    ],
    [
      "another program's database with a version of its own",
      (path) => tamperWith(path, "pragma user_version = 40; create table note (text text)"),
    ],
  ];

  for (const mode of modes) {
    it.each(cases)(`is refused for ${mode} and left as it was: %s`, async (_, make) => {
      using folder = createTempFolder();
      const path = folder.file("ledger.sqlite");
      make(path);
      chmodSync(path, 0o644);
      const before = contentsOf(folder.path);
      await expect(openTestLedger(path, { mode })).rejects.toMatchObject(corrupt);
      expect(modeOf(path)).toBe("644");
      expect(contentsOf(folder.path)["ledger.sqlite"]?.bytes).toEqual(before["ledger.sqlite"]?.bytes);
      expect(Object.keys(contentsOf(folder.path))).toEqual(Object.keys(before));
    });

    it(`is refused for ${mode}: a ledger that was cut short, wherever the cut lies`, async () => {
      using folder = createTempFolder();
      const path = await createLedgerIn(folder);
      const whole = readFileSync(path);
      for (const bytes of [
        99,
        100,
        511,
        512,
        4_095,
        4_096,
        whole.length / 2,
        whole.length - 4_096,
        whole.length - 1,
      ]) {
        writeFileSync(path, whole);
        truncateSync(path, bytes);
        const result = await openTestLedger(path, { mode }).then(
          async (store) => {
            const problems = await store.inspect();
            await store.close();
            return problems.length > 0 ? "reported" : `unnoticed at ${bytes}`;
          },
          (error: unknown) => error,
        );
        if (result !== "reported") expect(result).toMatchObject(corrupt);
      }
    });
  }

  it("is refused for reading: an empty file, which is not filled either", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    writeFileSync(path, "");
    await expect(openTestLedger(path, { mode: "read" })).rejects.toMatchObject(corrupt);
    expect(readFileSync(path)).toHaveLength(0);
    expect(readdirSync(folder.path)).toEqual(["ledger.sqlite"]);
  });
});

describe("reading", () => {
  it("creates neither a file nor a folder where there is no ledger", async () => {
    using folder = createTempFolder();
    const path = folder.file("none/ledger.sqlite");
    await expect(openTestLedger(path, { mode: "read" })).rejects.toMatchObject({ code: "LEDGER_NOT_FOUND" });
    expect(readdirSync(folder.path)).toEqual([]);
  });

  it("leaves a ledger and its folder as they were, byte for byte", async () => {
    using folder = createTempFolder();
    const path = await createLedgerIn(folder);
    const before = contentsOf(folder.path);
    const store = await openTestLedger(path, { mode: "read" });
    expect(await store.list({ limit: 10 })).toHaveLength(1);
    expect(await store.inspect()).toEqual([]);
    await store.close();
    expect(contentsOf(folder.path)).toEqual(before);
  });

  it("leaves what a crashed writer left: the ledger and its log stay as they were", async () => {
    using folder = createTempFolder();
    const path = folder.file("ledger.sqlite");
    const crashed = await openTestLedger(path);
    await crashed.append(openRun("a").request);
    using copy = createTempFolder();
    for (const name of ["ledger.sqlite", "ledger.sqlite-wal"])
      writeFileSync(copy.file(name), readFileSync(folder.file(name)));
    await crashed.close();
    const before = contentsOf(copy.path);
    const store = await openTestLedger(copy.file("ledger.sqlite"), { mode: "read" });
    expect(await store.list({ limit: 10 })).toHaveLength(1);
    await store.close();
    const { "ledger.sqlite-shm": _, ...after } = contentsOf(copy.path);
    expect(after).toEqual(before);
  });

  it("cannot append or delete", async () => {
    using folder = createTempFolder();
    const path = await createLedgerIn(folder);
    const store = await openTestLedger(path, { mode: "read" });
    const unavailable = { code: "LEDGER_UNAVAILABLE" };
    await expect(store.append(openRun("b").request)).rejects.toMatchObject(unavailable);
    await expect(store.deleteBefore(Date.now() as never)).rejects.toMatchObject(unavailable);
    await store.close();
  });

  it("sees what a writer appends while both have the ledger open", async () => {
    using folder = createTempFolder();
    const path = await createLedgerIn(folder);
    const reader = await openTestLedger(path, { mode: "read" });
    const writer = await openTestLedger(path);
    await writer.append(openRun("b").request);
    expect(await reader.list({ limit: 10 })).toHaveLength(2);
    await writer.close();
    await reader.close();
  });
});

describe("a ledger that cannot be written", () => {
  it("is LEDGER_BUSY once another program has held it for the whole busy timeout, and goes on afterwards", async () => {
    using folder = createTempFolder();
    const path = await createLedgerIn(folder);
    const store = await openTestLedger(path, { busyTimeoutMs: 60 });
    const { author: writer, request } = openRun("b");
    const other = new Database(path);
    other.exec("begin immediate");
    const began = performance.now();
    await expect(store.append(request)).rejects.toMatchObject({ code: "LEDGER_BUSY" });
    const waited = performance.now() - began;
    expect(waited).toBeGreaterThan(40);
    expect(waited).toBeLessThan(2_000);
    other.exec("rollback");
    await store.append(request);
    expect(await store.read(writer.runId, { from: 0, limit: 100 })).toEqual(request.events);
    other.close();
    await store.close();
  });

  it("is LEDGER_BUSY for an opening while another program has it locked whole", async () => {
    using folder = createTempFolder();
    const path = await createLedgerIn(folder);
    const other = new Database(path);
    other.pragma("locking_mode = exclusive");
    other.exec("begin immediate; create table t (a); rollback");
    for (const mode of modes)
      await expect(openTestLedger(path, { mode, busyTimeoutMs: 20 })).rejects.toMatchObject({
        code: "LEDGER_BUSY",
      });
    other.close();
  });

  it("is LEDGER_FULL when SQLite finds no room, loses nothing, and goes on when there is room again", async () => {
    using folder = createTempFolder();
    const path = await createLedgerIn(folder);
    const connections: Database.Database[] = [];
    const prepare = Reflect.get(Database.prototype, "prepare") as (
      this: Database.Database,
      sql: string,
    ) => Database.Statement;
    using _spy = vi.spyOn(Database.prototype, "prepare").mockImplementation(function (
      this: Database.Database,
      sql: string,
    ) {
      if (!connections.includes(this)) connections.push(this);
      return prepare.call(this, sql);
    });
    const store = await openTestLedger(path);
    const [connection] = connections;
    const pages = Number(connection?.pragma("page_count", { simple: true }));
    connection?.pragma(`max_page_count = ${pages}`);
    const runs = Array.from({ length: 200 }, (_, index) => openRun(`more-${index}`));
    const results = await Promise.allSettled(runs.map(({ request }) => store.append(request)));
    for (const result of results) {
      expect(result.status).toBe("rejected");
      if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "LEDGER_FULL" });
    }
    expect(await store.list({ limit: 1_000 })).toHaveLength(1);
    connection?.pragma("max_page_count = 1000000");
    await Promise.all(runs.map(({ request }) => store.append(request)));
    expect(await store.list({ limit: 1_000 })).toHaveLength(201);
    expect(await store.inspect()).toEqual([]);
    await store.close();
  });

  it("fails with a code when the system refuses to let a file grow, and every acknowledged append is there", async () => {
    using folder = createTempFolder();
    const path = await createLedgerIn(folder);
    const report = JSON.parse(await run("ulimit -f 600 && exec", "limited-writer.ts", path)) as LimitedReport;
    expect(report.code).toBe("LEDGER_UNAVAILABLE");
    expect(report.acknowledged).toBeGreaterThan(0);
    const store = await openTestLedger(path);
    const names = (await store.list({ limit: 10_000 })).map(({ runId }) => runId);
    expect(names.length).toBeGreaterThanOrEqual(report.acknowledged + 1);
    for (let index = 0; index < report.acknowledged; index += 1)
      expect(names).toContain(runIdOf(`limited-${index}`));
    expect(await store.inspect()).toEqual([]);
    await store.close();
  });

  it("is LEDGER_UNAVAILABLE in a folder that may not be written", async () => {
    using folder = createTempFolder();
    chmodSync(folder.path, 0o755);
    mkdirSync(folder.file("closed"), { mode: 0o555 });
    const report = JSON.parse(
      await run("exec", "limited-writer.ts", folder.file("closed/ledger.sqlite")),
    ) as LimitedReport;
    expect(report).toEqual({ code: "LEDGER_UNAVAILABLE", acknowledged: 0 });
    expect(readdirSync(folder.file("closed"))).toEqual([]);
  });

  it("is LEDGER_UNAVAILABLE where its path leads through a file or to a folder", async () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("file"), "");
    mkdirSync(folder.file("ledger.sqlite"));
    for (const path of [folder.file("file/ledger.sqlite"), folder.file("ledger.sqlite")])
      await expect(openTestLedger(path)).rejects.toMatchObject({ code: "LEDGER_UNAVAILABLE" });
  });
});

interface LimitedReport {
  readonly code: string;
  readonly acknowledged: number;
}

/** Runs a worker of this folder in a shell that has set it a limit. */
async function run(shell: string, worker: string, path: string): Promise<string> {
  const script = fileURLToPath(new URL(worker, import.meta.url));
  const args = ["-c", `${shell} "$0" "$@"`, process.execPath, script, path];
  const child = spawn("sh", args, { stdio: ["ignore", "pipe", "inherit"] });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  await once(child, "close");
  return Buffer.concat(chunks).toString();
}
