import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { afterEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { checkPlan } from "../../src/agents/coordination/plan/check-plan.ts";
import { addCoordinationCommands } from "../../src/plugins/cli/add-commands.ts";
import type { CliHost } from "../../src/plugins/cli/terminal/cli-host.ts";
import { registerCoordinationHooks, type CoordinationHooks } from "../../src/plugins/hooks/hooks.ts";
import { createHookHarness, sampleDecision, type HookHarness } from "../../src/plugins/hooks/testing.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const readProjectFile = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const tutorial = readProjectFile("docs/tutorial.md");

/** The texts of the page's code blocks in one language; of those without a language for "". */
const readBlocks = (language: string): string[] =>
  [...tutorial.matchAll(/^```(\w*)\n(.*?)^```$/gmsu)]
    .filter(([, named]) => named === language)
    .map(([, , text = ""]) => text);

/** Every command line of the page, with continued lines joined. */
const commandLines = readBlocks("")
  .flatMap((block) => block.replaceAll(/\\\n\s*/gu, "").split("\n"))
  .concat([...tutorial.matchAll(/`(openclaw [^`\n]+)`/gu)].map(([, line = ""]) => line))
  .filter((line) => /^(?:openclaw|npm|cp|cd) /u.test(line));

const coordinationLines = commandLines.filter((line) => line.startsWith("openclaw coordination "));

/** Whether the words name a command, with as many arguments as it takes and only options that it has. */
const describeMisuse = (root: Command, words: readonly string[]): string | undefined => {
  let command = root;
  const rest = [...words];
  for (let sub = findCommand(command, rest[0]); sub; sub = findCommand(command, rest[0])) {
    command = sub;
    rest.shift();
  }
  if (command === root || command.commands.length > 0) return "names no command";
  const { operands, unknown } = command.parseOptions(rest);
  const required = command.registeredArguments.filter((argument) => argument.required).length;
  if (unknown.length > 0) return `has no option ${unknown.join(" ")}`;
  if (operands.length < required || operands.length > command.registeredArguments.length)
    return `does not take ${operands.length} arguments`;
  return undefined;
};

const findCommand = (command: Command, name: string | undefined): Command | undefined =>
  command.commands.find((candidate) => candidate.name() === name);

const createCommands = async (): Promise<Command> => {
  const program = new Command("coordination");
  await addCoordinationCommands(program, { program: "openclaw coordination" } as CliHost);
  return program;
};

describe("the tutorial", () => {
  it("has four numbered steps", () => {
    const steps = [...tutorial.matchAll(/^## (\d)\. /gmu)].map(([, number]) => number);
    expect(steps).toEqual(["1", "2", "3", "4"]);
  });

  it("uses only commands and options that the command line has", async () => {
    const misused: string[] = [];
    for (const line of coordinationLines) {
      const misuse = describeMisuse(await createCommands(), line.split(" ").slice(2));
      if (misuse !== undefined) misused.push(`${line}: ${misuse}`);
    }
    expect(misused).toEqual([]);
    expect(coordinationLines.length).toBeGreaterThan(10);
  });

  it.each([["plan run f.yaml --wiat"], ["plan run"], ["timelin"], ["plan"]])(
    "would not get past this test with a command such as %j",
    async (line) => {
      expect(describeMisuse(await createCommands(), line.split(" "))).toBeDefined();
    },
  );

  it("installs the plugin as the README does, in the version that the package has", () => {
    const { version } = JSON.parse(readProjectFile("package.json")) as { version: string };
    const archives = commandLines.flatMap((line) => line.match(/openclaw-coordination-[^ ]+\.tgz/u) ?? []);
    expect(archives.length).toBeGreaterThan(0);
    expect(new Set(archives)).toEqual(new Set([`openclaw-coordination-${version}.tgz`]));
    const [install = ""] = commandLines.filter((line) => line.includes("npm-pack:"));
    const [, flags = ""] = /\.tgz (.+)/u.exec(install) ?? [];
    expect(readProjectFile("README.md")).toContain(`.tgz ${flags}`);
  });

  it("runs a plan that the checker takes, under the name that its commands use", () => {
    const [yaml = ""] = readBlocks("yaml");
    const plan = parse(yaml) as { coordinationId: string; ownerSession: string };
    const checked = checkPlan(plan);
    expect(checked.kind === "refused" ? checked.problems : []).toEqual([]);
    expect(coordinationLines).toContain(`openclaw coordination timeline ${plan.coordinationId}`);
    expect(commandLines.some((line) => line.includes(`--session-key ${plan.ownerSession} `))).toBe(true);
  });

  it("is linked from the README", () => {
    expect(readProjectFile("README.md")).toContain("(docs/tutorial.md)");
  });
});

describe("the tutorial's hook", () => {
  let harness: HookHarness | undefined;

  afterEach(() => {
    harness?.close();
    harness = undefined;
  });

  const [testCode = "", hookCode = ""] = readBlocks("js");

  /** Runs the page's own test in the test kit, against these hooks. */
  const runPageTest = async (hooks: CoordinationHooks): Promise<void> => {
    harness = createHookHarness({ pluginId: "hook-plugin" });
    registerCoordinationHooks(harness.api, hooks);
    const { run } = (await importText(
      `export const run = (test, harness, assert, sampleDecision) => ${testCode.trim().replace(/;$/u, "")};`,
    )) as { run: (...args: unknown[]) => Promise<void> };
    const runCase = (_: string, body: () => Promise<void>): Promise<void> => body();
    await run(runCase, harness, assert, sampleDecision);
    expect(harness.problems).toEqual([]);
  };

  const importText = (code: string): Promise<unknown> =>
    import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(code)}`);

  const loadExampleHooks = async (): Promise<CoordinationHooks> => {
    const { createHooks } = (await importText(readProjectFile("examples/hook-plugin/hooks.js"))) as {
      createHooks: (log: () => void) => { hooks: CoordinationHooks };
    };
    return createHooks(() => undefined).hooks;
  };

  it("passes the tutorial's test beside the hooks of the example", async () => {
    const { hook } = (await importText(`export const hook = { ${hookCode} };`)) as {
      hook: CoordinationHooks;
    };
    const exampleHooks = await loadExampleHooks();
    await runPageTest({ ...exampleHooks, ...hook });
  });

  it("is needed: the example alone fails the tutorial's test", async () => {
    await expect(runPageTest(await loadExampleHooks())).rejects.toThrow();
  });

  it("starts from files that the example has, and from the gateway method that it registers", () => {
    for (const file of ["index.js", "hooks.js", "test/hooks.test.js"]) {
      expect(tutorial).toContain(`\`${file}\``);
      expect(readProjectFile(`examples/hook-plugin/${file}`)).not.toBe("");
    }
    expect(commandLines).toContain("openclaw gateway call hook-plugin.counts");
    expect(readProjectFile("examples/hook-plugin/index.js")).toContain('"hook-plugin.counts"');
  });
});
