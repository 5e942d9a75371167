import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { PLAN_PROBLEMS, type PlanProblem } from "../../src/agents/coordination/plan/plan-problem.ts";
import type { StepGraph } from "../../src/agents/coordination/plan/step-graph.ts";
import { plan, step } from "../core/plan-scene.ts";
import { readTableRows } from "../docs/read-tables.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { runCli, type CliResult, type CliSetting } from "./run-cli.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/plans.md"), "utf8");
const MAIN = new URL("../../src/plugins/cli/main.ts", import.meta.url).pathname;

const SOUND = plan([
  step("b", ["a"], { timeoutMs: 1_000 }),
  step("a", [], { lane: "control", timeoutMs: 500 }),
]);
const BAD = plan([step("a", ["b"]), step("b", ["a"]), step("c", [], { lane: "fast" })]);

let folder: TempFolder;
let files = 0;

beforeAll(() => {
  folder = createTempFolder();
});

afterAll(() => {
  folder[Symbol.dispose]();
});

function fileOf(text: string, extension = ".yaml"): string {
  files += 1;
  const path = folder.file(`plan-${files}${extension}`);
  writeFileSync(path, text);
  return path;
}

function validate(text: string, extension?: string, setting?: CliSetting): Promise<CliResult> {
  return runCli(["plan", "validate", fileOf(text, extension)], setting);
}

async function problemsOf(text: string, extension?: string): Promise<readonly PlanProblem[]> {
  const { stdout, stderr, exitCode } = await runCli(["plan", "validate", "--json", fileOf(text, extension)]);
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 1 });
  const { ok, problems } = JSON.parse(stdout) as { ok: boolean; problems: PlanProblem[] };
  expect(ok).toBe(false);
  return problems;
}

const findExample = (): string => /```yaml\n(.*?)```/su.exec(page)?.[1] ?? "";

