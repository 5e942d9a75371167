/** Every append of a story of contested writes is made to fail once: the process dies before it, or after it, or it fails. */
import { describe, expect, it } from "vitest";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { eventsOf, playArbiter, type PlayedArbiter } from "./arbiter-play.ts";
import { FAULTS } from "./arbiter-process.ts";

type EventOf<T extends RunEvent["type"]> = Extract<RunEvent, { type: T }>;
const filterByType = <T extends RunEvent["type"]>(events: readonly RunEvent[], type: T): EventOf<T>[] =>
  events.filter((event): event is EventOf<T> => event.type === type);

async function check(played: PlayedArbiter): Promise<void> {
  const events = eventsOf(played);
  expect((await verifyLedger(played.store)).problems).toEqual([]);
  for (const run of played.ledger.events())
    expect(filterByType(run, "coordination.terminal"), "D5: one end").toHaveLength(1);
  expect(await played.store.claims({ after: 0, limit: 100 }), "who has ended holds nothing").toEqual([]);
  const conflicts = filterByType(events, "conflict.detected").map(({ payload }) => payload.conflictId);
  const resolved = filterByType(events, "conflict.resolved").map(({ payload }) => payload.conflictId);
  expect(resolved.toSorted(), "A3: one resolution for each").toEqual(conflicts.toSorted());
  checkAnswers(played);
  checkHolders(events);
}

/** A2, D1: what was allowed was allowed under a claim on disk, and only a merge beside another one. */
function checkAnswers({ granted, stepOf, files }: PlayedArbiter): void {
  for (const { session, resource, holders } of granted) {
    expect(holders, resource).toContain(stepOf.get(session));
    if (resource !== `file:${files.folder}/merge.md`) expect(holders, resource).toHaveLength(1);
  }
}

/** At no time two steps held what cannot be shared. The story is shorter than a lease, so every claim lasts until its release. */
function checkHolders(events: readonly RunEvent[]): void {
  const claims = filterByType(events, "claim.acquired")
    .map(({ payload, runId, timestamp }) => ({ ...payload, runId, from: timestamp }))
    .toSorted((one, other) => one.token - other.token);
  expect(claims.map(({ token }) => token)).toEqual(claims.map((_, index) => index + 1));
  const ends = new Map(
    filterByType(events, "claim.released").map(({ payload, timestamp }) => [payload.token, timestamp]),
  );
  for (const later of claims) {
    const beside = claims.filter(
      (earlier) =>
        earlier.token < later.token &&
        earlier.resource === later.resource &&
        earlier.expiresAtMs > Date.parse(later.from) &&
        (ends.get(earlier.token) ?? "9") > later.from,
    );
    if (!later.resource.endsWith("/merge.md")) expect(beside, later.resource).toEqual([]);
  }
}

describe("contested writes", () => {
  it("that nothing happens to come to what the rules say", async () => {
    const played = await playArbiter("approved");
    await check(played);
    const { files } = played;
    expect([files.text("x.md"), files.text("y.md"), files.text("z.md")]).toEqual(["high", "a", "high"]);
    expect(files.text("merge.md")).toBe("ONE\n-\ntwo\n-\nTHREE\n");
    expect(files.text("review.md")).toBe("owner");
    const sentences = filterByType(eventsOf(played), "conflict.resolved").map(
      ({ payload }) => payload.because,
    );
    expect(sentences.toSorted()).toEqual([
      "approved",
      "highest-priority",
      "highest-priority",
      "lease-holder",
      "manual-review",
      "merged",
    ]);
  });

  it.each(["approved", "denied", "unanswered"] as const)(
    "keep every promise when a gateway fails at any append (%s)",
    async (answer) => {
      const { appends } = await playArbiter(answer);
      let deaths = 0;
      for (let atAppend = 1; atAppend <= appends; atAppend += 1)
        for (const kind of FAULTS) {
          try {
            const played = await playArbiter(answer, { kind, atAppend });
            deaths += played.deaths;
            await check(played);
          } catch (error) {
            throw new Error(`${kind} append ${atAppend} of ${appends}`, { cause: error });
          }
        }
      expect(deaths).toBeGreaterThanOrEqual(2 * appends - 2);
    },
  );
});
