/**
 * Owns: any history of memory, asked for at any time and place: the ledger file, which passes over blocks, answers as the store
 * that looks at every entry. The events are numbered across the borders of narrow and of wide blocks.
 */
import Database from "better-sqlite3";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatTimestamp } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowStore } from "../../src/agents/coordination/ports/workflow-store.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";
import {
  timeAt,
  createMemoryEntry,
  createNodeStarted,
  createRunStarted,
  createWorkflowAuthor,
  type WorkflowAuthor,
} from "./workflow-store-tested.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 60);
/** Just before a wide block ends. */
const FIRST_EVENT = 65_536 - 300;
const TENANTS = ["acme", "other"];
const SCOPES = ["notes", "more"];
const TAGS = ["x", "y", ""];
const AUTHORS = ["one", "two"] as const;

const scope = fc.record({ tenant: fc.constantFrom(...TENANTS), scope: fc.constantFrom(...SCOPES) });
const time = fc.integer({ min: 0, max: 12 });

const written = fc.record({
  kind: fc.constant("write" as const),
  by: fc.constantFrom(...AUTHORS),
  scope,
  entries: fc.array(
    fc.record({
      // Few ids, so that many are written again.
      id: fc.oneof(fc.constantFrom("m", "n"), fc.uuid()),
      tags: fc.subarray(TAGS),
      expires: fc.option(time, { nil: undefined }),
    }),
    { minLength: 1, maxLength: 4 },
  ),
});
const passed = fc.record({
  kind: fc.constant("pass" as const),
  by: fc.constantFrom(...AUTHORS),
  events: fc.constantFrom(1, 90, 300),
});
const deleted = fc.record({
  kind: fc.constant("delete" as const),
  before: time,
  limit: fc.integer({ min: 0, max: 5 }),
});
const questions = fc.record({
  kind: fc.constant("ask" as const),
  scope,
  now: time,
  limit: fc.integer({ min: 0, max: 6 }),
  tag: fc.option(fc.constantFrom(...TAGS), { nil: undefined }),
  asOf: fc.option(
    fc.record({ by: fc.constantFrom(...AUTHORS), sequence: fc.integer({ min: 0, max: 900 }) }),
    {
      nil: undefined,
    },
  ),
});

const histories = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: written },
    { weight: 2, arbitrary: passed },
    { weight: 1, arbitrary: deleted },
    { weight: 6, arbitrary: questions },
  ),
  { minLength: 5, maxLength: 60 },
);
type Act = typeof histories extends fc.Arbitrary<(infer A)[]> ? A : never;

async function answer(store: WorkflowStore, authors: Authors, act: Act): Promise<unknown> {
  switch (act.kind) {
    case "write": {
      const entries = act.entries.map(({ id, tags, expires }) =>
        createMemoryEntry(id, {
          tags,
          ...(expires !== undefined && { expiresAt: formatTimestamp(timeAt(expires)) }),
        }),
      );
      return store.append(authors[act.by].append([], { entries, scope: act.scope }));
    }
    case "pass":
      return store.append(
        authors[act.by].append(Array.from({ length: act.events }, () => createNodeStarted("n"))),
      );
    case "delete":
      return store.memory.deleteExpired(timeAt(act.before), act.limit);
    case "ask":
      return ask(store, authors, act);
  }
}

type Authors = Readonly<Record<(typeof AUTHORS)[number], WorkflowAuthor>>;

async function ask(
  { memory }: WorkflowStore,
  authors: Authors,
  { scope: of, limit, tag, ...query }: Act & { readonly kind: "ask" },
): Promise<unknown> {
  const asOf = query.asOf && { runId: authors[query.asOf.by].runId, sequence: query.asOf.sequence };
  const when = { now: timeAt(query.now), ...(asOf && { asOf }) };
  const listed = await memory.list(of, { ...when, limit, ...(tag !== undefined && { tag }) });
  return [listed, await memory.get(of, "m", when), await memory.get(of, "n", when)];
}

/** Deleting takes what expired first; of two that expired together, either. */
function isDefinite(acts: readonly Act[]): boolean {
  const expiries = acts.flatMap((act) =>
    act.kind === "write" ? act.entries.map(({ expires }) => expires) : [],
  );
  const knownValues = expiries.filter((expires) => expires !== undefined);
  return new Set(knownValues).size === knownValues.length || acts.every(({ kind }) => kind !== "delete");
}

function makeDefinite(acts: readonly Act[]): readonly Act[] {
  return isDefinite(acts)
    ? acts
    : acts.map((act) => (act.kind === "delete" ? { ...act, limit: 1_000 } : act));
}

describe("any history of memory", () => {
  it("is answered by the ledger file as by the store that looks at every entry", async () => {
    await fc.assert(
      fc.asyncProperty(histories, async (acts) => {
        using folder = createTempFolder();
        const path = folder.file("ledger.sqlite");
        await (await openTestLedger(path)).close();
        const database = new Database(path);
        database.prepare("insert into sqlite_sequence (name, seq) values ('event', ?)").run(FIRST_EVENT);
        database.close();
        const file = await openTestLedger(path);
        const stores = [file.workflows, createMemoryWorkflowLedger().open()];
        const answers: unknown[][] = [];
        for (const store of stores) {
          const authors = { one: createWorkflowAuthor("one"), two: createWorkflowAuthor("two") };
          for (const author of Object.values(authors))
            await store.append(author.append([createRunStarted()]));
          const args: unknown[] = [];
          for (const act of makeDefinite(acts)) args.push(await answer(store, authors, act));
          answers.push(args);
        }
        // The events that were left out before the first.
        const problems = (await file.inspect()).filter(({ kind }) => kind !== "event_missing");
        await file.close();
        expect(problems).toEqual([]);
        expect(answers[0]).toEqual(answers[1]);
      }),
      { numRuns: RUNS },
    );
  });
});
