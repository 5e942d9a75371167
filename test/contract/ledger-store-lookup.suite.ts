/** Owns: the part of the conformance suite about finding coordinations: the list and the references. */
import { expect, it } from "vitest";
import type { CoordinationId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEntry } from "../../src/agents/coordination/ports/ledger-store.ts";
import { openRun, spawnOf } from "../support/ledger-fixtures.ts";
import { appendEnd, type Open } from "./ledger-store-tested.ts";

type OpenedRun = ReturnType<typeof openRun>;

export function describeList(open: Open): void {
  const idsOf = (entries: readonly RunEntry[]): string[] => entries.map(({ runId }) => runId);

  it("lists newest first, with the newest summary and length", async () => {
    await using tested = await open();
    const first = openRun("first");
    const second = openRun("second");
    await tested.store.append(first.request);
    await tested.store.append(second.request);
    const next = first.author.append(spawnOf("more"));
    await tested.store.append(next);
    const entries = await tested.store.list({ limit: 10 });
    expect(idsOf(entries)).toEqual([second.author.runId, first.author.runId]);
    const length = first.request.events.length + next.events.length;
    expect(entries[1]).toMatchObject({ length, summary: next.summary });
  });

  it("pages through all runs without missing or repeating one while others are added", async () => {
    await using tested = await open();
    for (let index = 0; index < 23; index += 1) await tested.store.append(openRun(`run-${index}`).request);
    const seen: string[] = [];
    let page = await tested.store.list({ limit: 5 });
    while (page.length > 0) {
      seen.push(...idsOf(page));
      await tested.store.append(openRun(`later-${seen.length}`).request);
      page = await tested.store.list({ limit: 5, after: page.at(-1)! });
    }
    expect(seen).toEqual(Array.from({ length: 23 }, (_, index) => `co-run-${22 - index}`));
  });

  it("tells running from ended runs", async () => {
    await using tested = await open();
    for (let index = 0; index < 6; index += 1) {
      const { author: writer, request } = openRun(`run-${index}`);
      await tested.store.append(request);
      if (index % 2 === 0) await tested.store.append(appendEnd(writer));
    }
    const running = await tested.store.list({ limit: 10, status: "running" });
    const over = await tested.store.list({ limit: 10, status: "ended" });
    expect(idsOf(running)).toEqual(["co-run-5", "co-run-3", "co-run-1"]);
    expect(idsOf(over)).toEqual(["co-run-4", "co-run-2", "co-run-0"]);
    const [newest] = running;
    const rest = await tested.store.list({ limit: 10, status: "running", after: newest! });
    expect(idsOf(rest)).toEqual(["co-run-3", "co-run-1"]);
  });

  it("finds ids by their beginning, and takes no character for a wildcard", async () => {
    await using tested = await open();
    for (const name of ["ab-1", "ab-2", "abc", "b", "%", "_b-3"])
      await tested.store.append(openRun(name).request);
    const listNamed = async (idPrefix: string): Promise<string[]> =>
      idsOf(await tested.store.list({ limit: 10, idPrefix }));
    expect(await listNamed("co-ab")).toEqual(["co-abc", "co-ab-2", "co-ab-1"]);
    expect(await listNamed("co-ab-1")).toEqual(["co-ab-1"]);
    expect(await listNamed("co-%")).toEqual(["co-%"]);
    expect(await listNamed("co-_")).toEqual(["co-_b-3"]);
    expect(await listNamed("CO-AB")).toEqual([]);
    expect(await listNamed("")).toHaveLength(6);
  });
}

export function describeFind(open: Open): void {
  it("finds the newest holder of a name, and the step where it names one", async () => {
    await using tested = await open();
    const stepId = "step-1" as StepId;
    const first = openRun("first");
    const second = openRun("second");
    await tested.store.append({ ...first.request, references: [{ name: "n", stepId }, { name: "m" }] });
    expect(await tested.store.find("n")).toEqual({ runId: first.author.runId, stepId });
    await tested.store.append({ ...second.request, references: [{ name: "n" }] });
    expect(await tested.store.find("n")).toEqual({ runId: second.author.runId });
    await tested.store.append({ ...first.author.append(spawnOf("x")), references: [{ name: "n" }] });
    expect(await tested.store.find("n")).toEqual({ runId: first.author.runId });
    expect(await tested.store.find("m")).toEqual({ runId: first.author.runId });
  });

  it("finds nothing under a name that nothing holds", async () => {
    await using tested = await open();
    await tested.store.append(openRun("a").request);
    for (const name of ["", "nobody", "child:%", "trace:trace-a"])
      expect(await tested.store.find(name)).toBeUndefined();
  });

  it("lists the references of a run in the order in which they were appended", async () => {
    await using tested = await open();
    const first = openRun("first");
    const references = [{ name: "z" }, { name: "a", stepId: "step-1" as StepId }];
    await tested.store.append({ ...first.request, references });
    await tested.store.append(openRun("second").request);
    await tested.store.append({ ...first.author.append(spawnOf("x")), references: [{ name: "m" }] });
    expect(await tested.store.references(first.author.runId)).toEqual([...references, { name: "m" }]);
    expect(await tested.store.references("co-none" as CoordinationId)).toEqual([]);
  });
}

export function describeHolders(open: Open): void {
  it("names each coordination that holds a name once, the newest reference first, and no more than asked for", async () => {
    await using tested = await open();
    const [first, second, third] = ["first", "second", "third"].map(openRun) as [
      OpenedRun,
      OpenedRun,
      OpenedRun,
    ];
    const references = [{ name: "n" }, { name: "n", stepId: "step-1" as StepId }, { name: "m" }];
    await tested.store.append({ ...first.request, references });
    await tested.store.append({ ...second.request, references });
    await tested.store.append(third.request);
    const runIds = [second.author.runId, first.author.runId];
    for (const limit of [0, 1, 2, 9])
      expect(await tested.store.holders("n", limit)).toEqual(runIds.slice(0, limit));
    await tested.store.append({ ...first.author.append(spawnOf("x")), references: [{ name: "n" }] });
    expect(await tested.store.holders("n", 9)).toEqual(runIds.toReversed());
    expect(await tested.store.holders("n", 1)).toEqual([first.author.runId]);
    expect(await tested.store.holders("m", 9)).toEqual(runIds);
    expect(await tested.store.holders("nobody", 9)).toEqual([]);
  });
}
