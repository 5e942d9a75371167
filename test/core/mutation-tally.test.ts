import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { EXPLAINED } from "../../scripts/mutate/explained.ts";
import {
  formatTally,
  tallyMutants,
  type ExplainedMutants,
  type Mutant,
} from "../../scripts/mutate/tally-mutants.ts";

const ROOT = join(import.meta.dirname, "../..");

const createMutant = (status: string, fields: Partial<Mutant> = {}): Mutant => ({
  file: "a.ts",
  line: 3,
  mutator: "EqualityOperator",
  code: "return a > b;",
  original: "a > b",
  replacement: "a >= b",
  status,
  ...fields,
});

const EXPLANATION: ExplainedMutants = {
  file: "a.ts",
  code: "return a > b;",
  changes: [["a > b", "a >= b"]],
  why: "Equal ones are the same.",
};

describe("the tally of mutants", () => {
  it("counts each by its end, and leaves out of the score those that could not be run", () => {
    const mutants = ["Killed", "Killed", "Timeout", "Survived", "NoCoverage", "RuntimeError"].map((status) =>
      createMutant(status),
    );
    expect(tallyMutants(mutants, [])).toMatchObject({
      mutants: 6,
      killed: 2,
      timedOut: 1,
      survived: 1,
      uncovered: 1,
      explained: 0,
      failed: 1,
      score: 60,
    });
  });

  it("sets apart a survivor that is explained, which is not killed all the same", () => {
    const tally = tallyMutants([createMutant("Killed"), createMutant("Survived")], [EXPLANATION]);
    expect(tally).toMatchObject({ survived: 0, explained: 1, score: 50, survivors: [] });
  });

  it.each<Partial<Mutant>>([
    { file: "b.ts" },
    { code: "return a > b || c;" },
    { original: "a" },
    { replacement: "a < b" },
  ])("does not take an explanation for that of another mutant: %j", (fields) => {
    expect(tallyMutants([createMutant("Survived", fields)], [EXPLANATION])).toMatchObject({
      survived: 1,
      explained: 0,
    });
  });

  it("explains a mutant of several lines by its words", () => {
    const mutant = createMutant("Survived", { original: "a\n    > b" });
    expect(tallyMutants([mutant], [EXPLANATION]).explained).toBe(1);
  });

  it("names each survivor with its place, the original and the replacement", () => {
    const tally = tallyMutants([createMutant("Survived"), createMutant("NoCoverage", { line: 9 })], []);
    expect(formatTally(tally).split("\n").slice(1)).toEqual([
      "a.ts:3 EqualityOperator",
      "  - a > b",
      "  + a >= b",
      "a.ts:9 EqualityOperator (without coverage)",
      "  - a > b",
      "  + a >= b",
    ]);
  });

  it("of nothing is whole", () => {
    expect(tallyMutants([], []).score).toBe(100);
  });
});

describe("explained mutants", () => {
  it.each(EXPLAINED.map((each) => [`${each.file}: ${each.code}`, each] as const))(
    "are of the source as it is: %s",
    (_, { file, code, changes, why }) => {
      const lines = readFileSync(join(ROOT, file), "utf8").split("\n");
      expect(lines.map((line) => line.trim())).toContain(code);
      expect(changes.length).toBeGreaterThan(0);
      expect(why).toMatch(/^[A-Z].*\.$/u);
    },
  );
});
