/** Owns: waiting for time to pass, and for work to be done within it or unless a signal aborts. */
import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import {
  waitForDuration,
  waitUnlessAborted,
  waitWithin,
} from "../../src/agents/coordination/std/wait-for.ts";
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

describe("waiting for work unless a signal aborts", () => {
  const never = Promise.withResolvers<string>().promise;

  it("gives the result of the work, and fails as it does", async () => {
    const { signal } = new AbortController();
    expect(await waitUnlessAborted(Promise.resolve("result"), signal, "stopped")).toBe("result");
    const failing = Promise.reject(new Error("broken"));
    await expect(waitUnlessAborted(failing, signal, "stopped")).rejects.toThrow("broken");
  });

  it("gives up as soon as the signal aborts, and at once where it was aborted before", async () => {
    const controller = new AbortController();
    const waiting = waitUnlessAborted(never, controller.signal, "stopped");
    controller.abort();
    expect(await waiting).toBe("stopped");
    expect(await waitUnlessAborted(Promise.resolve("result"), controller.signal, "stopped")).toBe("stopped");
  });

  it("leaves no listener behind", async () => {
    const { signal } = new AbortController();
    await waitUnlessAborted(Promise.resolve("result"), signal, "stopped");
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});
