import { Command } from "commander";
import { expect, test } from "vitest";
import { addCoordinationCommands } from "../../src/plugins/cli/add-commands.ts";
import type { CliHost } from "../../src/plugins/cli/terminal/cli-host.ts";

async function listNames(called?: string): Promise<string[]> {
  const program = new Command();
  await addCoordinationCommands(program, { program: "openclaw coordination" } as CliHost, { called });
  return program.commands.map((command) => command.name());
}

const all = await listNames();

test.each(all)("%s is loaded alone when it is called", async (name) => {
  expect(await listNames(name)).toEqual([name]);
});

test.each(["lst", "help", "--json", "toString", "__proto__", ""])(
  "all commands are loaded where %j is called, which is none of them",
  async (called) => {
    expect(await listNames(called)).toEqual(all);
  },
);
