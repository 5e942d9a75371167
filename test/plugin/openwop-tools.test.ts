/** Owns: tools in the words of completions that know none. */
import { describe, expect, it } from "vitest";
import {
  flattenMessages,
  formatToolRules,
  readToolTurn,
} from "../../src/plugins/openclaw/openwop/openwop-tools.ts";

const TOOL = { name: "measure", description: "Measures.", parameters: { type: "object" } };

describe("tools in words", () => {
  it("are told with how to ask for them, and not at all where there are none", () => {
    expect(formatToolRules([TOOL])).toContain('{"tool_calls":[{"name":"<tool>","arguments":{}}]}');
    expect(formatToolRules([TOOL])).toContain("measure");
    expect(formatToolRules([])).toBe("");
  });

  it("are asked for by a JSON object of that form", () => {
    expect(
      readToolTurn({ say: "let me see", tool_calls: [{ name: "measure", arguments: { at: 1 } }] }),
    ).toEqual({
      text: "let me see",
      calls: [{ name: "measure", args: { at: 1 } }],
    });
  });

  it("are asked for also without arguments, and with some that are none", () => {
    const tool_calls = [{ name: "measure" }, { name: "measure", arguments: "all" }];
    expect(readToolTurn({ tool_calls })?.calls).toEqual([{ name: "measure", args: {} }, { name: "measure" }]);
  });

  it("are asked for as often as the model likes: whoever asked rules on calls beyond a bound", () => {
    const tool_calls = Array.from({ length: 66 }, () => ({ name: "a" }));
    expect(readToolTurn({ tool_calls })?.calls).toHaveLength(66);
  });

  it.each([
    undefined,
    "measure",
    { result: 3 },
    { tool_calls: [] },
    { tool_calls: [{ name: "" }] },
    { tool_calls: [{ name: "a" }], result: "both" },
  ])("are not asked for by anything else: %o", (value) => {
    expect(readToolTurn(value)).toBeUndefined();
  });

  it("come back in the next message, those of one turn in one", () => {
    const toolCalls = [{ callId: "1", name: "measure", args: { at: 1 } }];
    const back = (content: string) => ({ role: "tool", callId: "1", name: "measure", content }) as const;
    expect(
      flattenMessages([
        { role: "user", content: "how deep?" },
        { role: "assistant", content: "let me see", toolCalls },
        back("three"),
        back("four"),
        { role: "assistant", content: "seven" },
      ]),
    ).toEqual([
      { role: "user", content: "how deep?" },
      {
        role: "assistant",
        content: '{"say":"let me see","tool_calls":[{"name":"measure","arguments":{"at":1}}]}',
      },
      {
        role: "user",
        content:
          '{"tool_result":{"name":"measure","content":"three"}}\n{"tool_result":{"name":"measure","content":"four"}}',
      },
      { role: "assistant", content: "seven" },
    ]);
  });
});
