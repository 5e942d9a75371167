/** Runs the program of the package, which reads a ledger without the host and starts in a tenth of the time of the host's command line. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { inject } from "vitest";

/** The exit code of a program, and all that it printed. */
export interface ProgramOutput {
  /** Null where the program was killed. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function runPackedProgram(args: readonly string[], ledgerPath: string): Promise<ProgramOutput> {
  const main = join(inject("pluginDir"), "dist", "plugins", "cli", "main.js");
  return new Promise((resolve) => {
    const program = execFile(
      process.execPath,
      [main, ...args, "--ledger", ledgerPath],
      (_error, stdout, stderr) => resolve({ code: program.exitCode, stdout, stderr }),
    );
  });
}
