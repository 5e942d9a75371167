import { describe, expect, it } from "vitest";
import type { Gate } from "../../src/agents/coordination/contracts/verification.ts";
import {
  isEverythingWithheld,
  isQuestionWithheld,
  isResultReleased,
  isStrictGate,
} from "../../src/agents/coordination/ledger/withheld-words.ts";
import type { Step } from "../../src/agents/coordination/ledger/state.ts";
import { nameChild, stepId } from "./scene.ts";

const LENIENT: Gate = { threshold: 7_000 };
const STRICT: Gate = { threshold: 7_000, checks: ["lint"] };
const CHILD = nameChild("a");
const HOLDING: Gate = { threshold: 7_000, holdMismatch: true };
const RUNNING = { status: "running", attempt: 1, childSessionKey: CHILD };
const COMPLETED = { status: "completed", attempt: 1, child: { childSessionKey: CHILD } };
const DIFFERENCES = [{ field: "model", asked: "a", ran: "b" }];

const createStep = (gate: Gate | undefined, phase: object, notes: object = {}): Step =>
  ({ spec: { ...(gate && { gate }) }, phase, ...notes }) as unknown as Step;

describe("a gate", () => {
  it("is strict where it has checks or demands a confidence", () => {
    expect([STRICT, LENIENT, { ...LENIENT, checks: [] }].map(isStrictGate)).toEqual([true, false, false]);
    expect(isStrictGate({ ...LENIENT, requireConfidence: true })).toBe(true);
  });
});

describe("whether all words are kept back of a step", () => {
  it.each<[string, Step, boolean]>([
    ["without a gate", createStep(undefined, RUNNING), false],
    [
      "without a gate, of which something was withheld",
      createStep(undefined, RUNNING, { withheld: {} }),
      false,
    ],
    ["whose gate asks for a threshold alone", createStep(LENIENT, RUNNING), false],
    ["whose gate is strict", createStep(STRICT, RUNNING), true],
    ["of which something was withheld", createStep(LENIENT, RUNNING, { withheld: {} }), true],
    ["that is held", createStep(LENIENT, { ...RUNNING, status: "held" }), true],
    ["that differs, where that holds", createStep(HOLDING, RUNNING, { differences: DIFFERENCES }), true],
    [
      "that differs, where nothing holds it",
      createStep(LENIENT, RUNNING, { differences: DIFFERENCES }),
      false,
    ],
    ["that does not differ", createStep(HOLDING, RUNNING, { differences: [] }), false],
    ["of which no difference is known", createStep(HOLDING, RUNNING), false],
    ["that is completed", createStep(STRICT, COMPLETED), false],
    ["whose result people replaced", createStep(STRICT, { ...COMPLETED, released: "replaced" }), true],
  ])("%s", (_, step, isKept) => {
    expect(isEverythingWithheld(step, CHILD)).toBe(isKept);
    expect(isEverythingWithheld(step, undefined)).toBe(isKept);
  });

  it("whose earlier attempt says them: by any gate, also after the end", () => {
    const earlier = nameChild("earlier");
    for (const phase of [RUNNING, COMPLETED])
      expect(isEverythingWithheld(createStep(LENIENT, phase), earlier)).toBe(true);
    expect(isEverythingWithheld(createStep(undefined, RUNNING), earlier)).toBe(false);
  });

  it("that is completed: none, unless people replaced its result", () => {
    const phases = [
      COMPLETED,
      { ...COMPLETED, released: "as_it_is" },
      { ...COMPLETED, released: "replaced" },
    ];
    expect(
      [...phases, { status: "failed" }].map((phase) => isResultReleased(createStep(LENIENT, phase))),
    ).toEqual([true, true, false, false]);
  });
});

describe("a question", () => {
  const steps = new Map([[stepId(1), createStep(STRICT, RUNNING)]]);

  it("of an agent whose words are kept back is kept back, too", () => {
    expect(isQuestionWithheld(steps, { cause: "agent", stepId: stepId(1), askedBy: CHILD })).toBe(true);
  });

  it("of anybody else is not", () => {
    expect(isQuestionWithheld(steps, { cause: "conflict", stepId: stepId(1), askedBy: CHILD })).toBe(false);
    expect(isQuestionWithheld(steps, { cause: "agent", stepId: stepId(2), askedBy: CHILD })).toBe(false);
    expect(isQuestionWithheld(steps, { cause: "agent", askedBy: CHILD })).toBe(false);
  });
});
