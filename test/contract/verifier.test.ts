/** Rules for all checks, and for those that look at nothing but the result. */
import { describe, expect, it } from "vitest";
import { createFakeClock } from "../support/fake-clock.ts";
import { matchNoVerdict, createVerdict, createVerifierScene } from "./verifier-scene.ts";

const NEVER = new Promise<never>(() => undefined);
const anySchema = { kind: "schema", schema: { type: "object" } };
const pattern = { kind: "pattern", pattern: "done" };

describe("a check against a schema", () => {
  const schema = { type: "object", required: ["count"], properties: { count: { type: "integer" } } };

  it.each([
    [{ count: 3 }, "pass"],
    [{ count: 3, more: "\0" }, "pass"],
    [{ count: "3" }, "fail"],
    [{}, "fail"],
    [undefined, "fail"],
  ] as const)("finds of the outputs %j: %s", async (outputs, expected) => {
    using scene = createVerifierScene();
    const answer = await scene.check({ kind: "schema", schema }, { result: { outputs } });
    expect(answer).toEqual(createVerdict(expected));
  });

  it.each([
    ["a type that there is not", { type: "number?" }],
    ["a pattern that needs backtracking", { properties: { a: { type: "string", pattern: "(a)\\1" } } }],
    ["a reference that leads nowhere", { $ref: "#/$defs/none" }],
    ["an endless reference", { $ref: "#" }],
  ])("rules on nothing by a schema with %s", async (_, unusable) => {
    using scene = createVerifierScene();
    for (const outputs of [undefined, { a: 1 }])
      expect(await scene.check({ kind: "schema", schema: unusable }, { result: { outputs } })).toMatchObject(
        matchNoVerdict("failed"),
      );
  });

  it("rules on nothing where holding the outputs against it takes too long", async () => {
    using scene = createVerifierScene();
    const slow = { properties: { report: { type: "string", pattern: "^(?:[A-Za-z0-9 .,\\n]{1,400})+$" } } };
    const outputs = { report: "a fine word, ".repeat(8_000) };
    const answer = await scene.check({ kind: "schema", schema: slow }, { result: { outputs } });
    expect(answer).toMatchObject(matchNoVerdict("failed"));
  });

  it("has no verdict where what checks schemas cannot be loaded, or never is", async () => {
    using broken = createVerifierScene({ contract: () => Promise.reject(new Error("s3cret")) });
    const outputs = { a: 1 };
    expect(await broken.check(anySchema, { result: { outputs } })).toMatchObject(matchNoVerdict("failed"));
    using hanging = createVerifierScene({ contract: () => NEVER });
    expect(await hanging.check(anySchema, { result: { outputs }, withinMs: 30 })).toMatchObject(
      matchNoVerdict("timed_out"),
    );
    expect(JSON.stringify([broken.logged, hanging.logged])).not.toContain("s3cret");
  });
});

