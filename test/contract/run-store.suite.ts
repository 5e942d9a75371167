/** Owns: the conformance suite of what stores of coordinations and of workflow runs have in common (`RunStore`). */
import { describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { ListQuery, RunAppend, RunStore } from "../../src/agents/coordination/ports/run-store.ts";
import type { LedgerStore } from "../../src/agents/coordination/ports/ledger-store.ts";
import type { WorkflowStore } from "../../src/agents/coordination/ports/workflow-store.ts";
import { listRuns, readLog } from "../../src/agents/coordination/runtime/log/read-pages.ts";
import { openRun } from "../support/ledger-fixtures.ts";
import { beginRun } from "./workflow-store-tested.ts";

type Append = RunAppend<{ readonly sequence: number }, unknown>;

/** A run of one kind, as its appends: what begins it, and what ends it. */
export interface WrittenRun<Request extends Append> {
  readonly begin: Request;
  readonly end: Request;
}

export interface TestedRuns<Request extends Append> extends AsyncDisposable {
  readonly store: RunStore<Request["events"][number], Request["summary"], Request>;
  readonly write: (name: string) => WrittenRun<Request>;
}

export function describeRunStore<Request extends Append>(
  name: string,
  open: () => Promise<TestedRuns<Request>>,
): void {
  describe(`${name}: the store of one kind of run`, () => {
    const appendMany = async ({ store, write }: TestedRuns<Request>, count: number) => {
      const runs = Array.from({ length: count }, (_, index) => write(`run-${index}`));
      for (const [index, { begin, end }] of runs.entries()) {
        await store.append(begin);
        if (index % 2 === 0) await store.append(end);
      }
      return runs.map(({ begin }) => begin.runId);
    };

    it("lists the newest first, or the oldest, with all of them or those that run or have ended", async () => {
      await using tested = await open();
      const [a, b, c, d, e] = await appendMany(tested, 5);
      const list = async (query: Partial<ListQuery>) =>
        (await tested.store.list({ limit: 9, ...query })).map(({ runId }) => runId);
      expect(await list({})).toEqual([e, d, c, b, a]);
      expect(await list({ order: "oldest" })).toEqual([a, b, c, d, e]);
      expect(await list({ status: "running" })).toEqual([d, b]);
      expect(await list({ status: "running", order: "oldest" })).toEqual([b, d]);
      expect(await list({ status: "ended" })).toEqual([e, c, a]);
      expect(await list({ status: "ended", order: "oldest" })).toEqual([a, c, e]);
      expect(await list({ idPrefix: c!, order: "oldest" })).toEqual([c]);
      expect(await list({ limit: 2, order: "oldest" })).toEqual([a, b]);
    });

    it("goes on behind an entry in either order", async () => {
      await using tested = await open();
      const [a, b, c, d] = await appendMany(tested, 4);
      const second = await tested.store.entry(b!);
      const list = async (order: "newest" | "oldest") =>
        (await tested.store.list({ limit: 9, order, after: second! })).map(({ runId }) => runId);
      expect(await list("newest")).toEqual([a]);
      expect(await list("oldest")).toEqual([c, d]);
    });

    it("refuses what was decided on an append that failed, although its place fits (S1)", async () => {
      await using tested = await open();
      const { begin, end } = tested.write("one");
      await tested.store.append(begin);
      const basis = { isVoid: false };
      // The beginning comes too late, and the end fits: as when somebody else appended as many events.
      const appends = [
        tested.store.append({ ...begin, basis }),
        tested.store.append({ ...end, basis }),
        tested.store.append({ ...end, basis }),
      ];
      const conflict = { status: "rejected", reason: { code: "LEDGER_CONFLICT" } };
      expect(await Promise.allSettled(appends)).toMatchObject([conflict, conflict, conflict]);
      expect(await tested.store.entry(begin.runId)).toMatchObject({ length: begin.events.length });
      await tested.store.append({ ...end, basis: { isVoid: false } });
      expect(await tested.store.damage(begin.runId, { before: 1 })).toBeUndefined();
    });

    it("shows one run as the listing does, and no run that is not there", async () => {
      await using tested = await open();
      const { begin, end } = tested.write("one");
      await tested.store.append(begin);
      const begun = await tested.store.entry(begin.runId);
      expect(begun).toMatchObject({ length: begin.events.length, summary: begin.summary });
      expect(await tested.store.list({ limit: 9 })).toEqual([begun]);
      await tested.store.append(end);
      const ended = await tested.store.entry(begin.runId);
      expect(ended).toEqual({
        ...begun,
        length: begin.events.length + end.events.length,
        summary: end.summary,
      });
      expect(await tested.store.entry(`${begin.runId}-not` as CoordinationId)).toBeUndefined();
    });

    it("is read to its end in pages, from any place to any other", async () => {
      await using tested = await open();
      const { begin, end } = tested.write("one");
      await tested.store.append(begin);
      await tested.store.append(end);
      const listSequences = async (range: { readonly from?: number; readonly to?: number }) =>
        (await Array.fromAsync(readLog(tested.store, begin.runId, range)))
          .flat()
          .map((event) => event.sequence);
      const all = [...begin.events, ...end.events].map((event) => event.sequence);
      expect(await listSequences({})).toEqual(all);
      expect(await listSequences({ from: 1 })).toEqual(all.slice(1));
      expect(await listSequences({ from: 1, to: 2 })).toEqual([1]);
      expect(await listSequences({ to: 0 })).toEqual([]);
      expect(await listSequences({ from: all.length })).toEqual([]);
    });

    it("is listed to its end, however many runs there are", async () => {
      await using tested = await open();
      const begun = Array.from({ length: 1_001 }, (_, index) => tested.write(`run-${index}`).begin);
      await Promise.all(begun.map((request) => tested.store.append(request)));
      const listed = await Array.fromAsync(listRuns(tested.store, { order: "oldest" }));
      expect(listed.map(({ runId }) => runId)).toEqual(begun.map(({ runId }) => runId));
      const unproven = await tested.store.listUnproven({ order: "oldest", limit: 1_001 });
      expect(unproven).toEqual(listed);
      const [first] = listed;
      expect(first && (await tested.store.findUnproven(first.runId))).toEqual(first);
    });
  });
}

interface OpenedLedger {
  readonly store: LedgerStore & { readonly workflows: WorkflowStore };
  readonly dispose: () => Promise<void>;
}

export function describeBothKinds(name: string, open: () => Promise<OpenedLedger>): void {
  describe(`${name}: the stores of both kinds on one ledger`, () => {
    it("do not know the runs of each other", async () => {
      const { store, dispose } = await open();
      const [{ request: coordination }, { request: workflowRun }] = [openRun("co"), beginRun("wf")];
      await store.append(coordination);
      await store.workflows.append(workflowRun);
      for (const [one, other] of [
        [store, workflowRun],
        [store.workflows, coordination],
      ] as const) {
        expect(await one.entry(other.runId)).toBeUndefined();
        expect((await one.list({ limit: 9 })).map(({ runId }) => runId)).not.toContain(other.runId);
        expect(await one.read(other.runId, { from: 0, limit: 9 })).toEqual([]);
        const damage = { sequence: 0, problem: "event_missing" };
        expect(await one.damage(other.runId, { before: 1 })).toEqual(damage);
      }
      await dispose();
    });
  });
}
