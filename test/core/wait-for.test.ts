/** Owns: waiting for time to pass, and for work to be done within it. */
import { describe, expect, it } from "vitest";
import { waitForDuration, waitWithin } from "../../src/agents/coordination/std/wait-for.ts";
import { createFakeClock } from "../support/fake-clock.ts";

/** Begins to wait a second, and says whether that is over now. */
function startWait(signal: AbortSignal) {
  const clock = createFakeClock();
  let isOver = false;
  const waiting = waitForDuration(clock, 1_000, signal).then(() => {
    isOver = true;
  });
  return { clock, waiting, isOver: () => isOver };
}

describe("waiting for time to pass", () => {
  it("is over after its time", async () => {
    const { clock, isOver } = startWait(new AbortController().signal);
    await clock.advance(999);
    expect(isOver()).toBe(false);
    await clock.advance(1);
    expect(isOver()).toBe(true);
  });

  it("is over as soon as the signal aborts", async () => {
    const controller = new AbortController();
    const { waiting } = startWait(controller.signal);
    controller.abort();
    await expect(waiting).resolves.toBeUndefined();
  });

  it("is over at once where the signal was aborted before", async () => {
    const { waiting } = startWait(AbortSignal.abort());
    await expect(waiting).resolves.toBeUndefined();
  });
});

describe("waiting for work within a time", () => {
  it("gives the result of the work, and leaves no timer behind", async () => {
    const clock = createFakeClock();
    expect(await waitWithin(clock, 1_000, Promise.resolve("result"), "late")).toBe("result");
    expect(clock.pending).toBe(0);
  });

  it("fails as the work does, and leaves no timer behind", async () => {
    const clock = createFakeClock();
    const failing = Promise.reject(new Error("broken"));
    await expect(waitWithin(clock, 1_000, failing, "late")).rejects.toThrow("broken");
    expect(clock.pending).toBe(0);
  });

  it("gives up when the time is over", async () => {
    const clock = createFakeClock();
    const waiting = waitWithin(clock, 1_000, Promise.withResolvers<string>().promise, "late");
    await clock.advance(1_000);
    expect(await waiting).toBe("late");
  });
});
