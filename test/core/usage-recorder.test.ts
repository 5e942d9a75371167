import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { CoordinationId, SessionKey, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { recordFacts } from "../../src/agents/coordination/dispatch/record.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";

import { createUnopenedCoordination, type Coordination } from "../../src/agents/coordination/ledger/state.ts";
import { nameTraceReference, nameChildReference } from "../../src/agents/coordination/ledger/summary.ts";
import { createUsageBook, type CallUsage } from "../../src/agents/coordination/runtime/usage/usage-book.ts";
import {
  createUsageRecorder,
  type UsageRecorderDependencies,
} from "../../src/agents/coordination/runtime/usage/usage-recorder.ts";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import { quietLogger } from "../support/ledger-fixtures.ts";
import { createManualClock } from "../support/temp-ledger.ts";
import {
  acknowledge,
  complete,
  nameChild,
  OPEN,
  openScene,
  OWNER,
  RUN,
  SETTLE,
  SETTLE_MS,
  spawn,
  stepId,
} from "./scene.ts";

const CHILD = nameChild(1);
const LATER = "co-later" as CoordinationId;
const USED: CallUsage = {
  model: "mock/scripted",
  inputTokens: 80,
  outputTokens: 20,
  cacheReadTokens: 40,
  cacheWriteTokens: 10,
  costNanoUsd: 400,
};

/** The states of coordinations, which commands change; of the one with the child from the start. */
function createStates(clock: Clock, first: Coordination) {
  const states = new Map<CoordinationId, Coordination>([[RUN, first]]);
  const readState = (runId: CoordinationId): Coordination =>
    states.get(runId) ?? createUnopenedCoordination(runId);
  const ledger = {
    appends: 0,
    readState,
    submitAll: (runId: CoordinationId, commands: readonly Command[]): void => {
      for (const command of commands) {
        const decision = decide(readState(runId), command, clock.now());
        if (decision.kind !== "accepted") continue;
        ledger.appends += 1;
        states.set(runId, recordFacts(readState(runId), decision.facts, clock.now()).state);
      }
    },
  };
  return ledger;
}

/** A coordination with one child, which uses models; what is told is recorded in it. */
function openPlay({ tokens, gateway }: { readonly tokens?: number; readonly gateway?: string } = {}) {
  const clock = createManualClock();
  const book = createUsageBook("meter-1");
  const opening = { ...OPEN, ...(tokens !== undefined && { budget: { tokens } }) } as typeof OPEN;
  const ledger = createStates(clock, openScene(opening, spawn("a"), acknowledge(1)).state);
  const { readState, submitAll } = ledger;
  const places = new Map<string, { runId: CoordinationId; stepId?: StepId }>([
    [nameChildReference(CHILD), { runId: RUN, stepId: stepId(1) }],
  ]);
  let heldSubmit: Promise<unknown> | undefined;
  let failing: { count: number } | undefined;
  const dependencies: UsageRecorderDependencies = {
    book,
    clock,
    logger: quietLogger,
    settings: { ...(gateway !== undefined && { gateway }) },
    store: { find: (name) => Promise.resolve(places.get(name)) },
    runs: {
      state: (runId) => Promise.resolve(readState(runId)),
      submit: async (runId, commands) => {
        const holding = heldSubmit;
        heldSubmit = undefined;
        await holding;
        if (failing) {
          failing.count += 1;
          throw new Error("the ledger is closed");
        }
        submitAll(runId, commands);
        return { kind: "accepted", state: readState(runId) };
      },
    },
  };
  const recorder = createUsageRecorder(dependencies);
  return {
    book,
    recorder,
    places,
    pass: async (ms: number): Promise<void> => {
      clock.set(clock.now() + ms);
      clock.fire();
      await settle();
    },
    call: (session: SessionKey = CHILD, runId = "run-1") => {
      book.beginCall({ session, runId, traceId: "trace-1" });
      const run = book.addUsage(session, USED);
      if (run) recorder.noted(run);
    },
    appends: () => ledger.appends,
    /** No record reaches the log from now on, until that ends; counts those that were tried. */
    failSubmits: () => {
      const failures = { count: 0, end: () => (failing = undefined) };
      failing = failures;
      return failures;
    },
    openNextRecorder: () => createUsageRecorder(dependencies),
    /** The next record does not reach the log before the function that is returned is called. */
    holdNextSubmit: (): (() => void) => {
      const { promise, resolve } = Promise.withResolvers<true>();
      heldSubmit = promise;
      return () => resolve(true);
    },
    bill: (runId = RUN) => {
      const state = readState(runId);
      return state.kind === "unopened" ? undefined : state.bill;
    },
    /** The child ends, and with it its coordination; it stays for other work. */
    endChild: () => {
      submitAll(RUN, [complete(1)]);
      clock.set(clock.now() + SETTLE_MS);
      submitAll(RUN, [SETTLE]);
    },
    /** The child spawns a child of its own on its newest trace. */
    openOfChild: (runId: CoordinationId) => {
      submitAll(runId, [{ ...OPEN, ownerSession: CHILD } as Command]);
      places.set(nameTraceReference({ session: CHILD, gateway }, "trace-1"), { runId });
    },
  };
}

const settle = async (): Promise<void> => {
  for (let turns = 0; turns < 50; turns += 1) await Promise.resolve();
};

describe("the book of usage", () => {
  it("counts one use for each call, and none of a copy that the host writes", () => {
    const book = createUsageBook("meter-1");
    expect(book.addUsage(CHILD, USED)).toBeUndefined();
    book.beginCall({ session: CHILD, runId: "run-1" });
    expect(book.addUsage(CHILD, USED)?.calls).toBe(1);
    expect(book.addUsage(CHILD, USED)).toBeUndefined();
    book.beginCall({ session: CHILD, runId: "run-1" });
    expect(book.addUsage(CHILD, USED)?.calls).toBe(2);
  });
});

describe("recording usage", () => {
  it("takes a few records for a run of 500 calls, and counts every call", async () => {
    const play = openPlay();
    for (let call = 0; call < 500; call += 1) {
      play.call();
      await play.pass(500);
    }
    await play.recorder.runEnded(CHILD);
    expect(play.bill()?.total).toMatchObject({ calls: 500, inputTokens: 40_000, costMicroUsd: 200 });
    expect(play.appends()).toBeLessThanOrEqual(12);
  });

  it("records at the end of a run at once, and nothing twice", async () => {
    const play = openPlay();
    play.call();
    await play.recorder.runEnded(CHILD);
    await play.recorder.runEnded(CHILD);
    await play.recorder.flush();
    expect(play.appends()).toBe(1);
    play.call(CHILD, "run-2");
    await play.recorder.runEnded(CHILD);
    expect(play.bill()?.total.calls).toBe(2);
  });

  it("keeps the owner's calls from before its first spawn until its coordination is there", async () => {
    const play = openPlay();
    play.call(OWNER);
    await play.recorder.flush();
    expect(play.appends()).toBe(0);
    play.places.set(nameTraceReference({ session: OWNER, gateway: undefined }, "trace-1"), { runId: RUN });
    play.call(OWNER);
    await play.recorder.runEnded(OWNER);
    expect(play.bill()?.steps.get("@owner" as StepId)?.totals.calls).toBe(2);
  });

  it("leaves alone the coordination that another gateway has for a session of the same key", async () => {
    const play = openPlay({ gateway: "b" });
    play.places.set(nameTraceReference({ session: OWNER, gateway: "a" }, "trace-1"), { runId: RUN });
    play.call(OWNER);
    await play.recorder.flush();
    expect(play.appends()).toBe(0);
    play.places.set(nameTraceReference({ session: OWNER, gateway: "b" }, "trace-1"), { runId: RUN });
    await play.recorder.flush();
    expect(play.appends()).toBe(1);
  });

  it("forgets a run that belongs to no coordination when it is over", async () => {
    const play = openPlay();
    play.call(OWNER);
    await play.recorder.runEnded(OWNER);
    expect(play.book.listUnrecorded()).toHaveLength(1);
    await play.pass(5_000);
    expect(play.book.listUnrecorded()).toHaveLength(0);
  });

  it("bills a child that outlives its coordination, and spawns, in the coordination that it opens", async () => {
    const play = openPlay();
    play.call();
    await play.recorder.runEnded(CHILD);
    play.endChild();
    play.call(CHILD, "run-2");
    play.openOfChild(LATER);
    play.call(CHILD, "run-2");
    await play.recorder.flush();
    expect(play.bill()?.total.calls).toBe(1);
    expect(play.bill(LATER)?.steps.get("@owner" as StepId)?.totals.calls).toBe(2);
  });

  it("counts nothing twice of a run of which a part was recorded before that", async () => {
    const play = openPlay();
    play.endChild();
    play.call(CHILD, "run-2");
    await play.pass(5_000);
    expect(play.bill()?.total.calls).toBe(1);
    play.openOfChild(LATER);
    for (let call = 0; call < 2; call += 1) play.call(CHILD, "run-2");
    await play.recorder.flush();
    play.call(CHILD, "run-2");
    await play.recorder.runEnded(CHILD);
    expect(play.bill()?.total).toMatchObject({ calls: 1, inputTokens: 80 });
    expect(play.bill(LATER)?.total).toMatchObject({ calls: 3, inputTokens: 240 });
  });

  it("counts nothing twice of a run that moves to the coordination it opens while its record is under way", async () => {
    const play = openPlay();
    play.endChild();
    play.call(CHILD, "run-2");
    const letGoOn = play.holdNextSubmit();
    const recording = play.recorder.flush();
    await settle();
    play.openOfChild(LATER);
    const ending = play.recorder.runEnded(CHILD);
    await settle();
    letGoOn();
    await Promise.all([recording, ending]);
    play.call(CHILD, "run-2");
    await play.recorder.flush();
    expect(play.bill()?.total.calls).toBe(1);
    expect(play.bill(LATER)?.total.calls).toBe(1);
  });

  it("bills what a child uses after the end in its old coordination where it opens none", async () => {
    const play = openPlay();
    play.endChild();
    for (const run of ["run-2", "run-3"]) {
      play.call(CHILD, run);
      await play.recorder.runEnded(CHILD);
    }
    expect(play.bill()?.total.calls).toBe(2);
  });

  it("leaves what could not be recorded before a reload to the next recorder, and looks at nothing any more", async () => {
    const play = openPlay();
    play.call();
    const failSubmits = play.failSubmits();
    const recording = play.pass(5_000);
    await play.recorder.stop();
    await recording;
    await play.pass(60_000);
    expect(failSubmits.count).toBe(2);
    failSubmits.end();
    play.openNextRecorder();
    await play.pass(60_000);
    expect(play.bill()?.total.calls).toBe(1);
  });

  it("stops a child by what is not recorded yet, and records it with that", async () => {
    const play = openPlay({ tokens: 300 });
    play.call();
    expect(await play.recorder.stopChild(CHILD, "call")).toBeUndefined();
    play.call();
    const stop = await play.recorder.stopChild(CHILD, "call");
    expect(stop).toMatchObject({ reached: { limit: "tokens", allowed: 300, used: 300, stopped: "call" } });
    expect(stop?.sentence).toContain("300 of 300 tokens are used");
    expect(play.bill()).toMatchObject({
      total: { calls: 2 },
      stops: [{ stepId: "step-1", stopped: "call" }],
    });
    expect(await play.recorder.stopChild(OWNER, "call")).toBeUndefined();
  });

  it("stops a child by what is being recorded at that moment", async () => {
    const play = openPlay({ tokens: 150 });
    play.call();
    const letGoOn = play.holdNextSubmit();
    const recording = play.recorder.flush();
    await settle();
    const stopping = play.recorder.stopChild(CHILD, "call");
    await settle();
    letGoOn();
    await recording;
    expect(await stopping).toMatchObject({ reached: { limit: "tokens", used: 150 } });
    expect(play.bill()?.total.calls).toBe(1);
  });

  it("lets a child within its budget go on at once, also while a record does not come to its end", async () => {
    const play = openPlay({ tokens: 150_000 });
    play.call();
    const letGoOn = play.holdNextSubmit();
    const recording = play.recorder.flush();
    await settle();
    expect(await play.recorder.stopChild(CHILD, "call")).toBeUndefined();
    letGoOn();
    await recording;
  });
});
