/** Text of others as it stands in a chat. */
import { describe, expect, it } from "vitest";
import { formatChatLine, formatChatText } from "../../src/plugins/openclaw/chats/chat-text.ts";
import { formatRunReply } from "../../src/plugins/openclaw/chats/mention-reply.ts";

describe("text of others in a chat", () => {
  it.each(["[[[", "[[[[", "[[[[[", "![[[", "[\u200b[[", "x[[[[[[y"])(
    "has no two brackets side by side that the host would obey: %j",
    (brackets) => {
      const hostile = `${brackets}reply_to:5]] and ${brackets}audio_as_voice]]`;
      for (const shown of [formatChatLine(hostile), formatChatText(hostile, 300)]) {
        expect(shown).not.toContain("[[");
        expect(shown).not.toContain("![");
      }
    },
  );
});

describe("an agent's answer in a chat", () => {
  it.each([
    ["is cut where it is too long only as it is shown", "[[".repeat(1_700), true],
    ["is whole where only spaces are left out", `done${" ".repeat(5_000)}`, false],
    ["is whole where it just fits", "x".repeat(3_500), false],
    ["is cut where it is longer by one", "x".repeat(3_501), true],
  ])("%s, and says where the rest is only where it is cut", (_, result, isCut) => {
    const reply = formatRunReply({ kind: "answered", agentId: "core.test.helper", runId: "run-1", result });
    expect(reply.includes("…")).toBe(isCut);
    expect(reply.includes("(The rest is in run-1.)")).toBe(isCut);
  });
});
