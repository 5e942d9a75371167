/** Owns: that the rules of our language refuse what they are there for, and nothing else. */
import tseslint from "typescript-eslint";
import { Linter } from "eslint";
import { describe, expect, it } from "vitest";
// @ts-expect-error The rules are plain JavaScript, because eslint loads them without a build.
import { plainLanguage } from "../../scripts/lint/plain-language.js";

const RULES = [
  "function-names",
  "variable-names",
  "literal-spreads",
  "comment-sentences",
  "public-docstrings",
];

function listProblems(code: string): string[] {
  const messages = new Linter().verify(
    code,
    [
      {
        files: ["**/*.ts"],
        languageOptions: { parser: tseslint.parser },
        plugins: { language: plainLanguage as NonNullable<Linter.Config["plugins"]>[string] },
        rules: Object.fromEntries(RULES.map((rule) => [`language/${rule}`, "error"])),
      },
    ],
    "example.ts",
  );
  return messages.map(({ ruleId }) => (ruleId ?? "syntax").replace("language/", ""));
}

describe("the rules of our language", () => {
  it.each([
    ["a function named by a participle", "function failed(): void {}", "function-names"],
    ["an arrow function named by a noun", "const outcome = (): number => 1;", "function-names"],
    ["a bare participle before Of", "function toldOf(): void {}", "function-names"],
    ["a variable that says nothing", "const it = 1;", "variable-names"],
    ["a parameter that says nothing", "function readRun(given: string): void {}", "variable-names"],
    ["a literal spread into a literal", "const size = { ...{ width: 1 }, height: 2 };", "literal-spreads"],
    ["a comment without a subject", "// What is left is read again.", "comment-sentences"],
    ["a later sentence without one", "/** The runs.\n * Of a fork: its own. */", "comment-sentences"],
    ["an export without a docstring", "export const limit = 1;", "public-docstrings"],
    ["an export with a mere comment", "// A limit.\nexport const limit = 1;", "public-docstrings"],
  ])("refuse %s", (_what, code, rule) => {
    expect(listProblems(code)).toEqual([rule]);
  });

  it.each([
    ["a verb", "function readRun(): void {}"],
    ["a predicate", "const isOpen = (): boolean => true;"],
    ["what belongs to something", "function statusOf(): void {}"],
    ["a conversion", "function stepFromRow(): void {}"],
    ["a class and a component of constants", "class Run {}\nconst LIMIT = (): number => 1;"],
    ["a conditional spread", "const size = { ...(wide && { width: 1 }) };"],
    ["what and of inside a sentence", "// Says what is left of it. Offers nothing."],
    ["an export with a docstring", "/** At most so many. */\nexport const limit = 1;"],
  ])("allow %s", (_what, code) => {
    expect(listProblems(code)).toEqual([]);
  });
});
