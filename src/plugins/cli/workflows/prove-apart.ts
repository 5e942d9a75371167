/**
 * Owns: proving a ledger while this process does other work: one in a file by a process of its own, because that is read in one
 * go, which would keep others waiting for as long as it takes.
 */
import { execFile } from "node:child_process";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { CoordinationError, type ErrorCode } from "../../../agents/coordination/contracts/errors.ts";
import { findPackageFile } from "../../../platform/package-files.ts";
import type { CliHost } from "../terminal/cli-host.ts";
import { isLedgerFile } from "../ledger/open-ledger.ts";
import { proveLedger, type Verified } from "../ledger/verify-command.ts";

/** Problems are told up to a number, each with a message that is a sentence. */
const OUTPUT_BYTES_MAX = 16_000_000;

/** Proves the ledger at this place until `signal` aborts. A damaged ledger is a result. @throws CoordinationError */
export async function proveLedgerApart(
  host: CliHost,
  ledger: string,
  signal: AbortSignal,
): Promise<Verified> {
  // The address of a server may have a password, which arguments of a process would show to others.
  return (await isLedgerFile(ledger)) ? await proveFile(ledger, signal) : await proveLedger(host, { ledger });
}

type Printed = Verified | { readonly error: { readonly code: ErrorCode; readonly message: string } };

async function proveFile(ledger: string, signal: AbortSignal): Promise<Verified> {
  const printed = JSON.parse(await runVerify(ledger, signal)) as Printed;
  if ("error" in printed) throw new CoordinationError(printed.error.code, printed.error.message);
  return printed;
}

/** Runs `verify`, and returns what it printed: it fails for a damaged ledger, and prints why. */
function runVerify(ledger: string, signal: AbortSignal): Promise<string> {
  const args = [findProgram(), "verify", "--json", "--ledger", ledger];
  const options = { signal, killSignal: "SIGKILL", maxBuffer: OUTPUT_BYTES_MAX, windowsHide: true } as const;
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, options, (error, stdout) => {
      if (stdout === "" && error) reject(new Error(error.message, { cause: error }));
      else resolve(stdout);
    });
  });
}

/** The sources have the program as TypeScript, the package has it built. */
function findProgram(): string {
  return fileURLToPath(findPackageFile(`plugins/cli/main${extname(import.meta.url)}`));
}
