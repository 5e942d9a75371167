/** Owns: the part of the conformance suite about the texts beside the log, and which of them retention may delete. */
import { expect, it } from "vitest";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { ContentInput } from "../../src/agents/coordination/ports/content-store.ts";
import { contentOf, openRun, spawnOf } from "../support/ledger-fixtures.ts";
import { TEST_EPOCH_MS } from "../support/temp-ledger.ts";
import { appendEnd, readAll, type Open } from "./ledger-store-tested.ts";

export function describeContent(open: Open): void {
  const texts = ["plain", "", "ünïcode 🜁", "with\u0000nul", "x".repeat(200_000)];

  it("gives back every text by its hash, and nothing for a hash it does not know", async () => {
    await using tested = await open();
    const contents = texts.map(contentOf);
    await tested.store.append({ ...openRun("a").request, contents });
    for (const { ref, text } of contents) expect(await tested.store.get(ref.sha256)).toBe(text);
    expect(await tested.store.get("0".repeat(64))).toBeUndefined();
  });

  it("deletes any number of old texts", async () => {
    await using tested = await open();
    const contents = Array.from({ length: 1_203 }, (_, index) => contentOf(`text ${index}`));
    await tested.store.append({ ...openRun("a").request, contents });
    expect(await tested.store.deleteBefore((TEST_EPOCH_MS + 1) as EpochMs)).toBe(contents.length);
    for (const { ref } of contents) expect(await tested.store.get(ref.sha256)).toBeUndefined();
    expect(await tested.store.deleteBefore((TEST_EPOCH_MS + 1) as EpochMs)).toBe(0);
  });

  it("deletes old texts only, and leaves the log as it was", async () => {
    await using tested = await open();
    const { store, clock } = tested;
    const old = contentOf("old");
    const kept = contentOf("stored again later");
    const { author: writer, request } = openRun("a");
    await store.append({ ...request, contents: [old, kept] });
    clock.set(TEST_EPOCH_MS + 1_000);
    const next = writer.append(spawnOf("x"));
    await store.append({ ...next, contents: [kept] });
    expect(await store.deleteBefore(TEST_EPOCH_MS as EpochMs)).toBe(0);
    expect(await store.deleteBefore((TEST_EPOCH_MS + 1_000) as EpochMs)).toBe(1);
    expect(await store.get(old.ref.sha256)).toBeUndefined();
    expect(await store.get(kept.ref.sha256)).toBe(kept.text);
    expect(await readAll(store, writer.runId)).toEqual([...request.events, ...next.events]);
    expect(await store.inspect()).toEqual([]);
  });
}

export function describeGetMany(open: Open): void {
  it("gives back all the texts that are there, and no others", async () => {
    await using tested = await open();
    const contents = ["plain", "", "ünïcode 🜁", "with\u0000nul"].map(contentOf);
    await tested.store.append({ ...openRun("a").request, contents });
    const hashes = contents.map(({ ref }) => ref.sha256);
    const wanted = [...hashes.slice(1), "0".repeat(64), "no hash", "", ...hashes.slice(1, 3)];
    expect(await tested.store.getMany(wanted)).toEqual(
      new Map(contents.slice(1).map(({ ref, text }) => [ref.sha256, text])),
    );
    expect(await tested.store.getMany(["0".repeat(64)])).toEqual(new Map());
    expect(await tested.store.getMany([])).toEqual(new Map());
  });

  it.each([1, 63, 64, 65, 128, 1_000])("gives back %i texts", async (count) => {
    await using tested = await open();
    const contents = Array.from({ length: count }, (_, index) => contentOf(`text ${index}`));
    await tested.store.append({ ...openRun("a").request, contents });
    const texts = await tested.store.getMany(contents.map(({ ref }) => ref.sha256));
    expect(texts.size).toBe(count);
    for (const { ref, text } of contents) expect(texts.get(ref.sha256)).toBe(text);
  });
}

const AGED = (TEST_EPOCH_MS + 1) as EpochMs;
const keep = (content: ContentInput): ContentInput => ({ ...content, keepWhileRunning: true });

