/** Whose words a message in the name of a session is, from what it and its children said last. */
import { describe, expect, it } from "vitest";
import { createSpokenWords } from "../../src/plugins/openclaw/runtime-access/spoken-words.ts";

const CODE = "The code is 4711.";
const LONG = "I looked into the book, and the code that it gives is 4711.";

describe("what a child said", () => {
  it("is remembered before what is recalled of earlier times", () => {
    const words = createSpokenWords();
    for (let number = 0; number < 5; number += 1)
      words.noteOfChild("p", `c-${number}`, `new text ${number}.`);
    for (let number = 0; number < 8; number += 1)
      words.recallOfChild("p", `c-${number}`, `old text ${number}.`);
    expect(words.findChild("p", "New text 0!")).toBe("c-0");
    expect(words.findChild("p", "old text 2.")).toBe("c-2");
    expect(words.findChild("p", "old text 3.")).toBeUndefined();
    words.recallOwn("p", "I say: old text 2.");
    expect(words.findChild("p", "old text 2.")).toBeUndefined();
  });

  it("is remembered for so long as there is room", () => {
    const words = createSpokenWords();
    for (let number = 0; number < 20; number += 1)
      words.noteOfChild("p", `c-${number}`, `text number ${number}.`);
    expect(words.findChild("p", "Text number 19!")).toBe("c-19");
    expect(words.findChild("p", "text number 1.")).toBeUndefined();
    expect(words.findChild("p", "text number 11.")).toBeUndefined();
    expect(words.findChild("p", "...")).toBeUndefined();
  });

  it("is not its parent's where the parent said it before it did other things", () => {
    const words = createSpokenWords();
    words.noteOfChild("p", "c", CODE);
    expect(words.findChild("p", CODE)).toBe("c");
    words.noteOwn("p", CODE);
    for (let number = 0; number < 8; number += 1) words.noteOwn("p", `exec ls ${number}`);
    for (let number = 0; number < 8; number += 1) words.noteToTools("p", "letters ".repeat(9_000));
    expect(words.findChild("p", CODE)).toBeUndefined();
  });

  it("is its parent's, too, where the parent said it far down in a long text", () => {
    const words = createSpokenWords();
    words.noteOfChild("p", "c", CODE);
    words.noteOwn("p", `${"Some words first. ".repeat(400)}\n${CODE}`);
    expect(words.findChild("p", CODE)).toBeUndefined();
  });

  it("is not every short message that its text happens to have in it", () => {
    const words = createSpokenWords();
    words.noteOfChild("p", "c", LONG);
    expect(words.findChild("p", "OK")).toBeUndefined();
    expect(words.findChild("p", "the code that it gives is 4711")).toBe("c");
    words.noteOfChild("p", "d", "OK!");
    expect(words.findChild("p", "OK")).toBe("d");
  });

  it("is known without the lines of files, which the host sends apart, and by the names of these", () => {
    const words = createSpokenWords();
    words.noteOfChild("p", "c", "It is 4711.\nMEDIA:/tmp/plan.png\nGood night.");
    expect(words.findChild("p", "It is 4711. Good night.")).toBe("c");
    expect(words.findChild("p", "plan.png")).toBeUndefined();
    expect(words.findChildOfFiles("p", "plan.png")).toBe("c");
    words.noteOwn("p", "It is 4711.\nMEDIA:/tmp/plan.png\nGood night.");
    expect(words.findChild("p", "It is 4711. Good night.")).toBeUndefined();
    expect(words.findChildOfFiles("p", "plan.png")).toBeUndefined();
  });

  it("is compared with so much of its parent's words as there is room for, the newest", () => {
    const words = createSpokenWords();
    words.noteOfChild("p", "c", LONG);
    words.noteOwn("p", LONG);
    words.noteOwn("p", "a".repeat(63_900));
    expect(words.findChild("p", LONG)).toBeUndefined();
    words.noteOwn("p", "b".repeat(200));
    expect(words.findChild("p", LONG)).toBe("c");
    words.recallOwn("p", LONG);
    expect(words.findChild("p", LONG)).toBe("c");
  });
});
