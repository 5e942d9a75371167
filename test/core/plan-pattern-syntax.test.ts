import { describe, expect, it } from "vitest";
import { readPattern } from "../../src/agents/coordination/plan/pattern-syntax.ts";

describe("a pattern", () => {
  it.each([
    ...[
      "",
      "^a+$",
      "^(a+)+$",
      "(?:a|b){2,5}?",
      "[^\\s\\d-]",
      "[[:x]",
      "\\p{Lu}\\P{L}",
      "\\u{1F600}\\u0041\\x41\\cA",
    ],
    ...["(a{30}){30}", "\\(?=\\)", "[(?=]", "\\\\1", "a{1000}", "a{0}", "\\bword\\b", "[^]", "\u{1f600}"],
    ...["^\\S+@\\S+\\.\\S+$", "^\\d{4}-\\d{2}-\\d{2}T[\\d:.]+Z$", "(a|b)*(c|(d|e))+", "\\/\\[\\]\\{\\}"],
  ])("such as %j is taken", (pattern) => {
    expect(readPattern(pattern).problem).toBeUndefined();
  });

  it.each([
    ["(", "it is not a regular expression"],
    ["a{2,1}", "it is not a regular expression"],
    ["\ud800", "it is not a regular expression"],
    ["x".repeat(1_001), "it has more than 1000 characters"],
    ["a(?=b)", "it cannot be matched in linear time: leave out (?=...)"],
    ["(?:(?!b))", "it cannot be matched in linear time: leave out (?!...)"],
    ["(?<=b)a", "it cannot be matched in linear time: leave out (?<=...)"],
    ["(?<!b)a", "it cannot be matched in linear time: leave out (?<!...)"],
    ["(a)\\1", "it cannot be matched in linear time: leave out the back reference \\1"],
    ["(?<n>a)", "groups have no names here: write ( instead of (?<name>"],
    ["(?i:a)", "flags such as (?i: are not supported"],
    ["[\\b]", "[\\b] is not supported: write \\x08"],
    ["\\ud83d\\ude00", "half of a character (\\ud83d) is not supported: write \\u{...}"],
    ["[\\p{Script=Greek}]", "\\p{Script=Greek} is not supported: write a general category such as"],
    ["\\P{Letter}", "\\P{Letter} is not supported"],
    ["a{1001}", "nothing in it may be repeated more than 1000 times"],
    ["((a{11}){10,}){10}", "nothing in it may be repeated more than 1000 times"],
    ["(?:abcdefghij){500}", "with its repetitions written out it has more than 5000 parts"],
  ])("such as %j is refused, and the reason says what to write", (pattern, reason) => {
    expect(readPattern(pattern).problem).toContain(reason);
  });
});