export function describeKeeping(open: Open): void {
  it("keeps a text that a running coordination needs, whatever its age, and deletes the others", async () => {
    await using tested = await open();
    const { store } = tested;
    const [needed, other, refused] = ["needed", "other", "refused"].map(contentOf) as ContentTriple;
    const contents = [keep(needed), other, { ...refused, keepWhileRunning: false }];
    await store.append({ ...openRun("a").request, contents });
    expect(await store.deleteBefore(Number.MAX_SAFE_INTEGER as EpochMs)).toBe(2);
    expect(await store.deleteBefore(Number.MAX_SAFE_INTEGER as EpochMs)).toBe(0);
    expect([...(await store.getMany(hashesOf(needed, other, refused))).values()]).toEqual(["needed"]);
    expect(await store.inspect()).toEqual([]);
  });

  it("deletes a kept text once its coordination has ended and the text is old", async () => {
    await using tested = await open();
    const { store, clock } = tested;
    const { author, request } = openRun("a");
    const [first, again] = [contentOf("first"), contentOf("again")];
    await store.append({ ...request, contents: [keep(first), keep(again)] });
    clock.set(TEST_EPOCH_MS + 1_000);
    await store.append({ ...openRun("b").request, contents: [again] });
    await store.append(appendEnd(author));
    expect(await store.deleteBefore(TEST_EPOCH_MS as EpochMs)).toBe(0);
    expect(await store.deleteBefore((TEST_EPOCH_MS + 1_000) as EpochMs)).toBe(1);
    expect(await store.get(first.ref.sha256)).toBeUndefined();
    expect(await store.get(again.ref.sha256)).toBe("again");
    expect(await store.deleteBefore((TEST_EPOCH_MS + 1_001) as EpochMs)).toBe(1);
    expect(await store.get(again.ref.sha256)).toBeUndefined();
    expect(await store.inspect()).toEqual([]);
  });

  it("keeps texts that are there already for a coordination that names them, as long as that runs", async () => {
    await using tested = await open();
    const { store } = tested;
    const [source, fork] = ["a", "b"].map(openRun) as [
      ReturnType<typeof openRun>,
      ReturnType<typeof openRun>,
    ];
    const [shared, other] = [contentOf("shared"), contentOf("other")];
    await store.append({ ...source.request, contents: [keep(shared), other] });
    const named = [shared, other].map(({ ref }) => ref.sha256);
    await store.append({ ...fork.request, contents: [], keep: [...named, ...named, "0".repeat(64)] });
    await store.append(appendEnd(source.author));
    expect(await store.deleteBefore(AGED)).toBe(0);
    expect((await store.getMany(named)).size).toBe(2);
    expect(await store.inspect()).toEqual([]);
    await store.append(appendEnd(fork.author));
    expect(await store.deleteBefore(AGED)).toBe(2);
    expect(await store.inspect()).toEqual([]);
  });

  it("keeps a text until the last of the coordinations that keep it has ended", async () => {
    await using tested = await open();
    const { store } = tested;
    const runs = ["a", "b", "c"].map(openRun);
    const shared = contentOf("shared");
    for (const { request } of runs) await store.append({ ...request, contents: [keep(shared)] });
    for (const { author } of runs.toSpliced(1, 1)) {
      await store.append(appendEnd(author));
      expect(await store.deleteBefore(AGED)).toBe(0);
      expect(await store.get(shared.ref.sha256)).toBe("shared");
      expect(await store.inspect()).toEqual([]);
    }
    await store.append(appendEnd(runs[1]!.author));
    expect(await store.deleteBefore(AGED)).toBe(1);
    expect(await store.inspect()).toEqual([]);
  });

  it("keeps a text that another coordination stores again without the wish to keep it", async () => {
    await using tested = await open();
    const { store } = tested;
    const { author, request } = openRun("a");
    const shared = contentOf("shared");
    await store.append({ ...request, contents: [keep(shared)] });
    const other = openRun("b");
    await store.append({ ...other.request, contents: [shared] });
    await store.append(appendEnd(other.author));
    expect(await store.deleteBefore(AGED)).toBe(0);
    expect(await store.get(shared.ref.sha256)).toBe("shared");
    await store.append(appendEnd(author));
    expect(await store.deleteBefore(AGED)).toBe(1);
  });

  it("keeps a text from the time on when it is stored to be kept, also when it was there or was deleted before", async () => {
    await using tested = await open();
    const { store } = tested;
    const { author, request } = openRun("a");
    const [there, missing] = [contentOf("there"), contentOf("gone")];
    await store.append({ ...request, contents: [missing] });
    expect(await store.deleteBefore(AGED)).toBe(1);
    await store.append({ ...author.append(spawnOf("x")), contents: [there] });
    await store.append({ ...author.append(spawnOf("y")), contents: [keep(there), keep(missing)] });
    expect(await store.deleteBefore(AGED)).toBe(0);
    expect((await store.getMany(hashesOf(there, missing))).size).toBe(2);
  });

  it("keeps a text that one coordination stores several times to be kept", async () => {
    await using tested = await open();
    const { store } = tested;
    const { author, request } = openRun("a");
    const text = keep(contentOf("text"));
    await store.append({ ...request, contents: [text, text] });
    await store.append({ ...author.propose(spawnOf("x")), contents: [text] });
    expect(await store.deleteBefore(AGED)).toBe(0);
    expect(await store.get(text.ref.sha256)).toBe("text");
    expect(await store.inspect()).toEqual([]);
  });

  it("keeps nothing for an append that was refused", async () => {
    await using tested = await open();
    const { store } = tested;
    const { author, request } = openRun("a");
    const text = contentOf("text");
    await store.append({ ...request, contents: [text] });
    const next = author.append(spawnOf("x"));
    const torn = { ...next, events: next.events.toSpliced(1, 1), contents: [keep(text)] };
    await expect(store.append(torn)).rejects.toMatchObject({ code: "LEDGER_CONFLICT" });
    expect(await store.deleteBefore(AGED)).toBe(1);
  });

  it("keeps nothing for a coordination that ends with the append that stores it", async () => {
    await using tested = await open();
    const { store } = tested;
    const { author, request } = openRun("a");
    await store.append(request);
    await store.append({ ...appendEnd(author), contents: [keep(contentOf("result"))] });
    expect(await store.deleteBefore(TEST_EPOCH_MS as EpochMs)).toBe(0);
    expect(await store.deleteBefore(AGED)).toBe(1);
  });

  it("keeps and deletes any number of texts of any number of coordinations", async () => {
    await using tested = await open();
    const { store } = tested;
    const runs = Array.from({ length: 450 }, (_, index) => openRun(index));
    const textsOf = (index: number): ContentInput[] =>
      Array.from({ length: index === 7 ? 1_203 : 1 }, (_, part) => keep(contentOf(`${index} ${part}`)));
    await Promise.all(
      runs.map(({ request }, index) => store.append({ ...request, contents: textsOf(index) })),
    );
    expect(await store.deleteBefore(AGED)).toBe(0);
    const over = runs.filter((_, index) => index % 7 === 0);
    await Promise.all(over.map(({ author }) => store.append(appendEnd(author))));
    expect(await store.deleteBefore(AGED)).toBe(over.length - 1 + 1_203);
    for (const index of [1, 8, 449]) {
      const [content] = textsOf(index) as [ContentInput];
      expect(await store.get(content.ref.sha256)).toBe(content.text);
    }
    expect(await store.inspect()).toEqual([]);
  });

  it("goes on keeping in a store that is opened later", async () => {
    await using tested = await open();
    const { author, request } = openRun("a");
    const text = contentOf("text");
    await tested.store.append({ ...request, contents: [keep(text)] });
    const other = await tested.ledger.open(tested.clock);
    expect(await other.deleteBefore(AGED)).toBe(0);
    await tested.store.append(appendEnd(author));
    expect(await other.deleteBefore(AGED)).toBe(1);
    await other.close();
  });
}

type ContentTriple = [ContentInput, ContentInput, ContentInput];

function hashesOf(...contents: readonly ContentInput[]): string[] {
  return contents.map(({ ref }) => ref.sha256);
}
