import { describe, expect, it, vi } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { UsePlans } from "../../src/plugins/openclaw/runtime-access/plan-access.ts";
import { registerCoordinationCommands } from "../../src/plugins/openclaw/register-commands.ts";
import type { OpenClawPluginApi } from "../../src/plugins/openclaw/host/sdk.ts";
import { createQuestionReads, findOnlyOpenQuestion } from "../../src/plugins/reports/find-questions.ts";
import { contentOf, OWNER } from "../support/ledger-fixtures.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { openTestLedger } from "../support/temp-ledger.ts";
import { recordContests } from "../cli/recorded-contests.ts";
import { openQuestionStage, say } from "./question-stage.ts";

const OTHER = "agent:other:main" as SessionKey;
const APPROVAL = { kind: "approval" } as const;

describe("/coordination approve and deny", () => {
  it("answers in the name that the channel vouches for, and says what that brought about", async () => {
    await using stage = await openQuestionStage();
    const questionId = await stage.ask("May I?", OTHER, APPROVAL);
    expect(await say(stage, `approve ${questionId}`)).toBe(
      "Approved: the agent is told yes. (co-1:escalation-1)",
    );
    expect(await stage.answers("co-1")).toEqual([
      {
        escalationId: "escalation-1",
        answer: "approve",
        through: "chat",
        by: { kind: "person", id: "telegram:42", session: OWNER },
      },
    ]);
  });

  it("without an id means the only open question of the session's own coordinations", async () => {
    await using stage = await openQuestionStage();
    await stage.ask("theirs?", OTHER, APPROVAL);
    await stage.ask("ours?", OWNER, APPROVAL);
    expect(await say(stage, "  DENY  ")).toBe("Denied: the agent is told no. (co-2:escalation-1)");
    expect(await say(stage, "deny")).toBe("No question is open.");
  });

  it("without an id where several are open names them and answers none", async () => {
    await using stage = await openQuestionStage();
    await stage.ask("a?", OWNER, APPROVAL);
    await stage.ask("b?", OWNER, APPROVAL);
    expect(await say(stage, "approve")).toBe(
      "Several questions are open: co-1:escalation-2, co-1:escalation-1. Name one of them.",
    );
    expect(await stage.answers("co-1")).toEqual([]);
  });

  it("without an id means a question of a plan of its subagents, too, in each session around it", async () => {
    await using stage = await openQuestionStage();
    await stage.ask("theirs?", OTHER, APPROVAL);
    const child = await stage.spawn();
    for (const [number, sessionKey] of [OWNER, child].entries()) {
      const questionId = await stage.submitDoubted(child, `plan-${number}`);
      expect(await say(stage, "questions", { sessionKey })).toMatch(
        new RegExp(`^${questionId} [^\\n]*$`, "u"),
      );
      expect(await say(stage, "deny", { sessionKey })).toBe(
        `Denied: step a is skipped. (plan-${number}:escalation-1)`,
      );
      await stage.pass(60_000);
    }
  });

  it("without an id means a question of a plan of its subagents, also where the log that has the spawn is damaged", async () => {
    await using stage = await openQuestionStage();
    const child = await stage.spawn();
    await stage.submitDoubted(child, "plan-1");
    forge(
      stage.ledgerPath,
      "delete from event where sequence = 2 and run_key = (select run_key from run where run_id = 'co-1')",
    );
    const store = await openTestLedger(stage.ledgerPath, { mode: "read" });
    const reads = createQuestionReads(store);
    await expect(reads.view("co-1" as CoordinationId)).rejects.toThrow();
    expect(await findOnlyOpenQuestion(reads, OWNER)).toMatchObject({
      kind: "found",
      found: { view: { coordinationId: "plan-1" } },
    });
    await store.close();
  });

  it("without an id and without a session asks for the id", async () => {
    await using stage = await openQuestionStage();
    await stage.ask("a?", OWNER, APPROVAL);
    expect(await say(stage, "approve", { sessionKey: undefined })).toBe(
      "Which question? Try: /coordination approve ID",
    );
  });

  it("tells whoever is late who came first", async () => {
    await using stage = await openQuestionStage();
    await stage.ask("a?", OWNER, APPROVAL);
    await say(stage, "approve");
    expect(await say(stage, "deny co-1:escalation-1", { senderId: "43" })).toMatch(
      /^The question is closed already: approved by person telegram:42 through chat at 2026-.*Z\.$/u,
    );
  });

  it("does not take a sentence for an id", async () => {
    await using stage = await openQuestionStage();
    await stage.ask("a?", OWNER, APPROVAL);
    expect(await say(stage, "approve it please")).toBe("Too many words. Try: /coordination approve ID");
    expect(await stage.answers("co-1")).toEqual([]);
  });
});

