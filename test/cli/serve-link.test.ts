/** Owns: that who missed the link of `serve` gets another one from the running process. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { signIn } from "../openwop/page-scene.ts";
import { createTempFolder } from "../support/temp-ledger.ts";

const MAIN = join(import.meta.dirname, "..", "..", "src", "plugins", "cli", "main.ts");
const PAGE = /^Operator's page: (?<base>\S+)\/#link=(?<link>\S+) /u;

it("serve prints a new link to its page when it is sent SIGUSR2", async () => {
  using folder = createTempFolder();
  const args = [MAIN, "serve", "--port", "0", "--ledger", folder.file("ledger.sqlite"), "--token", "s3cret"];
  const serve = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: serve.stdout })[Symbol.asyncIterator]();
  const readPage = async (): Promise<{ readonly base: string; readonly link: string }> => {
    for (;;) {
      const line = await lines.next();
      if (line.done === true) throw new Error("serve has ended");
      const { base = "", link = "" } = PAGE.exec(line.value)?.groups ?? {};
      if (link !== "") return { base, link };
    }
  };
  try {
    const first = await readPage();
    await signIn(first.base, first.link);
    serve.kill("SIGUSR2");
    const next = await readPage();
    expect(next.base).toBe(first.base);
    expect(await signIn(next.base, next.link)).toMatchObject({ rights: { write: true } });
    await expect(signIn(first.base, first.link)).rejects.toThrow("401");
  } finally {
    const ended = once(serve, "exit");
    serve.kill("SIGTERM");
    await ended;
  }
});
