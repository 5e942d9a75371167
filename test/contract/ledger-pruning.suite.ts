/** Owns: what removing old runs must do, on a ledger of any kind (docs/adr/0030). */
import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { formatTimestamp, type EpochMs, type StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { pruneLedger } from "../../src/agents/coordination/runtime/prune-ledger.ts";
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import { checkAnchor, makeAnchor } from "../../src/plugins/anchor-checks.ts";
import { contentOf, openRun, OWNER, runIdOf } from "../support/ledger-fixtures.ts";
import { TEST_EPOCH_MS } from "../support/temp-ledger.ts";
import { readLastToken } from "./ledger-store-claim-play.ts";
import { appendEnd } from "./ledger-store-tested.ts";
import {
  addCoordination,
  addWorkflow,
  createPruningBasis,
  LATER_MS,
  listProblems,
  listRunIds,
  prune,
  wrapNthCall,
} from "./prunable-ledger.ts";
import {
  beginRun,
  COMPLETED,
  createRunStarted,
  createWorkflowAuthor,
  nameWorkflowRun,
  NOW,
  readAll as readWorkflow,
} from "./workflow-store-tested.ts";

export interface PrunedTestLedger extends AsyncDisposable {
  readonly store: OpenedLedger;
}

const NONE_KEPT = { open: 0, recent: 0, used: 0, related: 0, damaged: 0 };

export function describeLedgerPruning(name: string, open: () => Promise<PrunedTestLedger>): void {
  describe(`pruning ${name}`, () => {
    it("removes what ended, and what is left verifies", async () => {
      await using ledger = await open();
      const { store } = ledger;
      await addCoordination(store, "old", { claims: 3 });
      await addWorkflow(store, "old");
      await addCoordination(store, "running", { isOpen: true, claims: 2 });
      const report = await prune(store);
      expect(report).toEqual({
        runs: 2,
        events: expect.any(Number) as number,
        kept: { ...NONE_KEPT, open: 1 },
      });
      expect(await listRunIds(store)).toEqual([runIdOf("running")]);
      expect(await listProblems(store)).toEqual([]);
      expect(await store.pruned.counts()).toEqual({ runs: 2, events: report.events, claims: 3 });
      expect(await store.pruned.find(nameWorkflowRun("old"))).toMatchObject({ kind: "workflow", events: 3 });
    });

    it("removes nothing twice, and nothing in a dry run", async () => {
      await using ledger = await open();
      const { store } = ledger;
      await addCoordination(store, "old");
      await addCoordination(store, "running", { isOpen: true });
      const planned = await pruneLedger(store, { beforeMs: LATER_MS, isDryRun: true });
      expect(await listRunIds(store)).toHaveLength(2);
      expect(await prune(store)).toEqual(planned);
      expect(await prune(store)).toEqual({ runs: 0, events: 0, kept: { ...NONE_KEPT, open: 1 } });
    });

    it("passes over runs that another prune removes meanwhile: they are not damaged", async () => {
      await using ledger = await open();
      const { store } = ledger;
      await addCoordination(store, "old");
      await addWorkflow(store, "old");
      await addCoordination(store, "running", { isOpen: true });
      const pruning = wrapNthCall(store.pruning, { call: "page", time: 4 }, () => prune(store));
      const report = await pruneLedger({ ...store, pruning }, { beforeMs: LATER_MS, isDryRun: false });
      expect(report).toEqual({ runs: 0, events: 0, kept: { ...NONE_KEPT, open: 1 } });
    });

    it("keeps what ended later", async () => {
      await using ledger = await open();
      const { store } = ledger;
      await addCoordination(store, "late");
      await addCoordination(store, "running", { isOpen: true });
      expect((await prune(store, TEST_EPOCH_MS as EpochMs)).kept).toEqual({
        ...NONE_KEPT,
        open: 1,
        recent: 1,
      });
    });

    it("keeps runs whose memory is there, and those that are related to a run that is kept", async () => {
      await using ledger = await open();
      const { store } = ledger;
      await addWorkflow(store, "remembers", { hasMemory: true });
      await addWorkflow(store, "source");
      await addWorkflow(store, "fork", { source: "source", isOpen: true });
      await addCoordination(store, "parent");
      await addCoordination(store, "child", { parent: "parent", isOpen: true });
      await addWorkflow(store, "forked-twice");
      await addWorkflow(store, "old-fork", { source: "forked-twice" });
      await addCoordination(store, "running", { isOpen: true });
      const { runs, kept } = await prune(store);
      expect({ runs, kept }).toEqual({ runs: 2, kept: { ...NONE_KEPT, open: 3, used: 1, related: 2 } });
      expect(await listProblems(store)).toEqual([]);
    });

    describe("keeps what an export has not reached", () => {
      const WAITS_MS = 30 * 86_400_000;
      const share = { name: "otlp", holder: "exporter" };

      const openExported = async (): Promise<PrunedTestLedger> => {
        const ledger = await open();
        await addCoordination(ledger.store, "exported");
        await ledger.store.exports.take({ ...share, from: await ledger.store.newestPosition() });
        await addCoordination(ledger.store, "waiting");
        await addCoordination(ledger.store, "running", { isOpen: true });
        return ledger;
      };

      it("for 30 days longer than the rest", async () => {
        await using ledger = await openExported();
        const { store } = ledger;
        expect(await prune(store)).toMatchObject({ runs: 1, kept: { used: 1 } });
        expect(await prune(store, (TEST_EPOCH_MS + WAITS_MS) as EpochMs)).toMatchObject({ runs: 0 });
        expect(await prune(store, (LATER_MS + WAITS_MS) as EpochMs)).toMatchObject({
          runs: 1,
          kept: { used: 0 },
        });
      });

      it.each(["reaches it", "is given back", "is left by its process"])("until it %s", async (end) => {
        await using ledger = await openExported();
        const { store } = ledger;
        if (end === "is given back") await store.exports.release(share);
        if (end === "reaches it")
          await store.exports.advance({ ...share, position: await store.newestPosition() });
        const silentExporter = end === "is left by its process" ? share.holder : undefined;
        expect(await prune(store, LATER_MS, silentExporter)).toMatchObject({ runs: 2, kept: { used: 0 } });
      });
    });

    describe.each([
      ["workflow run", addWorkflow],
      ["coordination", addCoordination],
    ] as const)("keeps a %s", (_, add) => {
      it.each([
        ["once the families are found", "page", 3],
        ["once it is found to be removable", "remove", 1],
      ] as const)("that is forked %s, with its family", async (_place, call, time) => {
        await using ledger = await open();
        const { store } = ledger;
        const sourceId = await add(store, "source");
        const siblingId = await add(store, "sibling", { source: "source" });
        const otherId = await add(store, "other");
        await addCoordination(store, "newest", { isOpen: true });
        const pruning = wrapNthCall(store.pruning, { call, time }, () =>
          add(store, "fork", { source: "source", isOpen: true }),
        );
        const report = await pruneLedger({ ...store, pruning }, { beforeMs: LATER_MS, isDryRun: false });
        expect(report.runs).toBe(1);
        const left = await listRunIds(store);
        expect(left).toEqual(expect.arrayContaining([sourceId, siblingId]));
        expect(left).not.toContain(otherId);
        expect(await listProblems(store)).toEqual([]);
      });
    });

    it.each(["a look for what is free", "the removal of another owner"])(
      "removes a run that a request ended while its owner was gone, after %s",
      async (by) => {
        await using ledger = await open();
        const { store } = ledger;
        const author = createWorkflowAuthor("old");
        const owner = { id: "gone", token: 1 };
        await store.workflows.append({ ...author.append([createRunStarted()]), owner });
        await store.workflows.append(author.append([COMPLETED], { status: "completed" }));
        await addCoordination(store, "newest", { isOpen: true });
        expect(await prune(store)).toMatchObject({ runs: 0, kept: { open: 2 } });
        const { owners } = store.workflows;
        if (by === "the removal of another owner") await owners.remove("another");
        else expect(await owners.take({ owner: "b", from: [], limit: 10 })).toEqual([]);
        expect(await prune(store)).toMatchObject({ runs: 1, kept: { open: 1 } });
      },
    );

    it("keeps a run that a request ended until its owner has heard of it, or is gone", async () => {
      await using ledger = await open();
      const { store } = ledger;
      const { owners } = store.workflows;
      const authors = ["one", "two"].map((name) => createWorkflowAuthor(name));
      for (const [index, author] of authors.entries()) {
        const owner = { id: `owner-${index}`, token: 1 };
        await owners.beat(owner);
        await store.workflows.append({ ...author.append([createRunStarted()]), owner });
        await store.workflows.append(author.append([COMPLETED], { status: "completed" }));
      }
      await addCoordination(store, "newest", { isOpen: true });
      await owners.remove("another");
      expect(await owners.take({ owner: "b", from: [], limit: 10 })).toEqual([]);
      expect(await prune(store)).toMatchObject({ runs: 0, kept: { open: 3 } });
      expect(
        await owners.take({ owner: "owner-0", from: ["owner-0", "owner-1"], isOnlyFrom: true, limit: 10 }),
      ).toEqual([]);
      expect(await prune(store)).toMatchObject({ runs: 1, kept: { open: 2 } });
      expect(await owners.collectArrivals("owner-0", 10)).toHaveLength(1);
      expect(await prune(store)).toMatchObject({ runs: 1, kept: { open: 1 } });
    });

    it("deletes the texts that only removed runs kept, once they are old", async () => {
      await using ledger = await open();
      const { store } = ledger;
      await addCoordination(store, "old");
      await addCoordination(store, "running", { isOpen: true });
      await prune(store);
      await store.deleteBefore(Number.MAX_SAFE_INTEGER as EpochMs);
      expect(await store.get(contentOf("task of old").ref.sha256)).toBeUndefined();
      expect(await store.get(contentOf("task of running").ref.sha256)).toBe("task of running");
    });

    it("never gives the id of a removed run again, nor goes on with one", async () => {
      await using ledger = await open();
      const { store } = ledger;
      const { author, request } = openRun("old");
      await store.append(request);
      await store.append(appendEnd(author));
      await addWorkflow(store, "old");
      await addCoordination(store, "running", { isOpen: true });
      await prune(store);
      const refused = { code: "RUN_PRUNED" };
      await expect(store.append(openRun("old").request)).rejects.toMatchObject(refused);
      const { nextSequence } = author.state;
      const late = request.events.map((event) => ({ ...event, sequence: event.sequence + nextSequence }));
      await expect(store.append({ ...request, events: late })).rejects.toMatchObject(refused);
      await expect(store.workflows.append(beginRun("old").request)).rejects.toMatchObject(refused);
      expect(await listProblems(store)).toEqual([]);
      expect(await store.find(runIdOf("old"))).toBeUndefined();
    });

    it("leaves a run that changed since it was looked at", async () => {
      await using ledger = await open();
      const { store } = ledger;
      await addCoordination(store, "old");
      await addCoordination(store, "running", { isOpen: true });
      const [running, old] = await store.pruning.page({
        before: Number.MAX_SAFE_INTEGER,
        limit: 10,
        beforeMs: LATER_MS,
      });
      if (!old || !running) throw new Error("both runs are listed");
      const shorter = { ...old, length: old.length - 1 };
      expect(await store.pruning.remove([shorter, running], createPruningBasis(running))).toEqual({
        runs: 0,
        events: 0,
      });
      expect(await listRunIds(store)).toHaveLength(2);
    });

    it("remembers how a child was bound, and what is left verifies", async () => {
      await using ledger = await open();
      const { store } = ledger;
      await addCoordination(store, "old");
      await addCoordination(store, "running", { isOpen: true });
      const page = await store.pruning.page({ before: 9, limit: 10, beforeMs: LATER_MS });
      const kinds = ["gate", "privilege"] as const;
      const boundChildren = kinds.map((binding) => ({ session: OWNER, stepId: "step-1" as StepId, binding }));
      const runs = page.slice(1).map((run) => ({ ...run, boundChildren }));
      expect(await store.pruning.remove(runs, createPruningBasis(page[0]!))).toMatchObject({ runs: 1 });
      expect([await store.pruned.listBindings(OWNER), await listProblems(store)]).toEqual([kinds, []]);
    });

    it("goes on counting runs, events and claims where they were", async () => {
      await using ledger = await open();
      const { store } = ledger;
      await addCoordination(store, "old", { claims: 1 });
      await addCoordination(store, "running", { isOpen: true });
      const [newest, token] = [await store.heads.newestNumber(), await readLastToken(store)];
      await prune(store);
      expect(await store.heads.newestNumber()).toBe(newest);
      expect(await readLastToken(store)).toBe(token);
      await addCoordination(store, "next", { claims: 1 });
      expect(await readLastToken(store)).toBe(token + 1);
      expect(await listProblems(store)).toEqual([]);
    });

    it("leaves a workspace file as it is, and what overwrites it is read", async () => {
      await using ledger = await open();
      const { store } = ledger;
      const { workspace } = store.workflows;
      const at = { tenant: "acme", scope: "w" };
      const write = (text: string) =>
        workspace.write({
          at,
          path: "notes.md",
          content: { contentType: "text/markdown", text },
          updatedAt: formatTimestamp(NOW),
        });
      await removeNewestEvents(store, () => write("old"));
      expect(await workspace.get(at, "notes.md")).toMatchObject({ version: 1, content: "old" });
      await write("new");
      expect(await workspace.get(at, "notes.md")).toMatchObject({ version: 2, content: "new" });
      expect(await workspace.list(at)).toMatchObject([{ version: 2 }]);
      expect(await listProblems(store)).toEqual([]);
    });

    it("takes nobody back who follows the ledger, nor the hold of an export", async () => {
      await using ledger = await open();
      const { store } = ledger;
      const holding = { name: "otlp", holder: "me" };
      const after = await removeNewestEvents(store, async () => {
        const newest = await store.newestPosition();
        await store.exports.take({ ...holding, from: newest });
        return newest;
      });
      const { items, reached } = await store.readArrivals({ after, limit: 10 });
      expect({ items, reached }).toEqual({ items: [], reached: after });
      expect(await store.readAppended({ filter: {}, after, limit: 10 })).toEqual({
        items: [],
        reached: after,
      });
      expect(await store.exports.advance({ ...holding, position: reached })).toBe(true);
    });

    it("leaves traces by which an older anchor still holds, and a newer one holds them", async () => {
      await using ledger = await open();
      const { store } = ledger;
      await addCoordination(store, "old");
      const growing = openRun("growing");
      await store.append(growing.request);
      const older = await makeAnchor(store, { events: await store.heads.newestNumber(), madeAtMs: 0 });
      await store.append(appendEnd(growing.author));
      await addCoordination(store, "running", { isOpen: true });
      await prune(store);
      expect(await checkAnchor(store, older)).toEqual({ problems: [], pruned: 2, isDigestCompared: true });
      const { heads: _, ...unnamed } = older;
      expect(await checkAnchor(store, unnamed)).toEqual({ problems: [], pruned: 2, isDigestCompared: false });
      const newer = await makeAnchor(store, { events: await store.heads.newestNumber(), madeAtMs: 1 });
      expect(newer.runs).toBe(3);
      expect(await checkAnchor(store, newer)).toEqual({ problems: [], pruned: 2, isDigestCompared: true });
    });

    it("of any ledger leaves whole families as they were, and the rest verifies", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(runArbitrary, { minLength: 1, maxLength: 8 }), async (runs) => {
          await using ledger = await open();
          const { store } = ledger;
          const family = runs.map((_, index) => findSource(runs, index));
          for (const [index, { isOpen, hasMemory }] of runs.entries()) {
            const source = family[index] === index ? {} : { source: `r${family[index]}` };
            await addWorkflow(store, `r${index}`, { isOpen, hasMemory, ...source });
          }
          const before = await readLogs(store);
          await prune(store);
          expect(await listProblems(store)).toEqual([]);
          const after = await readLogs(store);
          for (const [runId, events] of after) expect(events).toEqual(before.get(runId));
          for (const [index, source] of family.entries())
            expect(after.has(nameWorkflowRun(`r${index}`))).toBe(after.has(nameWorkflowRun(`r${source}`)));
        }),
        { numRuns: 12 },
      );
    });
  });

  /** The newest events are those of a run that is not the newest one. Returns what was done before they were removed. */
  async function removeNewestEvents<T>(store: OpenedLedger, before: () => Promise<T>): Promise<T> {
    const long = openRun("long");
    await store.append(long.request);
    await addCoordination(store, "short");
    await store.append(appendEnd(long.author));
    const result = await before();
    await prune(store);
    return result;
  }

  interface Run {
    readonly isOpen: boolean;
    readonly isFork: boolean;
    readonly hasMemory: boolean;
  }

  const runArbitrary = fc.record<Run>({
    isOpen: fc.boolean(),
    isFork: fc.boolean(),
    hasMemory: fc.boolean(),
  });

  /** Returns the place of the run that a fork comes of: the nearest before it that is none. */
  function findSource(runs: readonly Run[], index: number): number {
    const source = runs.slice(0, index + 1).findLastIndex(({ isFork }) => !isFork);
    return Math.max(source, 0);
  }

  async function readLogs(store: OpenedLedger): Promise<Map<string, unknown>> {
    const logs = new Map<string, unknown>();
    for (const { runId } of await store.workflows.list({ limit: 100 }))
      logs.set(runId, await readWorkflow(store.workflows, runId));
    return logs;
  }
}
