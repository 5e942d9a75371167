import { describe, expect, it } from "vitest";
import type { EpochMs, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { createOwnerTurns } from "../../src/agents/coordination/runtime/environment/owner-turns.ts";

const SESSION = "agent:main:main" as SessionKey;
const HOUR_MS = 3_600_000;
const timeOf = (ms: number): EpochMs => ms as EpochMs;

describe("the turns of a session", () => {
  it("are over with the newest one where the end of an earlier one was not heard", () => {
    const turns = createOwnerTurns();
    turns.began(SESSION, "unheard", timeOf(1_000));
    turns.began(SESSION, "heard", timeOf(2_000));
    expect(turns.quietSince(SESSION, timeOf(2_500))).toBeUndefined();
    turns.ended(SESSION, "heard", timeOf(3_000));
    expect(turns.quietSince(SESSION, timeOf(4_000))).toBe(3_000);
  });

  it("go on where the end of an earlier one is heard late", () => {
    const turns = createOwnerTurns();
    turns.began(SESSION, "first", timeOf(1_000));
    turns.began(SESSION, "second", timeOf(2_000));
    turns.ended(SESSION, "first", timeOf(3_000));
    expect(turns.quietSince(SESSION, timeOf(4_000))).toBeUndefined();
  });

  it("are over six hours after the last one began, where its end was not heard", () => {
    const turns = createOwnerTurns();
    turns.began(SESSION, "unheard", timeOf(0));
    expect(turns.quietSince(SESSION, timeOf(6 * HOUR_MS))).toBeUndefined();
    expect(turns.quietSince(SESSION, timeOf(6 * HOUR_MS + 1))).toBe(0);
  });

  it("last from the first prompt of a run, and are over six hours after its last one", () => {
    const turns = createOwnerTurns();
    turns.began(SESSION, "run", timeOf(0));
    turns.began(SESSION, "run", timeOf(5 * HOUR_MS));
    expect(turns.isUnderWaySince(SESSION, timeOf(1_000), timeOf(11 * HOUR_MS))).toBe(true);
    expect(turns.quietSince(SESSION, timeOf(11 * HOUR_MS))).toBeUndefined();
    expect(turns.quietSince(SESSION, timeOf(11 * HOUR_MS + 1))).toBe(0);
    turns.began(SESSION, "other", timeOf(12 * HOUR_MS));
    expect(turns.isUnderWaySince(SESSION, timeOf(1_000), timeOf(12 * HOUR_MS))).toBe(false);
  });

  it("are quiet since ever where none was seen", () => {
    expect(createOwnerTurns().quietSince(SESSION, timeOf(1_000))).toBe(0);
  });
});
