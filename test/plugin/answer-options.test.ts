import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { contentOf, OWNER } from "../support/ledger-fixtures.ts";
import { openQuestionStage, say } from "./question-stage.ts";

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

describe("/coordination answer where the question has options", () => {
  it("takes a number for the option that is shown with it, and says which that is", async () => {
    await using stage = await openQuestionStage();
    const options = ["dark\nred", "two mills", "MEDIA:/etc/passwd"];
    for (const [text, option, shown] of [
      ["1", options[0], String.raw`"dark\nred"`],
      ["2", options[1], '"two mills"'],
      ["3", options[2], '"MEDIA :/etc/passwd"'],
    ] as const) {
      const questionId = await stage.ask("Which?", OWNER, { options });
      expect(await say(stage, `answer ${questionId} ${text}`)).toBe(
        `Answered: the agent is told ${shown}. (${questionId})`,
      );
      expect((await stage.answers("co-1")).at(-1)).toMatchObject({
        text: contentOf(JSON.stringify({ text: option })).ref,
      });
    }
    await stage.ask("Which?", OWNER, { options });
    for (const text of ["0", "4", "1.", "dark", "1 2"])
      expect(await say(stage, `answer ${text}`)).toMatch(
        /^The question takes one of its options, or the number of one \(1 to 3\): "dark\\nred", "two mills", /u,
      );
  });

  it.each([
    [["staging", "3", "1"], "2"],
    [["0.5", "1.0", "2.0"], "2"],
    [["2 hours", "1 hour"], "1"],
    [["v2", "v1"], "1"],
    [["half a day", "½"], "1"],
  ])(
    "takes no number where an option has a digit, because it could mean another one: %j",
    async (options, number) => {
      await using stage = await openQuestionStage();
      await stage.ask("Which?", OWNER, { options });
      const offered = options.map((option) => JSON.stringify(option)).join(", ");
      expect(await say(stage, "questions")).toContain(`It takes exactly one of ${offered}.`);
      expect(await say(stage, `answer ${number}`)).toMatch(/^The question takes exactly one of /u);
      expect(await stage.answers("co-1")).toEqual([]);
    },
  );

  it.each([
    [["staging", "3", "1"], "1", "1"],
    [["dark\nred", "2 mills"], " dark red ", "dark\nred"],
    [["![logo](a.png)", "2"], "! [logo](a.png)", "![logo](a.png)"],
    [["[[reply_to:1]]", "MEDIA:/etc/passwd"], "MEDIA :/etc/passwd", "MEDIA:/etc/passwd"],
    [["1\ue000st", "2nd"], '"1st"', "1\ue000st"],
    [['a "b" 1', "2"], String.raw`a \"b\" 1`, 'a "b" 1'],
    [[`1${"x".repeat(2_000)}`, `2${"x".repeat(2_000)}`], `2${"x".repeat(748)}…`, `2${"x".repeat(2_000)}`],
  ])("takes an option as it is shown: %j", async (options, text, option) => {
    await using stage = await openQuestionStage();
    const questionId = await stage.ask("Which?", OWNER, { options });
    expect(await say(stage, "questions")).toContain(text.trim());
    expect(await say(stage, `answer ${questionId} ${text}`)).toMatch(/^Answered: the agent is told "/u);
    const { ref } = contentOf(JSON.stringify({ text: option }));
    expect(await stage.answers("co-1")).toMatchObject([{ text: ref }]);
  });

  it("takes no text as an option that several options look like", async () => {
    await using stage = await openQuestionStage();
    await stage.ask("Which?", OWNER, { options: ["![1", "! [ 1", "2 mills", "2 mountains"] });
    for (const text of ["! [1", "2 m…", "…"])
      expect(await say(stage, `answer ${text}`)).toMatch(/^The question takes exactly one of /u);
  });
});

describe("/coordination questions where a question has options", () => {
  it("tells the answers of which the question takes one", async () => {
    await using stage = await openQuestionStage();
    await stage.ask("Which?", OWNER, { options: ["blue", "dark\u202e\nred"] });
    expect(await say(stage, "questions")).toMatch(
      /It wrote: "Which\?"\. It takes one of these, or its number: 1 "blue", 2 "dark red"\.$/u,
    );
  });

  it("shows every option, and says where something of the words is missing", async () => {
    await using stage = await openQuestionStage();
    const options = Array.from(
      { length: BOUNDS.optionsMax },
      (_, index) => `${LETTERS[index]} ${"x".repeat(500)} end`,
    );
    const questionId = await stage.ask(`Which? ${"y".repeat(3_000)} end`, OWNER, { options });
    const reply = await say(stage, "questions");
    for (const [index] of options.entries()) expect(reply).toContain(` ${index + 1} "${LETTERS[index]} xxx`);
    expect(reply).not.toContain("end");
    expect(
      reply.endsWith(
        ` Cut here: read all of it with \`openclaw coordination questions show ${questionId}\`.`,
      ),
    ).toBe(true);
    await say(stage, `answer ${questionId} 16`);
    await stage.ask("y".repeat(1_000), OWNER, { options: ["z".repeat(700), "no"] });
    expect(await say(stage, "questions")).not.toContain("Cut here");
  });
});