describe("a check by a pattern", () => {
  it.each([
    ["done", "it is done", "pass"],
    ["done", "it is not", "fail"],
    ["^a.c$", "a\0c", "pass"],
    ["^\\s*$", "", "pass"],
    ["\\p{L}+", "\u{1f600}é", "pass"],
  ])("finds %s in %j: %s", async (pattern, text, expected) => {
    using scene = createVerifierScene();
    const isThere = await scene.check({ kind: "pattern", pattern }, { result: { text } });
    expect(isThere).toEqual(createVerdict(expected as "pass"));
    const isAbsent = await scene.check({ kind: "pattern", pattern, absent: true }, { result: { text } });
    expect(isAbsent).toEqual(createVerdict(expected === "pass" ? "fail" : "pass"));
  });

  const leak = "AKIA0123456789ABCDEF";

  it.each([
    ["in an output", { key: leak }],
    ["deep in the outputs", { files: [{ lines: ["a", leak] }] }],
    ["as the name of an output", { [leak]: 1 }],
  ])("finds what must be absent %s, whatever the last words are", async (_, outputs) => {
    using scene = createVerifierScene();
    const check = { kind: "pattern", pattern: "AKIA[0-9A-Z]{16}", absent: true };
    expect(await scene.check(check, { result: { text: "Done.", outputs } })).toEqual(createVerdict("fail"));
    const clean = { key: "none" };
    expect(await scene.check(check, { result: { text: "Done.", outputs: clean } })).toEqual(
      createVerdict("pass"),
    );
  });

  it.each([
    ['password="[a-z]+"', { note: 'password="sesame"' }],
    ["BEGIN KEY\\n[a-z]+", { note: "BEGIN KEY\nsesame" }],
    ["BEGIN KEY\\n[a-z]+", { lines: ["BEGIN KEY", "sesame"] }],
    ['BEGIN "KEY"', { 'BEGIN "KEY"': 1 }],
    ['"level":"secret"', { level: "secret" }],
  ])("finds %s in the outputs %j, as text and as JSON", async (pattern, outputs) => {
    using scene = createVerifierScene();
    const result = { text: "Done.", outputs };
    expect(await scene.check({ kind: "pattern", pattern }, { result })).toEqual(createVerdict("pass"));
    expect(await scene.check({ kind: "pattern", pattern, absent: true }, { result })).toEqual(
      createVerdict("fail"),
    );
  });

  it("is met by the last words or by the outputs, where it asks for a match", async () => {
    using scene = createVerifierScene();
    for (const result of [
      { text: "it is done", outputs: { count: 1 } },
      { text: "See above.", outputs: { state: "done" } },
    ])
      expect(await scene.check(pattern, { result })).toEqual(createVerdict("pass"));
    expect(await scene.check(pattern, { result: { text: "See above.", outputs: { count: 1 } } })).toEqual(
      createVerdict("fail"),
    );
  });

  it("looks at nothing but the last words where the agent gave no outputs of its own", async () => {
    using scene = createVerifierScene();
    const mustBeginWithHash = { kind: "pattern", pattern: "^[^#]", absent: true };
    // They are then kept as the one output `text`.
    const result = { text: "# Report", outputs: { text: "# Report" } };
    expect(await scene.check(mustBeginWithHash, { result })).toEqual(createVerdict("pass"));
    expect(
      await scene.check(
        { ...mustBeginWithHash, pattern: "^\\s*$" },
        { result: { text: "a", outputs: { n: 1 } } },
      ),
    ).toEqual(createVerdict("pass"));
  });

  it.each([
    ["is none", "("],
    ["needs backtracking", "(a)\\1"],
    ["looks behind", "(?<!a)b"],
    ["repeats repetitions", "((a{100}){100}){100}"],
    ["becomes large", `(${"a".repeat(900)}){1000}`],
  ])("has no verdict, and takes no time, where the pattern %s", async (_, pattern) => {
    using scene = createVerifierScene();
    const startMs = performance.now();
    for (const absent of [true, false])
      expect(await scene.check({ kind: "pattern", pattern, absent })).toMatchObject(matchNoVerdict("failed"));
    expect(performance.now() - startMs).toBeLessThan(5_000);
  });

  it("takes time that is linear in the result, where other engines take for ever", async () => {
    using scene = createVerifierScene();
    const answer = await scene.check(
      { kind: "pattern", pattern: "^(a+)+$" },
      { result: { text: `${"a".repeat(100_000)}!` } },
    );
    expect(answer).toEqual(createVerdict("fail"));
  });

  it("has no verdict where the result is too long for the pattern, wanted or not", async () => {
    using scene = createVerifierScene();
    const text = "a".repeat(50_000_000);
    const startMs = performance.now();
    for (const absent of [true, false])
      expect(await scene.check({ ...pattern, absent }, { result: { text } })).toMatchObject(
        matchNoVerdict("failed"),
      );
    expect(performance.now() - startMs).toBeLessThan(5_000);
  });
});

describe("the time of a check", () => {
  it("is over before it begins where the deadline is now", async () => {
    using scene = createVerifierScene();
    expect(await scene.check(pattern, { withinMs: 0, result: { text: "done" } })).toMatchObject(
      matchNoVerdict("timed_out"),
    );
  });

  it("is over at once where the coordinator has stopped, which is no timeout", async () => {
    using scene = createVerifierScene();
    const answer = await scene.check(pattern, { signal: AbortSignal.abort(), result: { text: "done" } });
    expect(answer).toMatchObject(matchNoVerdict("unavailable"));
  });

  it("ends with the verdict, and nothing of it stays behind", async () => {
    const clock = createFakeClock();
    using scene = createVerifierScene({ clock });
    expect(await scene.check(pattern, { result: { text: "done" } })).toEqual(createVerdict("pass"));
    expect(clock.pending).toBe(0);
  });

  it("ends at the deadline, and nothing of it stays behind", async () => {
    const clock = createFakeClock();
    using scene = createVerifierScene({ clock, contract: () => NEVER });
    const { signal } = new AbortController();
    const answer = scene.check(anySchema, { withinMs: 500, signal, result: { outputs: {} } });
    await clock.advance(499);
    expect(clock.pending).toBe(1);
    await clock.advance(1);
    expect(await answer).toMatchObject(matchNoVerdict("timed_out"));
    expect(clock.pending).toBe(0);
  });

  it("does not let a verdict count that came when it was over", async () => {
    const clock = createFakeClock();
    using scene = createVerifierScene({
      clock,
      contract: () => {
        // Something held the event loop up, the timer too.
        clock.jump(clock.now() + 10_000);
        return Promise.resolve({ check: () => [] });
      },
    });
    const answer = await scene.check(anySchema, { withinMs: 500, result: { outputs: {} } });
    expect(answer).toMatchObject(matchNoVerdict("timed_out"));
  });
});

describe("what is told of a check without a verdict", () => {
  it("names the place and the reason, and nothing of the result or the check", async () => {
    using scene = createVerifierScene({
      workspaceOf: () => {
        throw new Error("s3cret");
      },
    });
    const answer = await scene.check(
      { kind: "file", path: "s3cret" },
      { result: { text: "s3cret", task: "s3cret", outputs: { s3cret: 1 } } },
    );
    expect(answer).toMatchObject(matchNoVerdict("failed"));
    expect(scene.logged).toHaveLength(1);
    expect(scene.logged[0]?.fields).toEqual({
      runId: "co-1",
      stepId: "build",
      attempt: 2,
      check: "check-1",
      because: "failed",
    });
    expect(JSON.stringify([answer, scene.logged])).not.toContain("s3cret");
  });
});
