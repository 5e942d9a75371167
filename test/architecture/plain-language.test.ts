/** Owns: that the rules of our language and of the core refuse what they are there for, and nothing else. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "..", "..");

const RULES = [
  "language/function-names",
  "language/variable-names",
  "language/type-names",
  "language/literal-spreads",
  "language/comment-sentences",
  "language/public-docstrings",
  "core/pure",
];

const REFUSED: readonly (readonly [example: string, code: string, rule: string])[] = [
  ["a function named by a participle", "function failed(): void {}", "function-names"],
  ["an arrow function named by a noun", "const outcome = (): number => 1;", "function-names"],
  ["a bare participle before Of", "function toldOf(): void {}", "function-names"],
  ["a refusal that throws", "function refuseRun(): void {}", "function-names"],
  [
    "a refusal that throws later",
    "const refuseRun = (): Promise<void> => Promise.resolve();",
    "function-names",
  ],
  ["a variable that says nothing", "const it = 1;", "variable-names"],
  ["a parameter that says nothing", "function readRun(given: string): void {}", "variable-names"],
  ["a type named by a participle", "interface Asking { text: string }", "type-names"],
  ["a type named by a preposition", "type Under = string;", "type-names"],
  ["a type named by a pronoun", "type Who = string;", "type-names"],
  ["a type named by an adjective", "interface Small { size: number }", "type-names"],
  ["a type named by an irregular participle", "interface Given { text: string }", "type-names"],
  ["a literal spread into a literal", "const size = { ...{ width: 1 }, height: 2 };", "literal-spreads"],
  ["a comment without a subject", "// What is left is read again.", "comment-sentences"],
  ["a later sentence without one", "/** The runs.\n * Of a fork: its own. */", "comment-sentences"],
  ["an export without a docstring", "export const limit = 1;", "public-docstrings"],
  ["an export with a mere comment", "// A limit.\nexport const limit = 1;", "public-docstrings"],
  ["a clock in the core", "const now = new Date();", "pure"],
  ["waiting in the core", "const readRun = async (): Promise<void> => undefined;", "pure"],
  ["a locale in the core", "const order = 'a'.localeCompare('b');", "pure"],
];

const ALLOWED: readonly (readonly [example: string, code: string])[] = [
  ["a verb", "function readRun(): void {}"],
  ["a refusal that is returned", "const refuseRun = (): string | undefined => undefined;"],
  ["a predicate", "const isOpen = (): boolean => true;"],
  ["what belongs to something", "function statusOf(): void {}"],
  ["a conversion", "function stepFromRow(): void {}"],
  ["a class and a component of constants", "class Run {}\nconst LIMIT = (): number => 1;"],
  ["a type of two words", "interface HeldResult { text: string }"],
  ["a type of one word that is a noun", "interface Question { text: string }"],
  ["a conditional spread", "const size = { ...(wide && { width: 1 }) };"],
  ["what and of inside a sentence", "// Says what is left of it. Offers nothing."],
  ["an export with a docstring", "/** At most so many. */\nexport const limit = 1;"],
  ["a time that is an argument", "const date = new Date(1);"],
];

const EXAMPLES = [...REFUSED, ...ALLOWED];

let folder: string;
/** The rules that each example breaks; all are linted by one process, because starting one is what takes time. */
let problems: Map<string, string[]>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "coordination-lint-"));
  await writeFile(
    join(folder, "config.json"),
    JSON.stringify({
      jsPlugins: ["plain-language.js", "pure-core.js"].map((file) => join(ROOT, "scripts", "lint", file)),
      categories: { correctness: "off" },
      rules: Object.fromEntries(RULES.map((rule) => [rule, "error"])),
    }),
  );
  for (const [index, [, code]] of EXAMPLES.entries()) await writeFile(join(folder, `${index}.ts`), code);
  problems = await listProblems();
});

afterAll(() => rm(folder, { recursive: true }));

async function listProblems(): Promise<Map<string, string[]>> {
  const program = join(ROOT, "node_modules", "oxlint", "bin", "oxlint");
  const lint = promisify(execFile)(
    process.execPath,
    [program, "--config", "config.json", "--format", "json"],
    {
      cwd: folder,
    },
  );
  // It ends with 1, because there are problems.
  const { stdout } = await lint.catch((error: unknown) => error as { stdout: string });
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: { code: string; filename: string }[] };
  const found = new Map<string, string[]>();
  for (const { code, filename } of diagnostics) {
    const rule = /\((.+)\)$/u.exec(code)?.[1] ?? code;
    found.set(filename, [...(found.get(filename) ?? []), rule]);
  }
  return found;
}

const problemsOf = (code: string): string[] =>
  problems.get(`${EXAMPLES.findIndex((example) => example[1] === code)}.ts`) ?? [];

describe("the rules of our language", () => {
  it.each(REFUSED)("refuse %s", (_example, code, rule) => {
    expect(problemsOf(code)).toEqual([rule]);
  });

  it.each(ALLOWED)("allow %s", (_example, code) => {
    expect(problemsOf(code)).toEqual([]);
  });
});
