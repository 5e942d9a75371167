import { describe, expect, it } from "vitest";
import type { ContentRef } from "../../src/agents/coordination/contracts/fact-fields.ts";
import { listReadableResults } from "../../src/agents/coordination/ledger/readable-results.ts";
import type { Step } from "../../src/agents/coordination/ledger/state.ts";

const createRef = (text: string): ContentRef => ({ ref: text }) as unknown as ContentRef;
const OUTPUT = createRef("output");
const SHORTENED = [
  { attempt: 1, text: createRef("first") },
  { attempt: 2, text: createRef("second") },
];
const WITHHELD = { attempt: 2, text: createRef("kept back") };

const createStep = (phase: object, notes: object = {}): Step =>
  ({ phase: { attempt: 2, ...phase }, ...notes }) as unknown as Step;

const listResults = (step: Step): string[] =>
  listReadableResults(step).map(
    ({ kind, attempt, content }) => `${kind} ${attempt} ${(content as unknown as { ref: string }).ref}`,
  );

const TEXTS = ["text 1 first", "text 2 second"];

describe("the results of a step that may be read", () => {
  it("are none where there are none", () => {
    expect(listResults(createStep({ status: "running" }))).toEqual([]);
    expect(listResults(createStep({ status: "completed" }))).toEqual([]);
  });

  it("are its shortened texts while it works, and its outputs after them once it is completed", () => {
    const notes = { shortened: SHORTENED };
    expect(listResults(createStep({ status: "running", output: OUTPUT }, notes))).toEqual(TEXTS);
    expect(listResults(createStep({ status: "completed", output: OUTPUT }, notes))).toEqual([
      ...TEXTS,
      "outputs 2 output",
    ]);
  });

  it("G1: are none while it is held, or its words are withheld", () => {
    expect(listResults(createStep({ status: "held" }, { shortened: SHORTENED }))).toEqual([]);
    expect(
      listResults(createStep({ status: "running" }, { shortened: SHORTENED, withheld: WITHHELD })),
    ).toEqual([]);
  });

  it("have the withheld text once it is released, and only that of the attempt that counts", () => {
    const completed = { status: "completed", output: OUTPUT };
    const notes = { shortened: SHORTENED, withheld: WITHHELD };
    expect(listResults(createStep(completed, notes))).toEqual([
      ...TEXTS,
      "text 2 kept back",
      "outputs 2 output",
    ]);
    expect(listResults(createStep({ ...completed, attempt: 3 }, notes))).toEqual([
      ...TEXTS,
      "outputs 3 output",
    ]);
  });

  it("are the outputs alone where people replaced what was withheld", () => {
    const completed = { status: "completed", output: OUTPUT, released: "replaced" };
    expect(listResults(createStep(completed, { shortened: SHORTENED, withheld: WITHHELD }))).toEqual([
      "outputs 2 output",
    ]);
  });

  it.each(["verification_failed", "withheld", "result_lost"])("G1: are none after %s", (code) => {
    expect(listResults(createStep({ status: "failed", error: { code } }, { shortened: SHORTENED }))).toEqual(
      [],
    );
  });

  it("are its shortened texts after any other failure", () => {
    const failed = createStep({ status: "failed", error: { code: "run_failed" } }, { shortened: SHORTENED });
    expect(listResults(failed)).toEqual(TEXTS);
  });
});
