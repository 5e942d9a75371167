/** Owns: running the commands without a process: arguments in, output and exit code out. */
import { Command } from "commander";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { CliHost, CliOutput, Terminal } from "../../src/plugins/cli/terminal/cli-host.ts";
import { addCoordinationCommands, type WantedCommands } from "../../src/plugins/cli/add-commands.ts";
import type { GatewayCaller } from "../../src/plugins/openclaw/host/gateway-call.ts";
import type { InterruptibleWait } from "../../src/plugins/cli/terminal/waiting-line.ts";
import { applyConfigChanges, type OperatorConfig } from "../../src/plugins/openclaw/host/operator-config.ts";
import { TEST_EPOCH_MS } from "../support/temp-ledger.ts";

export const PLAIN: Terminal = { isTTY: false, columns: 100, colour: false, unicode: true };

export interface CliSetting {
  readonly stateDir?: string;
  readonly config?: OperatorConfig;
  readonly terminal?: Partial<Terminal>;
  readonly nowMs?: number;
  /** Time passes: a second with every look at the clock. */
  readonly ticking?: boolean;
  readonly nodeVersion?: string;
  readonly confirm?: (question: string) => Promise<boolean>;
  readonly isQuestionHidden?: boolean;
  readonly gateway?: GatewayCaller;
  readonly waiting?: () => InterruptibleWait;
  /** Commands that only the program outside of the host has. */
  readonly more?: WantedCommands["more"];
  /** The reader of stdout goes away after this many writes. */
  readonly writesMax?: number;
}

export interface CliResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
  readonly writes: number;
}

export async function runCli(args: readonly string[], setting: CliSetting = {}): Promise<CliResult> {
  const terminal = { ...PLAIN, ...setting.terminal };
  const stdout = createMemoryOutput(terminal, setting.writesMax);
  const stderr = createMemoryOutput(terminal);
  let exitCode = 0;
  let nowMs = setting.nowMs ?? TEST_EPOCH_MS;
  const host: CliHost = {
    program: "openclaw coordination",
    args,
    stdout,
    stderr,
    config: setting.config ?? unreadableConfig,
    nodeVersion: setting.nodeVersion ?? "24.21.0",
    stateDir: () => Promise.resolve(setting.stateDir ?? "nowhere"),
    now: () => {
      if (setting.ticking) nowMs += 1_000;
      return nowMs as EpochMs;
    },
    ...pickOptional(setting),
    failWith: (code) => {
      exitCode = code;
    },
  };
  const program = new Command("coordination").exitOverride().configureOutput({
    writeOut: (text) => void stdout.write(text),
    writeErr: (text) => void stderr.write(text),
  });
  await addCoordinationCommands(program, host, { more: setting.more });
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    // Commander throws what it would have exited with.
    if (!(error instanceof Error && "exitCode" in error)) throw error;
    exitCode = Number(error.exitCode);
  }
  return { stdout: stdout.text(), stderr: stderr.text(), exitCode, writes: stdout.writes() };
}

function pickOptional({ confirm, isQuestionHidden, gateway, waiting }: CliSetting): Partial<CliHost> {
  return {
    ...(confirm && { confirm }),
    ...(isQuestionHidden && { isQuestionHidden }),
    ...(gateway && { gateway }),
    ...(waiting && { waiting }),
  };
}

interface MemoryOutput extends CliOutput {
  text(): string;
  writes(): number;
}

function createMemoryOutput(terminal: Terminal, writesMax = Number.POSITIVE_INFINITY): MemoryOutput {
  let text = "";
  let writes = 0;
  return {
    terminal,
    write: (part) => {
      writes += 1;
      if (writes > writesMax) return Promise.resolve(false);
      text += part;
      return Promise.resolve(true);
    },
    text: () => text,
    writes: () => writes,
  };
}

const unreadableConfig: OperatorConfig = {
  read: () => Promise.resolve(undefined),
  change: () => Promise.reject(new Error("the configuration must not be changed here")),
};

/** A configuration file that is an object; `writes` counts how often it was changed. */
export function createMemoryConfig(
  config: object,
): OperatorConfig & { readonly config: object; writes: number } {
  const memory = {
    config,
    known: config,
    writes: 0,
    read: () => Promise.resolve({ config: structuredClone(config), path: "openclaw.json" }),
    change: (plan: Parameters<OperatorConfig["change"]>[0]) => {
      const changed = plan(config);
      applyConfigChanges(config, changed);
      memory.writes += 1;
      return Promise.resolve({ changed, path: "openclaw.json" });
    },
  };
  return memory;
}
