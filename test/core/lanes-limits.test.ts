import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isLaneFull, computeLaneRoom } from "../../src/agents/coordination/lanes/lane-room.ts";
import { canHoldPlace } from "../../src/agents/coordination/lanes/may-hold.ts";
import {
  ruleOnSpawn,
  type OpenSpawns,
  type SpawnLimits,
} from "../../src/agents/coordination/lanes/rule-on-spawn.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 300);

describe("given caps per session and per agent", () => {
  it.each([
    [{}, { ofSession: 9_999, ofAgent: 9_999 }, true],
    [{ perSessionMax: 2 }, { ofSession: 1, ofAgent: 9 }, true],
    [{ perSessionMax: 2 }, { ofSession: 2, ofAgent: 0 }, false],
    [{ perAgentMax: 3 }, { ofSession: 9, ofAgent: 2 }, true],
    [{ perAgentMax: 3 }, { ofSession: 0, ofAgent: 3 }, false],
    [{ perSessionMax: 2, perAgentMax: 3 }, { ofSession: 1, ofAgent: 2 }, true],
    [{ perSessionMax: 2, perAgentMax: 3 }, { ofSession: 1, ofAgent: 3 }, false],
    [{ perSessionMax: 2, perAgentMax: 3 }, { ofSession: 2, ofAgent: 2 }, false],
  ])("with %j and %j held, another place may be held: %s", (caps, heldPlaces, answer) => {
    expect(canHoldPlace(caps, heldPlaces)).toBe(answer);
  });
});

describe("given a lane with a bounded queue", () => {
  it.each([
    [{ waiting: 0, queueMax: 8, wasFull: false }, 8],
    [{ waiting: 7, queueMax: 8, wasFull: false }, 1],
    [{ waiting: 8, queueMax: 8, wasFull: false }, 0],
    [{ waiting: 7, queueMax: 8, wasFull: true }, 0],
    [{ waiting: 5, queueMax: 8, wasFull: true }, 0],
    [{ waiting: 4, queueMax: 8, wasFull: true }, 4],
    [{ waiting: 2, queueMax: 3, wasFull: true }, 0],
    [{ waiting: 1, queueMax: 3, wasFull: true }, 2],
    [{ waiting: 1, queueMax: 2, wasFull: true }, 1],
    [{ waiting: 1, queueMax: 1, wasFull: true }, 0],
    [{ waiting: 0, queueMax: 1, wasFull: true }, 1],
  ])("%j has room for %i", (backlog, room) => {
    expect(computeLaneRoom(backlog)).toBe(room);
  });

  it("N3: a lane that was full and has emptied has all its room, whatever its size", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000 }), (queueMax) => {
        expect(isLaneFull({ waiting: queueMax, queueMax, wasFull: false })).toBe(true);
        expect(computeLaneRoom({ waiting: 0, queueMax, wasFull: true })).toBe(queueMax);
      }),
      { numRuns: RUNS },
    );
  });
});

describe("given a model's own spawn", () => {
  const limits: SpawnLimits = { spawnsMax: 4, spawnsPerSessionMax: 2 };

  it("when nothing is full, it is admitted", () => {
    expect(ruleOnSpawn(limits, { all: 3, ofSession: 1 }, false)).toEqual({ kind: "admitted" });
  });

  it.each([
    ["all spawns", { all: 4, ofSession: 0 }],
    ["its session", { all: 2, ofSession: 2 }],
  ])("when the limit of %s is reached and it may wait, it is delayed", (_, open) => {
    expect(ruleOnSpawn(limits, open, true)).toEqual({ kind: "delay" });
  });

  it.each<[string, SpawnLimits, OpenSpawns, string]>([
    [
      "its session is full",
      limits,
      { all: 3, ofSession: 2 },
      "this session has 2 subagents running, and at most 2 may run at once; wait for one of its running subagents to finish, then spawn again",
    ],
    [
      "both are full",
      { spawnsMax: 1, spawnsPerSessionMax: 1 },
      { all: 1, ofSession: 1 },
      "this session has 1 subagent running, and at most 1 may run at once; wait for one of its running subagents to finish, then spawn again",
    ],
    [
      "all spawns together are too many and some are its own",
      { spawnsMax: 4 },
      { all: 5, ofSession: 2 },
      "5 subagents of all sessions together are running, and at most 4 may run at once; wait for one of this session's 2 subagents to finish, then spawn again",
    ],
    [
      "all spawns together are too many and none is its own",
      { spawnsMax: 1 },
      { all: 1, ofSession: 0 },
      "1 subagent of all sessions together is running, and at most 1 may run at once; this session has none of them, so do the work without a subagent or spawn again later",
    ],
  ])("when %s and it may not wait, it is refused in words the model can act on", (_, max, open, reason) => {
    expect(ruleOnSpawn(max, open, false)).toEqual({ kind: "refused", reason });
  });

  it("it is admitted exactly when both limits leave room, whether it may wait or not", () => {
    const counts = fc.integer({ min: 0, max: 6 });
    fc.assert(
      fc.property(counts, counts, fc.boolean(), (all, ofSession, mayWait) => {
        const { kind } = ruleOnSpawn(limits, { all, ofSession }, mayWait);
        expect(kind === "admitted").toBe(all < 4 && ofSession < 2);
      }),
      { numRuns: RUNS },
    );
  });
});
