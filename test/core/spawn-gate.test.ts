import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { SpawnLimits } from "../../src/agents/coordination/lanes/rule-on-spawn.ts";
import {
  createSpawnGate,
  type SpawnEntry,
  type SpawnGate,
} from "../../src/agents/coordination/runtime/spawns/spawn-gate.ts";
import { createFakeClock, waitUntilSettled, type FakeClock } from "../support/fake-clock.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 100);
const A = "agent:main:a" as SessionKey;
const B = "agent:main:b" as SessionKey;
const RUN = "co-1" as CoordinationId;
const DELAY_MS = 2_000;

interface Scene {
  readonly clock: FakeClock;
  readonly gate: SpawnGate;
  /** Enters and tells what has been answered so far. */
  readonly enter: (session?: SessionKey) => PendingEntry;
}

type AdmittedSpawn = SpawnEntry & { readonly kind: "admitted" };

interface PendingEntry {
  readonly entry: () => SpawnEntry | undefined;
}

function createScene(limits: SpawnLimits, delayMs?: number): Scene {
  const clock = createFakeClock();
  const gate = createSpawnGate({ clock, limits, ...(delayMs !== undefined && { delayMs }) });
  return {
    clock,
    gate,
    enter: (session = A) => {
      let answered: SpawnEntry | undefined;
      void gate.enter(session).then((entry) => {
        answered = entry;
      });
      return { entry: () => answered };
    },
  };
}

function requireAdmitted(entry: SpawnEntry | undefined): AdmittedSpawn {
  if (entry?.kind === "admitted") return entry;
  throw new Error(`not admitted: ${JSON.stringify(entry)}`);
}

/** How many more spawns of this session are admitted, one after the other. */
async function takeFreePlaces({ clock, enter }: Scene, session: SessionKey = A): Promise<number> {
  const entries: AdmittedSpawn[] = [];
  for (;;) {
    const { entry } = enter(session);
    await clock.advance(DELAY_MS);
    const answer = entry();
    if (answer?.kind !== "admitted") break;
    entries.push(answer);
  }
  for (const entry of entries) entry.leave();
  return entries.length;
}

describe("given a gate with a free place", () => {
  it("when a spawn enters, it is admitted without any time passing", async () => {
    const { clock, enter } = createScene({ spawnsMax: 1 });
    const spawn = enter();
    await waitUntilSettled();
    expect(spawn.entry()?.kind).toBe("admitted");
    expect(clock.pending).toBe(0);
  });

  it("when two enter in the same moment, only one gets the place", async () => {
    const { enter } = createScene({ spawnsMax: 1 }, 0);
    const spawns = [enter(), enter()];
    await waitUntilSettled();
    expect(spawns.map(({ entry }) => entry()?.kind)).toEqual(["admitted", "refused"]);
  });
});

describe("given a gate without a free place", () => {
  it("when no spawn leaves, the next one is refused after the hook budget and not before", async () => {
    const { clock, enter } = createScene({ spawnsMax: 1 });
    enter();
    const late = enter(B);
    await clock.advance(DELAY_MS - 1);
    expect(late.entry()).toBeUndefined();
    await clock.advance(1);
    expect(late.entry()).toEqual({
      kind: "refused",
      reason: expect.stringContaining("do the work without a subagent or spawn again later") as string,
    });
  });

  it("when a spawn leaves in time, the one that waited longest is admitted and its timer ends", async () => {
    const { clock, enter } = createScene({ spawnsMax: 1 });
    const open = enter();
    const [second, third] = [enter(B), enter()];
    await waitUntilSettled();
    requireAdmitted(open.entry()).leave();
    await waitUntilSettled();
    expect([second.entry()?.kind, third.entry()]).toEqual(["admitted", undefined]);
    expect(clock.pending).toBe(1);
  });

  it("when a session at its own limit waits, it holds up no other session", async () => {
    const { clock, enter } = createScene({ spawnsMax: 3, spawnsPerSessionMax: 1 });
    enter(A);
    const again = enter(A);
    const other = enter(B);
    await waitUntilSettled();
    expect([again.entry(), other.entry()?.kind]).toEqual([undefined, "admitted"]);
    await clock.advance(DELAY_MS);
    expect(again.entry()).toMatchObject({
      kind: "refused",
      reason: expect.stringContaining("this session has 1 subagent running") as string,
    });
  });

  it("when a place becomes free that the longest waiter may not have, the next waiter gets it", async () => {
    const { enter } = createScene({ spawnsMax: 2, spawnsPerSessionMax: 1 });
    enter(A);
    const ofB = enter(B);
    const [againA, againB] = [enter(A), enter(B)];
    await waitUntilSettled();
    requireAdmitted(ofB.entry()).leave();
    await waitUntilSettled();
    expect([againA.entry(), againB.entry()?.kind]).toEqual([undefined, "admitted"]);
  });

  it("when no delay is allowed, the next one is refused at once", async () => {
    const { clock, enter } = createScene({ spawnsMax: 1 }, 0);
    enter();
    const next = enter();
    await waitUntilSettled();
    expect(next.entry()?.kind).toBe("refused");
    expect(clock.pending).toBe(0);
  });

  it("when very many wait already, the next one is refused at once", async () => {
    const { clock, enter } = createScene({ spawnsMax: 1 });
    enter();
    const waiting = Array.from({ length: 1_000 }, () => enter(B));
    const next = enter(B);
    await waitUntilSettled();
    expect(next.entry()?.kind).toBe("refused");
    expect(waiting.every(({ entry }) => entry() === undefined)).toBe(true);
    await clock.advance(DELAY_MS);
    expect(waiting.every(({ entry }) => entry()?.kind === "refused")).toBe(true);
  });

  it("a refused spawn keeps no place", async () => {
    const all = createScene({ spawnsMax: 1 });
    const open = all.enter();
    all.enter();
    await all.clock.advance(DELAY_MS);
    requireAdmitted(open.entry()).leave();
    expect(await takeFreePlaces(all)).toBe(1);
  });
});

