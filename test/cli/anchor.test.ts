import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openRun } from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger, type TempFolder } from "../support/temp-ledger.ts";
import { forge } from "./forge.ts";
import { OPEN, recordLedger, RESEARCH } from "./recorded-ledger.ts";
import { runCli, type CliResult } from "./run-cli.ts";

let folder: TempFolder;
const nameFile = (name: string): string => folder.file(name);
const nameLedger = (): string => nameFile("ledger.sqlite");

beforeAll(async () => {
  folder = createTempFolder();
  await recordLedger(nameLedger(), [RESEARCH, OPEN]);
  await runCli(["ledger", "key", nameFile("key")]);
  await runCli([
    "ledger",
    "anchor",
    nameFile("signed.json"),
    "--ledger",
    nameLedger(),
    "--sign",
    nameFile("key"),
  ]);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

const runAnchor = (path: string, ...more: string[]): Promise<CliResult> =>
  runCli(["ledger", "anchor", path, "--ledger", nameLedger(), ...more]);
const verify = (...more: string[]): Promise<CliResult> =>
  runCli(["verify", "--ledger", nameLedger(), ...more]);

async function expectError(result: Promise<CliResult>, sentence: string): Promise<void> {
  const { exitCode, stderr } = await result;
  expect(stderr).toContain(sentence);
  expect(exitCode).toBe(1);
}

describe("ledger anchor", () => {
  test("names every run with its newest event, in a private file of canonical JSON", async () => {
    const { exitCode, stdout } = await runAnchor(nameFile("plain.json"));
    expect(exitCode).toBe(0);
    expect(stdout).toContain("anchors 2 runs, ");
    expect(statSync(nameFile("plain.json")).mode & 0o777).toBe(0o600);
    const text = readFileSync(nameFile("plain.json"), "utf8");
    const made = JSON.parse(text) as { heads: { runId: string }[] };
    expect(made).toMatchObject({ kind: "openclaw-coordination-anchor", version: 1, runs: 2 });
    expect(made.heads.map(({ runId }) => runId)).toEqual([RESEARCH.id, OPEN.id]);
    expect(text).toBe(`${JSON.stringify(made)}\n`);
  });

  test("tells JSON what it wrote", async () => {
    const { stdout } = await runAnchor(nameFile("json.json"), "--json", "--sign", nameFile("key"));
    expect(JSON.parse(stdout)).toMatchObject({ file: nameFile("json.json"), runs: 2, signed: true });
  });

  test("makes none of a damaged ledger", async () => {
    const path = nameFile("damaged.sqlite");
    await recordLedger(path, [OPEN]);
    forge(path, "drop trigger event_no_update; update event set timestamp_ms = 1 where sequence = 3");
    await expectError(
      runCli(["ledger", "anchor", nameFile("none.json"), "--ledger", path]),
      "no anchor was made, because the ledger has ",
    );
    expect(() => statSync(nameFile("none.json"))).toThrow("ENOENT");
  });

  test("replaces an older anchor of the same ledger", async () => {
    await runAnchor(nameFile("again.json"));
    const { exitCode } = await runCli(
      ["ledger", "anchor", nameFile("again.json"), "--ledger", nameLedger()],
      {
        nowMs: Date.parse("2030-01-01T00:00:00.000Z"),
      },
    );
    expect(exitCode).toBe(0);
    expect(readFileSync(nameFile("again.json"), "utf8")).toContain("2030-01-01");
    await expectError(runAnchor(nameFile("again.json")), "holds a newer anchor, which is not replaced");
  });

  test("replaces neither an anchor of another ledger, nor a signed one without its key, nor another file", async () => {
    const other = nameFile("other.sqlite");
    await recordLedger(other, [{ ...OPEN, id: "co-elsewhere" }, RESEARCH]);
    await runAnchor(nameFile("kept.json"));
    await expectError(
      runCli(["ledger", "anchor", nameFile("kept.json"), "--ledger", other]),
      "holds an anchor that the ledger does not match, which is not replaced",
    );
    await expectError(
      runAnchor(nameFile("signed.json")),
      "is signed with another key; pass that key with --sign",
    );
    writeFileSync(nameFile("notes.txt"), "my notes");
    await expectError(runAnchor(nameFile("notes.txt")), "is not an anchor of a ledger");
    symlinkSync(nameFile("kept.json"), nameFile("link.json"));
    await expectError(runAnchor(nameFile("link.json")), "is no plain file");
    await expectError(runAnchor(nameFile("missing/anchor.json")), "cannot be written (ENOENT)");
  });
});

describe("ledger key", () => {
  test("makes a private key and a public one, and overwrites neither", async () => {
    expect(statSync(nameFile("key")).mode & 0o777).toBe(0o600);
    expect(readFileSync(nameFile("key.pub"), "utf8")).toContain("BEGIN PUBLIC KEY");
    await expectError(
      runCli(["ledger", "key", nameFile("key")]),
      "is there already, and a key is never overwritten",
    );
    writeFileSync(nameFile("half.pub"), "");
    await expectError(runCli(["ledger", "key", nameFile("half")]), "half.pub is there already");
    expect(() => statSync(nameFile("half"))).toThrow("ENOENT");
  });

  test.each([
    [0o640, "may be read by other users"],
    [0o622, "may be written by other users"],
  ])("of mode %o that others reach signs nothing", async (mode, sentence) => {
    await runCli(["ledger", "key", nameFile(`key-${mode}`)]);
    chmodSync(nameFile(`key-${mode}`), mode);
    await expectError(runAnchor(nameFile("unsigned.json"), "--sign", nameFile(`key-${mode}`)), sentence);
  });

  test.each([
    ["", "--sign: expected the path of a file, got nothing"],
    ["postgres://user:word@host/name", "--sign: expected the path of a file, got an address at postgres://"],
  ])("that was typed as %j signs nothing", async (typed, sentence) => {
    await expectError(runAnchor(nameFile("x.json"), "--sign", typed), sentence);
  });

  test("that is missing, a link, a folder or no Ed25519 key signs nothing", async () => {
    symlinkSync(nameFile("key"), nameFile("key-link"));
    mkdirSync(nameFile("key-folder"), { mode: 0o700 });
    writeFileSync(nameFile("key-text"), "no key", { mode: 0o600 });
    await expectError(runAnchor(nameFile("x.json"), "--sign", nameFile("key-none")), "is not there");
    await expectError(runAnchor(nameFile("x.json"), "--sign", nameFile("key-link")), "is a link");
    await expectError(
      runAnchor(nameFile("x.json"), "--sign", nameFile("key-folder")),
      "is a folder, not a plain file",
    );
    await expectError(
      runAnchor(nameFile("x.json"), "--sign", nameFile("key-text")),
      "is no Ed25519 key in PEM",
    );
  });
});

describe("verify --anchor", () => {
  test("says that all is there, and how it is signed", async () => {
    await runAnchor(nameFile("held.json"));
    expect((await verify("--anchor", nameFile("held.json"))).stdout).toContain("it is not signed.");
    expect((await verify("--anchor", nameFile("signed.json"))).stdout).toContain(
      "a key that you did not name",
    );
    const checked = await verify(
      "--anchor",
      nameFile("signed.json"),
      "--public-key",
      nameFile("key.pub"),
      "--json",
    );
    expect(checked.exitCode).toBe(0);
    expect(JSON.parse(checked.stdout)).toMatchObject({
      ok: true,
      problems: [],
      anchor: { file: nameFile("signed.json"), runs: 2, signature: "valid" },
    });
  });

  test("refuses what is no anchor, no file or of a newer release, and a key without an anchor", async () => {
    await expectError(verify("--anchor", nameFile("nowhere.json")), "there is no such file");
    writeFileSync(nameFile("text.json"), "{}");
    await expectError(verify("--anchor", nameFile("text.json")), "is not an anchor of a ledger");
    const newer = { ...(JSON.parse(readFileSync(nameFile("signed.json"), "utf8")) as object), version: 2 };
    writeFileSync(nameFile("newer.json"), JSON.stringify(newer));
    await expectError(verify("--anchor", nameFile("newer.json")), "is an anchor of version 2");
    writeFileSync(nameFile("broken.json"), JSON.stringify({ ...newer, version: 1, runs: -1 }));
    await expectError(verify("--anchor", nameFile("broken.json")), "is a damaged anchor: runs");
    await expectError(verify("--anchor", ""), "--anchor: expected the path of a file, got nothing");
    await expectError(verify("--public-key", nameFile("key.pub")), "add --anchor FILE");
    const signed = ["--anchor", nameFile("signed.json"), "--public-key"];
    await expectError(verify(...signed, ""), "--public-key: expected the path of a file, got nothing");
    await expectError(verify(...signed, nameFile("key")), "is a private key");
    await expectError(verify(...signed, nameFile("text.json")), "is no Ed25519 key in PEM");
  });

  test("says that there are more problems than it lists, and whether the proof stopped", async () => {
    const [full, rest, other] = [nameFile("full.sqlite"), nameFile("rest.sqlite"), nameFile("more.sqlite")];
    const requests = Array.from({ length: 202 }, (_, index) => openRun(index).request);
    const damaged = requests.map((_, index) => ({ ...openRun(`x${index}`).request, references: [] }));
    for (const [path, some] of [
      [full, requests],
      [rest, requests.slice(0, 1)],
      [other, [...requests.slice(0, 1), ...damaged]],
    ] as const) {
      const store = await openTestLedger(path);
      await Promise.all(some.map((request) => store.append(request)));
      await store.close();
    }
    await runCli(["ledger", "anchor", nameFile("full.json"), "--ledger", full]);
    const args = ["verify", "--ledger", rest, "--anchor", nameFile("full.json")];
    const { stdout } = await runCli(args);
    expect(stdout.split("\n")[0]?.trim()).toBe("DAMAGED   at least 200 problems in 1 coordination, 6 events");
    const json = JSON.parse((await runCli([...args, "--json"])).stdout) as { problems: object[] };
    expect(json).toMatchObject({ ok: false, truncated: true });
    expect(json.problems).toHaveLength(200);
    const stopped = await runCli(["verify", "--ledger", other, "--anchor", nameFile("full.json")]);
    expect(stopped.stdout.split("\n")[0]?.trim()).toBe(
      "DAMAGED   at least 400 problems; stopped after 200 coordinations, 1,200 events",
    );
  });

  test("tells how many runs were compared on a terminal", async () => {
    const onTerminal = { ticking: true, terminal: { isTTY: true } };
    const { stderr } = await runCli(
      ["verify", "--ledger", nameLedger(), "--anchor", nameFile("signed.json")],
      onTerminal,
    );
    expect(stderr).toContain("compared 2 runs with the anchor");
    expect(stderr.endsWith("\r\u001b[K")).toBe(true);
  });
});

describe("the example for outsiders in docs/security.md", () => {
  const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "security.md"), "utf8");
  const script = /```js\n([\s\S]*?)```/u.exec(page)?.[1] ?? "";
  const runExample = (path: string): string =>
    execFileSync(process.execPath, ["--input-type=module", "-e", script, path, nameFile("key.pub")], {
      encoding: "utf8",
    });

  test("accepts a signed anchor, and refuses one that was changed", () => {
    expect(runExample(nameFile("signed.json"))).toBe("signed with this key\n");
    const text = readFileSync(nameFile("signed.json"), "utf8");
    writeFileSync(nameFile("forged.json"), text.replace('"runs":2', '"runs":3'));
    expect(runExample(nameFile("forged.json"))).toBe("NOT signed with this key\n");
  });

  test("signs the bytes of the file without its last line feed and its member `signature`", () => {
    const text = readFileSync(nameFile("signed.json"), "utf8");
    const { signature: _signature, ...signed } = JSON.parse(text) as Record<string, unknown>;
    expect(text.replace(/,"signature":"[^"]*"/u, "").replace(/\n$/u, "")).toBe(JSON.stringify(signed));
  });
});
