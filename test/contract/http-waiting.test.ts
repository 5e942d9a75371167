import { describe, expect, it } from "vitest";
import { waitFor } from "../../src/infra/http/waiting.ts";
import { createFakeClock } from "../support/fake-clock.ts";

/** Begins to wait a second, and says whether that is over now. */
function startWait(signal: AbortSignal) {
  const clock = createFakeClock();
  let isOver = false;
  const waiting = waitFor(clock, 1_000, signal).then(() => {
    isOver = true;
  });
  return { clock, waiting, isOver: () => isOver };
}

describe("waiting with a signal", () => {
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