describe("given an admitted spawn", () => {
  const createSceneOfOne = async (): Promise<Scene & { readonly spawn: AdmittedSpawn }> => {
    const all = createScene({ spawnsMax: 1 });
    const { entry } = all.enter();
    await waitUntilSettled();
    return { ...all, spawn: requireAdmitted(entry()) };
  };

  it("when its entry leaves twice, one place is free", async () => {
    const all = await createSceneOfOne();
    all.spawn.leave();
    all.spawn.leave();
    expect(await takeFreePlaces(all)).toBe(1);
  });

  it("when it is bound, leaving the entry changes nothing and leaving its key gives the place back", async () => {
    const all = await createSceneOfOne();
    all.spawn.bind("co-1:s1:1", RUN);
    all.spawn.leave();
    expect(await takeFreePlaces(all)).toBe(0);
    all.gate.leave("co-1:s1:1");
    expect(await takeFreePlaces(all)).toBe(1);
  });

  it("when its key is left twice, one place is free", async () => {
    const all = await createSceneOfOne();
    all.spawn.bind("co-1:s1:1", RUN);
    all.gate.leave("co-1:s1:1");
    all.gate.leave("co-1:s1:1");
    expect(await takeFreePlaces(all)).toBe(1);
  });

  it("when it is bound after its entry left, nothing is counted", async () => {
    const all = await createSceneOfOne();
    all.spawn.leave();
    all.spawn.bind("co-1:s1:1", RUN);
    expect(await takeFreePlaces(all)).toBe(1);
  });

  it("when it is bound to a second key, the first one stays", async () => {
    const all = await createSceneOfOne();
    all.spawn.bind("co-1:s1:1", RUN);
    all.spawn.bind("co-1:s2:1", RUN);
    all.gate.leave("co-1:s2:1");
    expect(await takeFreePlaces(all)).toBe(0);
    all.gate.leave("co-1:s1:1");
    expect(await takeFreePlaces(all)).toBe(1);
  });

  it("G2: when its step ended before it was bound, it keeps no place", async () => {
    const all = await createSceneOfOne();
    all.gate.leave("co-1:s1:1");
    all.spawn.bind("co-1:s1:1", RUN);
    expect(await takeFreePlaces(all)).toBe(1);
  });

  it("G2: only the newest thousand keys that were left are remembered", async () => {
    const all = await createSceneOfOne();
    all.gate.leave("co-1:s1:1");
    for (let other = 0; other < 1_000; other += 1) all.gate.leave(`co-2:s${other}:1`);
    all.spawn.bind("co-1:s1:1", RUN);
    expect(await takeFreePlaces(all)).toBe(0);
  });

  it("when a key is left that nobody has, nothing changes", async () => {
    const all = await createSceneOfOne();
    all.gate.leave("co-9:s9:1");
    expect(await takeFreePlaces(all)).toBe(0);
  });
});

