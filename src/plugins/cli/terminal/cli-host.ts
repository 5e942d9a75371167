/** Owns: what differs between `openclaw coordination` and `openclaw-coordination`, and what a test replaces. */
import type { Command } from "commander";
import type { EpochMs } from "../../../agents/coordination/contracts/ids.ts";
import type { GatewayCaller } from "../../openclaw/host/gateway-call.ts";
import type { OperatorConfig } from "../../openclaw/host/operator-config.ts";
import type { InterruptibleWait } from "./waiting-line.ts";

export interface CliHost {
  /** How the user calls the commands, such as `openclaw coordination`. */
  readonly program: string;
  /** The words behind the program's name. */
  readonly args: readonly string[];
  readonly stdout: CliOutput;
  readonly stderr: CliOutput;
  readonly config: OperatorConfig;
  /** The release of Node.js, without the leading `v`. */
  readonly nodeVersion: string;
  stateDir(): Promise<string>;
  now(): EpochMs;
  /** Absent where nobody can answer. */
  readonly confirm?: (question: string) => Promise<boolean>;
  /** True where a person could answer a question and would not see it. */
  readonly isQuestionHidden?: boolean;
  /** Absent where no gateway can be called. */
  readonly gateway?: GatewayCaller;
  /** Absent: as `waitingInProcess`. */
  readonly waiting?: () => InterruptibleWait;
  /** Sets the exit code of the process; the command still returns. */
  failWith(exitCode: number): void;
}

/** Standard output or standard error, with the terminal that shows it. */
export interface CliOutput {
  readonly terminal: Terminal;
  /** Resolves when the text is on its way; `false` when nobody reads any more. */
  write(text: string): Promise<boolean>;
}

export interface Terminal {
  readonly isTTY: boolean;
  readonly columns: number;
  readonly colour: boolean;
  readonly unicode: boolean;
}

/** The command that subcommands are added to; inside the host it is of the host's own commander. */
export type CommandGroup = Pick<Command, "command" | "configureOutput">;
