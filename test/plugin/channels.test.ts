import { describe, expect, it } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import type { HumanChannel } from "../../src/agents/coordination/ports/human-channel.ts";
import { createChannelFinder, type ChannelDependencies } from "../../src/plugins/channels.ts";
import { createHookHost } from "../../src/plugins/hooks/hook-host.ts";
import type { AnswerQuestion } from "../../src/plugins/hooks/hook-types.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createPlugin } from "./hooks-parts.ts";
import { HOUR_MS, noticeOf, NOW_MS, QUESTION_ID } from "./human-notices.ts";
import { logLines } from "./question-stage.ts";

const webhooks = { ops: { url: "https://hooks.example/", secret: "a secret of the operator's" } };
const { escalations } = parsePluginConfig({ coordination: { phase1: { escalations: { webhooks } } } });

const host: HumanChannel = { notify: () => Promise.resolve({ kind: "delivered", tries: 1 }) };
const chat: HumanChannel = { notify: () => Promise.resolve({ kind: "delivered", tries: 2 }) };

function createChannels(
  takeAnswer: ChannelDependencies["takeAnswer"] = () => Promise.resolve(undefined),
  clock = createFakeClock(NOW_MS),
) {
  const { logger } = logLines();
  const hooks = createHookHost({ clock, logger });
  const readVariable = () => undefined;
  return createChannelFinder({
    escalations,
    hooks,
    logger,
    clock,
    readVariable,
    takeAnswer,
    ofHost: { host, chat },
  });
}

describe("the ways to people by their names", () => {
  it("are the host's own, webhooks that are configured, and plugins", () => {
    const channelOf = createChannels();
    expect([channelOf("host"), channelOf("chat")]).toEqual([host, chat]);
    expect(channelOf("webhook:ops")).toBeDefined();
    expect(channelOf("webhook:ops")).toBe(channelOf("webhook:ops"));
    expect(channelOf("plugin:pager")).toBeDefined();
  });

  it.each(["webhook:gone", "webhook:", "webhook:__proto__", "webhook:constructor", "gone", "", "Host"])(
    "%j is none",
    (channel) => {
      expect(createChannels()(channel)).toBeUndefined();
    },
  );

  it("bring the answer of a plugin in its name, and tell the plugin why it did not count", async () => {
    const answers: unknown[] = [];
    const reports: unknown[] = [];
    createPlugin(
      { escalate: async (_, answer) => void reports.push(await answer({ answer: "approve", by: "ada" })) },
      "pager",
    );
    const channelOf = createChannels((answer, through) => {
      answers.push({ ...answer, through });
      return Promise.resolve({ kind: "refused", code: "COORDINATION_ENDED", reason: "it is over" });
    });
    await channelOf("plugin:pager")?.notify(noticeOf());
    const by = { kind: "plugin", id: "ada" };
    expect(answers).toEqual([{ questionId: QUESTION_ID, answer: "approve", by, through: "plugin:pager" }]);
    expect(reports).toEqual([{ counted: false, because: "closed" }]);
  });

  it.each([
    ["was answered before", { code: "QUESTION_CLOSED", resolution: "answered" }, "closed"],
    ["was withdrawn", { code: "COORDINATION_ENDED", resolution: "cancelled" }, "closed"],
    ["is not known any more", { code: "NOT_FOUND" }, "closed"],
    ["was closed at its deadline", { code: "QUESTION_CLOSED", resolution: "expired" }, "expired"],
    ["has passed its deadline", { code: "QUESTION_CLOSED" }, "expired"],
    ["takes other answers", { code: "ANSWER_REFUSED" }, "not_an_answer"],
  ] as const)(
    "tell a plugin, before the deadline and after it, that a question %s",
    async (_what, fields, because) => {
      const kept: AnswerQuestion[] = [];
      createPlugin({ escalate: (_, answer) => void kept.push(answer) }, "pager");
      const clock = createFakeClock(NOW_MS);
      const takeAnswer = () => Promise.resolve({ kind: "refused", reason: "words", ...fields } as const);
      const question = noticeOf({ deadlineAtMs: NOW_MS + HOUR_MS });
      await createChannels(takeAnswer, clock)("plugin:pager")?.notify(question);
      for (const ms of [0, HOUR_MS]) {
        await clock.advance(ms);
        expect(await kept[0]?.({ answer: "deny" })).toEqual({ counted: false, because });
      }
    },
  );
});
