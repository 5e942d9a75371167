/** Real programs, of which many do what they should not. */
import { existsSync, readFileSync, statSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readProgramLine } from "../../src/infra/verify/read-answer.ts";
import { waitFor } from "../support/wait-for.ts";
import { isGone } from "./acp-scene.ts";
import { KEY, matchNoVerdict, createVerdict, createVerifierScene, type Scene } from "./verifier-scene.ts";

/** A script in `sh`, which the verifier does not use by itself. `OUT` is the folder beside the workspace. */
function createShellCheck(scene: Scene, script: string, more: object = {}): object {
  return { kind: "command", command: "sh", args: ["-c", script], env: { OUT: scene.outside("") }, ...more };
}

const readText = (scene: Scene, name: string): string => readFileSync(scene.outside(name), "utf8");
const readPids = (scene: Scene, name: string): number[] =>
  readText(scene, name).trim().split("\n").map(Number);

describe("a check by a program", () => {
  it.each([
    ["exit 0", "pass"],
    ["exit 1", "fail"],
    ["exit 3", "revise"],
    ["exit 4", "revise"],
    ["exit 255", "fail"],
    ["false", "fail"],
  ] as const)("takes the end of `%s` for: %s", async (script, expected) => {
    using scene = createVerifierScene();
    expect(await scene.check(createShellCheck(scene, script, { reviseOn: [3, 4] }))).toEqual(
      createVerdict(expected),
    );
    expect(scene.leftBehind()).toEqual([]);
  });

  it("gives it the result in its input and in a file that only its owner may read", async () => {
    using scene = createVerifierScene();
    const script =
      'cat > "$OUT/stdin"; cp -p result.json "$OUT/file"; stat -c %a . 2>/dev/null > "$OUT/mode" || stat -f %Lp . > "$OUT/mode"';
    const result = {
      text: 'nul \0, half \ud800, quote "',
      outputs: { a: [1] },
      confidence: 0.25,
      task: "s3cret",
    };
    expect(await scene.check(createShellCheck(scene, script), { result })).toEqual(createVerdict("pass"));
    expect(readText(scene, "file")).toBe(readText(scene, "stdin"));
    expect(JSON.parse(readText(scene, "stdin"))).toEqual({
      text: result.text,
      outputs: { a: [1] },
      confidence: 0.25,
      coordinationId: "co-1",
      stepId: "build",
      attempt: 2,
      agentId: "coder",
    });
    expect(statSync(scene.outside("file")).mode & 0o777).toBe(0o600);
    expect(readText(scene, "mode").trim()).toBe("700");
  });

  it("runs it in a folder of its own, with nothing of our environment but the path and the language", async () => {
    using scene = createVerifierScene();
    process.env["COORDINATION_TEST_SECRET"] = "s3cret";
    try {
      const script = 'pwd -P > "$OUT/pwd"; env > "$OUT/env"';
      expect(
        await scene.check(createShellCheck(scene, script, { env: { OUT: scene.outside(""), MORE: "1" } })),
      ).toEqual(createVerdict("pass"));
    } finally {
      delete process.env["COORDINATION_TEST_SECRET"];
    }
    const env: Record<string, string> = {};
    for (const line of readText(scene, "env").trim().split("\n")) {
      const [name = "", value = ""] = line.split("=", 2);
      // Which the shell sets by itself.
      if (!["PWD", "OLDPWD", "SHLVL", "_"].includes(name)) env[name] = value;
    }
    const { PATH, LANG } = process.env;
    const folder = env["HOME"] ?? "none";
    expect(env).toEqual({
      PATH,
      HOME: folder,
      TMPDIR: folder,
      OUT: scene.outside(""),
      MORE: "1",
      ...(LANG !== undefined && { LANG }),
    });
    expect(readText(scene, "pwd").trim().split("/").at(-1)).toBe(folder.split("/").at(-1));
    expect(existsSync(folder)).toBe(false);
  });

  it("hands arguments over as they are, without a shell", async () => {
    using scene = createVerifierScene();
    const args = [
      "-e",
      "process.exit(process.argv[1] === '$(touch x); `y` && *' ? 0 : 1)",
      "$(touch x); `y` && *",
    ];
    expect(await scene.check({ kind: "command", command: process.execPath, args })).toEqual(
      createVerdict("pass"),
    );
  });

  it.each([
    ["is not there", { command: "no-such-program-here" }],
    ["may not be run", { command: "/dev/null" }],
    ["is a folder", { command: "/" }],
    ["has a NUL byte in its name", { command: "tr\0ue" }],
    ["has a NUL byte in an argument", { command: "true", args: ["\0"] }],
    ["has a NUL byte in its environment", { command: "true", env: { A: "\0" } }],
    ["has more arguments than the system takes", { command: "true", env: createLongEnvironment() }],
  ])("has no verdict where the program %s", async (_, program) => {
    using scene = createVerifierScene();
    expect(await scene.check({ kind: "command", ...program })).toMatchObject(matchNoVerdict("failed"));
    expect(scene.leftBehind()).toEqual([]);
  });

  it.each(["kill -9 $$", "kill -TERM $$", "kill -SEGV $$"])("has no verdict after `%s`", async (script) => {
    using scene = createVerifierScene();
    expect(await scene.check(createShellCheck(scene, script, { reviseOn: [137, 143] }))).toMatchObject(
      matchNoVerdict("failed"),
    );
  });

  it("does not mind a program that never reads what it is given, or closes its input", async () => {
    using scene = createVerifierScene();
    const result = { text: "x".repeat(2_000_000) };
    for (const script of ["exit 0", "exec <&-; exit 0", "head -c 1 > /dev/null"])
      expect(await scene.check(createShellCheck(scene, script), { result })).toEqual(createVerdict("pass"));
  });

  it("has no verdict of a result that is gigantic, and starts nothing for it", async () => {
    using scene = createVerifierScene();
    const result = { text: "x".repeat(5_000_000) };
    expect(await scene.check(createShellCheck(scene, 'touch "$OUT/started"'), { result })).toMatchObject(
      matchNoVerdict("failed"),
    );
    expect(existsSync(scene.outside("started"))).toBe(false);
  });

  it("has no verdict of a result that is no JSON", async () => {
    using scene = createVerifierScene();
    const loop: Record<string, unknown> = {};
    loop["loop"] = loop;
    expect(await scene.check(createShellCheck(scene, "exit 0"), { result: { outputs: loop } })).toMatchObject(
      matchNoVerdict("failed"),
    );
    expect(scene.leftBehind()).toEqual([]);
  });

  it("kills a program that writes without an end", async () => {
    using scene = createVerifierScene();
    expect(await scene.check(createShellCheck(scene, "yes gigabytes"))).toMatchObject(
      matchNoVerdict("failed"),
    );
    expect(await scene.check(createShellCheck(scene, "yes >&2 & sleep 0.1; exit 0"))).toEqual(
      createVerdict("pass"),
    );
  });

  it("removes the folder whatever the program has made of it", async () => {
    using scene = createVerifierScene();
    for (const script of [
      "mkdir -p a/b; touch a/b/c; chmod 000 a/b; chmod 500 a",
      "chmod 000 .",
      'ln -s "$OUT" link; ln -s / root; mkdir x; ln -s ../.. x/up',
      'cd "$OUT"; rm -rf "$HOME"',
    ])
      expect({ script, answer: await scene.check(createShellCheck(scene, script)) }).toEqual({
        script,
        answer: createVerdict("pass"),
      });
    expect(scene.leftBehind()).toEqual([]);
    expect(existsSync(scene.workspace)).toBe(true);
  });
});

