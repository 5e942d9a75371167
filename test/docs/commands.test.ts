/** Owns: that README.md names every command, docs/openclaw.md every gateway method, and `--help` of each command has examples. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { METHODS } from "../../src/plugins/openclaw/declarations/method-declarations.ts";
import { runCli } from "../cli/run-cli.ts";
import { readTableRows } from "./read-tables.ts";

const readPage = (path: string): string => readFileSync(join(import.meta.dirname, "../..", path), "utf8");

/** Reads the commands that the help of this program lists. */
async function listCommands(): Promise<string[]> {
  const { stdout } = await runCli(["--help"]);
  const [, list = ""] = stdout.split("Commands:\n");
  return [...list.matchAll(/^ {2}([a-z]+)/gmu)]
    .map(([, name = ""]) => name)
    .filter((name) => name !== "help");
}

describe("the list of commands in README.md", () => {
  it("has every command, `serve` of the program alone too, and no other", async () => {
    const cells = readTableRows(readPage("README.md"), "command").map(([cell = ""]) => cell);
    const listed = cells.flatMap((cell) => [...cell.matchAll(/`([a-z]+)/gu)].map(([, name = ""]) => name));
    expect(new Set(listed)).toEqual(new Set([...(await listCommands()), "serve"]));
  });

  it("is right that all have examples in their help", async () => {
    const commands = await listCommands();
    expect(commands.length).toBeGreaterThan(20);
    for (const name of commands)
      expect((await runCli([name, "--help"])).stdout).toContain(
        `Examples:\n  $ openclaw coordination ${name}`,
      );
  });
});

describe("the list of gateway methods in docs/openclaw.md", () => {
  it("has every method with its scope", () => {
    const rows = readTableRows(readPage("docs/openclaw.md"), "method");
    const scopes = rows.flatMap(([names = "", scope = ""]) =>
      [...names.matchAll(/`([a-z.]+)`/gu)].map(([, name = ""]) => [name, scope.replaceAll("`", "")] as const),
    );
    expect(Object.fromEntries(scopes)).toEqual(METHODS);
  });
});
