import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { outputsFromReply } from "../../src/agents/coordination/plan/read-outputs.ts";

const block = (text: string): string => `\`\`\`json\n${text}\n\`\`\``;
const unreadable = { kind: "unreadable", path: "(root)", message: "output is not a JSON object" };

describe("outputsFromReply", () => {
  it.each<[string, string]>([
    ["the reply as a whole", ' \n{"a": 1}\n'],
    ["a fenced block", `Done.\n${block('{"a": 1}')}\nBye.`],
    ["the last of several blocks", `${block('{"a": 0}')}\n${block('{"a": 1}')}\n\`\`\`\n{"a": 2}\n\`\`\``],
    ["a block with spaces and another case", 'Done:\r\n  ``` JSON  \r\n{"a": 1}\r\n  ```  \r\n'],
    ["a block that is closed at the end of its last line", '```json\n{\n "a": 1 }```'],
  ])("finds the object that is %s", (_, reply) => {
    for (const hasContract of [true, false])
      expect(outputsFromReply(reply, hasContract)).toEqual({ kind: "outputs", outputs: { a: 1 } });
  });

  it.each([
    ["prose", "It is done."],
    ["nothing", ""],
    ["a list", "[1]"],
    ["a number", "5"],
    ["null", "null"],
    ["a block that is no object", block("[1]")],
    ["a last block that is broken", `${block('{"a": 1}')}\n${block('{"a": ')}`],
    ["a block that is cut off", '```json\n{"a": 1}'],
    ["a block of another language", '```jsonc\n{"a": 1}\n```'],
    ["an object with words around it", 'Here: {"a": 1}'],
    ["an object that is too deep", `{"a":${"[".repeat(32)}${"]".repeat(32)}}`],
    ["an object that no stack could hold", `{"a":${"[".repeat(90_000)}${"]".repeat(90_000)}}`],
    [
      "an object that grows beyond the bound",
      `{"a":[${Array.from({ length: 30_000 }, () => "1e20").join()}]}`,
    ],
  ])("takes %s as text without a contract, and as no outputs with one", (_, reply) => {
    expect(outputsFromReply(reply, false)).toEqual({ kind: "outputs", outputs: { text: reply } });
    expect(outputsFromReply(reply, true)).toEqual(unreadable);
  });

  it("cuts a text that would not fit as JSON, and says so", () => {
    for (const text of ["x", '"', "\n", "\u0001", "\u{1f600}"]) {
      const read = outputsFromReply(text.repeat(BOUNDS.replyCharsMax), false);
      const outputs = read.kind === "outputs" ? read.outputs : {};
      const { length } = JSON.stringify(outputs);
      expect(outputs["truncated"]).toBe(true);
      expect(length).toBeLessThanOrEqual(BOUNDS.outputCharsMax);
      expect(length).toBeGreaterThan(BOUNDS.outputCharsMax - 20);
      expect(JSON.stringify(outputs)).not.toContain("\\ud");
    }
  });

  it.each<[string, string, object | undefined]>([
    ["a whole block at the end", `log\n${block('{"a": 1}')}\n{"confidence": 0.9}`, { a: 1 }],
    ["a block whose beginning is not in the end", 'son\n{"a": 1}\n```', undefined],
    ["a fence in a line that may have begun before", '```json\n{"a": 1}\n```', undefined],
    ["a whole object that is not in a block", 'log\n{"a": 1}', undefined],
    ["no block at the end", "log\nlog", undefined],
  ])("takes nothing from the beginning of a reply that was cut, with %s", (_, end, outputs) => {
    for (const reply of [`${block('{"a": 0}')}\nlog`, '{"a": 0}']) {
      expect(outputsFromReply(reply, true, end)).toEqual(
        outputs
          ? { kind: "outputs", outputs }
          : {
              kind: "unreadable",
              path: "(root)",
              message:
                "the answer is longer than 200000 characters, and no whole `json` block is in its last 16000",
            },
      );
      expect(outputsFromReply(reply, false, end)).toEqual({
        kind: "outputs",
        outputs: outputs ?? { text: reply, truncated: true },
      });
    }
  });

  it("takes an object with a key __proto__ as data", () => {
    const read = outputsFromReply('{"__proto__": {"a": 1}}', true);
    expect(read.kind === "outputs" && Object.keys(read.outputs)).toEqual(["__proto__"]);
    expect(({} as { a?: number }).a).toBeUndefined();
  });

  it.each([
    ["fences", "```json\n".repeat(25_000)],
    ["closed fences", "```json\n```\n".repeat(16_000)],
    ["backticks", "`".repeat(200_000)],
    ["empty lines", "\n".repeat(200_000)],
    ["braces", "{".repeat(200_000)],
    ["spaces", ` ${" ".repeat(199_990)}x`],
  ])("reads a reply that is all %s in time", (_, reply) => {
    const began = performance.now();
    expect(outputsFromReply(reply, true)).toEqual(unreadable);
    expect(performance.now() - began).toBeLessThan(500);
  });

  it("always gives an object within the bounds, and what was an object back as it was", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), fc.json().map(block)), (reply) => {
        const read = outputsFromReply(reply, false);
        expect(read.kind === "outputs" && typeof read.outputs).toBe("object");
      }),
    );
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 5 })), (value) => {
        const outputs = JSON.parse(JSON.stringify(value)) as unknown;
        for (const reply of [JSON.stringify(value), `So:\n${block(JSON.stringify(value, null, 2))}`])
          expect(outputsFromReply(reply, true)).toEqual({ kind: "outputs", outputs });
      }),
    );
  });
});
