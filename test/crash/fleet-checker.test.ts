/** The checker of fleets finds each fault that is planted, and nothing in a history without one. */
import { describe, expect, it } from "vitest";
import { findBreaches, type Change, type FleetHistory, type RunRow } from "./fleet-history.ts";

const LEASE_MS = 2_000;
const RUN: RunRow = { length: 1, ownerId: "owner-a", token: 1, isArrived: false, hasEnded: false };

function createBeat(atMs: number, name = "a"): Change {
  return { table: "run_owner", atMs, writer: `serve-${name}`, ownerId: `owner-${name}`, isRemoved: false };
}

function createChange(atMs: number, name: string, after: Partial<RunRow>, before?: Partial<RunRow>): Change {
  const rows = { after: { ...RUN, ...after }, ...(before && { before: { ...RUN, ...before } }) };
  return { table: "run", atMs, writer: `serve-${name}`, runId: "run-1", ...rows };
}

function check(changes: readonly Change[], more: Partial<FleetHistory> = {}): string[] {
  return findBreaches({
    acknowledgements: [],
    killedAtMs: new Map(),
    leaseMs: LEASE_MS,
    ...more,
    changes,
  });
}

const BEGUN = [createBeat(0), createBeat(0, "b"), createChange(10, "a", {})];
const TAKEN = { ownerId: "owner-b", token: 2 };
const ENDED = { length: 3, hasEnded: true };

describe("a history of processes on one ledger", () => {
  it("has no breach where a run goes on elsewhere after a silence, with a request of a third one", () => {
    const changes = [
      ...BEGUN,
      createChange(20, "b", { length: 2, isArrived: true }, {}),
      createChange(30, "a", { length: 2 }, { length: 2, isArrived: true }),
      createChange(2_100, "b", { ...TAKEN, length: 2 }, { length: 2 }),
      createChange(2_200, "b", { ...TAKEN, ...ENDED }, { ...TAKEN, length: 2 }),
    ];
    const acknowledgements = [
      { key: "k", runId: "run-1" },
      { key: "k", runId: "run-1" },
    ];
    expect(check(changes, { acknowledgements })).toEqual([]);
  });

  it.each([
    ["was killed", { killedAtMs: new Map([["serve-a", 50]]) }, []],
    ["left", {}, [{ ...createBeat(50), isRemoved: true } as Change]],
    ["beat once more between the look and the takeover", {}, [createBeat(2_090)]],
  ] as const)("has no breach where the owner %s", (_, more, between) => {
    expect(check([...BEGUN, ...between, createChange(2_100, "b", TAKEN, {})], more)).toEqual([]);
  });

  it("shows a lease that is not waited for", () => {
    expect(check([...BEGUN, createBeat(400), createChange(500, "b", TAKEN, {})])).toEqual([
      "run-1: serve-b took over from owner-a, which lived",
    ]);
  });

  it("shows an owner that writes after it lost the run", () => {
    const late = createChange(2_200, "a", { ...TAKEN, length: 2 }, TAKEN);
    expect(check([...BEGUN, createChange(2_100, "b", TAKEN, {}), late])).toEqual([
      "run-1: serve-a appended to a run of serve-b",
    ]);
  });

  it("shows two that take a run over with one token", () => {
    const twice = [
      createChange(2_100, "b", TAKEN, {}),
      createChange(2_101, "c", { ownerId: "owner-c", token: 2 }, TAKEN),
    ];
    expect(check([...BEGUN, createBeat(5, "c"), ...twice])).toContain(
      "run-1: serve-c took over with token 2 behind 2",
    );
  });

  it("shows an append that does not go on from the one before", () => {
    expect(check([...BEGUN, createChange(20, "a", { length: 3 }, { length: 2 })])).toEqual([
      "run-1: serve-a goes on from 2, and the log has 1",
    ]);
  });

  it("shows what is written behind an end", () => {
    const changes = [
      ...BEGUN,
      createChange(20, "a", ENDED, {}),
      createChange(30, "a", { ...ENDED, length: 4 }, ENDED),
    ];
    expect(check(changes)).toEqual(["run-1: serve-a wrote behind its end"]);
  });

  it("shows a run that was acknowledged and lost, and a key that made two", () => {
    const acknowledgements = [
      { key: "k", runId: "run-1" },
      { key: "k", runId: "run-2" },
    ];
    expect(check([...BEGUN, createChange(20, "a", ENDED, {})], { acknowledgements })).toEqual([
      "run-2 was acknowledged and has not ended",
      "the key k made run-1 and run-2",
    ]);
  });
});
