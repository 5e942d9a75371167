import { beforeEach, describe, expect, it, vi } from "vitest";
import type { ChannelNotice } from "../../src/agents/coordination/ports/human-channel.ts";
import type { TakeChannelAnswer } from "../../src/plugins/channels.ts";
import { createApprovalChannel } from "../../src/plugins/openclaw/host/host-approval.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { OWNER } from "../support/ledger-fixtures.ts";
import { HOUR_MS, noticeOf, NOW_MS, QUESTION_ID } from "./human-notices.ts";
import { logLines } from "./question-stage.ts";

type Call = (method: string, options: { timeoutMs: number }, params: object) => unknown;
const { harness } = vi.hoisted<{ harness: { call: Call } }>(() => ({ harness: { call: () => undefined } }));
vi.mock("../../src/plugins/openclaw/host/sdk.ts", () => ({
  loadHarness: () =>
    Promise.resolve({
      callGatewayTool: (...args: Parameters<Call>) => Promise.resolve().then(() => harness.call(...args)),
    }),
}));

interface HostCall {
  readonly method: string;
  readonly options: object;
  readonly params: Readonly<Record<string, unknown>>;
}

let askedCalls: HostCall[];

/** The host answers the request with `request`, and whoever waits for the decision with `decision`. */
function scriptApproval(request: unknown, decision: unknown = new Promise(() => undefined)): void {
  harness.call = (method, options, params) => {
    askedCalls.push({ method, options, params: params as HostCall["params"] });
    const answer = method === "plugin.approval.request" ? request : decision;
    if (answer instanceof Error) throw answer;
    return answer;
  };
}

beforeEach(() => {
  askedCalls = [];
});

/** A decision as the host tells it: it names nobody. */
const createDecision = (rest: object): object => ({
  id: "approval-1",
  createdAtMs: NOW_MS,
  expiresAtMs: NOW_MS + 600_000,
  terminalReason: "user",
  ...rest,
});

const ACCEPTED = { id: "approval-1", status: "accepted" };

async function notifyApproval(
  notice: ChannelNotice = noticeOf(),
  refused?: Awaited<ReturnType<TakeChannelAnswer>>,
) {
  const answers: unknown[] = [];
  const { logger, lines } = logLines();
  const take: TakeChannelAnswer = (answer, through) => {
    answers.push({ ...answer, through });
    return Promise.resolve(refused);
  };
  const channel = createApprovalChannel({ pluginId: "coordination", logger, now: () => NOW_MS, take });
  const outcome = await channel.notify(notice);
  await waitUntilSettled();
  return { outcome, answers, lines };
}

const DELIVERED = { kind: "delivered", tries: 1 };
const matchFailed = (message: string) => ({ kind: "failed", tries: 1, message });

