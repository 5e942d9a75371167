import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { createWorld, type World } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { createFailingLog, logOver } from "./run-log-scene.ts";
import { acknowledge, complete, fail, OPEN, spawn, timeOut } from "./scene.ts";

const RUN = "co-1" as CoordinationId;
const factsOf = ({ ledger }: World): string[] =>
  ledger
    .events()
    .flat()
    .map(({ type }) => type)
    .filter((type) => /^(coordination|step)\./u.test(type));
describe("L2: a submission", () => {
  it("that loses a race is decided again on what the other writer left", async () => {
    const w = createWorld();
    const other = logOver(w);
    let races = 0;
    const mine = logOver(w, (store) => ({
      ...store,
      append: async (request) => {
        if (races++ === 1) await other.submit(RUN, [spawn("theirs")]);
        return store.append(request);
      },
    }));
    await mine.submit(RUN, [OPEN]);
    expect(await mine.submit(RUN, [spawn("mine")])).toMatchObject({ kind: "accepted", stepId: "step-2" });
    expect(races).toBe(3);
    expect(await verifyLedger(w.ledger.open(w.clock))).toMatchObject({ ok: true });
  });

  it("that finds its work done by the winner of the race is a replay", async () => {
    const w = createWorld();
    const other = logOver(w);
    let races = 0;
    const mine = logOver(w, (store) => ({
      ...store,
      append: async (request) => {
        if (races++ === 1) await other.submit(RUN, [spawn("a")]);
        return store.append(request);
      },
    }));
    await mine.submit(RUN, [OPEN]);
    expect(await mine.submit(RUN, [spawn("a")])).toMatchObject({ kind: "replay", stepId: "step-1" });
    expect(factsOf(w).filter((type) => type === "step.admitted")).toHaveLength(1);
  });

  it("that loses every race says so after a bounded number of tries", async () => {
    const w = createWorld();
    let tries = 0;
    const mine = logOver(w, (store) => ({
      ...store,
      append: () => {
        tries += 1;
        return Promise.reject(new CoordinationError("LEDGER_CONFLICT", "lost"));
      },
    }));
    await expect(mine.submit(RUN, [OPEN])).rejects.toMatchObject({ code: "LEDGER_CONFLICT" });
    expect(tries).toBe(6);
  });

  it.each(["LEDGER_FULL", "LEDGER_CORRUPT", "LEDGER_CLOSED"] as const)(
    "is not tried again after %s",
    async (code) => {
      let tries = 0;
      const mine = logOver(createWorld(), (store) => ({
        ...store,
        append: () => {
          tries += 1;
          return Promise.reject(new CoordinationError(code, "no"));
        },
      }));
      await expect(mine.submit(RUN, [OPEN])).rejects.toMatchObject({ code });
      expect(tries).toBe(1);
    },
  );

  it("with several commands records all of them or none", async () => {
    const w = createWorld();
    const log = logOver(w);
    expect(await log.submit(RUN, [OPEN, spawn("a"), complete(7)])).toMatchObject({
      kind: "refused",
      code: "UNKNOWN_STEP",
    });
    expect(w.ledger.runs.size).toBe(0);
    expect(await log.submit(RUN, [OPEN, spawn("a"), acknowledge(1)])).toMatchObject({
      kind: "accepted",
      stepId: "step-1",
    });
    expect(factsOf(w)).toHaveLength(4);
  });
});

