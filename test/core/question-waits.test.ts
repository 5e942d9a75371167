import { describe, expect, it } from "vitest";
import { addMs, type CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { createQuestionWaits } from "../../src/agents/coordination/runtime/questions/question-waits.ts";
import { createFakeClock, waitUntilSettled } from "../support/fake-clock.ts";

const RUN = "co-1" as CoordinationId;

function startWaiting(condition: () => boolean | Promise<boolean>, waitMs = 10_000, signal?: AbortSignal) {
  const clock = createFakeClock();
  const waits = createQuestionWaits(clock);
  const seen = { isOver: false };
  const completion = waits
    .until(() => Promise.resolve(condition()), {
      untilMs: addMs(clock.now(), waitMs),
      ...(signal && { signal }),
    })
    .then(() => {
      seen.isOver = true;
    });
  return { clock, waits, seen, completion: completion };
}

describe("waiting for people", () => {
  it("is over at once where what is waited for is there", async () => {
    const { seen, clock } = startWaiting(() => true);
    await waitUntilSettled();
    expect([seen.isOver, clock.pending]).toEqual([true, 0]);
  });

  it("looks again when something changed", async () => {
    let isThere = false;
    const { seen, clock, waits } = startWaiting(() => isThere);
    await waitUntilSettled();
    waits.changed();
    await waitUntilSettled();
    expect(seen.isOver).toBe(false);
    isThere = true;
    waits.changed();
    await waitUntilSettled();
    expect([seen.isOver, clock.pending]).toEqual([true, 0]);
  });

  it("looks by itself for what another process did", async () => {
    let isThere = false;
    const { seen, clock } = startWaiting(() => isThere);
    await waitUntilSettled();
    isThere = true;
    await clock.advance(1_999);
    expect(seen.isOver).toBe(false);
    await clock.advance(1);
    expect(seen.isOver).toBe(true);
  });

  it("ends with its time, and leaves no timer behind", async () => {
    const { seen, clock } = startWaiting(() => false, 5_000);
    await clock.advance(4_999);
    expect(seen.isOver).toBe(false);
    await clock.advance(1);
    expect([seen.isOver, clock.pending]).toEqual([true, 0]);
  });

  it("ends when it is not wanted any more, also before it began", async () => {
    const stop = new AbortController();
    const { seen, clock } = startWaiting(() => false, 60_000, stop.signal);
    await waitUntilSettled();
    stop.abort();
    await waitUntilSettled();
    expect([seen.isOver, clock.pending]).toEqual([true, 0]);
    const before = startWaiting(() => false, 60_000, stop.signal);
    await waitUntilSettled();
    expect(before.seen.isOver).toBe(true);
  });

  it("fails where looking fails, and leaves no timer behind", async () => {
    const { completion, clock } = startWaiting(() => Promise.reject(new Error("closed")));
    await expect(completion).rejects.toThrow("closed");
    expect(clock.pending).toBe(0);
  });

  it("does not take a change for lost that comes while it looks", async () => {
    const looks: PromiseWithResolvers<boolean>[] = [];
    const { seen, waits, clock } = startWaiting(() => {
      const look = Promise.withResolvers<boolean>();
      looks.push(look);
      return look.promise;
    });
    await waitUntilSettled();
    waits.changed();
    looks[0]?.resolve(false);
    await clock.advance(2_000);
    looks[1]?.resolve(true);
    await waitUntilSettled();
    expect(seen.isOver).toBe(true);
  });
});

describe("what a tool call is about to say", () => {
  it("is claimed until a moment after the last one that waits for it lets go", async () => {
    const clock = createFakeClock();
    const waits = createQuestionWaits(clock);
    let freed = 0;
    const one = waits.claim(RUN, "answer:escalation-1");
    const two = waits.claim(RUN, "answer:escalation-1");
    expect(waits.isClaimed(RUN, "answer:escalation-1")).toBe(true);
    expect(waits.isClaimed(RUN, "answer:escalation-2")).toBe(false);
    expect(waits.isClaimed("co-2" as CoordinationId, "answer:escalation-1")).toBe(false);
    one.release(() => (freed += 1));
    await clock.advance(1_000);
    expect(waits.isClaimed(RUN, "answer:escalation-1")).toBe(true);
    two.release(() => (freed += 1));
    expect(waits.isClaimed(RUN, "answer:escalation-1")).toBe(true);
    await clock.advance(1_000);
    expect(waits.isClaimed(RUN, "answer:escalation-1")).toBe(false);
    expect(freed).toBe(2);
  });
});