describe("plan validate", () => {
  test("refuses ids that no new plan may have", async () => {
    const odd = plan([step("eu:build")], { coordinationId: "My plan" });
    const problems = await problemsOf(JSON.stringify(odd), ".json");
    expect(problems.map(({ path, code }) => `${code} ${path}`)).toEqual([
      "ID_INVALID coordinationId",
      "ID_INVALID steps[0].stepId",
    ]);
  });

  test("a glob that catches everything is told to narrow nothing, and the plan is sound", async () => {
    const open = JSON.stringify(
      plan([step("a", [], { write: ["/**"] }), step("b", [], { write: ["src/**"] })]),
    );
    const { stdout, exitCode } = await validate(open, ".json");
    expect({ stdout, exitCode }).toEqual({
      stdout: expect.stringMatching(
        /\nwarning {2}step a: write \/\*\* catches every file, so it narrows nothing\n$/u,
      ) as string,
      exitCode: 0,
    });
    const json = await runCli(["plan", "validate", "--json", fileOf(open, ".json")]);
    expect(JSON.parse(json.stdout)).toMatchObject({
      ok: true,
      warnings: [expect.stringContaining("step a")],
    });
  });

  test("a sound plan has a summary, and the exit code is 0", async () => {
    const { stdout, stderr, exitCode } = await validate(JSON.stringify(SOUND), ".json");
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    expect(stdout).toBe(
      'ok  2 steps, depth 2, lanes: control 1, data 1\n    critical path, by timeouts: 1.5s  "a" -> "b"\n',
    );
    const json = await runCli(["plan", "validate", "--json", fileOf(JSON.stringify(SOUND), ".json")]);
    expect(JSON.parse(json.stdout)).toEqual({
      ok: true,
      problems: [],
      summary: {
        coordinationId: "co-1",
        steps: 2,
        dependencies: 1,
        depth: 2,
        criticalPathMs: 1_500,
        criticalPath: ["a", "b"],
        lanes: { control: 1, data: 1, escalation: 0 },
      },
    });
  });

  test("all problems come at once, of fields and of the graph, in one shape; the exit code is 1", async () => {
    const problems = await problemsOf(JSON.stringify(BAD), ".json");
    expect(problems.map(({ path, code }) => [path, code])).toEqual([
      ["steps[2].lane", "SCHEMA_MISMATCH"],
      ["steps[0].dependsOn[0]", "DEPENDENCY_CYCLE"],
    ]);
    for (const problem of problems) expect(Object.keys(problem)).toEqual(["path", "code", "message"]);
    const { stdout, exitCode } = await validate(JSON.stringify(BAD), ".json");
    expect(exitCode).toBe(1);
    expect(stdout).toContain(" REFUSED   2 problems\n");
    expect(stdout).toContain(
      "steps[0].dependsOn[0]  DEPENDENCY_CYCLE  these steps wait for each other in a circle",
    );
  });

  test.each(["", ".json", ".yaml", ".YML", ".txt"])(
    "JSON is read from a file that ends in %j",
    async (extension) => {
      expect(await validate(JSON.stringify(SOUND, null, "\t"), extension)).toMatchObject({
        exitCode: 0,
        stderr: "",
      });
    },
  );

  test.each(["", ".yaml", ".txt"])("YAML is read from a file that ends in %j", async (extension) => {
    expect(await validate(findExample(), extension)).toMatchObject({ exitCode: 0, stderr: "" });
  });

  test.each([
    ["a flow mapping that is not JSON", `{ a: ${JSON.stringify(SOUND)} }`.slice(5, -2), ""],
    ["a byte order mark", `\ufeff${JSON.stringify(SOUND)}`, ".json"],
    [
      "aliases",
      findExample()
        .replace("changes]\n    input", "&c changes]\n    input")
        .replace("dependsOn: [changes]\n    priority", "dependsOn: [*c]\n    priority"),
      ".yaml",
    ],
  ])("a file with %s is read", async (_, text, extension) => {
    expect(await validate(text, extension)).toMatchObject({ exitCode: 0, stderr: "" });
  });

  test.each([
    ["an unclosed object", '{\n  "a": [1,\n', ".json", "line 3, column 1"],
    ["a trailing comma", '{\n  "a": 1,\n}', ".json", "line 3, column 1"],
    ["a bare word", '{\n  "a": x\n}', ".json", "line 2, column 8"],
    ["nothing", "", ".json", "line 1, column 1"],
    [
      "a key twice",
      '{"a": "\\"{",\n "steps": [{"a": 1},\n {"b": 1, "\\u0062": 2}]}',
      ".json",
      "line 3, column 11",
    ],
    ["a key twice, in YAML", "steps:\n  - a: 1\n    b: 2\n    'a': 3\n", ".yaml", "line 4, column 5"],
    ["wrong indentation", "a: 1\n b: 2\n", ".yaml", "line 1, column 4"],
    ["a tag", "a: !!js/function 'x'\n", ".yaml", "line 1, column 4"],
    ["an alias of nothing", "a: *b\n", ".yaml", "line 1, column 4"],
    ["too many aliases", `a: &b 1\nc: [${"*b, ".repeat(101)}]`, ".yaml", "line 2, column 405"],
    ["a null key twice", "? \n: 1\n? \n: 2\n", ".yaml", "line 3, column 3"],
    ["two documents", "a: 1\n---\nb: 2\n", ".yaml", "line 2, column 1"],
    ["a tab", "a:\n\tb: 1\n", ".yaml", "line 2, column 1"],
  ])("a file with %s is refused with line and column", async (_, text, extension, place) => {
    const problems = await problemsOf(text, extension);
    expect(problems[0]).toMatchObject({ code: "FILE_SYNTAX", path: place });
    expect(problems.map(({ message }) => message).join()).not.toMatch(/\n|\bat line\b/u);
  });

  test("aliases that would expand to billions are refused in time", async () => {
    const levels = Array.from({ length: 9 }, (_, level) => {
      const of = level === 0 ? "lol" : `*a${level - 1}`;
      return `a${level}: &a${level} [${Array.from({ length: 9 }, () => of).join(", ")}]`;
    });
    const began = performance.now();
    const [problem] = await problemsOf(levels.join("\n"));
    expect(problem).toMatchObject({
      code: "FILE_SYNTAX",
      message: expect.stringContaining("aliases") as string,
    });
    expect(performance.now() - began).toBeLessThan(2_000);
  });

  test.each([
    ["nested deeper than any stack", "[".repeat(200_000), ""],
    ["nested deeper than any stack, closed", "[".repeat(50_000) + "]".repeat(50_000), ".yaml"],
    ["of deep JSON", "[".repeat(500_000) + "]".repeat(500_000), ".json"],
    [
      "of a hundred thousand keys",
      Array.from({ length: 100_000 }, (_, index) => `k${index}: 1`).join("\n"),
      ".yaml",
    ],
    [
      "of random bytes",
      Array.from({ length: 5_000 }, (_, index) => String.fromCharCode((index * 7_919) % 256)).join(""),
      ".yaml",
    ],
    ["of two million errors", "]".repeat(2_000_000), ".yaml"],
    ["of tags that nobody knows", "- !x y\n".repeat(50_000), ".yaml"],
    ["of nothing, as YAML", "", ".yaml"],
    ["of aliases of nothing", "- *b\n".repeat(200_000), ".yaml"],
    ["of one key, again and again", "a: 1\n".repeat(200_000), ".yaml"],
    ["with an alias of itself", "a: &b [*b]", ".yaml"],
    ["of a number", "5", ".json"],
    ["of a text", "text", ".yaml"],
  ])("a file %s is refused in time", async (_, text, extension) => {
    const began = performance.now();
    expect((await problemsOf(text, extension)).length).toBeGreaterThan(0);
    expect(performance.now() - began).toBeLessThan(15_000);
  });

  test("slip upon slip in a JSON file takes as long as in a YAML file", async () => {
    const text = `x: ${"}".repeat(30_000)}`;
    const measure = async (extension: string): Promise<number> => {
      const began = performance.now();
      expect((await problemsOf(text, extension)).length).toBeGreaterThan(0);
      return performance.now() - began;
    };
    await problemsOf("x: }", ".json");
    const yamlMs = await measure(".yaml");
    expect(await measure(".json")).toBeLessThan(yamlMs * 5 + 500);
  });

  test.each([
    ["JSON", BOUNDS.planFileBytesMax, ".json"],
    ["YAML", BOUNDS.planYamlBytesMax, ".yaml"],
  ])(
    "a file of more %s than a plan may have is an error, before it is parsed",
    async (_, bytesMax, extension) => {
      const { stdout, exitCode } = await runCli([
        "plan",
        "validate",
        "--json",
        fileOf("x".repeat(bytesMax + 1), extension),
      ]);
      expect(exitCode).toBe(1);
      expect(JSON.parse(stdout)).toMatchObject({ error: { code: "INPUT_INVALID" } });
    },
  );

  test("a file that is not UTF-8 is an error", async () => {
    const path = fileOf("");
    writeFileSync(path, Buffer.from([0x61, 0x3a, 0x20, 0xff]));
    expect((await runCli(["plan", "validate", path])).stderr).toContain("is not UTF-8 text");
  });

  test("what a plan says cannot move the cursor", async () => {
    const { stdout } = await validate(JSON.stringify(plan([step("a", ["\u001b[2J\n\u202e"])])), ".json");
    for (const char of ["\u001b", "\u202e"]) expect(stdout).not.toContain(char);
    expect(stdout.trimEnd().split("\n")).toHaveLength(2);
  });

  test("a plan is read from stdin", async () => {
    const child = spawn(process.execPath, [MAIN, "plan", "validate", "-"], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    let stdout = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stdin.end(findExample());
    const exitCode = await new Promise((resolve) => child.on("close", resolve));
    expect(exitCode).toBe(0);
    expect(stdout).toContain("ok  4 steps");
  });

  test.each(["validate", "graph"])("%s --help has examples", async (command) => {
    const { stdout, exitCode } = await runCli(["plan", command, "--help"]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain(`$ openclaw coordination plan ${command} release.yaml`);
  });
});

describe("plan graph", () => {
  test("is a Mermaid flowchart with fan-in on its edges", async () => {
    const { stdout, stderr, exitCode } = await runCli(["plan", "graph", fileOf(findExample())]);
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    expect(stdout.split("\n").filter((line) => !line.includes("classDef"))).toEqual([
      "flowchart TD",
      '  s0["changes<br/>researcher"]:::data',
      '  s1["draft-long<br/>writer, high"]:::data',
      '  s2["draft-short<br/>writer"]:::data',
      '  s3["check<br/>critic"]:::control',
      ...["  s0 --> s1", "  s0 --> s2", "  s1 -. any of 2 .-> s3", "  s2 -. any of 2 .-> s3", ""],
    ]);
  });

  test("says how many dependencies are needed where not all are", async () => {
    const steps = [step("a"), step("b"), step("c"), step("d", ["a", "b", "c"], { fanIn: { min: 2 } })];
    const { stdout } = await runCli(["plan", "graph", fileOf(JSON.stringify(plan(steps)))]);
    expect(stdout).toContain("  s0 -. 2 of 3 .-> s3\n");
  });

  test("nothing in an id can end its label", async () => {
    const hostile = [
      '"]; click s0 "javascript:alert(1)"',
      "end",
      "<script>",
      "`md`",
      "#quot;",
      "a\nb",
      "%%{init}%%",
    ];
    const { stdout } = await runCli([
      "plan",
      "graph",
      fileOf(JSON.stringify(plan(hostile.map((id) => step(id))))),
    ]);
    const lines = stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(1 + hostile.length + 3);
    for (const line of lines.slice(1, -3))
      expect(line).toMatch(/^ {2}s\d\["[\w ,.:/@+\-#;]*<br\/>[\w ,.:/@+\-#;]*"\]:::data$/u);
    expect(lines.slice(1, -3).join("")).not.toContain("#quot;");
  });

  test("as JSON is the compiled graph", async () => {
    const { stdout } = await runCli(["plan", "graph", "--json", fileOf(findExample())]);
    const graph = JSON.parse(stdout) as StepGraph;
    expect(graph.steps.map(({ stepId }) => stepId)).toEqual([
      "changes",
      "draft-long",
      "draft-short",
      "check",
    ]);
    expect(graph.steps[1]?.bindings).toHaveLength(1);
  });

  test("of a plan that is refused prints the problems to stderr, and nothing to draw", async () => {
    const { stdout, stderr, exitCode } = await runCli(["plan", "graph", fileOf(JSON.stringify(BAD))]);
    expect({ stdout, exitCode }).toEqual({ stdout: "", exitCode: 1 });
    expect(stderr).toContain("DEPENDENCY_CYCLE");
    const json = await runCli(["plan", "graph", "--json", fileOf(JSON.stringify(BAD))]);
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, problems: [{}, {}] });
  });
});

describe("docs/plans.md", () => {
  test("has an example that validates, and shows what is printed of it", async () => {
    const { stdout, exitCode } = await validate(findExample());
    expect(exitCode).toBe(0);
    expect(page).toContain(`plan validate release.yaml\n${stdout}`);
  });

  test("holds every problem code with its meaning, in the same order", () => {
    const expected = Object.entries(PLAN_PROBLEMS).map(([code, meaning]) => [`\`${code}\``, meaning]);
    expect(readTableRows(page, "code")).toEqual(expected);
  });
});