describe("an append that fails", () => {
  it("voids what was decided on top of it, which is then decided again", async () => {
    const w = createWorld();
    const { log, fail: breakIt } = createFailingLog(w);
    await log.submit(RUN, [OPEN, spawn("a")]);
    const doomed = log.submit(RUN, [spawn("b")]);
    await waitUntilSettled();
    const onTop = log.submit(RUN, [spawn("c")]);
    await waitUntilSettled();
    breakIt();
    await expect(doomed).rejects.toMatchObject({ code: "LEDGER_FULL" });
    expect(await onTop).toMatchObject({ kind: "accepted", stepId: "step-2" });
    expect(await verifyLedger(w.ledger.open(w.clock))).toMatchObject({ ok: true });
  });

  it("takes what was decided on top of it along, also where another writer appended as many events", async () => {
    const w = createWorld();
    const others = logOver(w);
    await others.submit(RUN, [OPEN, spawn("a"), acknowledge(1)]);
    let first: Promise<void> | undefined;
    const mine = logOver(w, (store) => ({
      ...store,
      append: async (request) => {
        // As the queue of a ledger: one after the other, and others before the first of them.
        const before = first;
        if (before) await before.catch(() => undefined);
        else first = others.submit(RUN, [fail(1)]).then(() => store.append(request));
        return before ? store.append(request) : first;
      },
    }));
    await mine.latest(RUN);
    const late = mine.submit(RUN, [timeOut(1)]);
    const onTop = mine.submit(RUN, [{ type: "settleCoordination" }]);
    await Promise.all([late, onTop]);
    const end = w.ledger
      .events()
      .flat()
      .find(({ type }) => type === "coordination.terminal");
    expect(end?.payload).toMatchObject({ steps: { failed: 1, timedOut: 0 } });
    expect(await verifyLedger(w.ledger.open(w.clock))).toMatchObject({ ok: true });
  });

  it("refuses commands that were made of its state, and takes those that are made anew", async () => {
    const w = createWorld();
    const { log, fail: breakIt } = createFailingLog(w);
    await log.submit(RUN, [OPEN, spawn("a")]);
    const doomed = log.submit(RUN, [spawn("b")]);
    await waitUntilSettled();
    const { basis } = await log.stateOnBasis(RUN);
    const onTop = log.submit(RUN, [spawn("c")], [], { madeOn: basis });
    await waitUntilSettled();
    breakIt();
    await expect(doomed).rejects.toMatchObject({ code: "LEDGER_FULL" });
    expect(await onTop).toMatchObject({ kind: "refused", code: "STATE_VOID" });
    const { basis: anew } = await log.stateOnBasis(RUN);
    expect(await log.submit(RUN, [spawn("c")], [], { madeOn: anew })).toMatchObject({ kind: "accepted" });
    expect(factsOf(w).filter((type) => type === "step.admitted")).toHaveLength(2);
  });

  it("is never found on disk, and what stands without it is", async () => {
    const w = createWorld();
    const { log, fail: breakIt } = createFailingLog(w);
    await log.submit(RUN, [OPEN, spawn("a")]);
    const doomed = log.submit(RUN, [spawn("b")]);
    await waitUntilSettled();
    const countSteps = (min: number) =>
      log.findOnDisk(RUN, (state) =>
        state.kind === "open" && state.steps.size >= min ? state.steps.size : undefined,
      );
    const counted = Promise.all([countSteps(1), countSteps(2), countSteps(3)]);
    await waitUntilSettled();
    breakIt();
    await expect(doomed).rejects.toMatchObject({ code: "LEDGER_FULL" });
    expect(await counted).toEqual([1, undefined, undefined]);
  });

  it("hides nothing that is on disk: what it would have ended is found once it failed", async () => {
    const w = createWorld();
    const { log, fail: breakIt } = createFailingLog(w);
    await log.submit(RUN, [OPEN, spawn("a")]);
    const doomed = log.submit(RUN, [timeOut(1)]);
    await waitUntilSettled();
    const found = log.findOnDisk(RUN, (state) =>
      state.kind === "open" && state.openSteps.size > 0 ? state.openSteps.size : undefined,
    );
    await waitUntilSettled();
    breakIt();
    await expect(doomed).rejects.toMatchObject({ code: "LEDGER_FULL" });
    expect(await found).toBe(1);
  });

  it("takes back the refusal that rested on it", async () => {
    const w = createWorld();
    const { log, fail: breakIt } = createFailingLog(w);
    await log.submit(RUN, [OPEN, spawn("a")]);
    const doomed = log.submit(RUN, [timeOut(1)]);
    await waitUntilSettled();
    const other = log.submit(RUN, [fail(1)]);
    await waitUntilSettled();
    breakIt();
    await expect(doomed).rejects.toMatchObject({ code: "LEDGER_FULL" });
    expect(await other).toMatchObject({ kind: "accepted" });
    expect(factsOf(w).at(-1)).toBe("step.failed");
  });

  it("takes back the replay that rested on it", async () => {
    const w = createWorld();
    const { log, fail: breakIt } = createFailingLog(w);
    await log.submit(RUN, [OPEN]);
    const doomed = log.submit(RUN, [spawn("a")]);
    await waitUntilSettled();
    const again = log.submit(RUN, [spawn("a")]);
    await waitUntilSettled();
    breakIt();
    await expect(doomed).rejects.toMatchObject({ code: "LEDGER_FULL" });
    expect(await again).toMatchObject({ kind: "accepted", stepId: "step-1" });
  });

  it("lets nobody append before all that rested on it has failed too", async () => {
    const w = createWorld();
    const holders: (() => void)[] = [];
    let hold = false;
    const log = logOver(w, (store) => ({
      ...store,
      append: async (request) => {
        if (hold) await new Promise<void>((resolve) => holders.push(resolve));
        if (hold && holders.length === 2 && request.events.some((event) => event.nodeId === "step-1"))
          throw new CoordinationError("LEDGER_FULL", "full");
        return store.append(request);
      },
    }));
    await log.submit(RUN, [OPEN]);
    hold = true;
    const doomed = log.submit(RUN, [spawn("a")]);
    const onTop = log.submit(RUN, [spawn("b")]);
    await waitUntilSettled();
    holders[0]?.();
    await expect(doomed).rejects.toMatchObject({ code: "LEDGER_FULL" });
    // As long as the doomed one: if it went first, the held one would fit behind it and be recorded a second time (D2).
    hold = false;
    const again = log.submit(RUN, [spawn("b")]);
    await waitUntilSettled();
    holders[1]?.();
    const results = await Promise.all([onTop, again]);
    expect(results.map(({ kind }) => kind).toSorted()).toEqual(["accepted", "replay"]);
    expect(factsOf(w).filter((type) => type === "step.admitted")).toHaveLength(1);
    expect(await verifyLedger(w.ledger.open(w.clock))).toMatchObject({ ok: true });
  });
});

