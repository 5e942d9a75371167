#!/usr/bin/env node
/** Owns: the `openclaw-coordination` program, which reads a ledger without starting OpenClaw. */
import { readFileSync } from "node:fs";
import { Command } from "commander";
import { hostOperatorConfig } from "../openclaw/operator-config.ts";
import { addCoordinationCommands } from "./commands.ts";
import { processHost } from "./process-host.ts";
import { resolveStateDir } from "./state-dir.ts";

const PROGRAM = "openclaw-coordination";

const { version } = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as {
  version: string;
};

const program = new Command(PROGRAM)
  .description("Inspect and switch the coordination of OpenClaw's subagents")
  .version(version);

addCoordinationCommands(
  program,
  processHost({
    program: PROGRAM,
    config: hostOperatorConfig(),
    stateDir: () => Promise.resolve(resolveStateDir(process.env)),
  }),
);

await program.parseAsync();
