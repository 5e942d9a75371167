/** Owns: `ledger copy` as a person and a program see it, and what the other commands say of a copy that is not complete. */
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isPostgresUrl } from "../../src/infra/ledger/ledger-place.ts";
import { copyLedgerBetween } from "../../src/plugins/copy-ledger-between.ts";
import { createTestSchema, type TestSchema } from "../support/postgres-server.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { OPEN, recordLedger, RESEARCH } from "./recorded-ledger.ts";
import { runCli } from "./run-cli.ts";

const MAIN = join(import.meta.dirname, "..", "..", "src", "plugins", "cli", "main.ts");

let folder: TempFolder;
const nameLedger = (): string => folder.file("ledger.sqlite");

beforeAll(async () => {
  folder = createTempFolder();
  await recordLedger(nameLedger(), [RESEARCH, OPEN]);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

interface VerifyReport {
  readonly ok: boolean;
  readonly coordinations: number;
}

async function verify(place: string): Promise<VerifyReport> {
  return JSON.parse((await runCli(["verify", "--ledger", place, "--json"])).stdout) as VerifyReport;
}

/** Leaves a half copy behind, as a process that was killed does. */
async function interruptCopy(from: string, to: string): Promise<void> {
  let steps = 0;
  const interrupted = copyLedgerBetween({ from, to, gateway: isPostgresUrl(to) ? "home" : undefined }, () => {
    steps += 1;
    if (steps === 3) throw new Error("interrupted");
  });
  await expect(interrupted).rejects.toThrow("interrupted");
}

describe("ledger copy", () => {
  test("moves a ledger to a server and back, shows no password, and says how to prove it", async () => {
    await using schema = await createTestSchema();
    const { password } = new URL(schema.url);
    const there = await runCli(["ledger", "copy", nameLedger(), schema.url, "--gateway", "home"]);
    expect({ stderr: there.stderr, exitCode: there.exitCode }).toEqual({ stderr: "", exitCode: 0 });
    expect(there.stdout).toMatch(/is copied to postgres:\/\/\S+ \(2 runs, \d+ events, \d+ rows, \d/u);
    expect(there.stdout).toContain("verify --ledger postgres://");
    const file = folder.file("back.sqlite");
    const back = await runCli(["ledger", "copy", schema.url, file, "--gateway", "home"]);
    expect(back.exitCode).toBe(0);
    expect(there.stdout + back.stdout).not.toContain(password);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const verified = await verify(nameLedger());
    expect(verified).toMatchObject({ ok: true, coordinations: 2 });
    for (const place of [schema.url, file]) expect(await verify(place)).toEqual(verified);
  });

  test("to a server is refused until the gateway is named whose coordinations they are", async () => {
    await using schema = await createTestSchema();
    const command = ["ledger", "copy", nameLedger(), schema.url];
    const { stderr, exitCode } = await runCli(command);
    expect(stderr).toContain("say with --gateway whose they are");
    expect(exitCode).not.toBe(0);
    expect((await runCli([...command, "--gateway", "a b"])).stderr).toContain("--gateway: a gateway.id is");
    expect((await runCli([...command, "--gateway", "shop"])).exitCode).toBe(0);
  });

  test("gives its result as JSON, with rows by table and the hash of the heads", async () => {
    const file = folder.file("json.sqlite");
    const { stdout } = await runCli(["ledger", "copy", nameLedger(), file, "--json"]);
    const result = JSON.parse(stdout) as { readonly heads: { readonly sha256: string } };
    expect(result).toMatchObject({
      from: nameLedger(),
      to: file,
      resumed: false,
      grownBy: 0,
      tables: { run: 2, claim: 0 },
      rows: expect.any(Number) as number,
      bytes: expect.any(Number) as number,
      seconds: expect.any(Number) as number,
      heads: { runs: 2, equal: true },
    });
    expect(result.heads.sha256).toMatch(/^[0-9a-f]{64}$/u);
  });

  test("an anchor of the source holds for the copy", async () => {
    const [file, anchor] = [folder.file("anchored.sqlite"), folder.file("anchor.json")];
    await runCli(["ledger", "anchor", anchor, "--ledger", nameLedger()]);
    await runCli(["ledger", "copy", nameLedger(), file]);
    expect((await runCli(["verify", "--anchor", anchor, "--ledger", file])).exitCode).toBe(0);
  });

  test("shows a person how far it is, and a program a line every five seconds", async () => {
    const shown = await runCli(["ledger", "copy", nameLedger(), folder.file("shown")], {
      ticking: true,
      terminal: { isTTY: true },
    });
    expect(shown.stderr).toMatch(/\rcopied \d+ rows of event /u);
    expect(shown.stderr.endsWith("\r\u001b[K")).toBe(true);
    const lines = await runCli(["ledger", "copy", nameLedger(), folder.file("lines")], { ticking: true });
    expect(lines.stderr).toMatch(/^(?:(?:copied|compared) \d+ rows? of \w+\n)+$/u);
  });

  test("says as JSON why it does nothing", async () => {
    const copyTo = async (from: string, to: string): Promise<unknown> => {
      const { stdout, exitCode } = await runCli(["ledger", "copy", from, to, "--json"]);
      expect(exitCode).toBe(1);
      return (JSON.parse(stdout) as { error: unknown }).error;
    };
    const file = folder.file("filled.sqlite");
    await runCli(["ledger", "copy", nameLedger(), file]);
    expect(await copyTo(nameLedger(), file)).toMatchObject({ code: "INPUT_INVALID" });
    expect(await copyTo(nameLedger(), nameLedger())).toMatchObject({ code: "INPUT_INVALID" });
    const untouched = folder.file("untouched.sqlite");
    expect(await copyTo(folder.file("none"), untouched)).toMatchObject({
      code: "LEDGER_NOT_FOUND",
      advice: "Check the path or address of the ledger that you named.",
    });
    expect(existsSync(untouched)).toBe(false);
    expect(await copyTo("postgres://nobody:pass@127.0.0.1:1/none", untouched)).toMatchObject({
      code: "LEDGER_UNAVAILABLE",
    });
  });

  test("has examples in its help, and in that of its group", async () => {
    for (const args of [["ledger"], ["ledger", "copy"]])
      expect((await runCli([...args, "--help"])).stdout).toContain("ledger copy ledger.sqlite postgres://");
  });
});

describe("a copy that is not complete", () => {
  let schema: TestSchema;
  beforeAll(async () => {
    schema = await createTestSchema();
    await interruptCopy(nameLedger(), folder.file("half.sqlite"));
    await interruptCopy(nameLedger(), schema.url);
  });
  afterAll(() => schema[Symbol.asyncDispose]());

  test.each(["list", "verify", "events", "doctor", "runs"])("is refused by `%s`", async (command) => {
    for (const place of [folder.file("half.sqlite"), schema.url]) {
      const { stdout, stderr } = await runCli([command, "--ledger", place]);
      expect(stdout + stderr).toContain("that has not been completed");
      expect(stdout + stderr).toContain("ledger copy");
    }
  });

  test("is refused by `ledger backup` and `ledger copy` as a source", async () => {
    const half = folder.file("half.sqlite");
    for (const args of [
      ["ledger", "backup", folder.file("backup"), "--ledger", half],
      ["ledger", "copy", half, folder.file("further")],
    ]) {
      const { stderr, exitCode } = await runCli(args);
      expect([exitCode, stderr]).toEqual([1, expect.stringContaining("LEDGER_INCOMPLETE") as string]);
    }
  });

  test("is refused by `serve`", () => {
    for (const place of [folder.file("half.sqlite"), schema.url]) {
      const { status, stderr } = spawnSync(
        process.execPath,
        [MAIN, "serve", "--port", "0", "--ledger", place, "--token", "s3cret"],
        { encoding: "utf8", env: { ...process.env, OPENCLAW_STATE_DIR: folder.file("state") } },
      );
      expect(status).toBe(1);
      expect(stderr).toContain("LEDGER_INCOMPLETE");
      expect(stderr).not.toContain(new URL(schema.url).password);
    }
  });

  test("is completed by the same command, which says how much the source had grown", async () => {
    const [from, to] = [folder.file("grown.sqlite"), folder.file("grown-copy.sqlite")];
    await runCli(["ledger", "copy", nameLedger(), from]);
    await interruptCopy(from, to);
    await recordLedger(from, [{ ...RESEARCH, id: "later", trace: "later" }]);
    const { stdout, exitCode } = await runCli(["ledger", "copy", from, to]);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/had grown by \d+ events since the copy began/u);
    expect(await verify(to)).toEqual(await verify(from));
  });
});
