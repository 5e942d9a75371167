import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { fillInput, type FilledInput } from "../../src/agents/coordination/plan/fill-input.ts";
import { formatInstruction } from "../../src/agents/coordination/plan/instruction.ts";
import type { Json } from "../../src/agents/coordination/plan/step-graph.ts";
import { graphOf, step, stepOf } from "./plan-scene.ts";

/** The step `z` with this input, behind `a` and `b`. */
function fill(input: unknown, outputs: Readonly<Record<string, Json>>): FilledInput {
  const steps = [step("a"), step("b"), step("z", ["a", "b"], { fanIn: "any", input })];
  return fillInput(stepOf(graphOf(steps), "z"), (stepId) => outputs[stepId]);
}

const A = {
  text: "hello",
  count: 7,
  none: null,
  yes: true,
  list: [{ name: "x" }, [1, 2]],
  map: { k: "v" },
  ...JSON.parse('{"own": {"hasOwnProperty": 1}}'),
} as Record<string, Json>;

describe("fillInput", () => {
  it.each<[string, Json]>([
    ["{{steps.a.outputs.text}}", "hello"],
    ["{{steps.a.outputs.count}}", 7],
    ["{{steps.a.outputs.none}}", null],
    ["{{steps.a.outputs.list}}", [{ name: "x" }, [1, 2]]],
    ["{{steps.a.outputs.list[0].name}}", "x"],
    ["{{steps.a.outputs.list[1][0]}}", 1],
    ["{{steps.a.outputs.own.hasOwnProperty}}", 1],
    ["{{steps.b.outputs.x.y[3]}}", null],
    ["<{{steps.a.outputs.text}}>", "<hello>"],
    ["{{steps.a.outputs.count}}{{steps.a.outputs.yes}}", "7true"],
    ["n: {{steps.a.outputs.none}}, {{steps.b.outputs.x}}", "n: null, null"],
    ["of {{steps.a.outputs.map}}", 'of {"k":"v"}'],
  ])("puts in for %s what it stands for, with its type where it is alone", (text, value) => {
    expect(fill({ deep: [{ at: text }, text], same: "text" }, { a: A })).toEqual({
      kind: "filled",
      input: { deep: [{ at: value }, value], same: "text" },
    });
  });

  it.each<[string, string]>([
    ["text.length", "steps.a.outputs.text.length"],
    ["text[0]", "steps.a.outputs.text[0]"],
    ["list[2]", "steps.a.outputs.list[2]"],
    ["list.length", "steps.a.outputs.list.length"],
    ["none.x", "steps.a.outputs.none.x"],
    ["constructor", "steps.a.outputs.constructor"],
    ["map.toString", "steps.a.outputs.map.toString"],
    ["map.k.x[3]", "steps.a.outputs.map.k.x[3]"],
    ["nothing.at.all", "steps.a.outputs.nothing.at.all"],
  ])("finds no %s in the outputs of a completed step, alone or in a text", (path, place) => {
    const unfillable = { kind: "unfillable", path: "input.x[0]", message: `${place} is not there` };
    expect(fill({ x: [`{{steps.a.outputs.${path}}}`] }, { a: A })).toEqual(unfillable);
    expect(fill({ x: [`> {{steps.a.outputs.${path}}}`] }, { a: A })).toEqual(unfillable);
  });

  it("names a step in quotes where its id could be read as a path", () => {
    const steps = [step("a b[0]"), step("z", ["a b[0]"], { input: { x: "{{steps.a b[0].outputs.x}}" } })];
    expect(fillInput(stepOf(graphOf(steps), "z"), () => ({}))).toMatchObject({
      message: 'steps."a b[0]".outputs.x is not there',
    });
  });

  it("never takes what a step put out for a binding", () => {
    const outputs = { a: { x: "{{steps.b.outputs.secret}}" }, b: { secret: "s" } };
    const input = {
      alone: "{{steps.a.outputs.x}}",
      twice: "{{steps.a.outputs.x}}{{steps.b.outputs.secret}}",
    };
    expect(fill(input, outputs)).toEqual({
      kind: "filled",
      input: { alone: "{{steps.b.outputs.secret}}", twice: "{{steps.b.outputs.secret}}s" },
    });
  });

  it("leaves the plan's own input as it was, and keys that name prototypes as keys", () => {
    const input: unknown = JSON.parse('{"constructor": {"prototype": "{{steps.a.outputs.count}}"}}');
    const before = JSON.stringify(input);
    const filled = fill(input, { a: A });
    expect(JSON.stringify(filled)).toContain('{"constructor":{"prototype":7}}');
    expect(JSON.stringify(input)).toBe(before);
  });

  it.each([
    ["in places", { x: Array.from({ length: 1_000 }, () => "{{steps.a.outputs.big}}") }, "input.x[1]"],
    ["in one text", { x: "{{steps.a.outputs.big}} ".repeat(1_000) }, "input.x"],
  ])("ends at the bound of an input, %s", (_, input, path) => {
    expect(fill(input, { a: { big: "x".repeat(BOUNDS.outputCharsMax - 100) } })).toEqual({
      kind: "unfillable",
      path,
      message: expect.stringContaining(`more than ${BOUNDS.filledInputCharsMax} characters`) as string,
    });
  });

  it("gives JSON within the bound, or says what is wrong, whatever the outputs are", () => {
    const outputs = fc.dictionary(fc.constantFrom("x", "y", "__proto__"), fc.jsonValue());
    const text = fc.constantFrom(
      "{{steps.a.outputs.x}}",
      "{{steps.a.outputs.x.y[0]}}",
      "<{{steps.b.outputs.y}}>",
    );
    fc.assert(
      fc.property(outputs, fc.array(text), (ownFields, texts) => {
        const filled = fill({ texts }, { a: ownFields as Json, b: ownFields as Json });
        if (filled.kind === "unfillable") expect(filled.message).toMatch(/ is not there$/u);
        else {
          expect(JSON.parse(JSON.stringify(filled.input))).toHaveProperty("texts");
          for (const [index, each] of texts.entries())
            if (each === "{{steps.a.outputs.x}}")
              expect((filled.input["texts"] as unknown[])[index]).toBe(ownFields["x"]);
        }
      }),
    );
  });
});

describe("instructionOf", () => {
  it("is the task alone where there is no input", () => {
    expect(formatInstruction("Do it.", {})).toBe("Do it.");
  });

  it("has the input as JSON behind the task", () => {
    expect(formatInstruction("Do it.", { a: [1] })).toBe(
      'Do it.\n\nInput (JSON):\n{\n  "a": [\n    1\n  ]\n}',
    );
  });

  it("is no longer than a filled input may be, however many and deep its values are", () => {
    const ones: Json = Array.from({ length: 90_000 }, () => 1);
    const deep = Array.from({ length: 30 }).reduce<Json>((inner) => [inner], ones);
    const filled = fill({ x: "{{steps.a.outputs.deep}}", y: "{{steps.a.outputs.deep}}" }, { a: { deep } });
    if (filled.kind === "unfillable") throw new Error(filled.message);
    const text = formatInstruction("Do it.", filled.input);
    expect(text.length).toBeLessThan(BOUNDS.filledInputCharsMax + 100);
    expect(text).toBe(`Do it.\n\nInput (JSON):\n${JSON.stringify(filled.input)}`);
  });
});
