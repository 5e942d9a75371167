#!/usr/bin/env node
/** Owns: starting the `openclaw-coordination` program. Who asks for its version waits for nothing else. */
import { readPackageVersion } from "../../platform/package-files.ts";

const [called] = process.argv.slice(2);
if (called === "--version" || called === "-V") process.stdout.write(`${readPackageVersion()}\n`);
else await (await import("./program.ts")).runCliProgram(called);
