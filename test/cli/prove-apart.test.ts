/** Owns: proving a ledger file in a process of its own that ends before it has printed all. */
import { afterEach, expect, test, vi } from "vitest";
import { proveLedgerApart } from "../../src/plugins/cli/workflows/prove-apart.ts";
import type { CliHost } from "../../src/plugins/cli/terminal/cli-host.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

/** Runs code in each process that Node.js starts from now on, before its program. */
function runBeforeProgram(code: string): void {
  vi.stubEnv("NODE_OPTIONS", `--import=data:text/javascript,${encodeURIComponent(code)}`);
}

async function prove(): Promise<unknown> {
  using folder = createTempFolder();
  const path = folder.file("ledger.sqlite");
  await (await openTestLedger(path)).close();
  return await proveLedgerApart({} as CliHost, path, new AbortController().signal);
}

const KILL =
  'process.kill(process.pid, "SIGKILL"); await new Promise(() => setInterval(() => undefined, 1e6));';

test.each([
  ["nothing", KILL],
  [
    "a part of its output",
    `await new Promise((resolve) => process.stdout.write('{"ok": true, "probl', resolve)); ${KILL}`,
  ],
])("a process that is killed and printed %s has proven nothing, and the error says so", async (_, code) => {
  runBeforeProgram(code);
  await expect(prove()).rejects.toThrow(/^verify was stopped$/u);
});

test.each([
  ["process.exit(3)", /^Command failed: .* verify --json/u],
  ["process.exit(0)", /^verify printed no JSON$/u],
])(
  "a process that ends by itself and printed nothing has proven nothing either: %s",
  async (code, message) => {
    runBeforeProgram(code);
    await expect(prove()).rejects.toThrow(message);
  },
);

test("a process that printed all has its outcome, whatever its exit code", async () => {
  expect(await prove()).toMatchObject({ ok: true, problems: [] });
  runBeforeProgram("process.exitCode = 1");
  expect(await prove()).toMatchObject({ ok: true, problems: [] });
});