describe("the end of a program", () => {
  const STUBBORN =
    'trap "" TERM INT HUP; sh -c \'trap "" TERM; echo $$ >> "$OUT/pids"; sleep 60\' & echo $$ >> "$OUT/pids"; sleep 60';

  async function waitUntilStarted(scene: Scene): Promise<readonly number[]> {
    return waitFor(
      () =>
        existsSync(scene.outside("pids")) && readPids(scene, "pids").length === 2 && readPids(scene, "pids"),
      {
        what: "the program and its child",
        everyMs: 10,
      },
    );
  }

  it("comes at the deadline for all that it started, though they ignore every signal that can be ignored", async () => {
    using scene = createVerifierScene();
    const startMs = performance.now();
    const answer = scene.check(createShellCheck(scene, STUBBORN), { withinMs: 2_000 });
    const pids = await waitUntilStarted(scene);
    expect(await answer).toMatchObject(matchNoVerdict("timed_out"));
    expect(performance.now() - startMs).toBeLessThan(20_000);
    await waitFor(() => pids.every(isGone), { what: "their end" });
    expect(scene.leftBehind()).toEqual([]);
  });

  it("comes when the coordinator stops", async () => {
    using scene = createVerifierScene();
    const stop = new AbortController();
    const answer = scene.check(createShellCheck(scene, STUBBORN), { signal: stop.signal });
    const pids = await waitUntilStarted(scene);
    stop.abort();
    expect(await answer).toMatchObject(matchNoVerdict("unavailable"));
    await waitFor(() => pids.every(isGone), { what: "their end" });
    expect(scene.leftBehind()).toEqual([]);
  });

  it("comes for what it left running when it exited", async () => {
    using scene = createVerifierScene();
    const script =
      'sh -c \'echo $$ > "$OUT/pids"; sleep 60\' & while ! [ -s "$OUT/pids" ]; do :; done; exit 0';
    expect(await scene.check(createShellCheck(scene, script))).toEqual(createVerdict("pass"));
    const pids = readPids(scene, "pids");
    await waitFor(() => pids.every(isGone), { what: "its end" });
    expect(scene.leftBehind()).toEqual([]);
  });

  it("is not waited for where a daemon that left its group holds the output open", async () => {
    using scene = createVerifierScene();
    const daemon = `
      const { spawn } = require("node:child_process");
      const child = spawn("sleep", ["60"], { detached: true, stdio: ["ignore", "inherit", "ignore"] });
      require("node:fs").writeFileSync(process.env.OUT + "/pids", String(child.pid));
      child.unref();`;
    const startMs = performance.now();
    const answer = await scene.check({
      kind: "command",
      command: process.execPath,
      args: ["-e", daemon],
      env: { OUT: scene.outside("") },
    });
    expect(answer).toEqual(createVerdict("pass"));
    expect(performance.now() - startMs).toBeLessThan(20_000);
    for (const pid of readPids(scene, "pids")) process.kill(pid, "SIGKILL");
    expect(scene.leftBehind()).toEqual([]);
  });
});