describe("an approval of the host's", () => {
  it("is asked for in the owner's session, for one decision at a time, and the notice is delivered", async () => {
    scriptApproval(ACCEPTED);
    expect((await notifyApproval(noticeOf({ text: "secret\u0000 words" }))).outcome).toEqual(DELIVERED);
    expect(askedCalls).toEqual([
      {
        method: "plugin.approval.request",
        options: { timeoutMs: 10_000 },
        params: {
          pluginId: "coordination",
          sessionKey: OWNER,
          twoPhase: true,
          timeoutMs: 600_000,
          allowedDecisions: ["allow-once", "deny"],
          title: "Coordination: The result of step a states a low confidence.",
          description: `The result of step a states a low confidence. The agent wrote: "secret\\u0000 words" Answer here, or with /coordination approve ${QUESTION_ID}`,
        },
      },
      {
        method: "plugin.approval.waitDecision",
        options: { timeoutMs: 610_000 },
        params: { id: "approval-1" },
      },
    ]);
  });

  it.each([
    ["no-break spaces", "\u00a0"],
    ["narrow no-break spaces", "\u202f"],
    ["ideographic spaces", "\u3000"],
    ["fillers", "\u3164"],
  ])(
    "has plain spaces in place of %s, which the host would write out and find too long",
    async (_what, space) => {
      scriptApproval(ACCEPTED);
      const text = `Remove${space}the${space}table?${space.repeat(600)}`;
      await notifyApproval(noticeOf({ title: `A${space}question.`, text }));
      const [{ params } = { params: {} as HostCall["params"] }] = askedCalls;
      const { title, description } = params as { readonly title: string; readonly description: string };
      expect(title).toBe("Coordination: A question.");
      expect(description).toMatch(/^A question\. The agent wrote: "Remove the table\? /);
      expect(description).not.toContain(space);
      expect(description.length).toBeLessThanOrEqual(512);
    },
  );

  it.each([
    ["joiners", "\u200d"],
    ["non-joiners", "\u200c"],
  ])("has no %s, which the host would write out, too", async (_what, joiner) => {
    scriptApproval(ACCEPTED);
    const text = `Remove the ta${joiner}ble?${joiner.repeat(600)}`;
    await notifyApproval(noticeOf({ title: `A ques${joiner}tion.`, text }));
    expect(askedCalls[0]?.params).toMatchObject({
      title: "Coordination: A question.",
      description: `A question. The agent wrote: "Remove the table?" Answer here, or with /coordination approve ${QUESTION_ID}`,
    });
  });

  it("is asked for in the session that people talk to, also where a subagent of it owns the plan", async () => {
    scriptApproval(ACCEPTED);
    await notifyApproval(noticeOf({ ownerSession: "agent:main:subagent:1" }));
    expect(askedCalls[0]).toMatchObject({ params: { sessionKey: OWNER } });
  });

  it.each([
    ["allow-once", "approve"],
    ["deny", "deny"],
  ])("that people decide as %s answers the question as %s", async (decision, answer) => {
    scriptApproval(ACCEPTED, createDecision({ decision }));
    const { outcome, answers, lines } = await notifyApproval();
    expect(outcome).toEqual(DELIVERED);
    const by = { kind: "person" };
    expect(answers).toEqual([{ questionId: QUESTION_ID, answer, by, through: "host" }]);
    expect(lines).toEqual([]);
  });

  it.each([
    [HOUR_MS, 600_000],
    [600_001, 600_000],
    [60_000, 60_000],
    [1, 1],
  ])("of a question with %d ms left is asked for %d ms", async (leftMs, timeoutMs) => {
    scriptApproval(ACCEPTED);
    await notifyApproval(noticeOf({ deadlineAtMs: NOW_MS + leftMs }));
    expect(askedCalls.map(({ params }) => params["timeoutMs"])).toEqual([timeoutMs, undefined]);
    expect(askedCalls.map(({ options }) => options)).toEqual([
      { timeoutMs: 10_000 },
      { timeoutMs: timeoutMs + 10_000 },
    ]);
  });

  it.each([
    ["whose time is over", { deadlineAtMs: NOW_MS }, "the question's time is over"],
    ["that takes only words", { answers: ["answer", "deny"] }, "an approval takes no answer in words"],
  ])("of a question %s is not asked for, and the notice has failed", async (_, question, message) => {
    scriptApproval(ACCEPTED);
    expect((await notifyApproval(noticeOf(question))).outcome).toEqual(matchFailed(message));
    expect(askedCalls).toEqual([]);
  });

  it.each([
    ["is not connected", { id: "approval-1", status: "expired", decision: null }],
    ["cannot be named", { status: "accepted" }],
    ["is not there at all", { decision: null }],
  ])("where whoever could approve %s has failed at once, and nothing is waited for", async (_, request) => {
    scriptApproval(request);
    expect((await notifyApproval()).outcome).toEqual(matchFailed("nobody is connected who could approve"));
    expect(askedCalls).toHaveLength(1);
  });

  it.each([[new Error("gateway closed")], [undefined], [{ id: 5 }], ["accepted"]])(
    "has failed and throws nothing where the host answers %s",
    async (request) => {
      scriptApproval(request);
      expect((await notifyApproval()).outcome).toMatchObject({ kind: "failed", tries: 1 });
    },
  );

  it.each([
    ["nobody decided", { id: "approval-1", decision: null }],
    ["it ended", {}],
    ["more was allowed than was offered", createDecision({ decision: "allow-always" })],
    ["its time was over", createDecision({ decision: null, terminalReason: "timeout" })],
    ["the host found nobody to ask", createDecision({ decision: "deny", terminalReason: "no-route" })],
    ["the host lost its record", createDecision({ decision: "deny", terminalReason: "storage-corrupt" })],
  ])("answers nothing where %s", async (_, decision) => {
    scriptApproval(ACCEPTED, decision);
    expect(await notifyApproval()).toEqual({ outcome: DELIVERED, answers: [], lines: [] });
  });

  it.each([[new Error("gateway closed")], [null], [{ decision: 5 }]])(
    "answers nothing, and says so in the log, where the host then answers %s",
    async (decision) => {
      scriptApproval(ACCEPTED, decision);
      const { outcome, answers, lines } = await notifyApproval();
      expect({ outcome, answers }).toEqual({ outcome: DELIVERED, answers: [] });
      expect(lines).toMatchObject([{ level: "warn", fields: { question: QUESTION_ID } }]);
    },
  );

  it("that did not count is in the log with why, and changes nothing about the notice", async () => {
    scriptApproval(ACCEPTED, createDecision({ decision: "deny" }));
    const refused = { kind: "refused", code: "QUESTION_CLOSED", reason: "it is closed already" } as const;
    const { outcome, lines } = await notifyApproval(noticeOf(), refused);
    expect(outcome).toEqual(DELIVERED);
    expect(lines).toMatchObject([
      { level: "info", message: expect.stringContaining("closed already") as string },
    ]);
  });

  it("has texts of the length that the host takes, however long the question is", async () => {
    scriptApproval(ACCEPTED);
    await notifyApproval(noticeOf({ title: `t${"\u{1f600}".repeat(100)}`, text: "\u{1f600}".repeat(1_000) }));
    const [{ params } = { params: {} as HostCall["params"] }] = askedCalls;
    const { title, description } = params as { readonly title: string; readonly description: string };
    expect([title.length, description.length]).toEqual([80, 512]);
    expect([title, description].every((text) => text.isWellFormed())).toBe(true);
    expect(description.endsWith(` Answer here, or with /coordination approve ${QUESTION_ID}`)).toBe(true);
  });
});
