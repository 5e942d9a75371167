import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatTimestamp } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkspaceAsOf } from "../../src/agents/coordination/ports/workspace-store.ts";
import type { WorkflowStore } from "../../src/agents/coordination/ports/workflow-store.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";
import {
  beginRun,
  createNodeStarted,
  NOW,
  nameWorkflowRun,
  openTested,
  type TestedWorkflowLedger,
  type WorkflowAuthor,
} from "./workflow-store-tested.ts";
import { describeWorkspace } from "./workspace-store.suite.ts";

async function openInMemory(): Promise<TestedWorkflowLedger> {
  const ledger = createMemoryWorkflowLedger();
  return Promise.resolve({
    open: () => {
      const workflows = ledger.open();
      return Promise.resolve({ workflows, close: () => workflows.close() });
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
}

async function openInSqlite(): Promise<TestedWorkflowLedger> {
  const folder = createTempFolder();
  const path = folder.file("ledger.sqlite");
  return Promise.resolve({
    open: async () => {
      const ledger = await openTestLedger(path);
      return { workflows: ledger.workflows, close: () => ledger.close() };
    },
    [Symbol.asyncDispose]: async () => {
      const ledger = await openTestLedger(path);
      const problems = await ledger.inspect();
      await ledger.close();
      folder[Symbol.dispose]();
      if (problems.length > 0) throw new Error(JSON.stringify(problems));
    },
  });
}

describe("workspace files in SQLite", () => {
  describeWorkspace(openTested(openInSqlite));
});

describe("workspace files in SQLite and in memory", () => {
  const path = fc.constantFrom("a", "b", "c/d");
  const move = fc.oneof(
    fc.record({ kind: fc.constant("put" as const), path }),
    fc.record({ kind: fc.constant("remove" as const), path }),
    fc.record({ kind: fc.constant("run" as const), path, run: fc.constantFrom("one", "two") }),
    fc.record({ kind: fc.constant("event" as const), run: fc.constantFrom("one", "two") }),
  );

  it("are the same after every history, before each event of each run", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(move, { maxLength: 30 }), async (moves) => {
        await using sqlite = await openTested(openInSqlite)();
        await using memory = await openTested(openInMemory)();
        const histories: unknown[] = [];
        for (const { store } of [sqlite, memory]) histories.push(await historyOf(store, moves));
        expect(histories[0]).toEqual(histories[1]);
      }),
      { numRuns: 60 },
    );
  });
});

type Move =
  | { readonly kind: "put"; readonly path: string }
  | { readonly kind: "remove"; readonly path: string }
  | { readonly kind: "run"; readonly path: string; readonly run: string }
  | { readonly kind: "event"; readonly run: string };

const AT = { tenant: "acme", scope: "own" };
const UPDATED = formatTimestamp(NOW);

interface Player {
  readonly store: WorkflowStore;
  readonly authors: ReadonlyMap<string, WorkflowAuthor>;
  readonly lengths: Map<string, number>;
}

/** The result of each move, and the files before each event afterwards. */
async function historyOf(store: WorkflowStore, moves: readonly Move[]): Promise<unknown> {
  const runs = ["one", "two"].map((name) => ({ name, ...beginRun(name) }));
  for (const { request } of runs) await store.append(request);
  const player: Player = {
    store,
    authors: new Map(runs.map(({ name, author }) => [name, author])),
    lengths: new Map(runs.map(({ name, request }) => [name, request.events.length])),
  };
  const reports: unknown[] = [];
  for (const [index, move] of moves.entries()) reports.push(await playMove(player, move, `${index}`));
  for (const [name, length] of player.lengths)
    for (let sequence = 0; sequence <= length; sequence += 1)
      reports.push(await readSeenBefore(store, { runId: nameWorkflowRun(name), sequence }));
  return reports;
}

async function playMove({ store, authors, lengths }: Player, move: Move, text: string): Promise<unknown> {
  const content = { contentType: "text/plain", text };
  if (move.kind === "put" || move.kind === "remove") {
    const change = { at: AT, path: move.path, updatedAt: UPDATED };
    return store.workspace.write({ ...change, content: move.kind === "put" ? content : null });
  }
  const author = authors.get(move.run) ?? expect.fail("there is no such run");
  const sequence = lengths.get(move.run) ?? 0;
  lengths.set(move.run, sequence + 1);
  if (move.kind === "event") return store.append(author.append([createNodeStarted(`n${text}`)]));
  const { path } = move;
  const previous = (await store.workspace.get(AT, path))?.version ?? 0;
  const version = previous + 1;
  const append = author.append([{ type: "workspace.updated", payload: { path, version } }]);
  const write = { at: AT, path, version, previous, sequence, content, updatedAt: UPDATED };
  return store.append({ ...append, workspace: [write] });
}

async function readSeenBefore(store: WorkflowStore, asOf: WorkspaceAsOf): Promise<unknown> {
  const found = ["a", "b", "c/d"].map((path) => store.workspace.get(AT, path, { asOf }));
  return [await store.workspace.list(AT, { asOf, withRemoved: true }), await Promise.all(found)];
}

describe("workspace files in memory", () => {
  describeWorkspace(openTested(openInMemory));
});