describe("/coordination answer", () => {
  it("takes the text behind the id, as it was written", async () => {
    await using stage = await openQuestionStage();
    const questionId = await stage.ask("Which?");
    expect(await say(stage, `answer ${questionId}  the  second one: "b"\nplease`)).toBe(
      "Answered: the agent is told your answer. (co-1:escalation-1)",
    );
    const { ref } = contentOf(JSON.stringify({ text: 'the  second one: "b"\nplease' }));
    expect(await stage.answers("co-1")).toMatchObject([{ answer: "answer", through: "chat", text: ref }]);
  });

  it("takes all of the text where no id is there, also where its first word begins one", async () => {
    await using stage = await openQuestionStage();
    await stage.ask("Which?");
    expect(await say(stage, "answer co is the right one")).toMatch(/^Answered: /u);
    const { ref } = contentOf(JSON.stringify({ text: "co is the right one" }));
    expect(await stage.answers("co-1")).toMatchObject([{ text: ref }]);
  });

  it.each([
    ["co-1:escalation-1, Use staging", ""],
    ["escalation-1 Use staging", ""],
    ["co-1:escalation-1: Use staging", ""],
    ["co-10:escalation Use staging", " co-10:escalation-1."],
    ["co-10:es Use staging", " co-10:escalation-1."],
    ["co-1 Use staging", " co-1:escalation-1."],
  ])("does not take what names no whole id for a text: %s", async (args, ids) => {
    await using stage = await openQuestionStage();
    for (let count = 0; count < 10; count += 1)
      await stage.ask("Which?", count === 9 ? OWNER : (`agent:${count}:main` as SessionKey));
    const [word] = args.split(" ");
    expect(await say(stage, `answer ${args}`)).toBe(
      `Name the whole id before the text: ${JSON.stringify(word)} is a part of one.${ids || " There are: /coordination questions"}`,
    );
    expect(await stage.answers("co-10")).toEqual([]);
    expect(await say(stage, "answer co-10:escalation-1 Use staging")).toMatch(/^Answered: /u);
  });

  it("of a question that is not there says so, and does not take the id for a text", async () => {
    await using stage = await openQuestionStage();
    await stage.ask("Which?");
    expect(await say(stage, "answer co-9:escalation-1 yes")).toBe(
      'No question has the id "co-9:escalation-1".',
    );
    expect(await stage.answers("co-1")).toEqual([]);
  });

  it.each(["answer", "answer   ", "answer co-1:escalation-1"])(
    "%j has no text, and says so",
    async (args) => {
      await using stage = await openQuestionStage();
      await stage.ask("Which?");
      expect(await say(stage, args)).toBe("There is no text. Try: /coordination answer ID TEXT");
    },
  );
});

describe("who may answer by chat", () => {
  const refused = "You may not answer questions here.";

  it.each([
    ["who may not command the agent", { isAuthorizedSender: false }],
    ["a gateway client that may only write", { gatewayClientScopes: ["operator.read", "operator.write"] }],
    ["a gateway client without scopes", { gatewayClientScopes: [] }],
  ])("is not %s", async (_, from) => {
    await using stage = await openQuestionStage();
    await stage.ask("a?", OWNER, APPROVAL);
    expect(await say(stage, "answer co-1:escalation-1 secret words", from)).toBe(refused);
    expect(await stage.answers("co-1")).toEqual([]);
    expect(stage.lines).toEqual([
      {
        level: "warn",
        message: "a sender who may not answer questions by chat was refused",
        fields: { channel: "telegram", sender: "42", command: "answer", question: "co-1:escalation-1" },
      },
    ]);
  });

  it("is in the log where it was refused, whoever it was and whatever it wrote, in a short line", async () => {
    await using stage = await openQuestionStage({ approvers: [] });
    const long = "secret".repeat(20_000);
    for (const [args, from] of [
      ["approve", { senderId: undefined }],
      [`approve ${long}`, { senderId: long, channel: long }],
      [long, { isAuthorizedSender: false }],
      [undefined, { isAuthorizedSender: false }],
    ] as const)
      expect(await say(stage, args, from)).toBe(refused);
    expect(stage.lines.map(({ level, fields }) => ({ level, command: fields["command"] }))).toEqual([
      { level: "warn", command: "approve" },
      { level: "warn", command: "approve" },
      { level: "warn", command: undefined },
      { level: "warn", command: undefined },
    ]);
    expect(JSON.stringify(stage.lines).length).toBeLessThan(2_000);
  });

  it.each([["operator.approvals"], ["operator.admin"]])("is a gateway client with %s", async (scope) => {
    await using stage = await openQuestionStage();
    await stage.ask("a?", OWNER, APPROVAL);
    expect(await say(stage, "approve", { channel: "webchat", gatewayClientScopes: [scope] })).toMatch(
      /^Approved/u,
    );
  });

  it.each([
    [{ senderId: "43" }],
    [{ channel: "slack" }],
    [{ senderId: undefined }],
    [{ senderId: "" }],
    [{ channel: "telegram:42", senderId: "" }],
    [{ senderId: "42 " }],
  ])("is none but the approvers where the operator names them: not %j", async (from) => {
    await using stage = await openQuestionStage({ approvers: ["telegram:42"] });
    await stage.ask("a?", OWNER, APPROVAL);
    expect(await say(stage, "approve", from)).toBe(refused);
    expect(await stage.answers("co-1")).toEqual([]);
    expect(await say(stage, "approve")).toMatch(/^Approved/u);
  });

  it.each([[undefined], [""]])(
    "is nobody whose name is %j, whatever the operator names",
    async (senderId) => {
      await using stage = await openQuestionStage({
        approvers: ["telegram:", "telegram:undefined", "telegram"],
      });
      await stage.ask("a?", OWNER, APPROVAL);
      expect(await say(stage, "approve", { senderId })).toBe(refused);
    },
  );

  it("is nobody where the operator names nobody", async () => {
    await using stage = await openQuestionStage({ approvers: [] });
    await stage.ask("a?", OWNER, APPROVAL);
    expect(await say(stage, "approve")).toBe(refused);
  });

  it("takes names and session keys of any length", async () => {
    await using stage = await openQuestionStage();
    await stage.ask("a?", OWNER, APPROVAL);
    const from = { senderId: "x".repeat(100_000), sessionKey: "y".repeat(100_000) };
    expect(await say(stage, "approve co-1:escalation-1", from)).toMatch(/^Approved/u);
  });
});

