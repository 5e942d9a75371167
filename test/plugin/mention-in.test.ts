/** Which agent a message is for. */
import { describe, expect, it } from "vitest";
import { findAgentsNamed, findMention } from "../../src/plugins/openclaw/chats/mention-in.ts";
import { HANDING, HELPER } from "./chat-stage.ts";

describe("a message", () => {
  const ids = [HELPER, HANDING, "core.test.twin", "local.test.twin"];

  it.each([
    [`@${HELPER} do this`, HELPER, "do this"],
    ["@helper: do this\nand that", HELPER, "do this\nand that"],
    ["  @Core.Test.Helper, do", HELPER, "do"],
    ["@the-bot <@U0123> @helper do", HELPER, "do"],
    ["@core.test.twin do", "core.test.twin", "do"],
    ["@helper.", HELPER, ""],
    [`${" ".repeat(300)}@helper do`, HELPER, "do"],
  ])("%j is for an agent", (text, agentId, task) => {
    expect(findMention(text, ids)).toEqual({ kind: "agent", agentId, text: task });
  });

  it.each([
    ["do this, @helper"],
    ["helper do this"],
    ["@helpers do this"],
    ["@helper's work"],
    ["a@helper do"],
    ["@"],
    [`@${"x".repeat(5_000)}`],
    [`${" ".repeat(253)}@helperful do`],
    ["@a @b @c @d @helper do"],
  ])("%j is for none", (text) => {
    expect(findMention(text, ids)).toBeUndefined();
  });

  it("that names several agents is for none of them", () => {
    expect(findMention("@twin do", ids)).toMatchObject({ kind: "several", agentIds: ids.slice(2) });
    expect(findAgentsNamed("", ids)).toEqual([]);
  });
});
