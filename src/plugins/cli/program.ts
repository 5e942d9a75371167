/** Owns: the `openclaw-coordination` program, which reads a ledger without starting OpenClaw. */
import { Command } from "commander";
import { readPackageVersion } from "../../platform/package-files.ts";
import { createGatewayCaller, type GatewayCaller } from "../openclaw/host/gateway-call.ts";
import { createOperatorConfig } from "../openclaw/host/operator-config.ts";
import { addCoordinationCommands } from "./add-commands.ts";
import { createProcessHost } from "./process-host.ts";
import { resolveStateDir } from "./terminal/state-dir.ts";

const PROGRAM = "openclaw-coordination";
const SERVE = "serve";
/** Inside OpenClaw the gateway serves. */
const OWN_COMMANDS = { [SERVE]: async () => (await import("./workflows/serve-command.ts")).addServeCommand };

/**
 * Parses the arguments of the process and runs the command that they name; ends the process where it asked a gateway
 * or served. `called`: the first argument; where it names a command, only that one is loaded.
 */
export async function runCliProgram(called: string | undefined): Promise<void> {
  const callGateway = createGatewayCaller();
  const methods: string[] = [];
  const askGateway: GatewayCaller = (method, params) => {
    methods.push(method);
    return callGateway(method, params);
  };
  const host = createProcessHost({
    program: PROGRAM,
    config: createOperatorConfig(),
    stateDir: () => Promise.resolve(resolveStateDir(process.env)),
  });
  const program = new Command(PROGRAM)
    .description("Inspect and switch the coordination of OpenClaw's subagents")
    .version(readPackageVersion());
  await addCoordinationCommands(program, { ...host, gateway: askGateway }, { called, more: OWN_COMMANDS });
  await program.parseAsync();
  // The host's client, and a request that a served host has given up, would keep the process; all output is written.
  if (methods.length > 0 || called === SERVE) process.exit();
}