describe("verifyLedger", () => {
  it("takes what is appended while it reads for no damage", async () => {
    const w = createWorld();
    const writer = logOver(w);
    await writer.submit(RUN, [OPEN, spawn("a")]);
    const store = w.ledger.open(w.clock);
    let reads = 0;
    const growing: MemoryStore = {
      ...store,
      read: async (runId, range) => {
        reads += 1;
        await writer.submit(RUN, [spawn(`b${reads}`)]);
        return store.read(runId, range);
      },
    };
    expect(await verifyLedger(growing)).toMatchObject({ ok: true, coordinations: 1 });
    expect(reads).toBeGreaterThan(1);
  });

  it.each([
    ["a projection that is missing", 1, "L5: run.started is missing before co-1:2"],
    ["a decision that is missing", 3, "L5"],
  ])("finds %s", async (_, sequence, message) => {
    const w = createWorld();
    await logOver(w).submit(RUN, [OPEN, spawn("a"), acknowledge(1)]);
    const stored = w.ledger.runs.get(RUN)!.events;
    const changed = stored.toSpliced(sequence, 1).map((text, index) => {
      const event = JSON.parse(text) as RunEvent;
      return JSON.stringify({ ...event, sequence: index });
    });
    stored.splice(0, stored.length, ...changed);
    const { ok, problems } = await verifyLedger(w.ledger.open(w.clock));
    expect(ok).toBe(false);
    expect(problems.map((problem) => problem.message).join()).toContain(message);
  });

  it.each<[string, (event: RunEvent) => object, string]>([
    ["a changed projection", (event) => ({ payload: { ...event.payload, workflowId: "x" } }), "L5: co-1:1"],
    ["a cause that is not there", () => ({ causationId: "co-1:99" }), "L3: co-1:1 is caused by co-1:99"],
    ["an unknown type", () => ({ type: "run.teleported" }), "unknown type"],
  ])("finds %s", async (_, change, message) => {
    const w = createWorld();
    await logOver(w).submit(RUN, [OPEN, spawn("a")]);
    const stored = w.ledger.runs.get(RUN)!.events;
    const event = JSON.parse(stored[1]!) as RunEvent;
    stored[1] = JSON.stringify({ ...event, ...change(event) });
    const { problems } = await verifyLedger(w.ledger.open(w.clock));
    expect(problems.map((problem) => problem.message).join()).toContain(message);
  });

  it("finds a summary that is not what the log says", async () => {
    const w = createWorld();
    await logOver(w).submit(RUN, [OPEN]);
    const stored = w.ledger.runs.get(RUN)!;
    stored.summary = { ...stored.summary, status: "success" };
    expect((await verifyLedger(w.ledger.open(w.clock))).problems).toMatchObject([{ kind: "index_differs" }]);
  });
});