describe("given spawns found in the ledger after a restart", () => {
  it("when they are occupied, they count for all and for their session", async () => {
    const all = createScene({ spawnsMax: 4, spawnsPerSessionMax: 2 });
    all.gate.occupy("co-1:s1:1", { runId: RUN, session: A });
    expect([await takeFreePlaces(all, A), await takeFreePlaces(all, B)]).toEqual([1, 2]);
  });

  it("G1: when one is found again, it is counted once", async () => {
    const all = createScene({ spawnsMax: 3 });
    all.gate.occupy("co-1:s1:1", { runId: RUN, session: A });
    all.gate.occupy("co-1:s1:1", { runId: RUN, session: A });
    expect(await takeFreePlaces(all)).toBe(2);
  });

  it("G1: when a spawn is bound to a key that was found meanwhile, it is counted once", async () => {
    const all = createScene({ spawnsMax: 3 });
    const { entry } = all.enter();
    await waitUntilSettled();
    all.gate.occupy("co-1:s1:1", { runId: RUN, session: A });
    requireAdmitted(entry()).bind("co-1:s1:1", RUN);
    expect(await takeFreePlaces(all)).toBe(2);
    all.gate.leave("co-1:s1:1");
    expect(await takeFreePlaces(all)).toBe(3);
  });

  it("G2: when one has ended while it was being read, it is not counted", async () => {
    const all = createScene({ spawnsMax: 1 });
    all.gate.leave("co-1:s1:1");
    all.gate.occupy("co-1:s1:1", { runId: RUN, session: A });
    expect(await takeFreePlaces(all)).toBe(1);
  });

  it("when there are more than the limit, the next spawn waits until enough of them have ended", async () => {
    const all = createScene({ spawnsMax: 1 });
    all.gate.occupy("co-1:s1:1", { runId: RUN, session: A });
    all.gate.occupy("co-1:s2:1", { runId: RUN, session: B });
    const next = all.enter();
    all.gate.leave("co-1:s1:1");
    await waitUntilSettled();
    expect(next.entry()).toBeUndefined();
    all.gate.leave("co-1:s2:1");
    await waitUntilSettled();
    expect(next.entry()?.kind).toBe("admitted");
  });
});

describe("for every order of calls", () => {
  interface Spawn extends PendingEntry {
    readonly session: SessionKey;
    key?: string;
    isGone?: boolean;
  }

  const ACTS = ["enter", "leave", "bind", "leaveKey", "tick"] as const;
  const commands = fc.array(fc.record({ act: fc.constantFrom("enter", ...ACTS), pick: fc.nat({ max: 9 }) }), {
    maxLength: 40,
  });

  /** Does what the callers do, and keeps account of who has a place. */
  function createPlay(all: Scene) {
    const spawns: Spawn[] = [];
    const open = (): Spawn[] => spawns.filter(({ entry, isGone }) => entry()?.kind === "admitted" && !isGone);
    const pickAny = (of: readonly Spawn[], pick: number): Spawn | undefined =>
      of[pick % Math.max(1, of.length)];
    const listUnbound = (): Spawn[] => open().filter(({ key }) => key === undefined);
    const acts: Record<(typeof ACTS)[number], (pick: number) => void | Promise<void>> = {
      enter: (pick) => {
        const session = pick % 2 === 0 ? A : B;
        spawns.push({ session, ...all.enter(session) });
      },
      leave: (pick) => {
        const spawn = pickAny(open(), pick);
        if (!spawn) return;
        requireAdmitted(spawn.entry()).leave();
        spawn.isGone = spawn.key === undefined;
      },
      bind: (pick) => {
        const spawn = pickAny(listUnbound(), pick);
        if (!spawn) return;
        spawn.key = `key-${spawns.indexOf(spawn)}`;
        requireAdmitted(spawn.entry()).bind(spawn.key, RUN);
      },
      leaveKey: (pick) => {
        const spawn = pickAny(spawns, pick);
        if (spawn?.key === undefined) return;
        all.gate.leave(spawn.key);
        spawn.isGone = true;
      },
      tick: (pick) => all.clock.advance(pick * 300),
    };
    return { acts, spawns, open };
  }

  it("the limits hold, every spawn is answered, and all places come back at the end", async () => {
    await fc.assert(
      fc.asyncProperty(commands, async (all) => {
        const gate = createScene({ spawnsMax: 3, spawnsPerSessionMax: 2 });
        const { acts, spawns, open } = createPlay(gate);
        for (const { act, pick } of all) {
          await acts[act](pick);
          await waitUntilSettled();
          expect(open().length).toBeLessThanOrEqual(3);
          for (const each of [A, B])
            expect(open().filter(({ session }) => session === each).length).toBeLessThanOrEqual(2);
        }
        await gate.clock.advance(DELAY_MS);
        expect(spawns.every(({ entry }) => entry() !== undefined)).toBe(true);
        expect(gate.clock.pending).toBe(0);
        for (const { entry, key } of open()) {
          requireAdmitted(entry()).leave();
          if (key !== undefined) gate.gate.leave(key);
        }
        expect([await takeFreePlaces(gate, A), await takeFreePlaces(gate, B)]).toEqual([2, 2]);
      }),
      { numRuns: RUNS },
    );
  });
});
