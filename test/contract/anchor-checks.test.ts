import { describe, expect, test } from "vitest";
import { ANCHOR_HEADS_MAX, formatAnchor } from "../../src/agents/coordination/contracts/ledger-anchor.ts";
import type { LedgerReader } from "../../src/plugins/ledger-reader.ts";
import { checkAnchor, makeAnchor, readAnchor } from "../../src/plugins/anchor-checks.ts";

const RUNS = ANCHOR_HEADS_MAX + 1;
const hashOf = (ordinal: number): string => ordinal.toString(16).padStart(64, "0");

interface FakeLedger {
  readonly runs: number;
  /** The run that has another hash than it had. */
  readonly rewritten?: number;
}

function createFakeReader({ runs, rewritten }: FakeLedger): Pick<LedgerReader, "heads"> {
  return {
    heads: {
      newestNumber: () => Promise.resolve(runs),
      page: ({ after, limit }) => {
        expect(limit).toBeLessThan(1_000);
        const count = Math.min(limit, runs - after);
        return Promise.resolve(
          Array.from({ length: count }, (_, index) => {
            const ordinal = after + index + 1;
            return {
              ordinal,
              runId: `run-${ordinal}`,
              events: 1,
              hash: hashOf(ordinal === rewritten ? 0 : ordinal),
            };
          }),
        );
      },
      hashAt: () => Promise.reject(new Error("no run of such an anchor is looked for by its id")),
    },
  };
}

describe("an anchor of very many runs", () => {
  test("has one digest over all, and stays small", async () => {
    const anchor = await makeAnchor(createFakeReader({ runs: RUNS }), { events: RUNS, madeAtMs: 0 });
    expect(anchor.heads).toBeUndefined();
    expect(anchor.runs).toBe(RUNS);
    const text = formatAnchor(anchor);
    expect(text.length).toBeLessThan(500);
    expect(readAnchor({ name: "anchor.json", text })).toEqual(anchor);
  });

  test("finds that a run was rewritten or removed, without knowing which", async () => {
    const sound = createFakeReader({ runs: RUNS });
    const anchor = await makeAnchor(sound, { events: RUNS, madeAtMs: 0 });
    expect(await checkAnchor(sound, anchor)).toEqual({ problems: [], pruned: 0, isDigestCompared: true });
    const { problems: rewritten } = await checkAnchor(createFakeReader({ runs: RUNS, rewritten: 7 }), anchor);
    expect(rewritten).toMatchObject([{ kind: "anchor_ledger_differs" }]);
    const { problems: removed } = await checkAnchor(createFakeReader({ runs: RUNS - 1 }), anchor);
    expect(removed).toMatchObject([{ kind: "anchor_ledger_differs" }]);
  });
});