describe("/coordination questions", () => {
  it("tells what is asked in the session's coordinations, how to answer and until when", async () => {
    await using stage = await openQuestionStage();
    await stage.ask("theirs?", OTHER);
    await stage.ask("Which of\u001b[31m them?\nSay \u202eso");
    const reply = await say(stage, "questions");
    expect(reply).toMatch(
      /^co-2:escalation-1 \(answer or deny; until 2026-[^)]+Z\): the owner: its agent asks\. It wrote: "Which of\[31m them\? Say so"\.$/u,
    );
    expect(await say(stage, "questions all")).toContain("co-1:escalation-1");
  });

  it("is short, however many and however long the questions are", async () => {
    await using stage = await openQuestionStage();
    const options = Array.from({ length: BOUNDS.optionsMax }, (_, index) => `${index}`.repeat(2_000));
    for (let requestCount = 0; requestCount < 8; requestCount += 1)
      await stage.ask(`${requestCount}`.repeat(4_000), OWNER, { options });
    const reply = await say(stage, "questions");
    expect(reply.split("\n")).toHaveLength(6);
    expect(reply.endsWith("\nAnd more.")).toBe(true);
    expect(reply.length).toBeLessThan(5_000);
  });

  it("does not name the resource of a write, nor who stands against it", async () => {
    await using stage = await openQuestionStage();
    await recordContests(stage.ledgerPath, "file:/repo/notes.md");
    const reply = await say(stage, "questions");
    expect(reply).toMatch(/: step review \(step-1\): others stand against its write\.$/u);
  });

  it("says where nothing is asked", async () => {
    await using stage = await openQuestionStage();
    expect(await say(stage, "questions")).toBe(
      "No question is open here. Others: /coordination questions all",
    );
    expect(await say(stage, "questions all")).toBe("No question is open.");
  });
});

describe("the chat command", () => {
  it.each([undefined, "", "help", "approval", "\u0000"])("of %j explains itself", async (args) => {
    const use: UsePlans = () => Promise.reject(new Error("it must not be asked"));
    expect(await say({ use }, args)).toContain("/coordination approve ID\n");
  });

  it("never throws into the host (H2), and tells no secrets of an unexpected failure", async () => {
    const failWith =
      (error: unknown): UsePlans =>
      () => {
        throw error;
      };
    const full = new CoordinationError("LEDGER_FULL", "no space");
    expect(await say({ use: failWith(full) }, "approve")).toBe("That did not work: no space (LEDGER_FULL).");
    for (const error of [new TypeError("/home/x"), "text", undefined])
      expect(await say({ use: failWith(error) }, "questions")).toMatch(/^That did not work: something/u);
  });

  it("is offered to authorised senders only, and answers with text alone", async () => {
    const commands: Parameters<OpenClawPluginApi["registerCommand"]>[0][] = [];
    const logger = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };
    const api = { logger, registerCommand: (command: (typeof commands)[number]) => commands.push(command) };
    registerCoordinationCommands(api as unknown as OpenClawPluginApi);
    const [command] = commands;
    expect(command).toMatchObject({ name: "coordination", requireAuth: true, acceptsArgs: true });
    const message = { channel: "telegram", isAuthorizedSender: false, commandBody: "/coordination approve" };
    expect(await command?.handler(message as never)).toEqual({ text: "You may not answer questions here." });
    expect(logger.warn).toHaveBeenCalledOnce();
  });
});
