/** Owns: that a file which cannot be what a command wants is refused in a sentence that a stranger understands. */
import { mkdirSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readAgentFolder } from "../../src/plugins/cli/files/agent-folder.ts";
import { readWorkflowFolder } from "../../src/plugins/cli/files/workflow-folder.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { recordPlans, RUNNING_PLAN } from "./recorded-plan.ts";
import { recordLedger, RESEARCH } from "./recorded-ledger.ts";
import { runCli } from "./run-cli.ts";

let folder: TempFolder;

beforeAll(async () => {
  folder = createTempFolder();
  await recordLedger(folder.file("coordination/ledger.sqlite"), [RESEARCH]);
  await recordPlans(folder.file("plans.sqlite"), [RUNNING_PLAN]);
  mkdirSync(folder.file("folder.yaml"));
});

afterAll(() => {
  folder[Symbol.dispose]();
});

/** The commands that read a file in JSON or YAML, and how each calls what it reads. */
const READERS: readonly (readonly [command: string, words: readonly string[], subject: string])[] = [
  ["plan validate", ["plan", "validate"], "a plan"],
  ["plan graph", ["plan", "graph"], "a plan"],
  ["plan run", ["plan", "run"], "a plan"],
  ["policy validate", ["policy", "validate"], "a policy pack"],
  ["policy show", ["policy", "show"], "a policy pack"],
  ["policy diff", ["policy", "diff", "careful"], "a policy pack"],
  ["policy test", ["policy", "test"], "a policy pack"],
  ["policy use", ["policy", "use"], "a policy pack"],
  ["replay --policy", ["replay", RESEARCH.id, "--policy"], "a policy"],
  ["fork --policy", ["fork", RESEARCH.id, "--policy"], "a policy"],
];

const FIELDS = "is written as fields, each `name: value`";

/** Files that hold nothing of use, and the sentence about each. */
const CONTENTS: readonly (readonly [name: string, text: string, sentence: string])[] = [
  ["empty.yaml", "", "this has no content"],
  ["empty.json", "", "this has no content"],
  ["blank.json", " \n", "this has no content"],
  ["comment.yaml", "# later\n", "this has no content"],
  ["dashes.yaml", "---\n", "this has no content"],
  ["null.json", "null", "this has no content"],
  ["list.yaml", "- a\n", "this is a list"],
  ["list.json", "[1]", "this is a list"],
  ["number.yaml", "5", "this is a single value"],
  ["text.json", '"words"', "this is a single value"],
];

function writeNamed(name: string, content: string | Uint8Array): string {
  writeFileSync(folder.file(name), content);
  return folder.file(name);
}

describe.each(READERS)("%s refuses", (_, words, subject) => {
  const read = async (file: string): Promise<string> => {
    const { stdout, stderr, exitCode } = await runCli([...words, file], { stateDir: folder.path });
    expect(exitCode).toBe(1);
    return stdout + stderr;
  };

  test.each(CONTENTS)("%s, which is %j", async (name, text, sentence) => {
    const printed = await read(writeNamed(name, text));
    expect(printed).toContain(`line 1, column 1`);
    expect(printed).toContain(`${sentence}, and ${subject} ${FIELDS}`);
    expect(printed).not.toMatch(/\(root\)|got null/u);
  });

  test("what is no text, a folder, what is not there, and nothing", async () => {
    expect(await read(writeNamed("bytes.yaml", Uint8Array.of(0xff, 0xfe, 0)))).toContain("is not UTF-8 text");
    expect(await read(folder.file("folder.yaml"))).toContain(
      "folder.yaml: this is a folder; name a plain file",
    );
    expect(await read(folder.file("nowhere.yaml"))).toContain("nowhere.yaml: there is no such file. ");
    expect(await read("")).toContain("expected the path of a file, got nothing");
    expect(await read("https://user:word@example/plan.yaml")).toContain(
      "expected the path of a file, got an address at https://",
    );
  });
});

test("mcp says what to do about a file that is no ledger, and not about the gateway's", async () => {
  const file = writeNamed("notes.txt", "no ledger");
  const { stderr, exitCode } = await runCli(["mcp", "--ledger", file]);
  expect(exitCode).toBe(1);
  expect(stderr).toContain(`verify --ledger ${file}\`, keep the file, and name a backup`);
});

describe("a folder of files", () => {
  test.each(CONTENTS)("is refused for %s, which is %j", async (name, text, sentence) => {
    mkdirSync(folder.file(`in-${name}`), { recursive: true });
    writeNamed(`in-${name}/${name}`, text);
    const path = folder.file(`in-${name}`);
    await expect(readWorkflowFolder(path)).rejects.toThrow(`${sentence}, and a workflow ${FIELDS}`);
    await expect(readAgentFolder(path)).rejects.toThrow(`${sentence}, and an agent manifest ${FIELDS}`);
  });

  test.each([
    ["nowhere", "nowhere: there is no such folder"],
    ["plans.sqlite", "plans.sqlite: this is not a folder"],
  ])("is refused where it is %s", async (name, sentence) => {
    await expect(readWorkflowFolder(folder.file(name))).rejects.toThrow(sentence);
    await expect(readAgentFolder(folder.file(name))).rejects.toThrow(sentence);
  });

  test.each([
    ["", "expected the path of a folder, got nothing"],
    ["postgres://user:word@host/x", "expected the path of a folder, got an address at postgres://"],
  ])("is refused where %j was typed", async (typed, sentence) => {
    await expect(readWorkflowFolder(typed)).rejects.toThrow(sentence);
    await expect(readAgentFolder(typed)).rejects.toThrow(sentence);
  });
});
