/** Owns: a ledger with questions to people about contested writes. */
import { createAsk, createContest, createContestant, createHolder, request } from "../core/claims-scene.ts";
import { contentOf } from "../support/ledger-fixtures.ts";
import { openTestLedger } from "../support/temp-ledger.ts";
import { createOpening, recordCommands, spawn, SPAWNS } from "./recorded-questions.ts";

const GATE = { threshold: 0 };

/** The step `draft` holds the first resource; `review` wants all of them, and people are asked about each. */
export async function recordContests(path: string, first: string, ...others: readonly string[]) {
  const store = await openTestLedger(path);
  const ask = (resource: string) => {
    const claims = [createContestant(1, 2), createHolder(2, 1)];
    const contest = createContest(claims, { strategy: "manual_review", asksPeople: true });
    return createAsk(resource, 2, { contest });
  };
  await recordCommands(store, SPAWNS, [
    [0, createOpening("trace-1"), [contentOf("objective of trace-1")]],
    [100, spawn("review", GATE)],
    [200, spawn("draft", GATE)],
    [300, request(2, createAsk(first, 1))],
    [400, request(1, ask(first), ...others.map(ask))],
  ]);
  await store.close();
}