describe("the last line of a program's output", () => {
  it("names criteria and a confidence", async () => {
    using scene = createVerifierScene();
    const script = `echo noise; echo '{"criteria":["lint","types","lint"],"confidence":0.5}'; echo; exit 1`;
    expect(await scene.check(createShellCheck(scene, script))).toEqual({
      ...createVerdict("fail"),
      criteria: ["lint", "types"],
      confidence: 0.5,
    });
  });

  it("is read where the line before it was long, and there was no line break behind it", async () => {
    using scene = createVerifierScene();
    const script = `head -c 1000000 /dev/zero | tr '\\0' x; printf '\\n{"criteria":["a"]}'`;
    expect(await scene.check(createShellCheck(scene, script))).toEqual({
      ...createVerdict("pass"),
      criteria: ["a"],
    });
  });

  const createKeys = (count: number): string[] => Array.from({ length: count }, (_, index) => `k${index}`);

  it.each([
    ["nothing", ""],
    ["no JSON", "all well"],
    ["a list", "[]"],
    ["null", "null"],
    ["an empty object", "{}"],
    ["a verdict", '{"verdict":"fail"}'],
    ["no criteria", '{"criteria":[]}'],
    ["more text than is kept", "x".repeat(20_000)],
    ["the end of too long a line", `${"x".repeat(20_000)}${'{"criteria":["a"]'.padEnd(16 * 1_024 - 1)}}`],
    ["another line behind it", '{"criteria":["a"]}\nmore'],
  ])("is dropped as a whole where it has %s", async (_, line) => {
    using scene = createVerifierScene();
    expect(await checkPrinting(scene, line)).toEqual(createVerdict("pass"));
  });

  it.each([
    ["a text for criteria", '{"criteria":"lint"}'],
    ["a criterion that is no key", '{"criteria":["sources missing"],"confidence":0.2}'],
    ["too many criteria", JSON.stringify({ criteria: createKeys(65) })],
    ["a text for the confidence", '{"confidence":"0.2"}'],
    ["too much confidence", '{"criteria":["a"],"confidence":1.5}'],
    ["too little confidence", '{"confidence":-0.1}'],
    ["null for the confidence", '{"criteria":["a"],"confidence":null}'],
    ["no number for the confidence", '{"confidence": NaN}'],
    ["the confidence in single quotes", "{'confidence': 0.1}"],
    ["the confidence behind a byte order mark", "\ufeff{'confidence': 0.1}"],
    ["half of an object", '{"confidence": 0.'],
    ["an object and more on the same line", '{"confidence": 0.9}.'],
    ["an object that is too long", `{"confidence":0.1,"notes":"${"x".repeat(20_000)}"}`],
    ["an object that is too long behind a short line", `{}\n{"criteria":["a"]${" ".repeat(20_000)}}`],
    ["an object with too many spaces behind it", `{"confidence":0.9}${" ".repeat(20_000)}`],
    ["something before many blank lines", `{"confidence":"low"}${"\n".repeat(20_000)}`],
    ["something before a line of spaces", '{"confidence":"low"}\n\u00a0\u3000\ufeff\u2028\n'],
    ["something before more spaces than a chunk has", `{"confidence":"low"}\n${"\u3000".repeat(60_000)}`],
    ["something behind many spaces", `${" ".repeat(20_000)}{"confidence":"low"}`],
  ])("makes a pass no verdict where it states %s", async (_, line) => {
    using scene = createVerifierScene();
    expect(await checkPrinting(scene, line)).toMatchObject(matchNoVerdict("malformed"));
  });

  it.each([
    ["fail", 1],
    ["revise", 3],
  ] as const)("that cannot be read leaves a %s what it is", async (verdict, code) => {
    using scene = createVerifierScene();
    const script = `echo '{"criteria":["a b"],"confidence":"high"}'; exit ${code}`;
    expect(await scene.check(createShellCheck(scene, script, { reviseOn: [3] }))).toEqual(
      createVerdict(verdict),
    );
  });

  it("names keys that are keys, or nothing, whatever it says", () => {
    const values = fc.record(
      {
        criteria: fc.oneof(fc.array(fc.string()), fc.jsonValue()),
        confidence: fc.oneof(fc.double(), fc.jsonValue()),
      },
      { requiredKeys: [] },
    );
    const lines = fc.oneof(
      fc.string(),
      fc.json(),
      values.map((value) => JSON.stringify(value)),
    );
    fc.assert(
      fc.property(lines, (line) => {
        const { criteria = [KEY], confidence = 0, ...others } = readProgramLine(line) ?? {};
        expect(others).toEqual({});
        expect(criteria.length).toBeGreaterThan(0);
        for (const key of criteria) expect(key).toMatch(/^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,63}$/u);
        expect(confidence).toBeGreaterThanOrEqual(0);
        expect(confidence).toBeLessThanOrEqual(1);
      }),
      { numRuns: Number(process.env["PROPERTY_RUNS"] ?? 300) * 3 },
    );
  });
});

/** Checks by a program that prints the text and ends well. */
function checkPrinting(scene: Scene, text: string): ReturnType<Scene["check"]> {
  const say = `let all = ""; process.stdin.setEncoding("utf8"); process.stdin.on("data", (some) => { all += some; });
    process.stdin.on("end", () => process.stdout.write(JSON.parse(all).text));`;
  const program = { kind: "command", command: process.execPath, args: ["-e", say] };
  return scene.check(program, { result: { text } });
}

function createLongEnvironment(): Record<string, string> {
  return Object.fromEntries(Array.from({ length: 8_000 }, (_, index) => [`V${index}`, "x".repeat(1_000)]));
}
