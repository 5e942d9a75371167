import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import {
  createWithheldTexts,
  type NameText,
  type WithheldTexts,
} from "../../src/agents/coordination/runtime/environment/withheld-texts.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";

const nameText: NameText = (session, text) => hash("sha256", `${session} ${text}`);
const createFresh = (): WithheldTexts => createWithheldTexts(nameText);
const A = "agent:main:subagent:a" as SessionKey;
const B = "agent:main:subagent:b" as SessionKey;
const isKnown = (texts: WithheldTexts, text: string, session = A): boolean =>
  texts.textOf(session, nameText(session, text)) === text;

describe("words that are kept back", () => {
  it("are remembered under their name, which the same words of the same session have again", () => {
    const texts = createFresh();
    expect(texts.add(A, "words")).toBe(nameText(A, "words"));
    expect(texts.add(A, "words")).toBe(nameText(A, "words"));
    expect(texts.add(B, "words")).not.toBe(nameText(A, "words"));
    expect(isKnown(texts, "words")).toBe(true);
    expect(texts.textOf(A, "0".repeat(64))).toBeUndefined();
  });

  it("are read by no other session, also under their name", () => {
    const texts = createFresh();
    const name = texts.add(A, "words");
    expect(texts.textOf(B, name)).toBeUndefined();
  });

  it("that grow are remembered in their newest form only", () => {
    const texts = createFresh();
    for (const text of ["The", "The cat", "The cat sat"]) texts.add(A, text);
    expect(isKnown(texts, "The cat sat")).toBe(true);
    expect(isKnown(texts, "The cat")).toBe(false);
    texts.add(A, "Another");
    expect(isKnown(texts, "The cat sat")).toBe(true);
  });

  it("are not lost when the same text comes again, or a shorter one", () => {
    const texts = createFresh();
    texts.add(A, "The cat sat");
    texts.add(A, "The cat sat");
    texts.add(A, "The");
    expect(isKnown(texts, "The cat sat")).toBe(true);
    expect(isKnown(texts, "The")).toBe(true);
  });

  it("of one session make room within it, and never for another", () => {
    const texts = createFresh();
    texts.add(B, "other");
    for (let number = 0; number < 100; number += 1) texts.add(A, `${number} words`);
    expect(isKnown(texts, "99 words")).toBe(true);
    expect(isKnown(texts, "0 words")).toBe(false);
    expect(isKnown(texts, "36 words")).toBe(true);
    expect(isKnown(texts, "other", B)).toBe(true);
  });

  it("of the session that spoke least recently go first", () => {
    const texts = createFresh();
    texts.add(A, "first");
    texts.add(B, "second");
    texts.add(A, "third");
    for (let number = 0; number < 199; number += 1)
      texts.add(`agent:main:subagent:n${number}` as SessionKey, `${number}`);
    expect(isKnown(texts, "second", B)).toBe(false);
    expect(isKnown(texts, "third")).toBe(true);
  });
});

describe("bringing words to the disk", () => {
  it("is waited for, also where more comes meanwhile, and of no other session", async () => {
    const texts = createFresh();
    const first = Promise.withResolvers<undefined>();
    const second = Promise.withResolvers<undefined>();
    texts.keeping(A, "words", () => first.promise);
    let isSettled = false;
    const waiting = texts.settled(A).then(() => {
      isSettled = true;
    });
    await texts.settled(B);
    texts.keeping(A, "words", () => second.promise);
    first.resolve(undefined);
    await waitUntilSettled();
    expect(isSettled).toBe(false);
    second.resolve(undefined);
    await waiting;
    expect(isSettled).toBe(true);
  });

  it("that fails is over, too", async () => {
    const texts = createFresh();
    texts.keeping(A, "words", () => Promise.reject(new Error("the disk is full")));
    await expect(texts.settled(A)).resolves.toBeUndefined();
    await expect(texts.settled(A)).resolves.toBeUndefined();
  });

  it("is tried once more for the whole of a shortened text, which decides nothing and is forgotten then", async () => {
    const texts = createFresh();
    let tries = 0;
    texts.keeping(A, "whole 1", () => {
      tries += 1;
      return Promise.resolve(undefined);
    });
    expect(await texts.keepAgain(A)).toBe(true);
    expect(await texts.keepAgain(A)).toBe(true);
    expect(tries).toBe(2);
  });

  it("is tried again for words as long as they are not kept, whatever becomes of the rest", async () => {
    const texts = createFresh();
    let isFull = true;
    const keep = () => Promise.resolve(isFull ? undefined : (true as const));
    texts.keeping(A, "words", keep);
    texts.keeping(A, "whole 1", () => Promise.resolve(true));
    expect(await texts.keepAgain(A)).toBe(false);
    isFull = false;
    expect(await texts.keepAgain(A)).toBe(true);
  });
});
