#!/usr/bin/env node
/** Owns: the `openclaw-coordination` program, which reads a ledger without starting OpenClaw. */
import { Command } from "commander";
import { readPackageVersion } from "../../platform/package-files.ts";
import { createGatewayCaller, type GatewayCaller } from "../openclaw/host/gateway-call.ts";
import { createOperatorConfig } from "../openclaw/host/operator-config.ts";
import { addCoordinationCommands } from "./add-commands.ts";
import { addServe } from "./workflows/serve-command.ts";
import { processHost } from "./process-host.ts";
import { resolveStateDir } from "./terminal/state-dir.ts";

const PROGRAM = "openclaw-coordination";

const program = new Command(PROGRAM)
  .description("Inspect and switch the coordination of OpenClaw's subagents")
  .version(readPackageVersion());

const callGateway = createGatewayCaller();
const called: string[] = [];
const askGateway: GatewayCaller = (method, params) => {
  called.push(method);
  return callGateway(method, params);
};
const host = processHost({
  program: PROGRAM,
  config: createOperatorConfig(),
  stateDir: () => Promise.resolve(resolveStateDir(process.env)),
});

addCoordinationCommands(program, { ...host, gateway: askGateway });
addServe(program, host);

await program.parseAsync();
// The host's client leaves handles open that would keep the process; all output is written.
if (called.length > 0) process.exit();
