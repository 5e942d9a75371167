import { execFile } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { createTokenSigner } from "../../src/infra/tokens/interrupt-tokens.ts";
import { readOrCreateKey } from "../../src/infra/tokens/key-file.ts";
import { buildFailingDisk, canFailDisks, openFailingDisk } from "../crash/failing-disk.ts";
import { createTempFolder } from "../support/temp-ledger.ts";

const run = promisify(execFile);

const USER = 65_534;

const PAYLOAD = {
  runId: "run-1",
  nodeId: "gate",
  interruptId: "gate~1",
  expiresAt: 1_700_000_000_000,
  intent: "resolve",
} as const;

describe("an interrupt token", () => {
  const tokens = createTokenSigner(new Uint8Array(32).fill(1));

  it("says what was signed, to whoever has the key", () => {
    expect(tokens.read(tokens.sign(PAYLOAD))).toEqual(PAYLOAD);
    expect(createTokenSigner(new Uint8Array(32).fill(2)).read(tokens.sign(PAYLOAD))).toBeUndefined();
  });

  it("is none with any character changed, cut or added, and neither is anything else", () => {
    const token = tokens.sign(PAYLOAD);
    for (let at = 0; at < token.length; at += 1) {
      const other = token[at] === "A" ? "B" : "A";
      const changed = token.slice(0, at) + other + token.slice(at + 1);
      // The last character of base64url holds bits that mean nothing.
      if (at < token.length - 1) expect(tokens.read(changed)).toBeUndefined();
    }
    const others = ["", ".", "a.b", `${token}.`, `${token}.x`, token.slice(0, -2), "x".repeat(10_000)];
    for (const text of others) expect(tokens.read(text)).toBeUndefined();
  });
});

describe("the key", () => {
  it("is made once, and only its owner can read it", () => {
    using folder = createTempFolder();
    const path = folder.file("deep/interrupt-key");
    const key = readOrCreateKey(path);
    expect(key).toHaveLength(32);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readOrCreateKey(path)).toEqual(key);
  });

  it("that is a file of another program leaves it to the users who may read it", () => {
    using folder = createTempFolder();
    const path = folder.file("names.txt");
    writeFileSync(path, "a file that everybody on this machine reads", { mode: 0o644 });
    expect(() => readOrCreateKey(path)).toThrow("is not 32 bytes long");
    expect(statSync(path).mode & 0o777).toBe(0o644);
  });

  it("that is broken is said with what to do, and one that cannot be read is no new one", () => {
    using folder = createTempFolder();
    const path = folder.file("interrupt-key");
    writeFileSync(path, "short");
    expect(() => readOrCreateKey(path)).toThrow(
      `the key in ${path} is not 32 bytes long; name another path, or remove what is there: a new key is made then`,
    );
    chmodSync(path, 0o600);
    expect(() => readOrCreateKey(folder.path)).toThrow(/is a folder, not a plain file/);
  });

  it("that the system does not let this user make is no bug, and the error says where it would be and why", () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("file"), "");
    const path = folder.file("file/interrupt-key");
    expect(() => readOrCreateKey(path)).toThrow(
      expect.objectContaining({
        code: "LEDGER_UNAVAILABLE",
        message: expect.stringContaining(`the key in ${path} cannot be used: ENOTDIR`) as string,
      }) as Error,
    );
  });

  it("is made in a folder that its user may write but not list", async () => {
    using folder = createTempFolder();
    const isRoot = process.getuid?.() === 0;
    // Root reads everywhere.
    const identity = isRoot ? { uid: USER, gid: USER } : {};
    if (isRoot) chownSync(folder.path, USER, USER);
    chmodSync(folder.path, 0o300);
    const args = ["--input-type=module", "--eval", writeKeyScript(folder.file("interrupt-key"))];
    const { stdout } = await run(process.execPath, args, identity);
    chmodSync(folder.path, 0o700);
    expect(stdout.trim()).toBe("made");
    expect(readdirSync(folder.path)).toEqual(["interrupt-key"]);
  });

  it("that another process has not written to its end yet is waited for", async () => {
    using folder = createTempFolder();
    const path = folder.file("interrupt-key");
    const key = new Uint8Array(32).fill(7);
    writeFileSync(path, key.subarray(0, 16), { mode: 0o600 });
    // The draft of another key is made after the short one was read, and removed right before that is read again.
    const code = `
      import { appendFileSync, watch } from "node:fs";
      import { parentPort } from "node:worker_threads";
      let changes = 0;
      const watcher = watch(${JSON.stringify(folder.path)}, (event, name) => {
        if (event !== "rename" || !name.endsWith(".partial")) return;
        changes += 1;
        if (changes < 2) return;
        watcher.close();
        // A slow disk.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
        appendFileSync(${JSON.stringify(path)}, new Uint8Array(16).fill(7));
      });
      parentPort.postMessage("watching");`;
    const writer = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
    await once(writer, "message");
    expect(readOrCreateKey(path)).toEqual(Buffer.from(key));
    await writer.terminate();
  });

  /** Returns a program that makes the key and prints "made", or the code of the error. */
  function writeKeyScript(path: string): string {
    return `
      import { readOrCreateKey } from ${JSON.stringify(import.meta.resolve("../../src/infra/tokens/key-file.ts"))};
      try { readOrCreateKey(${JSON.stringify(path)}); console.log("made"); }
      catch (error) { console.log(error.code); }`;
  }

  /** Makes the key in another process, on a disk that is full from one operation on, and returns the code of the error. */
  async function makeOnFullDisk(folder: string, at: number): Promise<string> {
    const environment = buildFailingDisk(folder);
    openFailingDisk(environment).arm({ error: "ENOSPC", at, isLasting: true, isPartial: true });
    const args = ["--input-type=module", "--eval", writeKeyScript(join(folder, "withheld-key"))];
    const { stdout } = await run(process.execPath, args, { env: { ...process.env, ...environment } });
    return stdout.trim();
  }

  it.runIf(canFailDisks()).each([1, 2, 3, 4])(
    "that has no place on the disk says so, and leaves nothing behind: from operation %i on",
    async (at) => {
      using folder = createTempFolder();
      mkdirSync(folder.file("state"));
      expect(await makeOnFullDisk(folder.file("state"), at)).toBe("LEDGER_FULL");
      expect(readdirSync(folder.file("state"))).toEqual([]);
    },
  );
});
