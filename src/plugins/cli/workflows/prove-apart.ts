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
import { isFileLedger } from "../ledger/open-ledger.ts";
import { proveLedger, type LedgerVerification } from "../ledger/verify-command.ts";

/** Problems are told up to a number, each with a message that is a sentence. */
const OUTPUT_BYTES_MAX = 16_000_000;

/**
 * Verifies a ledger and returns its counts and problems: a file in a process of its own, which ends when `signal`
 * aborts, one on a server in this process. A damaged ledger is a result. @throws CoordinationError where it cannot be
 * read
 */
export async function proveLedgerApart(
  host: CliHost,
  ledger: string,
  signal: AbortSignal,
): Promise<LedgerVerification> {
  // The address of a server may have a password, which arguments of a process would show to others.
  return (await isFileLedger(ledger))
    ? await proveFileInProcess(ledger, signal)
    : await proveLedger(host, { ledger });
}

/** The output of the process that verifies a ledger. */
type PrintedVerification =
  LedgerVerification | { readonly error: { readonly code: ErrorCode; readonly message: string } };

async function proveFileInProcess(ledger: string, signal: AbortSignal): Promise<LedgerVerification> {
  const printed = await runVerifyProcess(ledger, signal);
  if ("error" in printed) throw new CoordinationError(printed.error.code, printed.error.message);
  return printed;
}

/** Runs `verify` in a process of its own and returns what it printed, also for a damaged ledger, which is an exit code. */
function runVerifyProcess(ledger: string, signal: AbortSignal): Promise<PrintedVerification> {
  const args = [findProgramPath(), "verify", "--json", "--ledger", ledger];
  const options = { signal, killSignal: "SIGKILL", maxBuffer: OUTPUT_BYTES_MAX, windowsHide: true } as const;
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, options, (error, stdout) => {
      try {
        resolve(JSON.parse(stdout) as PrintedVerification);
      } catch {
        const reason = error?.signal ? "verify was stopped" : error?.message;
        reject(new Error(reason ?? "verify printed no JSON", { cause: error }));
      }
    });
  });
}

/** Returns the path of this program: TypeScript in the sources, built in the package. */
function findProgramPath(): string {
  return fileURLToPath(findPackageFile(`plugins/cli/main${extname(import.meta.url)}`));
}
